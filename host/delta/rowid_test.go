package delta

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// rowIDs gives the values of s with the row's id and version.
func rowIDs(t *testing.T, s *Snapshot, files []AddFile, column string) string {
	t.Helper()
	r, err := s.Scan(background, ScanOptions{Columns: []string{column}, RowTracking: true, Files: files})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	var out []string
	for r.Next() {
		rec := r.RecordBatch()
		for i := range int(rec.NumRows()) {
			out = append(out, fmt.Sprintf("%s:%s@%s", rec.Column(0).ValueStr(i), rec.Column(1).ValueStr(i), rec.Column(2).ValueStr(i)))
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestRowsKeepTheIdentityThatTheFileHolds(t *testing.T) {
	f := newFixture(t)
	made := f.create()
	m := *made.metadata
	m.Configuration = map[string]string{rowIDNameKey: "_row-id-1", rowCommitVersionNameKey: "_row-version-1"}
	s := *made
	s.metadata = &m
	w, err := f.table.Write(background, WriteOptions{Snapshot: &s, Name: "kept", RowTracking: true})
	if err != nil {
		t.Fatal(err)
	}
	rec := f.batch(arrow.NewSchema(append(slices.Clone(made.Schema().Fields()), trackingFields()...), nil),
		`[{"s":"a"},{"s":"b","__weir_row_id":7,"__weir_row_commit_version":3},{"s":"c","__weir_row_id":9}]`)
	err = w.Write(background, rec)
	rec.Release()
	if err != nil {
		t.Fatal(err)
	}
	files, err := w.Close(background)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(files[0].Stats, "_row") {
		t.Errorf("statistics of hidden columns: %s", files[0].Stats)
	}
	base, version := int64(100), int64(5)
	files[0].BaseRowID, files[0].DefaultRowCommitVersion = &base, &version
	if got := rowIDs(t, &s, files, "s"); got != "a:100@5 b:7@3 c:9@5" {
		t.Error(got)
	}
	if got := rowIDs(t, &s, f.write(WriteOptions{Snapshot: &s, Name: "none"}, `[{"s":"d"}]`), "s"); got != "d:(null)@(null)" {
		t.Error(got)
	}
	// Whoever asks for the table's columns does not see them.
	r, err := s.Scan(background, ScanOptions{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Schema().Equal(made.Schema()) || !r.Next() || int(r.RecordBatch().NumCols()) != made.Schema().NumFields() {
		t.Error(r.Schema(), r.Err())
	}
	// A batch with such columns is no batch of a table that does not keep them.
	w, err = f.table.Write(background, WriteOptions{Snapshot: &s, Name: "unknown"})
	if err != nil {
		t.Fatal(err)
	}
	rec = f.batch(arrow.NewSchema(trackingFields(), nil), `[{"__weir_row_id":7}]`)
	defer rec.Release()
	if err := w.Write(background, rec); err == nil {
		t.Error("taken")
	}
	if err := w.Abort(background); err != nil {
		t.Error(err)
	}
	if _, err := f.table.Write(background, WriteOptions{Snapshot: made, Name: "n", RowTracking: true}); err == nil {
		t.Error("row tracking without the names of its columns")
	}
}
