package delta

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// shared gives the folder of real data, or skips.
func shared(t testing.TB, folder string) string {
	t.Helper()
	root := os.Getenv("WEIR_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	dir := filepath.Join(root, folder)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("skipped, which is no pass: no real data in %s (set WEIR_SHARED)", dir)
	}
	return dir
}

type conformanceTable struct {
	Corpus, Table, Archive string
	PathInArchive          string `json:"path_in_archive"`
	Version                *int64
	LiveRows               *int64           `json:"live_rows"`
	LiveFiles              *int             `json:"live_files"`
	PerVersionRows         map[string]int64 `json:"per_version_rows"`
	Changes                *struct {
		From, To, Rows int64
		ByChangeType   map[string]int64 `json:"by_change_type"`
	} `json:"cdf"`
	PhysicalRows   *int64 `json:"physical_rows"`
	DVRows         *int64 `json:"dv_rows"`
	ExpectedDir    string `json:"expected_dir"`
	ExpectedMatch  string `json:"expected_match"`
	Txns           map[string]int64
	DomainMetadata map[string]string `json:"domain_metadata"`
	Expect         string
	LogOnly        bool `json:"log_only"`
	Renames        []struct{ From, To string }
	Features       []string
	MinReader      *int `json:"min_reader"`
	MinWriter      *int `json:"min_writer"`
	Notes          string
}

