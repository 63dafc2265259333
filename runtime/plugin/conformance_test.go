package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi"
)

// conformanceCase is one case of abi/conformance.
type conformanceCase struct {
	Name     string            `json:"name"`
	Function string            `json:"function"`
	Conf     map[string]string `json:"conf"`
	Context  struct {
		Pipeline       string       `json:"pipeline"`
		Flow           string       `json:"flow"`
		BatchID        int64        `json:"batch_id"`
		BatchTimestamp time.Time    `json:"batch_timestamp"`
		LatestVersion  *abi.Version `json:"latest_version"`
	} `json:"context"`
	Inputs []struct {
		Schema  string            `json:"schema"`
		Batches []json.RawMessage `json:"batches"`
	} `json:"inputs"`
	Queries []conformanceAnswer `json:"queries"`
	Output  *struct {
		Schema string          `json:"schema"`
		Rows   json.RawMessage `json:"rows"`
	} `json:"output"`
	RowErrors []struct {
		Input int    `json:"input"`
		Row   int64  `json:"row"`
		Code  string `json:"code"`
	} `json:"row_errors"`
	// Snapshot is what a snapshot provider says.
	Snapshot json.RawMessage              `json:"snapshot"`
	Error    *struct{ Code, Text string } `json:"error"`
}

// conformanceAnswer is what the host answers to a query.
type conformanceAnswer struct {
	SQL     string            `json:"sql"`
	Params  json.RawMessage   `json:"params"`
	Refused string            `json:"refused"`
	Schema  string            `json:"schema"`
	Batches []json.RawMessage `json:"batches"`
}

// answers is a querier that knows some answers.
type answers struct {
	t   *testing.T
	mem memory.Allocator
	all []conformanceAnswer
}

func (a answers) Query(_ context.Context, q Query) (array.RecordReader, error) {
	for _, c := range a.all {
		known, err := abi.ParseQuery(fmt.Appendf(nil, `{"sql": %q, "params": %s}`, c.SQL, c.Params))
		if err != nil {
			a.t.Fatal(err)
		}
		if known.SQL != q.SQL || !slices.Equal(known.Params, q.Params) {
			continue
		}
		if c.Refused != "" {
			return nil, errors.New(c.Refused)
		}
		if q.Empty {
			c.Batches = nil
		}
		return readerOf(a.t, a.mem, c.Schema, c.Batches), nil
	}
	return nil, fmt.Errorf("[NO_ANSWER] to %v", q)
}

func readerOf(t testing.TB, mem memory.Allocator, ddl string, batches []json.RawMessage) array.RecordReader {
	schema := schemaOf(t, ddl)
	var recs []arrow.RecordBatch
	for _, b := range batches {
		recs = append(recs, recordOf(t, mem, schema, b))
	}
	r, err := array.NewRecordReader(schema, recs)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range recs {
		rec.Release()
	}
	return r
}

func conformanceCases(t testing.TB) []conformanceCase {
	t.Helper()
	files, err := filepath.Glob("../../abi/conformance/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	var all []conformanceCase
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var cases []conformanceCase
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.DisallowUnknownFields()
		if err := d.Decode(&cases); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all = append(all, cases...)
	}
	return all
}

func TestConformance(t *testing.T) {
	modules := map[string]func(testing.TB) []byte{"c": buildC, "go": func(t testing.TB) []byte { return buildGo(t, "./testdata/go/conformance") }}
	if path := os.Getenv("WEIR_CONFORMANCE_MODULE"); path != "" {
		modules = map[string]func(testing.TB) []byte{filepath.Base(path): func(t testing.TB) []byte {
			wasm, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			return wasm
		}}
	}
	cases := conformanceCases(t)
	for name, build := range modules {
		t.Run(name, func(t *testing.T) {
			wasm := build(t)
			e := newEngine(t, Options{CacheDir: codeDir})
			load(t, e, wasm, nil) // keeps the code compiled between the cases
			for _, c := range cases {
				t.Run(c.Function+"/"+c.Name, func(t *testing.T) {
					m := load(t, e, wasm, c.Conf)
					if _, _, ok := m.Manifest().Function(c.Function); !ok {
						t.Skipf("the module has no function %s", c.Function)
					}
					c.run(t, m)
				})
			}
		})
	}
}

func recordOf(t testing.TB, mem memory.Allocator, schema *arrow.Schema, text json.RawMessage) arrow.RecordBatch {
	t.Helper()
	rec, _, err := array.RecordFromJSON(mem, schema, strings.NewReader(string(text)))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return rec
}

