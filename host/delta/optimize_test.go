package delta

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/faultstore"
)

func (f *fixture) optimize(opt OptimizeOptions) OptimizeResult {
	f.t.Helper()
	res, err := f.table.Optimize(background, opt)
	if err = errors.Join(err, res.CheckpointError); err != nil {
		f.t.Fatal(err)
	}
	return res
}

// add commits a file of its own.
func (f *fixture) add(s *Snapshot, name string, rec arrow.RecordBatch) {
	f.t.Helper()
	defer rec.Release()
	w, err := f.table.Write(background, WriteOptions{Snapshot: s, Name: name, TargetSize: 1 << 40})
	if err != nil {
		f.t.Fatal(err)
	}
	err = w.Write(background, rec)
	files, closeErr := w.Close(background)
	if err := errors.Join(err, closeErr); err != nil {
		f.t.Fatal(err)
	}
	f.commit(Commit{Read: s, Add: files})
}

// nothingMore runs optimize again, which must do nothing.
func (f *fixture) nothingMore(opt OptimizeOptions) {
	f.t.Helper()
	before := f.snapshot().Version()
	if res := f.optimize(opt); res.Commits != 0 || res.AddedFiles+res.RemovedFiles != 0 || f.snapshot().Version() != before {
		f.t.Errorf("a second run: %+v", res)
	}
}

func TestSmallFilesBecomeFilesOfOneSizeNearTheTarget(t *testing.T) {
	const target = 40_000
	f := newFixture(t)
	f.commit(Commit{Schema: plain, Properties: map[string]string{"delta.targetFileSize": fmt.Sprint(target)}})
	s := f.snapshot()
	for i := range 40 {
		f.add(s, fmt.Sprint("small", i), f.manyRows(i*1000, 1000))
	}
	before := f.rows()
	total := int64(0)
	for _, file := range f.live() {
		total += file.Size
	}
	res := f.optimize(OptimizeOptions{EngineInfo: "weir"})
	if got := f.rows(); !slices.Equal(got, before) {
		t.Fatalf("%d rows, were %d", len(got), len(before))
	}
	files := f.live()
	smallest := slices.MinFunc(files, func(a, b AddFile) int { return cmp.Compare(a.Size, b.Size) }).Size
	largest := slices.MaxFunc(files, func(a, b AddFile) int { return cmp.Compare(a.Size, b.Size) }).Size
	if smallest < target*3/4 || largest > target*5/4 || largest*10 > smallest*12 || len(files) < 3 {
		t.Errorf("%d bytes became %d files of %d to %d", total, len(files), smallest, largest)
	}
	if res.RemovedFiles != 40 || res.AddedFiles < int64(len(files)) || res.Rows < 40_000 || res.RemovedBytes < total || res.Partitions != 1 || res.Version != f.snapshot().Version() {
		t.Errorf("%+v", res)
	}
	for e, err := range f.table.Log(background, 41, -1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.CommitInfo.Operation != "OPTIMIZE" || *e.CommitInfo.IsBlindAppend || e.CommitInfo.EngineInfo != "weir" {
			t.Errorf("%+v", e.CommitInfo)
		}
		for _, a := range e.Adds {
			if n, ok := a.NumRecords(); a.DataChange || a.ClusteringProvider != "" || !ok || n == 0 {
				t.Errorf("%+v", a)
			}
		}
		for _, r := range e.Removes {
			if r.DataChange {
				t.Errorf("%+v", r)
			}
		}
	}
	f.nothingMore(OptimizeOptions{})
	// One more small file changes nothing; with a second one both become one.
	f.add(s, "late", f.manyRows(0, 10))
	f.nothingMore(OptimizeOptions{})
	f.add(s, "later", f.manyRows(0, 10))
	if res := f.optimize(OptimizeOptions{}); res.RemovedFiles != 2 || res.AddedFiles != 1 {
		t.Errorf("%+v", res)
	}
}