func unpack(t *testing.T, archive, into string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for tr := tar.NewReader(gz); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		p := filepath.Join(into, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(p, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(p), 0o755); err == nil {
			var out *os.File
			if out, err = os.Create(p); err == nil {
				_, err = io.Copy(out, tr)
				err = errors.Join(err, out.Close())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// outsideFiles opens what the tables of the pack name by absolute paths.
func outsideFiles(ctx context.Context, uri string) (storage.Object, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, err
	}
	d, err := storage.OpenDir(filepath.Dir(u.Path))
	if err != nil {
		return nil, err
	}
	return d.Open(ctx, filepath.Base(u.Path))
}

// TestTablesOfOtherEnginesReadRightOrAreRefusedByName reads every table of the
// conformance pack: rows, values and log state are as its manifest says, or
// the table is refused with a code.
func TestTablesOfOtherEnginesReadRightOrAreRefusedByName(t *testing.T) {
	pack := shared(t, "delta-conformance")
	raw, err := os.ReadFile(filepath.Join(pack, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var tables []conformanceTable
	if err := json.Unmarshal(raw, &tables); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	var versions int
	for _, c := range tables {
		t.Run(c.Corpus+"/"+c.Table, func(t *testing.T) {
			dir := t.TempDir()
			unpack(t, filepath.Join(pack, c.Archive), dir)
			root := filepath.Join(dir, c.PathInArchive)
			prepare(t, &c, root)
			outcome, n := c.check(t, root, filepath.Join(dir, c.ExpectedDir))
			counts[outcome]++
			versions += n
		})
	}
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%-40s %d", k, counts[k])
	}
	t.Logf("%-40s %d", "versions read", versions)
}

// prepare does what the notes of the pack ask for.
func prepare(t *testing.T, c *conformanceTable, root string) {
	for _, r := range c.Renames {
		if err := os.Rename(filepath.Join(root, r.From), filepath.Join(root, r.To)); err != nil {
			t.Fatal(err)
		}
	}
	if c.Table == "table-with-dv-special-char" {
		name := filepath.Join(root, "_delta_log", "00000000000000000000.json")
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		abs := (&url.URL{Path: filepath.Join(filepath.Dir(root), "folder&with%special char")}).EscapedPath()
		if _, err := os.Stat(filepath.Join(filepath.Dir(root), "folder&with%special char")); err != nil {
			abs = (&url.URL{Path: filepath.Join(root, "folder&with%special char")}).EscapedPath()
		}
		data = []byte(strings.ReplaceAll(string(data), "{{FOLDER_WITH_SPECIAL_CHAR}}", abs))
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *conformanceTable) check(t *testing.T, root, expected string) (outcome string, versions int) {
	ctx := context.Background()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	if c.Table != "parquet-decimal-dictionaries" {
		// arrow-go v18.8.0 does not give back 64 bytes of every decoder of DELTA_BINARY_PACKED, which that table uses.
		defer mem.AssertSize(t, 0)
	}
	store, err := storage.OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	table := Open(store, WithAllocator(mem), WithOutside(outsideFiles))
	s, err := table.Snapshot(ctx)
	if err != nil {
		return c.refused(t, err), 0
	}
	if c.Expect == "refuse" {
		t.Errorf("read a table that must be refused")
		return "WRONG", 0
	}
	c.checkState(t, s)
	if c.LogOnly || c.LiveRows == nil {
		return "log state right", 0
	}
	if n, err := s.LiveRows(); err != nil || n != *c.LiveRows {
		t.Errorf("LiveRows = %d, %v; want %d", n, err, *c.LiveRows)
	}
	rows, err := countRows(ctx, s, 1000)
	if err != nil {
		return c.refused(t, err), 0
	}
	if rows != *c.LiveRows {
		t.Errorf("scan gave %d rows, want %d", rows, *c.LiveRows)
	}
	if c.Table != "parsed-stats" { // its log tells of a column that its files have not
		compareNulls(t, "nulls", s)
	}
	versions = c.checkVersions(t, table)
	c.checkChanges(t, table)
	if c.ExpectedDir == "" {
		return "rows counted right", versions
	}
	c.checkValues(t, mem, s, expected)
	return "values right", versions
}

// refused accepts a coded error for a table that must be refused, and no other.
func (c *conformanceTable) refused(t *testing.T, err error) string {
	if c.Expect == "refuse" {
		if !strings.HasPrefix(fault.CodeOf(err), "DELTA_") {
			t.Errorf("refused without a code: %v", err)
		}
		return "refused as it must be"
	}
	t.Errorf("must be read: %v", err)
	return "WRONG"
}

func (c *conformanceTable) checkState(t *testing.T, s *Snapshot) {
	if c.Version != nil && s.Version() != *c.Version {
		t.Errorf("version %d, want %d", s.Version(), *c.Version)
	}
	if c.LiveFiles != nil && s.NumFiles() != *c.LiveFiles {
		t.Errorf("%d live files, want %d", s.NumFiles(), *c.LiveFiles)
	}
	if p := s.Protocol(); c.MinReader != nil && (p.MinReaderVersion != *c.MinReader || p.MinWriterVersion != *c.MinWriter) {
		t.Errorf("protocol %d/%d, want %d/%d", p.MinReaderVersion, p.MinWriterVersion, *c.MinReader, *c.MinWriter)
	}
	for app, want := range c.Txns {
		if got, ok := s.Txn(app); !ok || got != want {
			t.Errorf("txn %s at %d, want %d", app, got, want)
		}
	}
	if c.DomainMetadata != nil && !maps.Equal(s.Domains(), c.DomainMetadata) {
		t.Errorf("domains %q, want %q", s.Domains(), c.DomainMetadata)
	}
	d, err := s.Describe(context.Background())
	if err != nil {
		t.Fatalf("describe: %v", err)
	}
	if c.LogOnly {
		return
	}
	for _, n := range []struct {
		name      string
		got, want *int64
	}{{"live", d.LiveRows, c.LiveRows}, {"physical", d.PhysicalRows, c.PhysicalRows}, {"deleted", &d.DVRows, c.DVRows}} {
		if n.want != nil && (n.got == nil || *n.got != *n.want) {
			t.Errorf("%s rows: %v (%s), want %d", n.name, n.got, d.RowsUnknown, *n.want)
		}
	}
}

// checkVersions counts the rows of the older versions that can be read.
func (c *conformanceTable) checkVersions(t *testing.T, table *Table) int {
	n := 0
	for v, want := range c.PerVersionRows {
		version, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		s, err := table.SnapshotAt(context.Background(), version)
		var rows int64
		if err == nil {
			rows, err = countRows(context.Background(), s, 0)
		}
		switch {
		case err != nil:
			t.Errorf("version %d: %v", version, err)
		case rows != want:
			t.Errorf("version %d has %d rows, want %d", version, rows, want)
		default:
			n++
		}
	}
	return n
}

// checkValues compares the rows with the Parquet files that the pack ships.
func (c *conformanceTable) checkValues(t *testing.T, mem memory.Allocator, s *Snapshot, dir string) {
	store, err := storage.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	except := map[string]bool{}
	if _, cols, ok := strings.Cut(c.ExpectedMatch, "except "); ok {
		for name := range strings.SplitSeq(cols, ",") {
			except[strings.TrimSpace(name)] = true
		}
	}
	// The expected files are read as if they were files of a plain table.
	plain := *s
	plain.table, plain.mapping = Open(store, WithAllocator(mem)), "none"
	metadata := *s.metadata
	metadata.PartitionColumns = nil
	plain.metadata = &metadata
	var files []AddFile
	for info, err := range store.List(context.Background(), "", storage.ListOptions{NamesOnly: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(info.Name, ".parquet") && !strings.HasPrefix(filepath.Base(info.Name), ".") {
			files = append(files, AddFile{Path: escapePath(info.Name)})
		}
	}
	want, err := scanRows(context.Background(), &plain, ScanOptions{Files: files}, except)
	if err != nil {
		t.Fatalf("expected rows: %v", err)
	}
	got, err := scanRows(context.Background(), s, ScanOptions{}, except)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d rows, want %d; first difference:\n%s", len(got), len(want), firstDifference(got, want))
	}
}

func firstDifference(got, want []string) string {
	for i := range max(len(got), len(want)) {
		g, w := "(none)", "(none)"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			return "got  " + g + "\nwant " + w
		}
	}
	return ""
}

// countRows scans every column and counts.
func countRows(ctx context.Context, s *Snapshot, batch int) (n int64, err error) {
	r, err := s.Scan(ctx, ScanOptions{BatchRows: batch})
	if err != nil {
		return 0, err
	}
	defer r.Release()
	for r.Next() {
		n += r.RecordBatch().NumRows()
	}
	return n, r.Err()
}

// scanRows gives every row as one line.
func scanRows(ctx context.Context, s *Snapshot, opt ScanOptions, except map[string]bool) ([]string, error) {
	r, err := s.Scan(ctx, opt)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	out := []string{}
	for r.Next() {
		out = append(out, recordRows(r.RecordBatch(), except)...)
	}
	return out, r.Err()
}

func recordRows(rec arrow.RecordBatch, except map[string]bool) []string {
	var out []string
	for i := range int(rec.NumRows()) {
		var b strings.Builder
		for j := range int(rec.NumCols()) {
			if name := rec.ColumnName(j); !except[name] {
				fmt.Fprintf(&b, "%s=%s|", name, cell(rec.Column(j), i))
			}
		}
		out = append(out, b.String())
	}
	return out
}

// cell writes a value; maps are sorted, since their order means nothing.
func cell(arr arrow.Array, i int) string {
	if arr.IsNull(i) {
		return "null"
	}
	switch a := arr.(type) {
	case *array.Struct:
		var b strings.Builder
		for j, f := range a.DataType().(*arrow.StructType).Fields() {
			fmt.Fprintf(&b, "%s:%s,", f.Name, cell(a.Field(j), i))
		}
		return "{" + b.String() + "}"
	case *array.Map:
		from, to := a.ValueOffsets(i)
		var entries []string
		for j := from; j < to; j++ {
			entries = append(entries, cell(a.Keys(), int(j))+"->"+cell(a.Items(), int(j)))
		}
		slices.Sort(entries)
		return fmt.Sprint(entries)
	case *array.List:
		from, to := a.ValueOffsets(i)
		var values []string
		for j := from; j < to; j++ {
			values = append(values, cell(a.ListValues(), int(j)))
		}
		return fmt.Sprintf("%q", values)
	case *array.Float64:
		return javaFloat(a.Value(i), 64)
	case *array.Decimal128:
		return a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale)
	}
	return arr.ValueStr(i)
}

// checkChanges counts the rows of the change data feed by what happened to
// them. Applied to the rows of one version they give those of the next, value by value.
func (c *conformanceTable) checkChanges(t *testing.T, table *Table) {
	if c.Changes == nil {
		return
	}
	rows, kinds, at := int64(0), map[string]int64{}, map[int64]map[string]int{}
	err := eachChange(table, ChangesOptions{From: c.Changes.From, To: c.Changes.To, BatchRows: 3}, func(version int64, kind, row string) {
		rows++
		kinds[kind]++
		if at[version] == nil {
			at[version] = map[string]int{}
		}
		switch kind {
		case "insert", "update_postimage", "update_post":
			at[version][row]++
		default:
			at[version][row]--
		}
	})
	if err != nil || rows != c.Changes.Rows || !maps.Equal(kinds, c.Changes.ByChangeType) {
		t.Errorf("%d changes %v (%v), want %d %v", rows, kinds, err, c.Changes.Rows, c.Changes.ByChangeType)
	}
	if c.Table == "cdf-table-simple" || c.Table == "cdf-table-update-ops" {
		return // their change files were made up: they hold other rows than the table's
	}
	before := map[string]int{}
	for v := c.Changes.From; v <= c.Changes.To; v++ {
		s, err := table.SnapshotAt(context.Background(), v)
		if err != nil {
			t.Error(err)
			return
		}
		have, err := scanRows(context.Background(), s, ScanOptions{}, nil)
		if err != nil {
			t.Errorf("version %d: %v", v, err)
			return
		}
		after := map[string]int{}
		for _, row := range have {
			after[row]++
		}
		if v > c.Changes.From || v == 0 {
			for row, n := range at[v] {
				before[row] += n
			}
			maps.DeleteFunc(before, func(_ string, n int) bool { return n == 0 })
			if !maps.Equal(before, after) {
				t.Errorf("the changes of version %d do not lead to its rows: %v, want %v", v, before, after)
			}
		}
		before = after
	}
}

// eachChange gives every row of the feed, without the columns that the feed adds.
func eachChange(table *Table, opt ChangesOptions, f func(version int64, kind, row string)) error {
	r, err := table.Changes(context.Background(), opt)
	if err != nil {
		return err
	}
	defer r.Release()
	for r.Next() {
		rec := r.RecordBatch()
		n := int(rec.NumCols()) - 3
		kind, version := rec.Column(n).(*array.String), rec.Column(n+1).(*array.Int64)
		own := map[string]bool{ChangeTypeColumn: true, CommitVersionColumn: true, CommitTimestampColumn: true}
		for i, row := range recordRows(rec, own) {
			f(version.Value(i), kind.Value(i), row)
		}
	}
	return r.Err()
}
