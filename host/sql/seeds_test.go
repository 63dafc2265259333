package sql

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

var seedSettings = Settings{Catalog: "main", Schema: "sales", Configuration: map[string]string{
	"catalog": "dwh_dev", "source_catalog": "dev", "course.landing": "/in", "course.min_qty": "2", "kafka_brokers": "b:9092",
}}

type seedBlock struct{ title, want, text string }

// seedBlocks reads testdata/seeds.sql: a line --@ title: result, then SQL.
func seedBlocks(t testing.TB) []seedBlock {
	t.Helper()
	text, err := os.ReadFile("testdata/seeds.sql")
	if err != nil {
		t.Fatal(err)
	}
	var out []seedBlock
	for _, part := range strings.Split(string(text), "\n--@ ")[1:] {
		head, body, _ := strings.Cut(part, "\n")
		i := strings.LastIndex(head, ": ")
		if i < 0 {
			t.Fatalf("%q says no result", head)
		}
		out = append(out, seedBlock{head[:i], head[i+2:], body})
	}
	if len(out) < 60 {
		t.Fatalf("only %d blocks", len(out))
	}
	return out
}

// covers A56, A59, A74, A96, A97, A98, A115, A116, A117, A121, A124, A127, A141, A142, A152, A169
func TestTheBlocksOfTheSeeds(t *testing.T) {
	code := regexp.MustCompile(`^[A-Z_]+$`)
	for _, b := range seedBlocks(t) {
		t.Run(b.title, func(t *testing.T) {
			list, err := ParsePipeline("seed.sql", b.text, seedSettings)
			if err == nil {
				err = streamable(t, list)
			}
			if b.want == "parses" {
				if err != nil || len(list) == 0 {
					t.Fatalf("%d statements, %v", len(list), err)
				}
				return
			}
			if !code.MatchString(b.want) || fault.CodeOf(err) != b.want || !strings.Contains(err.Error(), "seed.sql, line ") {
				t.Fatalf("got %v, want %s", err, b.want)
			}
			var f *fault.Error
			if !errors.As(err, &f) || f.Hint == "" && f.Code != "PARSE_SYNTAX_ERROR" {
				t.Errorf("%v does not say what to do instead", err)
			}
		})
	}
}

// streamable gives what the rewriter says of streaming queries, which it says
// before it knows a column.
func streamable(t *testing.T, list []Statement) error {
	t.Helper()
	e := openEngine(t)
	for _, s := range list {
		if s.Query == "" || s.Kind != StreamingTable {
			continue
		}
		in := map[string]*arrow.Schema{}
		for _, src := range s.Sources {
			in[src.Alias] = stream(t, table(t, "id INT", "[]"), "").Schema()
		}
		if _, err := e.Describe(t.Context(), s.Select(), in); fault.CodeOf(err) == "UNSUPPORTED_STREAMING_OPERATION" {
			return err
		}
	}
	return nil
}
