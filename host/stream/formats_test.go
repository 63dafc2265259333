package stream

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-data/weir/host/catalog"
)

// The examples of docs/formats.md are what this code reads and writes.
func TestFormatsAreAsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	records := map[string]any{
		"identity":     &catalog.Identity{},
		"owner":        &catalog.Owner{},
		"generation":   &generation{},
		"offset-files": &offsetEntry{},
		"offset-delta": &offsetEntry{},
		"offset-feed":  &offsetEntry{},
		"commit":       &commitEntry{},
		"refresh":      &refreshEntry{},
		"snapshot":     &refreshEntry{},
		"schema-owner": &schemaOwner{},
	}
	var run bytes.Buffer
	times := []batchTimes{{time.UnixMicro(1_000_000), time.UnixMicro(1_000_007)}}
	files := newFileList([]knownFile{
		{path: "/l/a.json", size: 10, mtime: 5},
		{path: "/l/b.json", size: 300, mtime: 4, state: stateCode(SkippedMissing)},
	})
	if err := encodeRun(&run, runID{0, 0}, times, 2, mergeLists(files)); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, m := range regexp.MustCompile("(?s)<!-- example: ([a-z-]+) -->\n```[a-z]+\n(.*?)```").FindAllStringSubmatch(string(doc), -1) {
		name, text := m[1], strings.TrimSpace(m[2])
		seen++
		if name == "run" {
			got, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
			if err != nil || !bytes.Equal(got, run.Bytes()) {
				t.Errorf("run: the document has other bytes than\n%s", hexLines(run.Bytes()))
			}
			continue
		}
		if name == "full-refresh" || name == "update" || name == "state-manifest" {
			seen--
			continue // host/pipeline's and host/cdc/state's, which test them
		}
		record := records[name]
		if record == nil {
			t.Errorf("example %s is of no record", name)
			continue
		}
		dec := json.NewDecoder(strings.NewReader(text))
		dec.DisallowUnknownFields()
		if err := dec.Decode(record); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := json.Marshal(record)
		if err != nil || string(again) != text {
			t.Errorf("%s: written again it is %s", name, again)
		}
		if reflect.ValueOf(record).Elem().FieldByName("Format").Int() != 1 {
			t.Errorf("%s: format", name)
		}
	}
	if seen != len(records)+1 {
		t.Errorf("%d examples, want %d", seen, len(records)+1)
	}
	outcomeKeys := string(doc)
	for _, key := range []string{outcomeKey, fullRefreshKey} {
		if !strings.Contains(outcomeKeys, "`"+key+"`") {
			t.Errorf("the document does not name %s", key)
		}
	}
}

func hexLines(b []byte) string {
	var s strings.Builder
	for i := 0; i < len(b); i += 32 {
		s.WriteString(hex.EncodeToString(b[i:min(i+32, len(b))]) + "\n")
	}
	return s.String()
}
