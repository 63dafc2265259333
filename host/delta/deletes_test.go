package delta

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/fault"
)

// vectors are the properties of a table whose rows are deleted by deletion vectors.
var vectors = map[string]string{"delta.enableDeletionVectors": "true"}

// letters makes a file with one row for each letter.
func (f *fixture) letters(s *Snapshot, name, letters string) []AddFile {
	var rows []string
	for i, l := range strings.Split(letters, "") {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"s":%q}`, i, l))
	}
	opt := WriteOptions{Schema: plain, Name: name}
	if s != nil {
		opt = WriteOptions{Snapshot: s, Name: name}
	}
	return f.write(opt, "["+strings.Join(rows, ",")+"]")
}

// abcd makes a table with deletion vectors and one file of four rows, and gives both.
func (f *fixture) abcd() (*Snapshot, AddFile) {
	f.commit(Commit{Schema: plain, Properties: vectors, Add: f.letters(nil, "abcd", "abcd")})
	return f.snapshot(), f.live()[0]
}

func (f *fixture) live() []AddFile {
	f.t.Helper()
	files, err := f.snapshot().Files(background)
	if err != nil {
		f.t.Fatal(err)
	}
	return files
}

func remove(f AddFile, rows ...int64) []FileDelete {
	return []FileDelete{{File: f, Rows: NewRowSet(rows...)}}
}

func TestWrittenVectorsReadAsTheRowsTheyMark(t *testing.T) {
	dense := NewRowSet()
	dense.AddRange(1<<16-3, 1<<18)
	scattered, r := NewRowSet(), rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		scattered.Add(r.Int64N(1 << 34))
	}
	for name, want := range map[string]*RowSet{
		"none": NewRowSet(), "one": NewRowSet(7), "far": NewRowSet(0, 1<<32, 1<<40), "a run": dense, "scattered": scattered, "both": dense.Union(scattered),
	} {
		data, err := encodeRows(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeDV(data, want.Len())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if a, b := slices.Collect(want.All()), slices.Collect(got.All()); !slices.Equal(a, b) {
			t.Errorf("%s: %d rows became %d", name, len(a), len(b))
		}
	}
}

func TestRowSetsAreSets(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	draw := func() (*RowSet, map[int64]bool) {
		s, m := NewRowSet(), map[int64]bool{}
		for range r.IntN(40) {
			from := r.Int64N(64) + r.Int64N(3)<<32
			to := from + r.Int64N(4)
			s.AddRange(from, to)
			for i := from; i < to; i++ {
				m[i] = true
			}
		}
		return s, m
	}
	for range 500 {
		a, inA := draw()
		b, inB := draw()
		check := func(op string, got *RowSet, in func(int64) bool) {
			var want []int64
			for i := range int64(3) {
				for j := range int64(70) {
					if row := i<<32 + j; in(row) {
						want = append(want, row)
						if !got.Contains(row) {
							t.Fatalf("%s lacks %d", op, row)
						}
					}
				}
			}
			last := int64(-1)
			if len(want) > 0 {
				last = want[len(want)-1]
			}
			if all := slices.Collect(got.All()); !slices.Equal(all, want) || got.Len() != int64(len(want)) || got.Last() != last {
				t.Fatalf("%s is %v, want %v", op, all, want)
			}
		}
		check("a", a, func(i int64) bool { return inA[i] })
		check("union", a.Union(b), func(i int64) bool { return inA[i] || inB[i] })
		check("minus", a.Minus(b), func(i int64) bool { return inA[i] && !inB[i] })
		check("a afterwards", a, func(i int64) bool { return inA[i] })
		meets := false
		for i := range inA {
			meets = meets || inB[i]
		}
		if a.Intersects(b) != meets {
			t.Fatal("intersects")
		}
	}
	var none *RowSet
	if none.Len() != 0 || none.Contains(0) || none.Last() != -1 || none.Intersects(NewRowSet(1)) || none.Union(NewRowSet(1)).Len() != 1 || none.Minus(NewRowSet(1)).Len() != 0 {
		t.Error("a nil set is not empty")
	}
	if NewRowSet(-1).Len() != 0 {
		t.Error("a negative row is in")
	}
}

func TestRowsAreDeletedByVectors(t *testing.T) {
	f := newFixture(t)
	s, file := f.abcd()
	v := f.commit(Commit{Read: s, Operation: "DELETE", Delete: remove(file, 1)})
	if got := f.cells(); got != "a c d" {
		t.Errorf("first: %s", got)
	}
	e, err := f.table.entry(background, v)
	if err != nil || len(e.Adds) != 1 || len(e.Removes) != 1 || !e.Adds[0].DataChange || !e.Removes[0].DataChange {
		t.Fatalf("%+v, %v", e, err)
	}
	dv := e.Adds[0].DeletionVector
	if dv.StorageType != "u" || dv.Cardinality != 1 || *dv.Offset != 1 || len(dv.PathOrInlineDv) != 20 {
		t.Errorf("%+v", dv)
	}
	if stats := e.Adds[0].Stats; !strings.HasPrefix(stats, `{"numRecords":4,"minValues":{`) || !strings.HasSuffix(stats, `,"tightBounds":false}`) {
		t.Errorf("statistics %s", stats)
	}
	m := e.CommitInfo.OperationMetrics
	if m["numDeletedRows"] != "1" || m["numDeletionVectorsAdded"] != "1" || m["numRemovedFiles"] != "0" || *e.CommitInfo.IsBlindAppend {
		t.Errorf("%v", m)
	}
	// The next vector holds the rows of the last one, too.
	f.commit(Commit{Read: f.snapshot(), Delete: remove(f.live()[0], 3)})
	if got := f.cells(); got != "a c" {
		t.Errorf("second: %s", got)
	}
	// A file without a live row is none.
	f.commit(Commit{Read: f.snapshot(), Delete: remove(f.live()[0], 0, 2)})
	if got := f.cells(); got != "" || f.snapshot().NumFiles() != 0 {
		t.Errorf("all: %s in %d files", got, f.snapshot().NumFiles())
	}
}

func TestACommitHasOneFileOfVectors(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: plain, Properties: vectors, Add: append(f.letters(nil, "1", "ab"), f.letters(nil, "2", "cd")...)})
	live := f.live()
	f.commit(Commit{Read: f.snapshot(), Delete: append(remove(live[0], 0), remove(live[1], 1)...)})
	if got := f.cells(); got != "b c" {
		t.Error(got)
	}
	if n := f.vectorFiles(); n != 1 {
		t.Errorf("%d files of vectors", n)
	}
	// Such vectors survive a checkpoint.
	if err := f.table.writeCheckpoint(background, f.snapshot()); err != nil {
		t.Fatal(err)
	}
	if got := f.cells(); got != "b c" {
		t.Error(got)
	}
}

func (f *fixture) vectorFiles() (n int) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "deletion_vector_") {
			n++
		}
	}
	return n
}

func TestDeletionsThatMakeNoSenseAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fixture, s *Snapshot, file AddFile) Commit
		code   string
	}{
		"a row past the end": {func(_ *fixture, s *Snapshot, file AddFile) Commit {
			return Commit{Read: s, Delete: remove(file, 4)}
		}, "DELTA_COMMIT_FAILED"},
		"a file that is not there": {func(f *fixture, s *Snapshot, _ AddFile) Commit {
			return Commit{Read: s, Delete: remove(f.letters(s, "x", "x")[0], 0)}
		}, "DELTA_COMMIT_FAILED"},
		"a file twice": {func(_ *fixture, s *Snapshot, file AddFile) Commit {
			return Commit{Read: s, Delete: append(remove(file, 0), remove(file, 1)...)}
		}, "DELTA_COMMIT_FAILED"},
		"a file that is removed, too": {func(_ *fixture, s *Snapshot, file AddFile) Commit {
			return Commit{Read: s, Delete: remove(file, 0), Remove: []AddFile{file}}
		}, "DELTA_COMMIT_FAILED"},
		"a file that is added, too": {func(_ *fixture, s *Snapshot, file AddFile) Commit {
			return Commit{Read: s, Delete: remove(file, 0), Add: []AddFile{file}}
		}, "DELTA_COMMIT_FAILED"},
		"of a table that is replaced": {func(_ *fixture, s *Snapshot, file AddFile) Commit {
			return Commit{Read: s, Delete: remove(file, 0), ReplaceAll: true}
		}, "DELTA_COMMIT_FAILED"},
		"of a commit that moves rows": {func(_ *fixture, s *Snapshot, file AddFile) Commit {
			return Commit{Read: s, Delete: remove(file, 0), Rearranges: true}
		}, "DELTA_COMMIT_FAILED"},
		"of an append-only table": {func(f *fixture, s *Snapshot, file AddFile) Commit {
			f.commit(Commit{Read: s, Properties: map[string]string{"delta.appendOnly": "true"}})
			return Commit{Read: f.snapshot(), Delete: remove(file, 0)}
		}, "DELTA_CANNOT_MODIFY_APPEND_ONLY"},
		"without vectors": {func(f *fixture, s *Snapshot, file AddFile) Commit {
			f.commit(Commit{Read: s, Properties: map[string]string{"delta.enableDeletionVectors": "false"}})
			return Commit{Read: f.snapshot(), Delete: remove(file, 0)}
		}, "DELTA_DELETION_VECTORS_DISABLED"},
		"change data without a feed": {func(_ *fixture, s *Snapshot, file AddFile) Commit {
			return Commit{Read: s, Delete: remove(file, 0), ChangeData: []CDCFile{{Path: "_change_data/x"}}}
		}, "DELTA_COMMIT_FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			s, file := f.abcd()
			if _, err := f.table.Commit(background, c.change(f, s, file)); fault.CodeOf(err) != c.code {
				t.Errorf("%v, want %s", err, c.code)
			}
			if got := f.cells(); got != "a b c d" {
				t.Error(got)
			}
			if n := f.vectorFiles(); n != 0 {
				t.Errorf("%d files of vectors are left", n)
			}
		})
	}
}

// A deletion without vectors is one of whole files.
func TestAllRowsOfAFileAreDeletedWithoutVectors(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: plain, Add: f.letters(nil, "1", "ab")})
	f.commit(Commit{Read: f.snapshot(), Delete: remove(f.live()[0], 0, 1)})
	if n := f.snapshot().NumFiles(); n != 0 || f.vectorFiles() != 0 {
		t.Errorf("%d files", n)
	}
}

// A count of rows that is too low must not take a live row along.
func TestAWrongCountOfRowsLosesNone(t *testing.T) {
	f := newFixture(t)
	files := f.letters(nil, "1", "abc")
	files[0].Stats = `{"numRecords":2}`
	f.commit(Commit{Schema: plain, Properties: vectors, Add: files})
	f.commit(Commit{Read: f.snapshot(), Delete: remove(f.live()[0], 0, 2)})
	if got := f.cells(); got != "b" {
		t.Errorf("%q", got)
	}
	if n, _ := f.live()[0].NumRecords(); n != 3 {
		t.Errorf("%d rows", n)
	}
}

func TestStatisticsOfAFileWithAVector(t *testing.T) {
	for stats, want := range map[string]string{
		``:          `{"numRecords":9,"tightBounds":false}`,
		`{`:         `{"numRecords":9,"tightBounds":false}`,
		`[1]`:       `{"numRecords":9,"tightBounds":false}`,
		`{"x":1.0}`: `{"numRecords":9,"tightBounds":false}`,
		`{"nullCount":{"a":1},"numRecords":9,"tightBounds":true,"minValues":{"a":1.10},"maxValues":{"a":"<é>"}}`: `{"numRecords":9,"minValues":{"a":1.10},"maxValues":{"a":"<é>"},"nullCount":{"a":1},"tightBounds":false}`,
	} {
		if got := wideStats(stats, 9); got != want {
			t.Errorf("%s became %s", stats, got)
		}
	}
}
