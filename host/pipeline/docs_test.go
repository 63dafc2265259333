package pipeline

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/fault"
)

// The blocks of a page are one project: a block with a path is a file, one
// called query gives the rows of the next one, and what the page's table says
// is refused is.
func TestThePagesOfPipelineSQLAreTrue(t *testing.T) {
	for _, page := range []struct {
		name              string
		queries, refusals int // at least
	}{{"pipeline.md", 4, 15}, {"from-lakeflow.md", 2, 3}, {"cdc-feeds.md", 10, 0}, {"cdc.md", 6, 3}} {
		t.Run(page.name, func(t *testing.T) {
			text := readPage(t, page.name)
			p, queries := pageProject(t, text)
			if len(queries) < page.queries {
				t.Fatalf("only %d queries", len(queries))
			}
			p.completed(RunOptions{})
			for _, q := range queries {
				p.wantRows(q[0], strings.Split(q[1], "\n")...)
			}
			again := p.completed(RunOptions{})
			for _, f := range again.Flows {
				if f.Batches != 0 {
					t.Errorf("%s read something twice", f.Dataset)
				}
			}
			refused := regexp.MustCompile("(?m)^\\| `([A-Z]+ [^`]+)` \\| `([A-Z_]+)` \\|$").FindAllStringSubmatch(text, -1)
			if len(refused) < page.refusals {
				t.Fatalf("only %d refusals", len(refused))
			}
			for _, m := range refused {
				t.Run(m[1], func(t *testing.T) { p.refuses(t, m[1], m[2]) })
			}
		})
	}
}

// pageProject writes the files of a page and gives its queries with their rows.
func pageProject(t *testing.T, page string) (*project, [][2]string) {
	t.Helper()
	p := &project{t: t, dir: t.TempDir(), mem: checked(t)}
	var queries [][2]string
	for _, m := range regexp.MustCompile("(?ms)^```[a-z]+ (\\S+)\n(.*?)^```").FindAllStringSubmatch(page, -1) {
		switch name, text := m[1], m[2]; name {
		case "query":
			queries = append(queries, [2]string{text})
		case "rows":
			queries[len(queries)-1][1] = strings.TrimSpace(text)
		default:
			p.write(name, text)
		}
	}
	return p, queries
}

// refuses adds the statement to the project, whose plan must then fail there.
func (p *project) refuses(t *testing.T, statement, code string) {
	t.Helper()
	if strings.HasPrefix(statement, "SELECT") {
		statement = "CREATE OR REFRESH STREAMING TABLE refused AS " + statement
	}
	p.write("transformations/refused.sql", statement+";\n")
	err := p.plans(t)
	if fault.CodeOf(err) != code {
		t.Fatal(err)
	}
	if !strings.Contains(err.Error(), "refused.sql, line 1") {
		t.Errorf("%v does not say where", err)
	}
}

// plans opens and plans the project as it is now.
func (p *project) plans(t *testing.T) error {
	t.Helper()
	pl, err := p.tryOpen()
	if err != nil {
		return err
	}
	_, err = pl.Plan(t.Context())
	if closing := pl.Close(context.Background()); closing != nil {
		t.Error(closing)
	}
	return err
}

func TestTheExampleOfTheSpecPageIsASpec(t *testing.T) {
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllStringSubmatch(readPage(t, "spec.md"), -1)
	if len(blocks) == 0 {
		t.Fatal("no example")
	}
	for _, b := range blocks {
		if s, err := parseText(t, b[1], nil); err != nil || s.Name == "" {
			t.Errorf("%v", err)
		}
	}
}

func TestUnfinishedFullRefreshesAreAsDocumented(t *testing.T) {
	_, rest, found := strings.Cut(readPage(t, "formats.md"), "<!-- example: full-refresh -->\n```json\n")
	text, _, closed := strings.Cut(rest, "\n```")
	if !found || !closed {
		t.Fatal("no example")
	}
	var record refreshIntent
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&record); err != nil || record.Format != 1 || len(record.Datasets) != 2 {
		t.Fatalf("%+v, %v", record, err)
	}
	if again, err := json.Marshal(record); err != nil || string(again) != text {
		t.Errorf("written again it is %s (%v)", again, err)
	}
}

func TestTheRecordOfAnUpdateIsAsDocumented(t *testing.T) {
	_, rest, found := strings.Cut(readPage(t, "formats.md"), "<!-- example: update -->\n```json\n")
	text, _, closed := strings.Cut(rest, "\n```")
	if !found || !closed {
		t.Fatal("no example")
	}
	var record updateRecord
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&record); err != nil || record.Format != 1 || len(record.Flows) != 2 {
		t.Fatalf("%+v, %v", record, err)
	}
	if again, err := json.Marshal(record); err != nil || string(again) != text {
		t.Errorf("written again it is %s (%v)", again, err)
	}
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repoRoot, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
