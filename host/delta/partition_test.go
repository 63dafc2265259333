package delta

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
)

type partitionPath struct {
	Row                    int
	Type                   string
	Value, PartitionValue  *string
	HiveDir, EncodedPath   *string
	WriteFails, InvalidUTF bool
	KernelRS               struct {
		PartitionValue *string `json:"partition_value"`
	} `json:"kernel_rs"`
}

func (p *partitionPath) UnmarshalJSON(data []byte) error {
	var raw struct {
		Row            int
		Type           string
		Value          *string
		PartitionValue *string `json:"partition_value"`
		HiveDir        *string `json:"hive_dir"`
		EncodedPath    *string `json:"encoded_path"`
		WriteFails     bool    `json:"write_fails"`
		InvalidUTF     bool    `json:"invalid_utf8"`
		KernelRS       struct {
			PartitionValue *string `json:"partition_value"`
		} `json:"kernel_rs"`
	}
	err := json.Unmarshal(data, &raw)
	*p = partitionPath{raw.Row, raw.Type, raw.Value, raw.PartitionValue, raw.HiveDir, raw.EncodedPath, raw.WriteFails, raw.InvalidUTF, raw.KernelRS}
	return err
}

// array makes a column of the one value.
func (p *partitionPath) array(t *testing.T) arrow.Array {
	typ, err := parsePrimitive(p.Type)
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewBuilder(memory.DefaultAllocator, typ.(*primitive).arrow)
	defer b.Release()
	switch b := b.(type) {
	case *array.StringBuilder:
		if p.Value == nil {
			b.AppendNull()
		} else {
			b.Append(*p.Value)
		}
	case *array.BinaryBuilder:
		if p.Value == nil {
			b.AppendNull()
			break
		}
		raw, err := hex.DecodeString(strings.TrimSuffix(strings.TrimPrefix(*p.Value, "X'"), "'"))
		if err != nil {
			t.Fatal(err)
		}
		b.Append(raw)
	default:
		if err := appendPartition(b, p.PartitionValue, typ.(*primitive), 1); err != nil {
			t.Fatal(err)
		}
	}
	return b.NewArray()
}

