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
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/faultstore"
)

// TestRacingWritersHaveAnOrder lets writers race on one table through stores
// that fail, and replays what they committed, version by version, on a plain
// map. WEIR_SOAK=n runs n races.
func TestRacingWritersHaveAnOrder(t *testing.T) {
	races := 8
	if n, err := strconv.Atoi(os.Getenv("WEIR_SOAK")); err == nil {
		races = n
	}
	for seed := range uint64(races) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { race(t, seed, 4, 10) })
	}
}

// raceOp is one commit that a writer tried. It is found in the log by its name.
type raceOp struct {
	name    string
	kind    string
	read    int64            // the version that it read
	key     int64            // of conditional ones
	gone    []string         // rows that it takes out
	come    map[string]int64 // rows that it puts in, with their keys
	blind   bool
	version int64 // where Commit said that it landed; -1: it failed; -2: nobody knows
}

type racer struct {
	t     *testing.T
	r     *rand.Rand
	name  string
	table *Table
	ops   []*raceOp
}

func race(t *testing.T, seed uint64, writers, commits int) {
	f := newFixture(t)
	r := rand.New(rand.NewPCG(seed, 7))
	properties := map[string]string{
		"delta.enableDeletionVectors": "true", "delta.enableRowTracking": fmt.Sprint(seed%2 == 0),
		commitTimestamps: fmt.Sprint(seed%4 < 2), "delta.checkpointInterval": fmt.Sprint(3 + r.IntN(10)),
	}
	serializable := seed%3 == 0
	if serializable {
		properties["delta.isolationLevel"] = "Serializable"
	}
	f.commit(Commit{Schema: plain, Properties: properties})
	racers := make([]*racer, writers)
	var wg sync.WaitGroup
	for i := range racers {
		var rules []faultstore.Rule
		for range r.IntN(4) {
			ops := []faultstore.Op{faultstore.OpPutIfAbsent, faultstore.OpCreate, faultstore.OpWrite, faultstore.OpCommit, faultstore.OpOpen, faultstore.OpRead, faultstore.OpGet, faultstore.OpStat}
			effects := []faultstore.Effect{faultstore.Fail(errLost), faultstore.LoseAnswer(errLost), faultstore.LoseAnswer(fmt.Errorf("412: %w", storage.ErrExist))}
			op := ops[r.IntN(len(ops))]
			effect := effects[0]
			if op == faultstore.OpPutIfAbsent {
				effect = effects[r.IntN(len(effects))]
			}
			rules = append(rules, faultstore.Rule{Op: op, Skip: r.IntN(40), Times: 1 + r.IntN(2), Effect: effect})
		}
		// Checked allocators are for one goroutine's leaks; the fixture's is left to the checks.
		table := Open(faultstore.New(f.store, rules...), WithAllocator(memory.NewGoAllocator()))
		racers[i] = &racer{t: t, r: rand.New(rand.NewPCG(seed, uint64(i))), name: fmt.Sprint("w", i), table: table}
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := range commits {
				racers[i].once(n)
			}
		}()
	}
	wg.Wait()
	byName := map[string]*raceOp{}
	for _, w := range racers {
		for _, op := range w.ops {
			byName[op.name] = op
		}
	}
	replayRace(f, byName, serializable)
}