// TestAnOptimizeByItselfTakesOneLook: it packs once what is many, says that it
// was automatic, and leaves the few that come of it alone.
func TestAnOptimizeByItselfTakesOneLook(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: plain})
	auto := OptimizeOptions{Auto: &AutoCompact{SmallRatio: 0.25, Least: 4, Bytes: 1 << 20}}
	for i := range 6 {
		if res := f.optimize(auto); (res.Commits == 1) != (i == 4) {
			t.Errorf("%d files: %+v", i, res)
		}
		f.add(f.snapshot(), fmt.Sprint("small", i), f.manyRows(i*10, 10))
	}
	history, err := f.table.History(background, 3)
	if err != nil {
		t.Fatal(err)
	}
	if h := history[2]; h.Operation != "OPTIMIZE" || h.OperationParameters["auto"] != "true" || h.RemovedFiles != 4 || h.AddedFiles != 1 {
		t.Errorf("%+v", h)
	}
	if got := len(f.rows()); got != 60 || len(f.live()) != 3 {
		t.Errorf("%d rows in %d files", got, len(f.live()))
	}
}

func TestPartitionsAreOptimizedEachForItself(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: grouped, PartitionBy: []string{"p"}})
	s := f.snapshot()
	for i := range 5 {
		f.add(s, fmt.Sprint("small", i), f.withGroups(f.manyRows(i*6000, 6000)))
	}
	f.add(s, "alone", f.batch(grouped, `[{"id":1,"p":77}]`))
	before := f.rows()
	res := f.optimize(OptimizeOptions{Where: Compare([]string{"p"}, Equal, 3)})
	if res.RemovedFiles != 5 || res.AddedFiles != 1 || res.Partitions != 1 {
		t.Errorf("one partition: %+v", res)
	}
	f.withEngine()
	if res = f.optimize(OptimizeOptions{Partitions: "p IS NULL"}); res.RemovedFiles != 5 || res.AddedFiles != 1 {
		t.Errorf("by a condition: %+v", res)
	}
	if _, err := f.table.Optimize(background, OptimizeOptions{Partitions: "id = 1"}); fault.CodeOf(err) != "DELTA_NON_PARTITION_COLUMN_REFERENCE" {
		t.Errorf("not a partition: %v", err)
	}
	res = f.optimize(OptimizeOptions{})
	if res.RemovedFiles != 20 || res.AddedFiles != 4 || res.Partitions != 4 || res.Commits != 1 {
		t.Errorf("the rest: %+v", res)
	}
	if got := f.rows(); !slices.Equal(got, before) {
		t.Errorf("%d rows, were %d", len(got), len(before))
	}
	f.nothingMore(OptimizeOptions{})
	if _, err := f.table.Optimize(background, OptimizeOptions{Where: IsNull([]string{"nope"})}); err == nil {
		t.Error("an unknown column")
	}
}

func TestLargeWorkIsCommittedInBatches(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: grouped, PartitionBy: []string{"p"}})
	s := f.snapshot()
	for i := range 4 {
		f.add(s, fmt.Sprint("small", i), f.withGroups(f.manyRows(i*6000, 6000)))
	}
	before := f.rows()
	if res := f.optimize(OptimizeOptions{CommitBytes: 1}); res.Commits < 6 {
		t.Errorf("%+v", res)
	}
	if got := f.rows(); !slices.Equal(got, before) || len(f.live()) != 6 {
		t.Errorf("%d rows, were %d, in %d files", len(got), len(before), len(f.live()))
	}
}

