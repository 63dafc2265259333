package delta

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/weir-data/weir/host/storage/faultstore"
)

// historyModel adds to the changes of rows what else happens to a table in its
// life, and remembers what every version held.
type historyModel struct {
	*dmlModel
	states map[int64]map[int64]dmlRow // rows by version
	oldest int64                      // whose files a vacuum kept
}

func (h *historyModel) fatal(what string, err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatalf("%s: %s at version %d: %v", h.setting, what, h.version, err)
	}
}

// landed takes note of a version that changed no rows, or the rows that it gave.
func (h *historyModel) landed(what string, version int64) {
	h.t.Helper()
	for v := h.version + 1; v <= version; v++ {
		h.states[v] = maps.Clone(h.rows)
	}
	h.version = version
	h.changes = nil
	h.compare(what, false)
}

func (h *historyModel) act() {
	h.t.Helper()
	switch h.rng.IntN(16) {
	case 0, 1:
		res, err := h.table.Optimize(background, OptimizeOptions{TargetSize: 1 << (10 + h.rng.IntN(4)), PurgeRatio: float64(h.rng.IntN(3)) / 4})
		h.fatal("optimize", err)
		if h.feed && res.Version > h.version {
			if got := h.changesOf(res.Version); len(got) > 0 {
				h.t.Fatalf("%s: an optimize changed %v", h.setting, got)
			}
		}
		h.landed("optimize", res.Version)
	case 2:
		opt := VacuumOptions{}
		if h.rng.IntN(4) == 0 {
			opt.AllowShort = true // every version but the newest loses its files
			h.oldest = h.version
		}
		_, err := h.table.Vacuum(background, opt)
		h.fatal("vacuum", err)
		h.landed("vacuum", h.snapshot().Version())
	case 3:
		from := h.version - h.rng.Int64N(h.version-h.oldest+1)
		rows, known := h.states[from]
		if !known {
			return
		}
		res, err := h.table.Restore(background, RestoreOptions{Version: from})
		h.fatal(fmt.Sprint("restore of ", from), err)
		h.rows = maps.Clone(rows)
		h.landed(fmt.Sprint("restore of ", from), res.Version)
	case 4, 5:
		forms := []CheckpointForm{CheckpointClassic, CheckpointByPolicy}
		if h.snapshot().protocol.has("v2Checkpoint") {
			forms = append(forms, CheckpointV2, CheckpointV2JSON)
		}
		_, err := h.table.Checkpoint(background, forms[h.rng.IntN(len(forms))])
		h.fatal("checkpoint", err)
	case 6:
		if h.version > 1 {
			from := h.rng.Int64N(h.version)
			h.fatal("compaction of the log", h.table.CompactLog(background, from, from+1+h.rng.Int64N(h.version-from)))
		}
	case 7:
		h.withEngine() // another process
	case 8, 9:
		h.interrupted()
	default:
		h.step()
		h.states[h.version] = maps.Clone(h.rows)
	}
}

// interrupted lets one call of an operation fail, whichever: the operation is
// made as a whole or not at all, and the table goes on.
func (h *historyModel) interrupted() {
	h.t.Helper()
	effects := []faultstore.Effect{faultstore.Fail(errLost), faultstore.LoseAnswer(errLost), faultstore.Duplicate(), faultstore.Full(),
		faultstore.DuplicateLate(h.rng.IntN(5)), faultstore.Reorder(h.rng.Uint64())}
	twin := faultstore.New(h.store, faultstore.AtCall(1+h.rng.IntN(60), effects[h.rng.IntN(len(effects))]))
	table := Open(twin, WithAllocator(h.mem), WithEngine(miniEngine{h.mem}))
	before := maps.Clone(h.rows)
	var what string
	var err error
	switch h.rng.IntN(3) {
	case 0:
		where, holds := h.where()
		what = "an interrupted DELETE " + where
		for _, r := range h.sorted() {
			if holds(r) {
				h.remove(r)
			}
		}
		_, err = table.Delete(background, DeleteOptions{Where: where})
	case 1:
		where, holds := h.where()
		what = "an interrupted UPDATE " + where
		for _, r := range h.sorted() {
			if holds(r) {
				to := r
				to.n++
				h.update(r, to)
			}
		}
		_, err = table.Update(background, UpdateOptions{Where: where, Set: map[string]string{"n": "n + 1"}})
	default:
		what = "an interrupted OPTIMIZE"
		_, err = table.Optimize(background, OptimizeOptions{TargetSize: 1 << 12})
	}
	s, loadErr := h.reopen().Snapshot(background)
	h.fatal(what, loadErr)
	if s.Version() == h.version {
		if err == nil && !maps.Equal(before, h.rows) {
			h.t.Fatalf("%s: %s said nothing and did nothing", h.setting, what)
		}
		h.rows = before
	}
	h.landed(what, s.Version())
}

// rowsOf gives the rows of a snapshot as the model spells them.
func (h *historyModel) rowsOf(s *Snapshot) []string {
	h.t.Helper()
	r, err := s.Scan(background, ScanOptions{})
	h.fatal("scan", err)
	defer r.Release()
	var out []string
	for r.Next() {
		out = append(out, recordRows(r.RecordBatch(), nil)...)
	}
	h.fatal("scan", r.Err())
	slices.Sort(out)
	return out
}

func (h *historyModel) check(what string, s *Snapshot) {
	h.t.Helper()
	rows, known := h.states[s.Version()]
	if !known || s.Version() < h.oldest {
		return
	}
	var want []string
	for _, r := range rows {
		want = append(want, r.String())
	}
	slices.Sort(want)
	if got := h.rowsOf(s); !slices.Equal(got, want) {
		h.t.Fatalf("%s: version %d, %s: %d rows, want %d:\n%s", h.setting, s.Version(), what, len(got), len(want), firstDifference(got, want))
	}
}