// once makes one commit of a random kind. Failures of the store are what the test is about.
func (w *racer) once(n int) {
	s, err := w.table.Snapshot(background)
	if err != nil {
		return
	}
	// A slow writer holds what it read for a while.
	if s, err = w.table.SnapshotAt(background, max(0, s.version-w.r.Int64N(4))); err != nil {
		return
	}
	files, err := s.Files(background)
	if err != nil {
		return
	}
	op := &raceOp{name: fmt.Sprintf("%s-%d", w.name, n), read: s.version, version: -1, come: map[string]int64{}, key: w.r.Int64N(4)}
	c := Commit{Read: s, UserMetadata: op.name}
	fill := func(kind string, prepare func() error) {
		op.kind, c.Operation = kind, kind
		err = prepare()
	}
	switch kind := w.r.IntN(12); {
	case len(files) == 0 || kind < 4:
		fill("append", func() error {
			op.blind = true
			for i := range 1 + w.r.IntN(5) {
				op.come[fmt.Sprintf("%s-%d", op.name, i)] = w.r.Int64N(4)
			}
			return w.add(op, &c)
		})
	case kind < 6:
		fill("delete rows", func() error {
			file := files[w.r.IntN(len(files))]
			return w.find(s, []AddFile{file}, func(f AddFile, row, _ int64, value string, at *RowSet) {
				if w.r.IntN(2) == 0 {
					at.Add(row)
					op.gone = append(op.gone, value)
				}
			}, &c)
		})
	case kind < 8:
		fill("delete where", func() error { return w.where(op, s, files, &c) })
	case kind < 9:
		fill("update where", func() error {
			if err := w.where(op, s, files, &c); err != nil {
				return err
			}
			to := w.r.Int64N(4)
			for _, value := range op.gone {
				op.come[value+"'"] = to
			}
			return w.add(op, &c)
		})
	case kind < 10:
		fill("insert if none", func() error {
			if err := w.where(op, s, files, &c); err != nil {
				return err
			}
			if len(op.gone) > 0 {
				return errors.New("there are some")
			}
			op.come[op.name] = op.key
			return w.add(op, &c)
		})
	case kind < 11:
		fill("rearrange", func() error {
			c.Rearranges = true
			c.Remove = files[:1+w.r.IntN(len(files))]
			moved := &raceOp{name: op.name, come: map[string]int64{}}
			err := w.find(s, c.Remove, func(_ AddFile, _, key int64, value string, _ *RowSet) { moved.come[value] = key }, &c)
			if err == nil {
				err = w.add(moved, &c)
			}
			return err
		})
	default:
		fill("rewrite", func() error {
			file := files[w.r.IntN(len(files))]
			kept := &raceOp{name: op.name, come: map[string]int64{}}
			err := w.find(s, []AddFile{file}, func(_ AddFile, _, key int64, value string, _ *RowSet) {
				if w.r.IntN(2) == 0 {
					op.gone = append(op.gone, value)
				} else {
					kept.come[value] = key
				}
			}, &c)
			c.Remove = []AddFile{file}
			if err == nil {
				err = w.add(kept, &c)
			}
			return err
		})
	}
	if err != nil {
		return
	}
	w.ops = append(w.ops, op)
	res, err := w.table.Commit(background, c)
	switch {
	case err == nil:
		op.version = res.Version
	case !strings.HasPrefix(fault.CodeOf(err), "DELTA_CONCURRENT_"):
		op.version = -2
	}
}

// where deletes all rows of the op's key, and depends on there being no others.
func (w *racer) where(op *raceOp, s *Snapshot, files []AddFile, c *Commit) error {
	c.Reads.Where = Compare([]string{"id"}, Equal, op.key)
	return w.find(s, files, func(_ AddFile, row, key int64, value string, at *RowSet) {
		if key == op.key {
			at.Add(row)
			op.gone = append(op.gone, value)
		}
	}, c)
}

// find visits the live rows of files. The positions that visit collects become deletions.
func (w *racer) find(s *Snapshot, files []AddFile, visit func(f AddFile, row, key int64, value string, at *RowSet), c *Commit) error {
	for _, f := range files {
		at := NewRowSet()
		r, err := s.Scan(background, ScanOptions{Files: []AddFile{f}, RowIndex: true})
		if err != nil {
			return err
		}
		for r.Next() {
			rec := r.RecordBatch()
			for i := range int(rec.NumRows()) {
				visit(f, rec.Column(2).(*array.Int64).Value(i), rec.Column(0).(*array.Int64).Value(i), rec.Column(1).(*array.String).Value(i), at)
			}
		}
		err = r.Err()
		r.Release()
		if err != nil {
			return err
		}
		if at.Len() > 0 {
			c.Delete = append(c.Delete, FileDelete{File: f, Rows: at})
		}
	}
	return nil
}

