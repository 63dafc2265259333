package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"go.uber.org/goleak"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/abi/coltype"
)

// codeDir is a cache that tests with real modules share, and those of other runs
// where WEIR_TEST_CACHE names one: compiling one of them takes a second.
var codeDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "weir-plugin-test")
	if err != nil {
		panic(err)
	}
	if codeDir = os.Getenv("WEIR_TEST_CACHE"); codeDir == "" {
		codeDir = dir
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

const echoManifest = `{"abi": 1, "module": "echo", "functions": [
	{"name": "echo", "kind": "map", "inputs": [{"dataset": "a", "mode": "stream"}], "output": [{"name": "id", "type": "bigint"}, {"name": "name", "type": "string"}]},
	{"name": "learned", "kind": "map", "inputs": [{"dataset": "a", "mode": "stream"}]},
	{"name": "aligned", "kind": "map", "inputs": [{"dataset": "a", "mode": "stream", "columns": ["name"]}], "row_aligned": true,
	 "passthrough": {"id": "key"}, "output": [{"name": "name", "type": "string"}]},
	{"name": "renames", "kind": "map", "inputs": [{"dataset": "a", "mode": "stream", "columns": []}], "row_aligned": true,
	 "passthrough": {"name": "title", "id": "key"}, "output": []},
	{"name": "joined", "kind": "query", "inputs": [{"dataset": "a", "mode": "batch"}]}
	]}`

func newEngine(t testing.TB, opt Options) *Engine {
	t.Helper()
	e, err := NewEngine(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

func load(t testing.TB, e *Engine, wasm []byte, conf map[string]string) *Module {
	t.Helper()
	m, err := e.Load(context.Background(), wasm, Config{Name: "test", Conf: conf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m
}

func checked(t testing.TB) memory.Allocator {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return mem
}

func code(err error) string {
	var c interface{ CodeName() string }
	if errors.As(err, &c) {
		return c.CodeName()
	}
	return ""
}

// wantError checks code and text of an error.
func wantError(t testing.TB, err error, wantCode string, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want [%s] %q", wantCode, parts)
	}
	if code(err) != wantCode {
		t.Fatalf("%v, want code %s", err, wantCode)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Fatalf("%v\nwant it to say %q", err, p)
		}
	}
}

func schemaOf(t testing.TB, ddl string) *arrow.Schema {
	t.Helper()
	fields, err := coltype.ParseDDL(ddl)
	if err != nil {
		t.Fatal(err)
	}
	var out []arrow.Field
	for _, f := range fields {
		out = append(out, f.Arrow())
	}
	return arrow.NewSchema(out, nil)
}

// rows makes a reader of batches, each a JSON list of objects.
func rows(t testing.TB, mem memory.Allocator, ddl string, batches ...string) array.RecordReader {
	t.Helper()
	schema := schemaOf(t, ddl)
	var recs []arrow.RecordBatch
	for _, b := range batches {
		rec, _, err := array.RecordFromJSON(mem, schema, strings.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		recs = append(recs, rec)
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

// numbered makes a reader of batches of so many rows: id 0, 1, … and a name.
func numbered(t testing.TB, mem memory.Allocator, sizes ...int) array.RecordReader {
	t.Helper()
	schema := schemaOf(t, "id BIGINT, name STRING, __weir_row BIGINT")
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	var recs []arrow.RecordBatch
	n := int64(0)
	for _, size := range sizes {
		for range size {
			b.Field(0).(*array.Int64Builder).Append(n)
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("n%d", n))
			b.Field(2).(*array.Int64Builder).Append(n)
			n++
		}
		recs = append(recs, b.NewRecordBatch())
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

// read gives the rows as text, a line each, and the reader's error.
func read(r array.RecordReader) (string, error) {
	defer r.Release()
	var b strings.Builder
	for r.Next() {
		rec := r.RecordBatch()
		for i := range int(rec.NumRows()) {
			for c := range int(rec.NumCols()) {
				if c > 0 {
					b.WriteByte(' ')
				}
				b.WriteString(rec.ColumnName(c) + "=" + rec.Column(c).ValueStr(i))
			}
			b.WriteByte('\n')
		}
	}
	return b.String(), r.Err()
}

// mapRows runs a function over one input and gives its rows.
func mapRows(t testing.TB, m *Module, call Call, in array.RecordReader) (string, error) {
	t.Helper()
	call.Inputs = append([]array.RecordReader{in}, call.Inputs...)
	if call.Mem == nil {
		call.Mem = checked(t)
	}
	defer func() {
		for _, in := range call.Inputs {
			in.Release()
		}
	}()
	r, err := m.Map(context.Background(), call)
	if err != nil {
		return "", err
	}
	return read(r)
}

func TestAGuestThatCopiesItsInput(t *testing.T) {
	m := load(t, newEngine(t, Options{}), guest(echoManifest, echoImports, echo(nil)), nil)
	for function, want := range map[string]string{
		"echo":    "id=0 name=n0\nid=1 name=n1\nid=2 name=n2\n",
		"learned": "id=0 name=n0\nid=1 name=n1\nid=2 name=n2\n",
		"aligned": "key=0 name=n0 __weir_row=0\nkey=1 name=n1 __weir_row=1\nkey=2 name=n2 __weir_row=2\n",
		"renames": "title=n0 key=0 __weir_row=0\ntitle=n1 key=1 __weir_row=1\ntitle=n2 key=2 __weir_row=2\n",
	} {
		got, err := mapRows(t, m, Call{Function: function, Carry: []string{"__weir_row"}}, numbered(t, checked(t), 2, 0, 1))
		if err != nil {
			t.Fatalf("%s: %v", function, err)
		}
		if got != want {
			t.Errorf("%s gave\n%swant\n%s", function, got, want)
		}
	}
}

func TestSchemaIsDeclaredOrLearned(t *testing.T) {
	m := load(t, newEngine(t, Options{}), guest(echoManifest, echoImports, echo(nil)), nil)
	in := []*arrow.Schema{schemaOf(t, "id BIGINT, name STRING, other DATE, _metadata STRUCT<file_path: STRING>, __weir_row BIGINT")}
	for function, want := range map[string]string{
		"echo": "id bigint, name string", "learned": "id bigint, name string, other date",
		"aligned": "key bigint, name string", "renames": "title string, key bigint",
	} {
		got, err := m.Schema(context.Background(), function, in)
		if err != nil {
			t.Fatalf("%s: %v", function, err)
		}
		var parts []string
		for _, f := range got.Fields() {
			parts = append(parts, f.Name+" "+coltype.String(f.Type))
		}
		if s := strings.Join(parts, ", "); s != want {
			t.Errorf("%s gives %s, want %s", function, s, want)
		}
	}
	_, err := m.Schema(context.Background(), "aligned", []*arrow.Schema{schemaOf(t, "id BIGINT")})
	wantError(t, err, CodeSchemaMismatch, "test.aligned", `input 0 has no column "name"; it has id`)
	if got, err := m.Schema(context.Background(), "joined", in); err != nil || got.NumFields() != 3 {
		t.Errorf("a function of kind query gives %v, %v", got, err)
	}
	_, err = m.Schema(context.Background(), "nothing", in)
	wantError(t, err, CodeNoFunction)
}

func TestReleasingTheReaderEarlyEndsTheGuest(t *testing.T) {
	m := load(t, newEngine(t, Options{}), guest(echoManifest, echoImports, echo(nil)), nil)
	for _, reads := range []int{0, 1, 2} {
		mem := checked(t)
		in := numbered(t, mem, 10, 10, 10)
		r, err := m.Map(context.Background(), Call{Function: "echo", Inputs: []array.RecordReader{in}, Mem: mem})
		in.Release()
		if err != nil {
			t.Fatal(err)
		}
		for range reads {
			if !r.Next() {
				t.Fatal(r.Err())
			}
		}
		r.Release()
	}
}

func TestACancelledContextEndsTheCall(t *testing.T) {
	m := load(t, newEngine(t, Options{}), guest(echoManifest, echoImports, echo(nil)), nil)
	ctx, cancel := context.WithCancel(context.Background())
	mem := checked(t)
	in := numbered(t, mem, 10, 10, 10)
	r, err := m.Map(ctx, Call{Function: "echo", Inputs: []array.RecordReader{in}, Mem: mem})
	in.Release()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() {
		t.Fatal(r.Err())
	}
	cancel()
	for r.Next() {
	}
	if !errors.Is(r.Err(), context.Canceled) {
		t.Errorf("got %v", r.Err())
	}
}

func TestContextJSON(t *testing.T) {
	text, err := abi.CallContext{Pipeline: "p", UpdateID: "u", Flow: "f", BatchID: 7, Task: 1, BatchTimestamp: time.Date(2026, 7, 30, 6, 0, 0, 123456789, time.UTC)}.JSON()
	want := `{"pipeline":"p","update_id":"u","flow":"f","batch_id":7,"task":1,"full_refresh":false,"batch_timestamp":"2026-07-30T06:00:00.123456Z"}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}
