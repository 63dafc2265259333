package delta

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage/faultstore"
)

// dmlRow is a row of the model. Its key is never updated, so that the model
// knows which row of one version is which of the next.
type dmlRow struct {
	key  int64
	part string
	n    int64
	null bool // n is
}

func (r dmlRow) String() string {
	n := strconv.FormatInt(r.n, 10)
	if r.null {
		n = "null"
	}
	return fmt.Sprintf("key=%d|part=%s|n=%s|", r.key, r.part, n)
}

func (r dmlRow) json() string {
	n := strconv.FormatInt(r.n, 10)
	if r.null {
		n = "null"
	}
	return fmt.Sprintf(`{"key":%d,"part":%q,"n":%s}`, r.key, r.part, n)
}

var dmlSchema = arrow.NewSchema([]arrow.Field{
	{Name: "key", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "part", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
}, nil)

// dmlModel is a table beside the slow and obvious thing that it should be.
type dmlModel struct {
	*fixture
	rng     *rand.Rand
	setting string
	rows    map[int64]dmlRow
	next    int64
	ids     map[int64]string // row ids by key
	version int64
	vectors bool
	feed    bool
	tracked bool
	changes []string // of the operation
}

func (m *dmlModel) change(kind string, r dmlRow) { m.changes = append(m.changes, kind+" "+r.String()) }

func (m *dmlModel) insert(n int) string {
	var out []string
	for range n {
		r := dmlRow{key: m.next, part: string(rune('a' + m.rng.IntN(3))), n: m.rng.Int64N(20), null: m.rng.IntN(8) == 0}
		m.next++
		m.rows[r.key] = r
		m.change("insert", r)
		out = append(out, r.json())
	}
	return "[" + strings.Join(out, ",") + "]"
}

func (m *dmlModel) remove(r dmlRow) {
	delete(m.rows, r.key)
	m.change("delete", r)
}

func (m *dmlModel) update(r, to dmlRow) {
	m.rows[r.key] = to
	m.change("update_preimage", r)
	m.change("update_postimage", to)
}

// where gives a condition and what it means.
func (m *dmlModel) where() (string, func(r dmlRow) bool) {
	k, v, p := 2+m.rng.Int64N(4), m.rng.Int64N(20), string(rune('a'+m.rng.IntN(4)))
	switch m.rng.IntN(7) {
	case 0:
		return fmt.Sprintf("key %% %d = 1", k), func(r dmlRow) bool { return r.key%k == 1 }
	case 1:
		return fmt.Sprintf("n > %d", v), func(r dmlRow) bool { return !r.null && r.n > v }
	case 2:
		return fmt.Sprintf("part = '%s'", p), func(r dmlRow) bool { return r.part == p }
	case 3:
		return fmt.Sprintf("part = '%s' AND n <= %d", p, v), func(r dmlRow) bool { return r.part == p && !r.null && r.n <= v }
	case 4:
		return "n IS NULL", func(r dmlRow) bool { return r.null }
	case 5:
		last := m.next - 1
		return fmt.Sprintf("key = %d OR key = %d", last, v), func(r dmlRow) bool { return r.key == last || r.key == v }
	}
	return fmt.Sprintf("NOT (n < %d)", v), func(r dmlRow) bool { return !r.null && r.n >= v }
}

func (m *dmlModel) sorted() []dmlRow {
	return slices.SortedFunc(maps.Values(m.rows), func(a, b dmlRow) int { return int(a.key - b.key) })
}

// step makes one operation on both and compares them.
func (m *dmlModel) step() {
	m.changes = nil
	before := m.version
	what := ""
	var res DMLResult
	var err error
	switch m.rng.IntN(8) {
	case 0, 1:
		s := m.snapshot()
		n := m.rng.IntN(20)
		what = fmt.Sprintf("append %d", n)
		add := m.write(WriteOptions{Snapshot: s, Name: fmt.Sprint("a", s.Version())}, m.insert(n))
		res.Result, err = m.table.Commit(background, Commit{Read: s, Add: add})
		res.Committed = true
	case 2:
		where, holds := m.where()
		what = "DELETE " + where
		res, err = m.table.Delete(background, DeleteOptions{Where: where})
		n := int64(0)
		for _, r := range m.sorted() {
			if holds(r) {
				m.remove(r)
				n++
			}
		}
		if err == nil && res.Deleted != n {
			m.t.Errorf("%s: %s deleted %d, want %d", m.setting, what, res.Deleted, n)
		}
	case 3:
		where, holds := m.where()
		what = "UPDATE " + where
		set, to := map[string]string{"n": "n + 1"}, func(r dmlRow) dmlRow { r.n++; return r }
		if m.rng.IntN(3) == 0 {
			set, to = map[string]string{"part": "'c'", "N": "NULL"}, func(r dmlRow) dmlRow { r.part, r.null = "c", true; return r }
		}
		res, err = m.table.Update(background, UpdateOptions{Where: where, Set: set})
		n := int64(0)
		for _, r := range m.sorted() {
			if holds(r) {
				m.update(r, to(r))
				n++
			}
		}
		if err == nil && res.Updated != n {
			m.t.Errorf("%s: %s updated %d, want %d", m.setting, what, res.Updated, n)
		}
	case 4:
		where, holds := m.where()
		if m.rng.IntN(4) == 0 {
			where, holds = "", func(dmlRow) bool { return true }
		}
		for _, r := range m.sorted() {
			if holds(r) {
				m.remove(r)
			}
		}
		var fresh []string
		for range m.rng.IntN(6) {
			r := dmlRow{key: m.next, part: string(rune('a' + m.rng.IntN(3))), n: m.rng.Int64N(20)}
			if m.next++; holds(r) {
				m.rows[r.key] = r
				m.change("insert", r)
				fresh = append(fresh, r.json())
			}
		}
		what = fmt.Sprintf("OVERWRITE %s with %d", where, len(fresh))
		rec := m.batch(dmlSchema, "["+strings.Join(fresh, ",")+"]")
		rows, _ := array.NewRecordReader(dmlSchema, []arrow.RecordBatch{rec})
		res, err = m.table.Overwrite(background, OverwriteOptions{Where: where, Rows: rows})
		rows.Release()
		rec.Release()
	case 5:
		if m.vectors {
			what, res.Committed = "a race", true
			res.Result, err = m.race()
			break
		}
		fallthrough
	default:
		what = "mutate"
		res.Result, res.Committed, err = m.mutate()
	}
	if err != nil {
		m.t.Fatalf("%s: %s: %v", m.setting, what, err)
	}
	if res.Committed {
		m.version++
	}
	if res.Version != m.version || (len(m.changes) > 0 && m.version == before) {
		m.t.Fatalf("%s: %s made version %d, want %d; %d changes", m.setting, what, res.Version, m.version, len(m.changes))
	}
	m.compare(what, m.version > before)
}

// mutate changes rows at their places, as a merge does.
func (m *dmlModel) mutate() (Result, bool, error) {
	mu := m.prepare(func(int64) bool { return true })
	if len(m.changes) == 0 {
		return Result{Version: m.version}, false, mu.Abort(background)
	}
	res, err := mu.Commit(background, Commit{Operation: "MERGE"})
	return res, true, err
}

// race lets two mutations of one snapshot change rows of the same files.
func (m *dmlModel) race() (Result, error) {
	first := m.prepare(func(key int64) bool { return key%2 == 0 })
	changes := m.changes
	m.changes = nil
	second := m.prepare(func(key int64) bool { return key%2 == 1 })
	res, err := second.Commit(background, Commit{Operation: "MERGE"})
	if err != nil {
		return res, errors.Join(err, first.Abort(background))
	}
	m.version = res.Version
	m.compareFeed("a mutation that won")
	m.changes = changes
	return first.Commit(background, Commit{Operation: "MERGE"})
}

// prepare makes a mutation of the newest version that changes rows of some keys.
func (m *dmlModel) prepare(mine func(key int64) bool) *Mutation {
	s := m.snapshot()
	mu, err := s.Mutate(background, MutateOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	insert := func() {
		rec := m.batch(dmlSchema, m.insert(m.rng.IntN(5)))
		defer rec.Release()
		if err := mu.Insert(background, rec); err != nil {
			m.t.Fatal(err)
		}
	}
	insert()
	files, err := s.Files(background)
	if err != nil {
		m.t.Fatal(err)
	}
	update, rate := m.rng.IntN(2) == 0, []int{2, 5, 100}[m.rng.IntN(3)]
	for _, f := range files {
		r, err := s.Scan(background, ScanOptions{Files: []AddFile{f}, RowIndex: true})
		if err != nil {
			m.t.Fatal(err)
		}
		for r.Next() {
			rec := r.RecordBatch()
			gone, changed := NewRowSet(), NewRowSet()
			var post []string
			for i := range int(rec.NumRows()) {
				row, at := m.rows[rec.Column(0).(*array.Int64).Value(i)], rec.Column(3).(*array.Int64).Value(i)
				if !mine(rec.Column(0).(*array.Int64).Value(i)) {
					continue
				}
				switch m.rng.IntN(rate) {
				case 0:
					gone.Add(at)
					m.remove(row)
				case 1:
					if update {
						to := row
						to.n, to.null, to.part = m.rng.Int64N(20), false, string(rune('a'+m.rng.IntN(3)))
						changed.Add(at)
						m.update(row, to)
						post = append(post, to.json())
					}
				}
			}
			if err := mu.Delete(background, f, gone); err != nil {
				m.t.Fatal(err)
			}
			images := m.batch(dmlSchema, "["+strings.Join(post, ",")+"]")
			err := mu.Update(background, f, changed, images)
			images.Release()
			if err != nil {
				m.t.Fatal(err)
			}
		}
		if r.Err() != nil {
			m.t.Fatal(r.Err())
		}
		r.Release()
	}
	insert()
	if m.rng.IntN(2) == 0 {
		if err := mu.EndRows(background); err != nil {
			m.t.Fatal(err)
		}
	}
	return mu
}

// compare looks at rows, change feed and row ids of the newest version.
func (m *dmlModel) compare(what string, committed bool) {
	var want []string
	for _, r := range m.sorted() {
		want = append(want, r.String())
	}
	slices.Sort(want)
	if got := m.fixture.rows(); !slices.Equal(got, want) {
		m.t.Fatalf("%s: after %s at version %d: %d rows, want %d:\n%s", m.setting, what, m.version, len(got), len(want), firstDifference(got, want))
	}
	compareNulls(m.t, m.setting+" after "+what, m.snapshot())
	if committed {
		m.compareFeed(what)
	}
	if m.tracked && committed {
		m.compareIDs(what)
	}
}

// compareFeed checks that the feed of the newest version is what the operation did.
func (m *dmlModel) compareFeed(what string) {
	if !m.feed {
		return
	}
	got := m.changesOf(m.version)
	slices.Sort(m.changes)
	if !slices.Equal(got, m.changes) {
		m.t.Fatalf("%s: the feed of %s at version %d: %d changes, want %d:\n%s", m.setting, what, m.version, len(got), len(m.changes), firstDifference(got, m.changes))
	}
}

func (m *dmlModel) changesOf(version int64) []string {
	r, err := m.reopen().Changes(background, ChangesOptions{From: version, To: version})
	if err != nil {
		m.t.Fatal(err)
	}
	defer r.Release()
	var out []string
	for r.Next() {
		for _, row := range recordRows(r.RecordBatch(), nil) {
			data, rest, _ := strings.Cut(row, ChangeTypeColumn+"=")
			kind, _, _ := strings.Cut(rest, "|")
			out = append(out, kind+" "+data)
		}
	}
	if r.Err() != nil {
		m.t.Fatalf("%s: %v", m.setting, r.Err())
	}
	slices.Sort(out)
	return out
}

// compareIDs checks that rows keep their ids, that no two share one, and that
// updated and new rows carry the version of their commit.
func (m *dmlModel) compareIDs(what string) {
	touched := map[string]bool{}
	for _, c := range m.changes {
		if kind, row, _ := strings.Cut(c, " "); kind != "delete" && kind != "update_preimage" {
			key, _, _ := strings.Cut(row, "|")
			touched[key] = true
		}
	}
	seen := map[string]int64{}
	for entry := range strings.FieldsSeq(rowIDs(m.t.(*testing.T), m.snapshot(), nil, "key")) {
		k, rest, _ := strings.Cut(entry, ":")
		id, version, _ := strings.Cut(rest, "@")
		key, _ := strconv.ParseInt(k, 10, 64)
		if other, ok := seen[id]; ok || id == "(null)" {
			m.t.Fatalf("%s: after %s rows %d and %d have id %s", m.setting, what, key, other, id)
		}
		seen[id] = key
		if old, ok := m.ids[key]; ok && old != id {
			m.t.Fatalf("%s: after %s row %d has id %s, had %s", m.setting, what, key, id, old)
		}
		m.ids[key] = id
		if now := fmt.Sprint(m.version); touched["key="+k] != (version == now) {
			m.t.Fatalf("%s: after %s at version %s row %d is of version %s", m.setting, what, now, key, version)
		}
	}
}

// Random changes of rows give the rows, the change feed and the row ids that a
// plain model has, with and without deletion vectors, feed, partitions, row
// tracking and column mapping.
func TestChangesOfRowsFollowTheModel(t *testing.T) {
	seeds := 1
	if n, err := strconv.Atoi(os.Getenv("DELTA_DML_SEEDS")); err == nil {
		seeds = n
	}
	for i := range 32 {
		properties, parts := map[string]string{}, []string(nil)
		if i&1 > 0 {
			properties["delta.enableDeletionVectors"] = "true"
		}
		if i&2 > 0 {
			properties["delta.enableChangeDataFeed"] = "true"
		}
		if i&4 > 0 {
			properties["delta.enableRowTracking"] = "true"
		}
		if i&8 > 0 {
			parts = []string{"part"}
		}
		if i&16 > 0 {
			properties["delta.columnMapping.mode"] = []string{"name", "id"}[i&1]
		}
		for seed := range seeds {
			setting := fmt.Sprintf("%v by %v, seed %d", slices.Sorted(maps.Keys(properties)), parts, seed)
			m := &dmlModel{fixture: newFixture(t).withEngine(), rng: rand.New(rand.NewPCG(uint64(i), uint64(seed))), setting: setting,
				rows: map[int64]dmlRow{}, ids: map[int64]string{}, vectors: i&1 > 0, feed: i&2 > 0, tracked: i&4 > 0}
			m.commit(Commit{Schema: dmlSchema, Properties: properties, PartitionBy: parts})
			for range 12 {
				m.step()
			}
		}
	}
}

func TestMutationsRefuseWhatCannotBe(t *testing.T) {
	f := newFixture(t).withEngine()
	s := f.create()
	f.commit(Commit{Read: s, Add: f.write(WriteOptions{Snapshot: s, Name: "n"}, `[{"s":"a"},{"s":"b"},{"s":"c"}]`)})
	s = f.snapshot()
	files, _ := s.Files(background)
	file := files[0]
	m, err := s.Mutate(background, MutateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	one := f.batch(s.Schema(), `[{"s":"x"}]`)
	defer one.Release()
	other := file
	other.Path = "other.parquet"
	if err := m.Delete(background, file, NewRowSet(1)); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		err  error
		code string
	}{
		"a row twice":              {m.Delete(background, file, NewRowSet(1)), "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"},
		"a row twice, updated":     {m.Update(background, file, NewRowSet(1), one), "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"},
		"its whole file":           {m.DeleteFile(background, file), "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"},
		"a row past the end":       {m.Delete(background, file, NewRowSet(3)), "DELTA_INVALID_MUTATION"},
		"a file that is not there": {m.Delete(background, other, NewRowSet(0)), "DELTA_FILE_NOT_FOUND"},
		"two rows by one":          {m.Update(background, file, NewRowSet(0, 2), one), "DELTA_INVALID_MUTATION"},
	} {
		if !fault.Is(c.err, c.code) {
			t.Errorf("%s: %v", what, c.err)
		}
	}
	if err := m.Insert(background, one); err != nil {
		t.Fatal(err)
	}
	if err := m.Abort(background); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Commit(background, Commit{}); !fault.Is(err, "DELTA_INVALID_MUTATION") {
		t.Error(err)
	}
	if err := m.Insert(background, one); !fault.Is(err, "DELTA_INVALID_MUTATION") {
		t.Error(err)
	}
	if left := f.dataFiles(); len(left) != 1 {
		t.Errorf("left %v", left)
	}
}

// Whichever call of the store fails, an UPDATE is made as a whole or not at
// all, and a failed one leaves neither memory nor files behind that it knows of.
func TestAnUpdateIsMadeOrNot(t *testing.T) {
	for _, vectors := range []string{"true", "false"} {
		for n := 1; ; n++ {
			f := newFixture(t).withEngine()
			f.commit(Commit{Schema: dmlSchema, Properties: map[string]string{"delta.enableDeletionVectors": vectors, "delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}})
			s := f.snapshot()
			f.commit(Commit{Read: s, Add: f.write(WriteOptions{Snapshot: s, Name: "n"}, `[{"key":1,"part":"a","n":1},{"key":2,"part":"a","n":2},{"key":3,"part":"b","n":3}]`)})
			before := f.rows()
			twin := faultstore.New(f.store, faultstore.AtCall(n, faultstore.Fail(errLost)))
			f.table = Open(twin, WithAllocator(f.mem), WithEngine(miniEngine{f.mem}))
			res, err := f.table.Update(background, UpdateOptions{Where: "key > 1", Set: map[string]string{"n": "n * 10"}})
			after := strings.Join(f.rows(), " ")
			changed := after == "key=1|part=a|n=1| key=2|part=a|n=20| key=3|part=b|n=30|"
			if changed != (err == nil) || !changed && after != strings.Join(before, " ") {
				t.Fatalf("vectors %s, call %d: %v, %v, rows %s", vectors, n, res, err, after)
			}
			if err != nil && !errors.Is(err, errLost) {
				t.Errorf("vectors %s, call %d: %v", vectors, n, err)
			}
			if report := f.check(CheckOptions{}); len(report.Problems) > 0 {
				t.Errorf("vectors %s, call %d: %v", vectors, n, report.Problems)
			}
			if len(twin.Calls()) < n {
				if n < 10 {
					t.Errorf("only %d calls failed, the test tests little", n)
				}
				break
			}
		}
	}
}

func TestNamesOfTheFeedAreNoColumns(t *testing.T) {
	f := newFixture(t)
	schema := arrow.NewSchema([]arrow.Field{columnWith("id", long), columnWith("_Commit_Version", long)}, nil)
	if _, err := f.table.Commit(background, Commit{Schema: schema, Properties: feedOn}); !fault.Is(err, "DELTA_RESERVED_COLUMN") {
		t.Error(err)
	}
	f.commit(Commit{Schema: schema})
	if _, err := f.table.Commit(background, Commit{Read: f.snapshot(), Properties: feedOn}); !fault.Is(err, "DELTA_RESERVED_COLUMN") {
		t.Error(err)
	}
}

// A schema that a mutation brings along is the table's with its commit.
func TestAMutationMayAddColumns(t *testing.T) {
	f := newFixture(t).withEngine()
	f.commit(Commit{Schema: dmlSchema, Properties: map[string]string{"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}})
	s := f.snapshot()
	f.commit(Commit{Read: s, Add: f.write(WriteOptions{Snapshot: s, Name: "n"}, `[{"key":1,"part":"a","n":1},{"key":2,"part":"a","n":2}]`)})
	s = f.snapshot()
	wider := arrow.NewSchema(append(slices.Clone(s.Schema().Fields()), columnWith("more", long)), nil)
	m, err := s.Mutate(background, MutateOptions{Schema: wider})
	if err != nil {
		t.Fatal(err)
	}
	files, _ := s.Files(background)
	post := f.batch(wider, `[{"key":2,"part":"a","n":3,"more":7}]`)
	defer post.Release()
	if err := m.Update(background, files[0], NewRowSet(1), post); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Commit(background, Commit{Operation: "MERGE"}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(f.rows(), " "); got != "key=1|part=a|n=1|more=null| key=2|part=a|n=3|more=7|" {
		t.Error(got)
	}
	model := &dmlModel{fixture: f}
	if got := strings.Join(model.changesOf(2), " "); got != "update_postimage key=2|part=a|n=3|more=7| update_preimage key=2|part=a|n=2|more=null|" {
		t.Error(got)
	}
}

// Rows that were ended come with the commit or not at all, and none follow them.
func TestEndedRowsComeWithTheCommitOrNotAtAll(t *testing.T) {
	f := newFixture(t).withEngine()
	f.commit(Commit{Schema: dmlSchema, Properties: map[string]string{"delta.enableDeletionVectors": "true"}})
	s := f.snapshot()
	f.commit(Commit{Read: s, Add: f.write(WriteOptions{Snapshot: s, Name: "n"}, `[{"key":1,"part":"a","n":1},{"key":2,"part":"a","n":2}]`)})
	s = f.snapshot()
	files, _ := s.Files(background)
	before := f.dataFiles()
	post := f.batch(dmlSchema, `[{"key":2,"part":"b","n":3}]`)
	defer post.Release()
	for _, commit := range []bool{false, true} {
		m, err := s.Mutate(background, MutateOptions{Name: "ended"})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(m.EndRows(background), m.Update(background, files[0], NewRowSet(1), post), m.EndRows(background), m.EndRows(background)); err != nil {
			t.Fatal(err)
		}
		if err := m.Insert(background, post); !fault.Is(err, "DELTA_INVALID_MUTATION") {
			t.Errorf("a row after the end: %v", err)
		}
		if got := f.dataFiles(); len(got) != len(before)+1 {
			t.Errorf("the ended rows are in %v, before them there were %v", got, before)
		}
		if !commit {
			if err := m.Abort(background); err != nil {
				t.Fatal(err)
			}
			if got := f.dataFiles(); !slices.Equal(got, before) {
				t.Errorf("files %v, want %v", got, before)
			}
			continue
		}
		if err := m.Delete(background, files[0], NewRowSet(0)); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Commit(background, Commit{Operation: "MERGE"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(f.rows(), " "); got != "key=2|part=b|n=3|" {
		t.Error(got)
	}
}

// Without vectors a file is written anew as a whole, so two mutations of it do
// not follow each other. The one that loses removes what it wrote.
func TestTheLoserOfARaceLeavesNoFiles(t *testing.T) {
	f := newFixture(t).withEngine()
	f.commit(Commit{Schema: dmlSchema, Properties: feedOn})
	s := f.snapshot()
	f.commit(Commit{Read: s, Add: f.write(WriteOptions{Snapshot: s, Name: "n"}, `[{"key":1,"part":"a","n":1},{"key":2,"part":"a","n":2},{"key":3,"part":"b","n":3}]`)})
	s = f.snapshot()
	files, _ := s.Files(background)
	begin := func(row int64) *Mutation {
		m, err := s.Mutate(background, MutateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		post := f.batch(dmlSchema, fmt.Sprintf(`[{"key":%d,"part":"c","n":10}]`, row+1))
		defer post.Release()
		if err := m.Update(background, files[0], NewRowSet(row), post); err != nil {
			t.Fatal(err)
		}
		return m
	}
	first, second := begin(0), begin(1)
	if _, err := second.Commit(background, Commit{Operation: "UPDATE"}); err != nil {
		t.Fatal(err)
	}
	written := f.dataFiles()
	_, err := first.Commit(background, Commit{Operation: "UPDATE"})
	if !fault.Is(err, "DELTA_CONCURRENT_DELETE_DELETE") || strings.Count(err.Error(), "UPDATE") != 2 {
		t.Errorf("%v", err)
	}
	if got := f.dataFiles(); !slices.Equal(got, written) {
		t.Errorf("files %v, want %v", got, written)
	}
	if got := strings.Join(f.rows(), " "); got != "key=1|part=a|n=1| key=2|part=c|n=10| key=3|part=b|n=3|" {
		t.Error(got)
	}
}