// covers the table of partition values as Spark writes them.
func TestPartitionValuesAndPathsAreThoseOfSpark(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(shared(t, "delta-conformance"), "partition_paths.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Rows []*partitionPath }
	if err := json.Unmarshal(raw, &file); err != nil || len(file.Rows) != 68 {
		t.Fatalf("%d rows, %v", len(file.Rows), err)
	}
	for _, p := range file.Rows {
		t.Run(fmt.Sprintf("row %d %s", p.Row, p.Type), func(t *testing.T) {
			arr := p.array(t)
			defer arr.Release()
			got, err := partitionValue(arr, 0)
			if p.WriteFails || p.InvalidUTF {
				if fault.CodeOf(err) != "DELTA_INVALID_PARTITION_VALUE" {
					t.Errorf("%v, %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if text(got) != text(p.PartitionValue) && (p.KernelRS.PartitionValue == nil || text(got) != *p.KernelRS.PartitionValue) {
				t.Errorf("value %s, want %s", text(got), text(p.PartitionValue))
			}
			if strings.HasPrefix(p.Type, "timestamp") || got != nil && *got != text(p.PartitionValue) {
				return // directories of timestamps carry the writer's zone, which for us is UTC
			}
			dir := strings.TrimSuffix(partitionDir([]string{"p"}, map[string]*string{"p": got}), "/")
			// What is not ASCII Spark leaves raw and we escape.
			if want := asciiName(text(p.HiveDir)); dir != want {
				t.Errorf("directory %s, want %s", dir, want)
			}
			if uri := uriPath(dir); dir == text(p.HiveDir) && uri != text(p.EncodedPath) {
				t.Errorf("path %s, want %s", uri, text(p.EncodedPath))
			}
			if back, err := canonicalPath(uriPath(dir)); err != nil || back != dir {
				t.Errorf("back: %s, %v", back, err)
			}
		})
	}
}

func text(s *string) string {
	if s == nil {
		return "(null)"
	}
	return *s
}

func TestPartitionedRowsComeBackFromAnyPath(t *testing.T) {
	f := newFixture(t)
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "p q", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "ts", Type: utc, Nullable: true}, {Name: "dec", Type: &arrow.Decimal128Type{Precision: 10, Scale: 2}, Nullable: true},
		{Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true}, {Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "d", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
	}, nil)
	values := []string{"a", "a b", "a%20b", "a+b", "US/East", "ü", "x=y", "a?b#c", `quote"'`, "tab\tnewline\n", "__HIVE_DEFAULT_PARTITION_", "..", ".", "*", "c:\\d", "100%"}
	b := array.NewRecordBuilder(f.mem, schema)
	var want []string
	for i, v := range append(values, "") {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append(v)
		for j, s := range []string{"2024-06-15T19:30:45.000001Z", "-12.30", "1e300", "true", "0001-01-01"} {
			if err := b.Field(j + 2).AppendValueFromString(s); err != nil {
				t.Fatal(err)
			}
		}
		if v == "" {
			v = "null"
		}
		want = append(want, fmt.Sprintf("n=%d|p q=%s|ts=2024-06-15T19:30:45.000001Z|dec=-12.30|f=1.0E300|b=true|d=0001-01-01|", i, v))
	}
	rec := b.NewRecordBatch()
	b.Release()
	defer rec.Release()
	by := []string{"p q", "ts", "dec", "f", "b", "d"}
	w, err := f.table.Write(background, WriteOptions{Schema: schema, PartitionBy: by, Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(background, rec); err != nil {
		t.Fatal(err)
	}
	files, err := w.Close(background)
	if err != nil {
		t.Fatal(err)
	}
	f.commit(Commit{Schema: schema, PartitionBy: by, Add: files})
	slices.Sort(want)
	if got := f.rows(); !slices.Equal(got, want) {
		t.Errorf("%s", firstDifference(got, want))
	}
}

func TestManyPartitionsKeepFewFilesOpen(t *testing.T) {
	f := newFixture(t)
	by := []string{"id"}
	w, err := f.table.Write(background, WriteOptions{Schema: plain, PartitionBy: by, Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(f.mem, plain)
	const n = 2*maxOpenFiles + 5
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).AppendNull()
	}
	rec := b.NewRecordBatch()
	b.Release()
	defer rec.Release()
	for range 2 {
		if err := w.Write(background, rec); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.flush(background), w.wait()); err != nil { // as the end of a chunk does
			t.Fatal(err)
		}
		if len(w.open) > maxOpenFiles {
			t.Errorf("%d files are open", len(w.open))
		}
	}
	files, err := w.Close(background)
	if err != nil {
		t.Fatal(err)
	}
	f.commit(Commit{Schema: plain, PartitionBy: by, Add: files})
	if rows := f.rows(); len(rows) != 2*n {
		t.Errorf("%d rows", len(rows))
	}
}

func TestPathsOfOneFileAreOne(t *testing.T) {
	for _, group := range [][]string{
		{"/some/unqualified/with%20space/p@%23h", "file:/some/unqualified/with%20space/p@%23h", "file:///some/unqualified/with%20space/p@%23h", "FILE:/some/unqualified/with space/p@%23h"},
		{"a b", "a%20b"}, {"s3://bucket/a%20b", "S3://bucket/a b"}, {"a+b"}, {"a%2Bb", "a%2bb"}, {"p=12:30/x", "p=12%3A30/x"},
	} {
		first, err := canonicalPath(group[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range group[1:] {
			if got, err := canonicalPath(p); err != nil || got != first {
				t.Errorf("%q: %q, want %q (%v)", p, got, first, err)
			}
		}
	}
	if _, err := canonicalPath("a%zz"); fault.CodeOf(err) != "DELTA_INVALID_LOG" {
		t.Error(err)
	}
	for path, want := range map[string]bool{"/x": true, "s3://b/x": true, "x/y": false, "p=a:b/y": false, "a:b": false} {
		if isAbsolute(path) != want {
			t.Errorf("%s", path)
		}
	}
}

func TestFilesOutsideTheTableAreNotOpened(t *testing.T) {
	f := newFixture(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{secret, "file://" + secret, "../secret", "a/../../secret", "s3://bucket/x"} {
		if o, err := f.table.openFile(background, path); err == nil {
			t.Errorf("opened %s", path)
			_ = o.Close()
		}
	}
	if err := f.store.Put(background, "in side", []byte("y")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"in%20side", filepath.Join(f.dir, "in%20side"), "file:" + filepath.Join(f.dir, "in%20side")} {
		o, err := f.table.openFile(background, path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Directories are for the file system: any value has one that fits, and no two values share one.
func TestPartitionDirectoriesFitAndDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, value := range []string{strings.Repeat("x", 1000), strings.Repeat("x", 1001), strings.Repeat("日", 30), strings.Repeat("日", 300), strings.Repeat("日", 301),
		strings.Repeat("%", 60) + "a", strings.Repeat("a", 165) + "ééé" + strings.Repeat("b", 40), strings.Repeat("a", 166) + "é" + strings.Repeat("b", 60), "größe", "gr%C3%B6%C3%9Fe"} {
		dir := strings.TrimSuffix(partitionDir([]string{"größe"}, map[string]*string{"größe": &value}), "/")
		if other, ok := seen[dir]; ok {
			t.Errorf("%q and %q share the directory %s", value, other, dir)
		}
		seen[dir] = value
		if len(dir) > 255 || strings.ContainsFunc(dir, func(r rune) bool { return r >= 0x7F }) {
			t.Errorf("%d bytes: %s", len(dir), dir)
		}
		if _, err := canonicalPath(dir); err != nil {
			t.Errorf("%q has half an escape: %v", dir, err)
		}
	}
}
