package ingest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// TestRealRowsSayWhatTheirDocumentsSay compares every row of the line-based
// files with what encoding/json makes of its line, value by value: nothing is
// lost, changed or moved, unless rescued data says so.
func TestRealRowsSayWhatTheirDocumentsSay(t *testing.T) {
	dir := shared(t, "ndjson")
	for _, name := range []string{
		"zeek_interleaved.ndjson.gz", "github_events.ndjson", "gharchive/2015-01-01-0.json.gz", "mongo_extjson/restaurant.json.gz",
		"../orders_json/ecommerce_orders.ndjson.gz", "mongo_extjson/products.json", "spark_rapids/mixed_objects.json", "duckdb/different_schemas.ndjson",
	} {
		path := filepath.Join(dir, name)
		matches, err := filepath.Glob(path)
		if err != nil || len(matches) == 0 {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			s, err := Parse(ReadFiles, escapeGlob(path), opts("format=json"), Env{})
			if err != nil {
				t.Fatal(err)
			}
			fs := files(t, s)
			schema, err := s.Infer(context.Background(), fs)
			if err != nil {
				t.Fatal(err)
			}
			got := read(t, s, schema, fs, ReadOptions{})
			if got.err != nil {
				t.Fatal(got.err)
			}
			types := map[string]arrow.DataType{}
			for _, f := range schema.Fields {
				types[f.Name] = f.Type
			}
			sc := bufio.NewScanner(bytes.NewReader(plain(t, path)))
			sc.Buffer(nil, 64<<20)
			row, checked := 0, 0
			// Every line counts as a row; the values of some thousand of them are compared.
			for sc.Scan() {
				if row >= 3000 {
					row += b2i(len(bytes.TrimSpace(sc.Bytes())) > 0)
					continue
				}
				var doc map[string]json.RawMessage
				line := bytes.TrimSpace(sc.Bytes())
				if len(line) == 0 {
					continue
				}
				text := got.rows[row]
				row++
				if json.Unmarshal(line, &doc) != nil {
					continue
				}
				var out map[string]json.RawMessage
				if err := json.Unmarshal([]byte(text), &out); err != nil {
					t.Fatal(err)
				}
				rescued := string(out["_rescued_data"])
				for key, raw := range doc {
					dt, known := types[key]
					if !known {
						if string(raw) != "null" && !strings.Contains(rescued, key) {
							t.Fatalf("row %d: %s is nowhere: %s", row, key, text)
						}
						continue
					}
					if err := agrees(raw, out[key], dt); err != nil && rescued == "null" {
						t.Fatalf("row %d: %s: %v\n%s\n%s", row, key, err, raw, out[key])
					}
					checked++
				}
			}
			if row != len(got.rows) || checked == 0 {
				t.Fatalf("%d lines, %d rows, %d values", row, len(got.rows), checked)
			}
		})
	}
}

// agrees compares a value of a document with the one of a column.
func agrees(raw, got json.RawMessage, dt arrow.DataType) error {
	if string(raw) == "null" {
		if string(got) != "null" {
			return fmt.Errorf("not null")
		}
		return nil
	}
	switch t := dt.(type) {
	case *arrow.StringType:
		var want, have string
		if json.Unmarshal(raw, &want) != nil {
			want = string(raw)
		}
		if err := json.Unmarshal(got, &have); err != nil || have != want {
			return fmt.Errorf("%q, want %q", have, want)
		}
	case *arrow.StructType:
		var want, have map[string]json.RawMessage
		if json.Unmarshal(raw, &want) != nil || json.Unmarshal(got, &have) != nil {
			return fmt.Errorf("no objects")
		}
		known := map[string]bool{}
		for _, f := range t.Fields() {
			known[f.Name] = true
			w, ok := want[f.Name]
			if !ok {
				w = json.RawMessage("null")
			}
			if err := agrees(w, have[f.Name], f.Type); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		for name, v := range want {
			if !known[name] && string(v) != "null" {
				return fmt.Errorf("%s is missing", name)
			}
		}
	case *arrow.ListType:
		var want, have []json.RawMessage
		if json.Unmarshal(raw, &want) != nil || json.Unmarshal(got, &have) != nil || len(want) != len(have) {
			return fmt.Errorf("%d elements, want %d", len(have), len(want))
		}
		for i := range want {
			if err := agrees(want[i], have[i], t.Elem()); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
	case *arrow.BooleanType, *arrow.Int64Type:
		if string(raw) != string(got) {
			return fmt.Errorf("%s", got)
		}
	case *arrow.Float64Type:
		want, err := strconv.ParseFloat(string(raw), 64)
		have, err2 := strconv.ParseFloat(string(got), 64)
		if err != nil || err2 != nil || want != have {
			return fmt.Errorf("%s, want %s", got, raw)
		}
	case *arrow.Decimal128Type:
		if string(raw) != string(got) {
			return fmt.Errorf("%s, want %s", got, raw)
		}
	default:
		return fmt.Errorf("no rule for %s", dt)
	}
	return nil
}
