package delta

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

// log writes a version by hand: what other writers write is not what ours does.
func (f *fixture) log(version int64, actions ...any) {
	f.t.Helper()
	data, err := encodeActions(actions)
	if err != nil {
		f.t.Fatal(err)
	}
	name := filepath.Join(f.dir, commitName(version))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		f.t.Fatal(err)
	}
	at := time.Unix(1_700_000_000+60*version, 0)
	if err := os.Chtimes(name, at, at); err != nil {
		f.t.Fatal(err)
	}
}

func metaAction(schema string, properties map[string]string, partitionBy ...string) map[string]any {
	m := Metadata{ID: "x", Format: Format{Provider: "parquet"}, SchemaString: schema, PartitionColumns: partitionBy, Configuration: properties}
	return map[string]any{"metaData": m}
}

func addAction(f AddFile) map[string]any  { return map[string]any{"add": f} }
func dropAction(f AddFile) map[string]any { return map[string]any{"remove": f.removal(1, true)} }
func cdcAction(path string) map[string]any {
	return map[string]any{"cdc": CDCFile{Path: path, PartitionValues: map[string]*string{}}}
}
func withRows(f AddFile, rows ...uint64) AddFile {
	f.DeletionVector = nil
	if len(rows) > 0 {
		raw := encodeDV(rows...)
		f.DeletionVector = &DeletionVector{StorageType: "i", PathOrInlineDv: encodeZ85(raw), SizeInBytes: int32(len(raw)), Cardinality: int64(len(rows))}
	}
	return f
}

var protocolAction = map[string]any{"protocol": Protocol{MinReaderVersion: 3, MinWriterVersion: 7,
	ReaderFeatures: []string{"deletionVectors", "columnMapping"}, WriterFeatures: []string{"deletionVectors", "changeDataFeed", "columnMapping"}}}

const oneColumn = `{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}`

var feedOn = map[string]string{"delta.enableChangeDataFeed": "true"}

// dataFile writes a Parquet file of JSON rows that no log names yet.
func (f *fixture) dataFile(name string, schema *arrow.Schema, rows string) AddFile {
	f.t.Helper()
	rec := f.batch(schema, rows)
	defer rec.Release()
	return f.foreignFile(name, rec, 2)
}

func ids(from, to int) string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf(`{"id":%d}`, i))
	}
	return "[" + strings.Join(out, ",") + "]"
}

// changesIn gives the rows of versions as "type id", sorted.
func (f *fixture) changesIn(opt ChangesOptions) (string, error) {
	var out []string
	err := eachChange(f.reopen(), opt, func(_ int64, kind, row string) { out = append(out, kind+" "+strings.TrimSuffix(row, "|")) })
	slices.Sort(out)
	return strings.Join(out, "; "), err
}

