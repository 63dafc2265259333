package wire

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi/coltype"
)

var update = flag.Bool("update", false, "write the golden vectors of abi/testdata/ipc again")

const goldenDir = "../../abi/testdata/ipc"

// vector is one entry of vectors.json.
type vector struct {
	Name   string          `json:"name"`
	Schema string          `json:"schema"`
	Rows   json.RawMessage `json:"rows"`
}

// refused is one entry of refused.json.
type refused struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Code string `json:"code"`
	Text string `json:"text"`
}

func fileOf(kind, name string) string {
	slug := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(name)), "_")
	return filepath.Join(goldenDir, kind, slug+".arrows")
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// golden compares bytes with a file, or writes it.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: the encoder writes other bytes than the golden ones (go test ./runtime/wire -update, if that is meant)", path)
	}
}

func (v vector) record(t *testing.T, mem memory.Allocator) arrow.RecordBatch {
	t.Helper()
	fields, err := coltype.ParseDDL(v.Schema)
	if err != nil {
		t.Fatal(err)
	}
	var out []arrow.Field
	for _, f := range fields {
		out = append(out, f.Arrow())
	}
	rec, _, err := array.RecordFromJSON(mem, arrow.NewSchema(out, nil), bytes.NewReader(v.Rows))
	if err != nil {
		t.Fatalf("%s: %v", v.Name, err)
	}
	return rec
}

// TestGoldenVectors: what the host writes is byte for byte what is written
// down, and what a foreign writer and the Go SDK wrote is read as the same rows.
func TestGoldenVectors(t *testing.T) {
	var vectors []vector
	readJSON(t, filepath.Join(goldenDir, "vectors.json"), &vectors)
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			want := v.record(t, mem)
			defer want.Release()
			enc, err := NewEncoder(want.Schema(), nil)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, fileOf("host", v.Name), encodeStream(t, enc, want))
			if *update {
				var b bytes.Buffer
				w := ipc.NewWriter(&b, ipc.WithSchema(want.Schema()))
				if err := w.Write(want); err != nil {
					t.Fatal(err)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				golden(t, fileOf("guest", v.Name), b.Bytes())
			}
			for _, kind := range []string{"host", "guest", "go"} {
				stream, err := os.ReadFile(fileOf(kind, v.Name))
				if err != nil {
					t.Fatal(err)
				}
				d := NewDecoder(mem, Limits{})
				got, err := decodeStream(d, stream)
				if err != nil {
					t.Fatalf("%s: %v", kind, err)
				}
				if err := SameSchema(want.Schema(), d.Schema()); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
				switch {
				case len(got) == 1:
					equalBatches(t, kind, want, got[0])
				case len(got) != 0 || want.NumRows() != 0:
					t.Errorf("%s: %d batches", kind, len(got))
				}
				release(got)
			}
		})
	}
}

// TestGoldenRefusals: streams that no host may accept.
func TestGoldenRefusals(t *testing.T) {
	list := filepath.Join(goldenDir, "refused.json")
	if *update {
		writeRefusals(t, list)
	}
	var all []refused
	readJSON(t, list, &all)
	for _, c := range all {
		stream, err := os.ReadFile(fileOf("refused", c.Name))
		if err != nil {
			t.Fatal(err)
		}
		batches, err := decodeStream(NewDecoder(memory.DefaultAllocator, Limits{}), stream)
		release(batches)
		t.Run(c.Name, func(t *testing.T) { wantRefusal(t, err, c.Code, c.Text) })
	}
}

func writeRefusals(t *testing.T, list string) {
	var names []string
	for name := range spoiledBatches {
		names = append(names, name)
	}
	sort.Strings(names)
	var b bytes.Buffer
	b.WriteString("[\n")
	for i, name := range names {
		c := spoiledBatches[name]
		schema, batch := oneColumn(t, c.typ, c.rows, c.nulls)
		c.spoil(batch)
		path := fileOf("refused", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(bytes.Clone(schema), batch...), 0o644); err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(refused{name, c.typ, c.code, c.text})
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("  " + string(line))
		if i < len(names)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("]\n")
	if err := os.WriteFile(list, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