// Rows that a commit deletes while its file is rewritten stay deleted: the bin is done again.
func TestAnOptimizeThatLosesARaceIsDoneAgain(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: grouped, PartitionBy: []string{"p"}})
	s := f.snapshot()
	for i := range 3 {
		f.add(s, fmt.Sprint("a", i), f.batch(grouped, fmt.Sprintf(`[{"id":%d,"p":1},{"id":%d,"p":2}]`, i, 10+i)))
	}
	rival := f.reopen()
	victim := slices.IndexFunc(f.live(), func(a AddFile) bool { return *a.PartitionValues["p"] == "1" })
	gone := f.live()[victim : victim+1]
	f.twin(faultstore.Rule{Op: faultstore.OpPutIfAbsent, Times: 1, Effect: faultstore.Call(func() {
		now, err := rival.Snapshot(background)
		if err == nil {
			_, err = rival.Commit(background, Commit{Read: now, Remove: gone})
		}
		if err != nil {
			t.Error(err)
		}
	})})
	res := f.optimize(OptimizeOptions{})
	if res.Conflicts != 3 || res.Commits != 2 || res.RemovedFiles != 5 || res.AddedFiles != 2 {
		t.Errorf("%+v", res)
	}
	if got := len(f.rows()); got != 5 {
		t.Errorf("%d rows", got)
	}
	// What was written in vain is gone.
	named := 0
	for info, err := range f.store.List(background, "", storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(info.Name, "optimize-") {
			named++
		}
	}
	if named != 2 {
		t.Errorf("%d files of optimize", named)
	}
	// Against one who always wins it gives up, by name.
	f = newFixture(t)
	s = f.create()
	f.commit(Commit{Read: s, Add: f.files(s, "a", "b")})
	rival = f.reopen()
	n := 0
	f.twin(faultstore.Rule{Op: faultstore.OpPutIfAbsent, Effect: faultstore.Call(func() {
		now, err := rival.Snapshot(background)
		if err == nil {
			n++
			_, err = rival.Commit(background, Commit{Read: now, Properties: map[string]string{"n": fmt.Sprint(n)}})
		}
		if err != nil {
			t.Error(err)
		}
	})})
	if _, err := f.table.Optimize(background, OptimizeOptions{Retries: 3}); fault.CodeOf(err) != "DELTA_METADATA_CHANGED" || n != 4 {
		t.Errorf("%v after %d", err, n)
	}
}

// covers §5: rows that are deleted go for good, from a ratio on, and versions before still have them.
func TestVectorsArePurgedFromARatioOn(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: plain, Properties: map[string]string{"delta.enableDeletionVectors": "true", "delta.targetFileSize": "300"}})
	s := f.snapshot()
	f.commit(Commit{Read: s, Add: append(f.letters(s, "many", "abcdefghij"), f.letters(s, "few", "klmnopqrst")...)})
	few, many := f.live()[0], f.live()[1]
	f.commit(Commit{Read: f.snapshot(), Delete: append(remove(many, 0, 1, 2, 3), remove(few, 9)...)})
	deleted := f.snapshot().Version()
	if res := f.optimize(OptimizeOptions{PurgeRatio: -1}); res.Commits != 0 {
		t.Errorf("never: %+v", res)
	}
	if res := f.optimize(OptimizeOptions{PurgeRatio: 0.5}); res.Commits != 0 {
		t.Errorf("below the ratio: %+v", res)
	}
	res := f.optimize(OptimizeOptions{PurgeRatio: 0.4})
	if res.PurgedVectors != 1 || res.DeletedRows != 4 || res.Rows != 6 || res.RemovedFiles != 1 || res.AddedFiles != 1 {
		t.Errorf("%+v", res)
	}
	f.nothingMore(OptimizeOptions{PurgeRatio: 0.4})
	if res := f.optimize(OptimizeOptions{}); res.PurgedVectors != 1 || res.DeletedRows != 1 {
		t.Errorf("the other one: %+v", res)
	}
	for _, file := range f.live() {
		if file.DeletionVector != nil {
			t.Errorf("%+v", file)
		}
	}
	if got := f.cells(); got != "e f g h i j k l m n o p q r s" {
		t.Errorf("rows %s", got)
	}
	f.restore(deleted)
	if got := f.cells(); got != "e f g h i j k l m n o p q r s" {
		t.Errorf("rows %s", got)
	}
	// A file without a live row is not rewritten but dropped.
	f = newFixture(t)
	_, file := f.abcd()
	f.commit(Commit{Read: f.snapshot(), Delete: remove(file, 0, 1, 2)})
	if res := f.optimize(OptimizeOptions{}); res.AddedFiles != 1 || res.Rows != 1 || f.cells() != "d" {
		t.Errorf("%+v, rows %s", res, f.cells())
	}
}