// everyPrefix reads every version anew.
func (h *historyModel) everyPrefix(what string) {
	h.t.Helper()
	for v := h.oldest; v <= h.version; v++ {
		s, err := h.reopen().SnapshotAt(background, v)
		h.fatal(what, err)
		h.check(what, s)
	}
}

// everyCheckpoint reads the newest version through each form of a checkpoint
// alone, the commits before it gone.
func (h *historyModel) everyCheckpoint() {
	h.t.Helper()
	forms := []CheckpointForm{CheckpointClassic}
	if h.snapshot().protocol.has("v2Checkpoint") {
		forms = append(forms, CheckpointV2, CheckpointV2JSON)
	}
	want := state(h.t, h.snapshot())
	for _, form := range forms {
		for _, pattern := range []string{"*checkpoint*", "*.compacted.json"} {
			h.removeAny(h.logFiles(pattern)...)
		}
		s, err := h.reopen().Snapshot(background)
		h.fatal("replay of the commits alone", err)
		h.check("replay of the commits alone", s)
		_, err = h.reopen().Checkpoint(background, form)
		h.fatal("checkpoint", err)
		hidden := h.dir + "-commits"
		h.fatal("hiding", os.Mkdir(hidden, 0o755))
		commits := h.logFiles("????????????????????.json")
		for i, name := range commits[:len(commits)-1] {
			h.fatal("hiding", os.Rename(name, fmt.Sprintf("%s/%d", hidden, i)))
		}
		s, err = h.reopen().Snapshot(background)
		h.fatal("checkpoint "+string(form), err)
		h.check("checkpoint "+string(form), s)
		h.equalStates("checkpoint "+string(form), state(h.t, s), want)
		for i, name := range commits[:len(commits)-1] {
			h.fatal("showing", os.Rename(fmt.Sprintf("%s/%d", hidden, i), name))
		}
		h.fatal("showing", os.Remove(hidden))
	}
}

func (h *historyModel) removeAny(names ...string) {
	h.t.Helper()
	for _, n := range names {
		if err := os.Remove(n); err != nil && !errors.Is(err, os.ErrNotExist) {
			h.t.Fatal(err)
		}
	}
}

// TestRandomLivesOfTablesFollowTheModel makes random histories of everything
// that can happen to a table: rows appended, overwritten, deleted and updated,
// by mutations that race; optimize, vacuum and restore; checkpoints of every
// form and compacted logs; calls of the store that fail, lose their answer or
// come twice. The newest version is compared after every step, each version
// once more in the end, from the commits alone and through every form of a
// checkpoint, and Check finds nothing. DELTA_HISTORIES says how many.
func TestRandomLivesOfTablesFollowTheModel(t *testing.T) {
	histories := 200
	if testing.Short() {
		histories = 20
	}
	if n, err := strconv.Atoi(os.Getenv("DELTA_HISTORIES")); err == nil {
		histories = n
	}
	steps := 0
	for seed := range uint64(histories) {
		if t.Failed() {
			return
		}
		steps += life(t, seed)
	}
	t.Logf("%d histories of %d steps", histories, steps)
}

func life(t *testing.T, seed uint64) int {
	rng := rand.New(rand.NewPCG(seed, 2026))
	properties, parts := map[string]string{"delta.checkpointInterval": strconv.Itoa(2 + rng.IntN(9))}, []string(nil)
	switches := []string{"delta.enableDeletionVectors", "delta.enableChangeDataFeed", "delta.enableRowTracking", "delta.enableInCommitTimestamps", "delta.enableTypeWidening"}
	for _, s := range switches {
		if rng.IntN(2) == 0 {
			properties[s] = "true"
		}
	}
	if rng.IntN(2) == 0 {
		properties["delta.checkpointPolicy"] = "v2"
	}
	if mode := rng.IntN(4); mode > 1 {
		properties["delta.columnMapping.mode"] = []string{"name", "id"}[mode-2]
	}
	if rng.IntN(3) == 0 {
		parts = []string{"part"}
	}
	m := &dmlModel{fixture: newFixture(t).withEngine(), rng: rng, setting: fmt.Sprintf("seed %d, %v by %v", seed, properties, parts), rows: map[int64]dmlRow{}, ids: map[int64]string{},
		vectors: properties[switches[0]] != "", feed: properties[switches[1]] != "", tracked: properties[switches[2]] != ""}
	h := &historyModel{dmlModel: m, states: map[int64]map[int64]dmlRow{0: {}}}
	c := Commit{Schema: dmlSchema, Properties: properties, PartitionBy: parts}
	if parts == nil && rng.IntN(3) == 0 {
		c.ClusterBy = []string{"n", "key"}
	}
	m.commit(c)
	steps := 10 + rng.IntN(20)
	for range steps {
		h.act()
	}
	h.everyPrefix("in the end")
	h.everyCheckpoint()
	report, err := h.reopen().Check(background, CheckOptions{Decode: true})
	h.fatal("check", err)
	live, err := h.snapshot().Files(background)
	h.fatal("files", err)
	for _, p := range report.Problems {
		// A vacuum that was told to keep less than the table promises takes change files, too.
		gone := p.Code == "DELTA_FILE_NOT_FOUND" && p.Version != nil && *p.Version <= h.oldest
		if !gone || slices.ContainsFunc(live, func(f AddFile) bool { return f.Path == p.File }) {
			t.Fatalf("%s: at version %d, vacuumed at %d: %+v", h.setting, h.version, h.oldest, p)
		}
	}
	return steps
}