func (w *racer) add(op *raceOp, c *Commit) error {
	if len(op.come) == 0 {
		return nil
	}
	writer, err := w.table.Write(background, WriteOptions{Snapshot: c.Read, Name: op.name})
	if err != nil {
		return err
	}
	b := array.NewRecordBuilder(memory.NewGoAllocator(), plain)
	defer b.Release()
	for _, value := range slices.Sorted(maps.Keys(op.come)) {
		b.Field(0).(*array.Int64Builder).Append(op.come[value])
		b.Field(1).(*array.StringBuilder).Append(value)
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	if err := writer.Write(background, rec); err != nil {
		return errors.Join(err, writer.Abort(background))
	}
	files, err := writer.Close(background)
	c.Add = append(c.Add, files...)
	return err
}

// replayRace walks the log and holds it against what the writers meant.
func replayRace(f *fixture, ops map[string]*raceOp, serializable bool) {
	t := f.t
	model, since := map[string]int64{}, map[string]int64{} // key and version of each row
	blindly := map[string]bool{}
	found := map[string]int64{}
	last := int64(-1)
	var ids [][2]int64
	for e, err := range f.reopen().Log(background, 0, -1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Version != last+1 {
			t.Fatalf("version %d follows %d", e.Version, last)
		}
		last = e.Version
		if e.CommitInfo.UserMetadata == "" {
			continue
		}
		op := ops[e.CommitInfo.UserMetadata]
		if op == nil {
			t.Fatalf("version %d is of nobody", e.Version)
		}
		if at, twice := found[op.name]; twice {
			t.Fatalf("%s %s is in version %d and in %d", op.kind, op.name, at, e.Version)
		}
		found[op.name] = e.Version
		if op.version != -2 && op.version != e.Version {
			t.Errorf("%s %s is in version %d, its writer was told %d", op.kind, op.name, e.Version, op.version)
		}
		for _, value := range op.gone {
			if _, ok := model[value]; !ok {
				t.Errorf("%s of version %d deleted %s, which was gone", op.kind, e.Version, value)
			}
			delete(model, value)
		}
		if strings.HasSuffix(op.kind, "where") || op.kind == "insert if none" {
			for value, key := range model {
				if key == op.key && (serializable || !blindly[value] || since[value] <= op.read) {
					t.Errorf("%s of version %d, which read %d, missed %s of version %d", op.kind, e.Version, op.read, value, since[value])
				}
			}
		}
		for value, key := range op.come {
			model[value], since[value], blindly[value] = key, e.Version, op.blind
		}
		for i := range e.Adds {
			if a := &e.Adds[i]; a.BaseRowID != nil && *a.DefaultRowCommitVersion == e.Version {
				n, _ := a.NumRecords()
				ids = append(ids, [2]int64{*a.BaseRowID, *a.BaseRowID + n})
			}
		}
		s, err := f.reopen().SnapshotAt(background, e.Version)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := scanRows(background, s, ScanOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for value, key := range model {
			want = append(want, fmt.Sprintf("id=%d|s=%s|", key, value))
		}
		slices.Sort(rows)
		slices.Sort(want)
		if !slices.Equal(rows, want) {
			t.Fatalf("version %d (%s) has %v, want %v", e.Version, op.kind, rows, want)
		}
	}
	if len(found)*3 < len(ops) {
		t.Errorf("only %d of %d commits landed", len(found), len(ops))
	}
	for _, op := range ops {
		if _, ok := found[op.name]; !ok && op.version >= 0 {
			t.Errorf("%s %s is lost: it was to be version %d", op.kind, op.name, op.version)
		}
	}
	slices.SortFunc(ids, func(a, b [2]int64) int { return int(a[0] - b[0]) })
	for i := 1; i < len(ids); i++ {
		if ids[i][0] < ids[i-1][1] {
			t.Errorf("row ids %v and %v overlap", ids[i-1], ids[i])
		}
	}
	if testing.Verbose() {
		kinds := map[string]int{}
		for name := range found {
			kinds[ops[name].kind]++
		}
		t.Logf("%d of %d commits landed: %v; %d files with ids", len(found), len(ops), kinds, len(ids))
	}
}