func (c *conformanceCase) run(t *testing.T, m *Module) {
	mem := checked(t)
	call := Call{Function: c.Function, Mem: mem, Context: abi.CallContext{
		Pipeline: c.Context.Pipeline, Flow: c.Context.Flow, BatchID: c.Context.BatchID, BatchTimestamp: c.Context.BatchTimestamp, LatestVersion: c.Context.LatestVersion}}
	var said []abi.SnapshotResult
	call.OnSnapshot = func(s abi.SnapshotResult) error {
		said = append(said, s)
		return nil
	}
	for _, in := range c.Inputs {
		r := readerOf(t, mem, in.Schema, in.Batches)
		defer r.Release()
		call.Inputs = append(call.Inputs, r)
	}
	if c.Queries != nil {
		call.Querier = answers{t, mem, c.Queries}
	}
	var rowErrors []string
	call.OnRowError = func(input int, row int64, code, _ string) error {
		rowErrors = append(rowErrors, fmt.Sprint(input, row, code))
		return nil
	}
	r, err := m.Map(context.Background(), call)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	var got []arrow.RecordBatch
	defer func() {
		for _, b := range got {
			b.Release()
		}
	}()
	for r.Next() {
		b := r.RecordBatch()
		b.Retain()
		got = append(got, b)
	}
	if c.Error != nil {
		wantError(t, r.Err(), c.Error.Code, c.Error.Text)
		return
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	c.compare(t, mem, r.Schema(), got)
	if c.Snapshot != nil {
		want, err := abi.ParseSnapshotResult(c.Snapshot)
		if err != nil {
			t.Fatal(err)
		}
		if len(said) != 1 || !reflect.DeepEqual(said[0], want) {
			t.Errorf("it says %+v, want %+v", said, want)
		}
	}
	var want []string
	for _, e := range c.RowErrors {
		want = append(want, fmt.Sprint(e.Input, e.Row, e.Code))
	}
	if strings.Join(rowErrors, ", ") != strings.Join(want, ", ") {
		t.Errorf("row errors %v, want %v", rowErrors, want)
	}
}

func (c *conformanceCase) compare(t *testing.T, mem memory.Allocator, schema *arrow.Schema, got []arrow.RecordBatch) {
	t.Helper()
	wantSchema := schemaOf(t, c.Output.Schema)
	want := recordOf(t, mem, wantSchema, c.Output.Rows)
	defer want.Release()
	if schema.NumFields() != wantSchema.NumFields() {
		t.Fatalf("the schema is %v, want %v", schema, wantSchema)
	}
	for i, f := range wantSchema.Fields() {
		if g := schema.Field(i); g.Name != f.Name || !arrow.TypeEqual(g.Type, f.Type) {
			t.Fatalf("column %d is %v, want %v", i, g, f)
		}
		var pieces []arrow.Array
		for _, b := range got {
			pieces = append(pieces, b.Column(i))
		}
		if len(pieces) == 0 {
			if want.NumRows() != 0 {
				t.Fatalf("no rows, want %d", want.NumRows())
			}
			continue
		}
		whole, err := array.Concatenate(pieces, mem)
		if err != nil {
			t.Fatal(err)
		}
		if !array.Equal(whole, want.Column(i)) {
			t.Errorf("column %s is\n%v, want\n%v", f.Name, whole, want.Column(i))
		}
		whole.Release()
	}
}

// buildC compiles the guest in C, once.
func buildC(t testing.TB) []byte {
	t.Helper()
	if _, err := exec.LookPath("clang"); err != nil {
		t.Skip("skipped, which is no pass: there is no clang to build the guest in C")
	}
	return built(t, "c", func(out string) *exec.Cmd {
		return exec.Command("clang", "--target=wasm32", "-O2", "-nostdlib", "-mbulk-memory", "-Wall", "-Wextra", "-Werror",
			"-I", "../../abi", "-Wl,--no-entry", "-o", out, "testdata/c/conformance.c")
	})
}

// buildGo compiles a guest in Go as its author would, once.
func buildGo(t testing.TB, dir string) []byte {
	t.Helper()
	return built(t, dir, func(out string) *exec.Cmd {
		cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, dir)
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
		return cmd
	})
}

var builds struct {
	sync.Mutex
	wasm map[string][]byte
}

func built(t testing.TB, name string, command func(out string) *exec.Cmd) []byte {
	t.Helper()
	builds.Lock()
	defer builds.Unlock()
	if wasm, ok := builds.wasm[name]; ok {
		return wasm
	}
	out := filepath.Join(t.TempDir(), "guest.wasm")
	if text, err := command(out).CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", name, err, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if builds.wasm == nil {
		builds.wasm = map[string][]byte{}
	}
	builds.wasm[name] = wasm
	return wasm
}