// One version a rule: where the changes of a version are, and what they are when they must be derived.
func TestChangesOfAVersion(t *testing.T) {
	f := newFixture(t)
	long := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	stray := arrow.NewSchema([]arrow.Field{long.Field(0), {Name: ChangeTypeColumn, Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	a, b, c := f.dataFile("a.parquet", long, ids(0, 5)), f.dataFile("b.parquet", stray, ids(10, 13)), f.dataFile("c c.parquet", long, ids(20, 22))
	c.Path = "c%20c.parquet"
	f.dataFile("_change_data/x.parquet", stray, `[{"id":7,"_change_type":"update_preimage"},{"id":8,"_change_type":"update_postimage"},{"id":9,"_change_type":"odd"}]`)
	moved := addAction(b)
	moved["add"] = func() AddFile { m := b; m.DataChange = false; return m }()
	noMerge := func(updated string) map[string]any {
		return map[string]any{"commitInfo": CommitInfo{Operation: "MERGE", OperationMetrics: map[string]any{
			"numTargetRowsInserted": "0", "numTargetRowsDeleted": "0", "numTargetRowsUpdated": updated}}}
	}
	versions := []struct {
		rule    string
		actions []any
		want    string
	}{
		{"an added file is inserts", []any{protocolAction, metaAction(oneColumn, feedOn), addAction(a)}, "insert id=0; insert id=1; insert id=2; insert id=3; insert id=4"},
		{"a new vector is deletes", []any{dropAction(a), addAction(withRows(a, 1, 2))}, "delete id=1; delete id=2"},
		{"of two vectors the difference counts", []any{addAction(withRows(a, 2, 3)), dropAction(withRows(a, 1, 2))}, "delete id=3; insert id=1"},
		{"a vector that goes brings rows back", []any{dropAction(withRows(a, 2, 3)), addAction(withRows(a))}, "insert id=2; insert id=3"},
		{"the same file again is no change", []any{dropAction(a), addAction(a)}, ""},
		{"a file that comes with a vector inserts its live rows", []any{addAction(withRows(c, 0))}, "insert id=21"},
		{"a file that goes with a vector deletes its live rows, however its path is written", []any{map[string]any{"remove": RemoveFile{Path: "c c.parquet", DataChange: true, DeletionVector: withRows(c, 0).DeletionVector}}}, "delete id=21"},
		{"moved rows are no change", []any{moved}, ""},
		{"change files are all there is, and odd types pass", []any{dropAction(b), addAction(c), cdcAction("_change_data/x.parquet")}, "odd id=9; update_postimage id=8; update_preimage id=7"},
		{"a MERGE that merged nothing", []any{noMerge("0"), dropAction(c), addAction(b)}, ""},
		{"a MERGE that did", []any{noMerge("1"), dropAction(b), addAction(c)}, "delete id=10; delete id=11; delete id=12; insert id=20; insert id=21"},
		{"no change at all", []any{map[string]any{"txn": Txn{AppID: "x", Version: 1}}}, ""},
	}
	for i, v := range versions {
		f.log(int64(i), v.actions...)
	}
	for i, v := range versions {
		if got, err := f.changesIn(ChangesOptions{From: int64(i), To: int64(i), BatchRows: 2}); err != nil || got != v.want {
			t.Errorf("%s:\n got %s (%v)\nwant %s", v.rule, got, err, v.want)
		}
	}
	// A range is its versions one after the other, with version and time at every row.
	r, err := f.table.Changes(background, ChangesOptions{From: 1, To: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	var got []string
	for r.Next() {
		got = append(got, recordRows(r.RecordBatch(), nil)...)
	}
	want := []string{
		"id=1|_change_type=delete|_commit_version=1|_commit_timestamp=2023-11-14T22:14:20Z|",
		"id=2|_change_type=delete|_commit_version=1|_commit_timestamp=2023-11-14T22:14:20Z|",
		"id=3|_change_type=delete|_commit_version=2|_commit_timestamp=2023-11-14T22:15:20Z|",
		"id=1|_change_type=insert|_commit_version=2|_commit_timestamp=2023-11-14T22:15:20Z|",
	}
	if r.Err() != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n%s", r.Err(), strings.Join(got, "\n"))
	}
	// Without columns the rows still come, to be counted.
	kinds := map[string]int{}
	err = eachChange(f.table, ChangesOptions{To: -1, Columns: []string{}}, func(_ int64, kind, row string) { kinds[kind+row]++ })
	if want := map[string]int{"insert": 11, "delete": 7, "odd": 1, "update_preimage": 1, "update_postimage": 1}; err != nil || !maps.Equal(kinds, want) {
		t.Errorf("%v, %v", kinds, err)
	}
}

func TestRangesThatHaveNoFeedAreErrors(t *testing.T) {
	f := newFixture(t)
	long := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	stray := arrow.NewSchema([]arrow.Field{long.Field(0), {Name: ChangeTypeColumn, Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	a := f.dataFile("a.parquet", long, ids(0, 1))
	f.dataFile("_change_data/none.parquet", long, ids(0, 1))
	f.dataFile("_change_data/null.parquet", stray, `[{"id":1}]`)
	f.log(0, protocolAction, metaAction(oneColumn, nil))
	f.log(1, metaAction(oneColumn, feedOn))
	f.log(2, addAction(a))
	f.log(3, metaAction(oneColumn, map[string]string{"delta.enableChangeDataFeed": "false"}))
	f.log(4, metaAction(oneColumn, feedOn))
	f.log(5, cdcAction("_change_data/none.parquet"))
	f.log(6, cdcAction("_change_data/null.parquet"))
	f.log(7, cdcAction("_change_data/gone.parquet"))
	f.log(8, metaAction(`{"type":"struct","fields":[{"name":"_Change_Type","type":"string","nullable":true,"metadata":{}}]}`, feedOn))
	at := func(version int64) time.Time { return time.Unix(1_700_000_000+60*version, 0) }
	for _, c := range []struct {
		name string
		opt  ChangesOptions
		code string
	}{
		{"before the feed", ChangesOptions{From: 0, To: 2}, "DELTA_MISSING_CHANGE_DATA"},
		{"from where it begins", ChangesOptions{From: 1, To: 2}, ""},
		{"over a gap", ChangesOptions{From: 1, To: 4}, "DELTA_MISSING_CHANGE_DATA"},
		{"backwards", ChangesOptions{From: 2, To: 1}, "DELTA_INVALID_CDC_RANGE"},
		{"to come", ChangesOptions{From: 9, To: -1}, "DELTA_VERSION_NOT_FOUND"},
		{"too far", ChangesOptions{From: 1, To: 9}, "DELTA_VERSION_NOT_FOUND"},
		{"negative", ChangesOptions{From: -1, To: 2}, "DELTA_VERSION_NOT_FOUND"},
		{"by time", ChangesOptions{FromTime: at(1).Add(-time.Second), ToTime: at(2).Add(time.Second)}, ""},
		{"by time before the feed", ChangesOptions{FromTime: at(0), ToTime: at(2)}, "DELTA_MISSING_CHANGE_DATA"},
		{"by time to come", ChangesOptions{FromTime: at(100), To: -1}, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"},
		{"between two versions", ChangesOptions{FromTime: at(1).Add(time.Second), ToTime: at(2).Add(-time.Second)}, "DELTA_INVALID_CDC_RANGE"},
		{"no such column", ChangesOptions{From: 1, To: 2, Columns: []string{"x"}}, "DELTA_COLUMN_NOT_FOUND"},
		{"a change file without its column", ChangesOptions{From: 5, To: 5}, "DELTA_INVALID_DATA_FILE"},
		{"a change file without types", ChangesOptions{From: 6, To: 6}, "DELTA_INVALID_DATA_FILE"},
		{"a change file that is gone", ChangesOptions{From: 7, To: 7}, "DELTA_FILE_NOT_FOUND"},
		{"a table with such a column", ChangesOptions{From: 8, To: 8}, "DELTA_RESERVED_COLUMN"},
	} {
		got, err := f.changesIn(c.opt)
		if fault.CodeOf(err) != c.code && (err != nil || c.code != "") || err == nil && got != "insert id=0" {
			t.Errorf("%s: %s, %v, want %s", c.name, got, err, c.code)
		}
	}
	// Versions that were cleaned up have no changes any more.
	for v := range 2 {
		if err := os.Remove(filepath.Join(f.dir, commitName(int64(v)))); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := f.changesIn(ChangesOptions{From: 1, To: 2}); !fault.Is(err, "DELTA_LOG_GAP") {
		t.Errorf("cleaned up: %s, %v", got, err)
	}
}

// Rows come in the columns of the last version, whatever the table was like
// when they were written: renamed, added and widened columns, other partitions.
func TestOldChangesComeInTheColumnsOfTheLastVersion(t *testing.T) {
	f := newFixture(t)
	mapped := maps.Clone(feedOn)
	mapped["delta.columnMapping.mode"] = "name"
	schema := func(columns ...string) string {
		var fields []any
		for i, c := range columns {
			name, typ, _ := strings.Cut(c, " ")
			name, physical, _ := strings.Cut(name, "=")
			fields = append(fields, map[string]any{"name": name, "type": typ, "nullable": true, "metadata": map[string]any{
				physicalNameKey: physical, fieldIDKey: i + 1}})
		}
		raw, err := json.Marshal(map[string]any{"type": "struct", "fields": fields})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	narrow := arrow.NewSchema([]arrow.Field{{Name: "p1", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "p2", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	split := arrow.NewSchema(narrow.Fields()[:1], nil)
	cdc := arrow.NewSchema(append(narrow.Fields(), arrow.Field{Name: ChangeTypeColumn, Type: arrow.BinaryTypes.String}), nil)
	a := f.dataFile("a.parquet", narrow, `[{"p1":1,"p2":"x"}]`)
	b := f.dataFile("b.parquet", split, `[{"p1":2}]`)
	y := "y"
	b.PartitionValues = map[string]*string{"p2": &y}
	f.dataFile("_change_data/c.parquet", cdc, `[{"p1":3,"p2":"z","_change_type":"insert"}]`)
	f.log(0, protocolAction, metaAction(schema("id=p1 integer", "t=p2 string"), mapped), addAction(a))
	f.log(1, metaAction(schema("id=p1 long", "t=p2 string"), mapped, "t"), dropAction(a), addAction(b))
	f.log(2, cdcAction("_change_data/c.parquet"))
	f.log(3, metaAction(schema("key=p1 long", "t=p2 string", "more=p3 date"), mapped, "t"))
	got, err := f.changesIn(ChangesOptions{To: -1})
	if want := "delete key=1|t=x|more=null; insert key=1|t=x|more=null; insert key=2|t=y|more=null; insert key=3|t=z|more=null"; err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	got, err = f.changesIn(ChangesOptions{To: 0})
	if want := "insert id=1|t=x"; err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	// An old writer's remove action without partition values.
	bare := b.removal(1, true)
	bare.PartitionValues, bare.ExtendedFileMetadata = nil, false
	f.log(4, map[string]any{"remove": bare})
	got, err = f.changesIn(ChangesOptions{From: 4, To: 4})
	if want := "delete key=2|t=y|more=null"; err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	f.log(5, metaAction(`{"type":"struct","fields":[{"name":"p1","type":"long","nullable":true,"metadata":{}}]}`, feedOn))
	if got, err = f.changesIn(ChangesOptions{From: 4, To: 5}); !fault.Is(err, "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA") {
		t.Errorf("mapping given up: %s, %v", got, err)
	}
}

// A group of Z85 that the Rust crate padded, from a table of delta-kernel-rs, and others that are none.
func TestBytesThatTheRustCrateEncodedAreRead(t *testing.T) {
	for text, want := range map[string]string{"##093": "\x03\x00", "00001##093": "\x00\x00\x00\x01\x03\x00", "#0093": "\x00\x03\x00", "###0A": "\x24"} {
		if got, err := decodeZ85(text); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"##09300000", "####1", "#####", "##$$$"} {
		if got, err := decodeZ85(text); !fault.Is(err, "DELTA_INVALID_DELETION_VECTOR") {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}
