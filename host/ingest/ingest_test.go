package ingest

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"go.uber.org/goleak"

	"github.com/weir-data/weir/host/relation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// landing is a folder of files and a way to read them.
type landing struct {
	t   testing.TB
	dir string
}

func newLanding(t testing.TB, files map[string]string) *landing {
	t.Helper()
	l := &landing{t, t.TempDir()}
	for name, body := range files {
		l.put(name, body)
	}
	return l
}

func (l *landing) put(name, body string) {
	l.t.Helper()
	p := filepath.Join(l.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if strings.HasSuffix(name, ".gz") && !strings.HasPrefix(body, "\x1f\x8b") {
		body = zipped(body)
	}
	if err := os.WriteFile(p, []byte(body), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func zipped(body string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(body)); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.String()
}

// opts makes a map of "name=value" settings.
func opts(settings ...string) map[string]string {
	m := map[string]string{}
	for _, s := range settings {
		k, v, _ := strings.Cut(s, "=")
		m[k] = v
	}
	return m
}

func (l *landing) source(kind Kind, settings ...string) *Source {
	l.t.Helper()
	s, err := Parse(kind, escapeGlob(l.dir), opts(settings...), Env{})
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

func files(t testing.TB, s *Source) []File {
	t.Helper()
	var out []File
	for f, err := range s.List(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	out, err := s.Complete(context.Background(), out)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// outcome is what reading some files gave: each row as JSON, and the rest.
type outcome struct {
	schema *Schema
	rows   []string
	paths  []string // _metadata.file_path of each row
	places []Position
	sizes  []int64 // rows of the batches
	count  int64
	stats  Stats
	err    error
}

func read(t testing.TB, s *Source, schema *Schema, fs []File, opt ReadOptions) outcome {
	t.Helper()
	return readAs(t, s, schema, fs, opt, true)
}

// readAs reads; without rows it only checks the batches and counts.
func readAs(t testing.TB, s *Source, schema *Schema, fs []File, opt ReadOptions, rows bool) outcome {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	opt.Alloc = mem
	r, err := s.Read(context.Background(), schema, fs, opt)
	if err != nil {
		return outcome{err: err}
	}
	defer r.Release()
	out := outcome{schema: schema}
	for r.Next() {
		rec := r.RecordBatch()
		out.sizes = append(out.sizes, rec.NumRows())
		number, ok := relation.Int64Column(rec, relation.RowColumn)
		if !ok {
			t.Fatal("no row number")
		}
		meta := rec.Column(int(rec.NumCols()) - 2)
		for c := range int(rec.NumCols()) {
			if err := validate(rec.Column(c)); err != nil {
				t.Fatal(err)
			}
		}
		if !rows {
			out.count += rec.NumRows()
			continue
		}
		out.count += rec.NumRows()
		for i := range int(rec.NumRows()) {
			if got := number.Value(i); got != int64(len(out.rows)) {
				t.Fatalf("row number %d, want %d", got, len(out.rows))
			}
			out.rows = append(out.rows, strings.ReplaceAll(string(relation.RowJSON(rec, i)), s.place.root, "DIR"))
			out.paths = append(out.paths, metaPath(meta, i))
		}
	}
	for i := range out.rows {
		out.places = append(out.places, r.Locate(int64(i)))
	}
	out.err = r.Err()
	out.stats = r.Stats()
	return out
}

// validate checks what every Arrow consumer relies on: offsets that rise, and
// null counts that are true.
func validate(a arrow.Array) error {
	nulls := 0
	for i := range a.Len() {
		nulls += b2i(a.IsNull(i))
	}
	if nulls != a.NullN() {
		return fmt.Errorf("%s: %d nulls, said to be %d", a.DataType(), nulls, a.NullN())
	}
	switch a := a.(type) {
	case *array.Struct:
		for i := range a.NumField() {
			if a.Field(i).Len() != a.Len() {
				return fmt.Errorf("%s: a field has %d rows of %d", a.DataType(), a.Field(i).Len(), a.Len())
			}
			if err := validate(a.Field(i)); err != nil {
				return err
			}
		}
	case *array.Map:
		if err := offsets(a.Offsets(), a.ListValues().Len()); err != nil {
			return err
		}
		return validate(a.ListValues())
	case *array.List:
		if err := offsets(a.Offsets(), a.ListValues().Len()); err != nil {
			return err
		}
		return validate(a.ListValues())
	case *array.String:
		if err := offsets(a.ValueOffsets(), len(a.ValueBytes())); err != nil {
			return err
		}
		for i := range a.Len() {
			if a.IsValid(i) && !utf8.ValidString(a.Value(i)) {
				return fmt.Errorf("row %d is no UTF-8: %q", i, a.Value(i))
			}
		}
	}
	return nil
}

func offsets(offs []int32, end int) error {
	for i := 1; i < len(offs); i++ {
		if offs[i] < offs[i-1] {
			return fmt.Errorf("offset %d falls", i)
		}
	}
	if n := len(offs); n > 0 && int(offs[n-1]) > end {
		return fmt.Errorf("offsets end at %d of %d", offs[n-1], end)
	}
	return nil
}

func metaPath(meta arrow.Array, i int) string {
	b := relation.AppendJSON(nil, meta, i)
	_, rest, _ := strings.Cut(string(b), `"file_path":"`)
	p, _, _ := strings.Cut(rest, `"`)
	return p
}

// load infers and reads everything in the folder.
func (l *landing) load(kind Kind, settings ...string) outcome {
	l.t.Helper()
	s := l.source(kind, settings...)
	fs := files(l.t, s)
	schema, err := s.Infer(context.Background(), fs)
	if err != nil {
		return outcome{err: err}
	}
	return read(l.t, s, schema, fs, ReadOptions{})
}

func wantRows(t *testing.T, got outcome, want ...string) {
	t.Helper()
	if got.err != nil {
		t.Fatal(got.err)
	}
	for i := range max(len(got.rows), len(want)) {
		g, w := "(none)", "(none)"
		if i < len(got.rows) {
			g = got.rows[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("row %d\n got %s\nwant %s", i, g, w)
		}
	}
}