// Rows deleted by a vector while they are moved are not brought back.
func TestADeleteDuringAnOptimizeIsNotUndone(t *testing.T) {
	f := newFixture(t)
	s, _ := f.abcd()
	f.commit(Commit{Read: s, Add: f.letters(s, "efgh", "efgh")})
	rival, files := f.reopen(), f.live()
	f.twin(faultstore.Rule{Op: faultstore.OpPutIfAbsent, Times: 1, Effect: faultstore.Call(func() {
		now, err := rival.Snapshot(background)
		if err == nil {
			_, err = rival.Commit(background, Commit{Read: now, Delete: remove(files[0], 1)})
		}
		if err != nil {
			t.Error(err)
		}
	})})
	if res := f.optimize(OptimizeOptions{}); res.Conflicts != 2 || res.Commits != 1 || res.DeletedRows != 1 {
		t.Errorf("%+v", res)
	}
	if got := f.cells(); got != "a c d e f g h" || len(f.live()) != 1 {
		t.Errorf("rows %s in %d files", got, len(f.live()))
	}
}

// covers §7: rows that move keep their ids and the version that they came with.
func TestMovedRowsKeepTheirIdentity(t *testing.T) {
	for name, properties := range map[string]map[string]string{
		"enabled":   {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"},
		"supported": {"delta.feature.rowTracking": "supported", "delta.enableDeletionVectors": "true"},
	} {
		f := newFixture(t)
		f.commit(Commit{Schema: plain, Properties: properties})
		s := f.snapshot()
		f.commit(Commit{Read: s, Add: f.letters(s, "x", "abcd")})
		f.commit(Commit{Read: s, Add: f.letters(s, "y", "efgh")})
		f.commit(Commit{Read: f.snapshot(), Delete: remove(f.live()[0], 1)})
		before := rowIDs(t, f.snapshot(), nil, "s")
		f.optimize(OptimizeOptions{})
		s = f.snapshot()
		after := rowIDs(t, s, nil, "s")
		if len(f.live()) != 1 || (after == before) != (name == "enabled") {
			t.Errorf("%s: %s, were %s", name, after, before)
		}
		for e, err := range f.table.Log(background, s.Version(), -1) {
			if err != nil {
				t.Fatal(err)
			}
			if (e.CommitInfo.Tags["delta.rowTracking.preserved"] == "true") != (name == "enabled") {
				t.Errorf("%s: tags %v", name, e.CommitInfo.Tags)
			}
		}
		// Once more: ids that lie in the file move along.
		f.commit(Commit{Read: s, Add: f.letters(s, "z", "ij")})
		before = rowIDs(t, f.snapshot(), nil, "s")
		f.optimize(OptimizeOptions{})
		if after := rowIDs(t, f.snapshot(), nil, "s"); len(f.live()) != 1 || (after == before) != (name == "enabled") {
			t.Errorf("%s: %s, were %s", name, after, before)
		}
	}
}

// Rows that are in the table obey its rules already: moving them asks nobody.
func TestRowsMoveWithoutTheirRulesBeingAsked(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	f.commit(Commit{Read: s, Add: f.letters(s, "x", "ab")})
	f.commit(Commit{Read: s, Add: f.letters(s, "y", "cd")})
	m := f.snapshot().Metadata()
	m.Configuration = map[string]string{"delta.constraints.c": "length(s) = 1"}
	protocol := Protocol{MinReaderVersion: 1, MinWriterVersion: 3}
	data, err := encodeActions([]any{map[string]any{"protocol": protocol}, map[string]any{"metaData": m}})
	if err == nil {
		err = f.store.PutIfAbsent(background, commitName(3), data)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.table = f.reopen()
	if res := f.optimize(OptimizeOptions{}); res.AddedFiles != 1 || f.cells() != "a b c d" {
		t.Errorf("%+v", res)
	}
}

// Files that others append meanwhile are left for the next run.
func TestAnOptimizeDoesNotRunAfterAppends(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	f.commit(Commit{Read: s, Add: f.files(s, "a", "b")})
	rival := f.reopen()
	late := f.files(s, "c", "d")
	f.twin(faultstore.Rule{Op: faultstore.OpPutIfAbsent, Times: 1, Effect: faultstore.Call(func() {
		if _, err := rival.Commit(background, Commit{Read: s, Add: late}); err != nil {
			t.Error(err)
		}
	})})
	if res := f.optimize(OptimizeOptions{}); res.Commits != 1 || res.RemovedFiles != 2 || res.Conflicts != 0 {
		t.Errorf("%+v", res)
	}
	if got := f.cells(); got != "a b c d" || len(f.live()) != 3 {
		t.Errorf("%s in %d files", got, len(f.live()))
	}
}

func TestAnOptimizeThatFailsLeavesTheTableAsItWas(t *testing.T) {
	for _, rule := range []faultstore.Rule{
		{Op: faultstore.OpCreate, Effect: faultstore.Full()},
		{Op: faultstore.OpWrite, Effect: faultstore.Full()},
		{Op: faultstore.OpCommit, Skip: 1, Effect: faultstore.Fail(errLost)},
		{Op: faultstore.OpRead, Name: "part-*", Skip: 3, Effect: faultstore.Fail(errLost)},
	} {
		f := newFixture(t)
		f.commit(Commit{Schema: grouped, PartitionBy: []string{"p"}})
		s := f.snapshot()
		for i := range 3 {
			f.add(s, fmt.Sprint("a", i), f.batch(grouped, `[{"id":1,"p":1},{"id":2,"p":2}]`))
		}
		left := len(leftovers(t, f.dir))
		f.twin(rule)
		if _, err := f.table.Optimize(background, OptimizeOptions{}); err == nil {
			t.Errorf("%s: no failure", rule.Op)
		}
		if got := len(leftovers(t, f.dir)); got != left || len(f.rows()) != 6 {
			t.Errorf("%s: %d files, were %d", rule.Op, got, left)
		}
	}
}

// spread has two columns to cluster by, one of them in a struct, and one that tells rows apart.
var spread = arrow.NewSchema([]arrow.Field{
	{Name: "x", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "in", Type: arrow.StructOf(arrow.Field{Name: "y", Type: arrow.PrimitiveTypes.Float64, Nullable: true}), Nullable: true},
	{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
}, nil)

func (f *fixture) spreadRows(r *rand.Rand, from, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(f.mem, spread)
	defer b.Release()
	for i := from; i < from+n; i++ {
		b.Field(0).(*array.Int64Builder).Append(r.Int64N(1000))
		st := b.Field(1).(*array.StructBuilder)
		if r.IntN(50) == 0 {
			st.AppendNull()
		} else {
			st.Append(true)
			st.FieldBuilder(0).(*array.Float64Builder).Append(r.Float64())
		}
		b.Field(2).(*array.Int64Builder).Append(int64(i))
	}
	return b.NewRecordBatch()
}

// covered is the share of the space of x and y that the files' bounds take, on average.
func covered(t *testing.T, files []AddFile) float64 {
	t.Helper()
	sum := 0.0
	for _, f := range files {
		var stats struct {
			MinValues, MaxValues struct {
				X  float64
				In struct{ Y float64 }
			}
		}
		if err := json.Unmarshal([]byte(f.Stats), &stats); err != nil {
			t.Fatal(err)
		}
		sum += (stats.MaxValues.X - stats.MinValues.X) / 1000 * (stats.MaxValues.In.Y - stats.MinValues.In.Y)
	}
	return sum / float64(len(files))
}

func TestClusteredTablesAreOrderedByTheirColumns(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: spread, ClusterBy: []string{"x", "in.y"}, Properties: map[string]string{"delta.targetFileSize": "20000"}})
	s := f.snapshot()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 8 {
		f.add(s, fmt.Sprint("small", i), f.spreadRows(r, i*2000, 2000))
	}
	before := f.rows()
	if c := covered(t, f.live()); c < 0.9 {
		t.Fatalf("unclustered files cover %f", c)
	}
	res := f.optimize(OptimizeOptions{})
	files := f.live()
	if c := covered(t, files); len(files) < 6 || c > 0.35 {
		t.Errorf("%d clustered files cover %f of the space each", len(files), c)
	}
	if got := f.rows(); !slices.Equal(got, before) {
		t.Errorf("%d rows, were %d", len(got), len(before))
	}
	for _, file := range files {
		if file.ClusteringProvider != "weir" || file.Tags[clusterTag] != `[["x"],["in","y"]]` || file.DataChange {
			t.Errorf("%+v", file)
		}
	}
	if res.Commits == 0 || res.RemovedFiles < 8 {
		t.Errorf("%+v", res)
	}
	f.nothingMore(OptimizeOptions{})

	// What comes later is clustered for itself; a full run brings all together.
	for i := range 4 {
		f.add(s, fmt.Sprint("later", i), f.spreadRows(r, 20_000+i*2000, 2000))
	}
	before = f.rows()
	if res := f.optimize(OptimizeOptions{}); res.RemovedFiles < 4 || res.RemovedFiles > 4+int64(len(files)) {
		t.Errorf("%+v", res)
	}
	f.nothingMore(OptimizeOptions{})
	apart := covered(t, f.live())
	f.optimize(OptimizeOptions{Full: true})
	if together := covered(t, f.live()); together > apart {
		t.Errorf("clustered in two goes %f, in one %f", apart, together)
	}
	if got := f.rows(); !slices.Equal(got, before) {
		t.Errorf("%d rows, were %d", len(got), len(before))
	}
	f.nothingMore(OptimizeOptions{})
}

// Property: whatever is held in memory, the sort gives every row once, part by
// part in the order of the curve, and nothing is left in memory or on disk.
func TestRowsAreClusteredInBoundedMemory(t *testing.T) {
	for _, limit := range []int64{1, 20_000, 1 << 30} {
		for _, parts := range []int{1, 2, 9} {
			f := newFixture(t)
			r := rand.New(rand.NewPCG(uint64(limit), uint64(parts)))
			tree, err := fromArrow(spread.Fields(), "")
			if err != nil {
				t.Fatal(err)
			}
			order, err := newCurveOrder(tree, [][]string{{"x"}, {"in", "y"}})
			if err != nil {
				t.Fatal(err)
			}
			var in []arrow.RecordBatch
			for i := range 10 {
				in = append(in, f.spreadRows(r, i*300, 300))
			}
			if err := order.learn(in[:3], parts); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			s := newCurveSort(f.mem, order, in[0].Schema(), dir, limit)
			for _, rec := range in {
				if err := s.add(rec); err != nil {
					t.Fatal(err)
				}
				if limit < 1<<30 && s.bytes > limit {
					t.Errorf("%d bytes are held", s.bytes)
				}
			}
			releaseBatches(in)
			seen := map[int64]bool{}
			lastPart := 0
			err = s.each(background, func(rec arrow.RecordBatch) error {
				keys := order.keys(rec)
				for i, id := range rec.Column(2).(*array.Int64).Int64Values() {
					part := order.part(keys[i])
					if seen[id] || part < lastPart || limit == 1<<30 && i > 0 && keys[i] < keys[i-1] {
						t.Fatalf("row %d of part %d after part %d, key %d", id, part, lastPart, keys[i])
					}
					seen[id], lastPart = true, part
				}
				return nil
			})
			if err := errors.Join(err, s.close()); err != nil || len(seen) != 3000 {
				t.Errorf("%d rows, %v", len(seen), err)
			}
			if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
				t.Errorf("left %v, %v", left, err)
			}
		}
	}
}

func TestAClusteringThatEndsEarlyGivesEverythingBack(t *testing.T) {
	f := newFixture(t)
	tree, err := fromArrow(spread.Fields(), "")
	if err != nil {
		t.Fatal(err)
	}
	order, err := newCurveOrder(tree, [][]string{{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	rec := f.spreadRows(rand.New(rand.NewPCG(1, 1)), 0, 500)
	defer rec.Release()
	if err := order.learn([]arrow.RecordBatch{rec}, 4); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int64{1, 1 << 30} {
		s := newCurveSort(f.mem, order, rec.Schema(), t.TempDir(), limit)
		if err := errors.Join(s.add(rec), s.add(rec)); err != nil {
			t.Fatal(err)
		}
		if err := s.each(background, func(arrow.RecordBatch) error { return errLost }); !errors.Is(err, errLost) {
			t.Error(err)
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := newSpillFile("/nowhere/at/all", rec.Schema(), f.mem); fault.CodeOf(err) != "DELTA_SPILL_FAILED" {
		t.Error(err)
	}
}
