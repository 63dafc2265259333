package stream

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// checkpoint is the logs of one generation, as far as they have been read.
type checkpoint struct {
	store storage.Store // rooted at the generation
	gen   generation

	cover    []runID // runs of file lists, without a gap from batch 0
	obsolete []runID // runs that were merged into those
	// planned and committed are the last entries of the two logs, -1 for none.
	planned, committed int64

	// entries that were read or written, by batch
	offsets map[int64]*offsetEntry
	commits map[int64]*commitEntry
}

// loadCheckpoint finds out how far the logs of a generation go.
func loadCheckpoint(ctx context.Context, flow storage.Store, gen generation) (*checkpoint, error) {
	ck := &checkpoint{
		store:   storage.Sub(flow, strconv.Itoa(gen.Generation)),
		gen:     gen,
		offsets: map[int64]*offsetEntry{},
		commits: map[int64]*commitEntry{},
	}
	var runs []runID
	for info, err := range ck.store.List(ctx, "files", storage.ListOptions{NamesOnly: true}) {
		if err != nil {
			return nil, unavailable(err)
		}
		if id, ok := parseRun(info.Name); ok {
			runs = append(runs, id)
		}
	}
	ck.cover, ck.obsolete = chooseRuns(runs)
	var err error
	if ck.planned, err = ck.lastEntry(ctx, "offsets"); err != nil {
		return nil, err
	}
	if ck.committed, err = ck.lastEntry(ctx, "commits"); err != nil {
		return nil, err
	}
	if ck.planned != ck.committed && ck.planned != ck.committed+1 {
		return nil, brokenLog("the offset log ends with batch %d, the commit log with batch %d", ck.planned, ck.committed)
	}
	return ck, nil
}

func brokenLog(format string, args ...any) error {
	return fault.New("CHECKPOINT_CORRUPT", format, args...).
		WithHint("Entries of the checkpoint were removed or copied. Restore them, or run a full refresh of this table")
}

// lastEntry gives the number of the last entry of a log. The entries since
// the last run must be there without a gap; those before it were read into it.
func (ck *checkpoint) lastEntry(ctx context.Context, folder string) (int64, error) {
	last := int64(-1)
	opt := storage.ListOptions{NamesOnly: true}
	if end := ck.tail(); end > 0 {
		// The last batch of the runs is listed too: a log that lacks it was cut.
		last = end - 2
		if end >= 2 {
			opt.After = entryPath(folder, end-2)
		}
	}
	for n, err := range entryNumbers(ctx, ck.store, folder, opt) {
		if err != nil {
			return 0, err
		}
		if n != last+1 {
			return 0, brokenLog("entry %d of %s is missing", last+1, folder)
		}
		last = n
	}
	if last < ck.tail()-1 {
		return 0, brokenLog("entry %d of %s is missing", ck.tail()-1, folder)
	}
	return last, nil
}

// tail is the first batch that no run covers.
func (ck *checkpoint) tail() int64 {
	if n := len(ck.cover); n > 0 {
		return ck.cover[n-1].to + 1
	}
	return 0
}

// offset gives entry n of the offset log.
func (ck *checkpoint) offset(ctx context.Context, n int64) (*offsetEntry, error) {
	if e, ok := ck.offsets[n]; ok {
		return e, nil
	}
	var e offsetEntry
	name := entryPath("offsets", n)
	if err := getRecord(ctx, ck.store, name, &e); err != nil {
		return nil, err
	}
	if e.Format != 1 || e.Batch != n || e.TaskBytes <= 0 {
		return nil, foreignFormat(name, e.Format)
	}
	ck.offsets[n] = &e
	return &e, nil
}

// commit gives entry n of the commit log.
func (ck *checkpoint) commit(ctx context.Context, n int64) (*commitEntry, error) {
	if e, ok := ck.commits[n]; ok {
		return e, nil
	}
	var e commitEntry
	name := entryPath("commits", n)
	if err := getRecord(ctx, ck.store, name, &e); err != nil {
		return nil, err
	}
	if e.Format != 1 || e.Batch != n {
		return nil, foreignFormat(name, e.Format)
	}
	ck.commits[n] = &e
	return &e, nil
}

// plan appends an entry to the offset log.
func (ck *checkpoint) plan(ctx context.Context, e *offsetEntry) error {
	if err := putRecord(ctx, ck.store, entryPath("offsets", e.Batch), e); err != nil {
		return err
	}
	ck.planned = e.Batch
	ck.offsets[e.Batch] = e
	return nil
}

// finish appends an entry to the commit log.
func (ck *checkpoint) finish(ctx context.Context, e *commitEntry) error {
	if err := putRecord(ctx, ck.store, entryPath("commits", e.Batch), e); err != nil {
		return err
	}
	ck.committed = e.Batch
	ck.commits[e.Batch] = e
	return nil
}

// known gives every file that a batch of this generation names, ascending by
// path. The caller closes the list.
func (ck *checkpoint) known(ctx context.Context) (_ *merged, err error) {
	var lists []sorted
	defer func() {
		if err != nil {
			err = errors.Join(err, mergeLists(lists...).close())
		}
	}()
	for _, id := range ck.cover {
		r, err := openRun(ctx, ck.store, id)
		if err != nil {
			return nil, err
		}
		lists = append(lists, r)
	}
	recent, err := ck.recentFiles(ctx)
	if err != nil {
		return nil, err
	}
	return mergeLists(append(lists, newFileList(recent))...), nil
}

// recentFiles gives the files of the batches that no run covers, unsorted.
func (ck *checkpoint) recentFiles(ctx context.Context) ([]knownFile, error) {
	var files []knownFile
	for n := ck.tail(); n <= ck.planned; n++ {
		e, err := ck.offset(ctx, n)
		if err != nil {
			return nil, err
		}
		var states map[string]IngestionState
		if n <= ck.committed {
			c, err := ck.commit(ctx, n)
			if err != nil {
				return nil, err
			}
			states = c.states()
		}
		for _, f := range e.Source.Files {
			k := knownFile{path: f.Path, batch: n, size: f.Size, mtime: f.ModTimeMicros}
			if s, ok := states[f.Path]; ok {
				k.state = stateCode(s)
			}
			files = append(files, k)
		}
	}
	return files, nil
}

// compact makes a run of the batches since the last one, when they are many.
func (ck *checkpoint) compact(ctx context.Context) error {
	if ck.gen.Kind != appendGeneration || ck.committed-ck.tail()+1 < compactEvery {
		return nil
	}
	into, inputs := compaction(ck.cover, ck.committed)
	var lists []sorted
	var times []batchTimes
	var entries int64
	defer func() { _ = mergeLists(lists...).close() }() // opened for reading only
	for _, id := range inputs {
		r, err := openRun(ctx, ck.store, id)
		if err != nil {
			return err
		}
		lists = append(lists, r)
		times = append(times, r.batches...)
		entries += r.entries
	}
	recent, err := ck.recentFiles(ctx)
	if err != nil {
		return err
	}
	for n := ck.tail(); n <= ck.committed; n++ {
		times = append(times, batchTimes{ck.offsets[n].Timestamp, ck.commits[n].Timestamp})
	}
	lists = append(lists, newFileList(recent))
	entries += int64(len(recent))
	if err := writeRun(ctx, ck.store, into, times, entries, mergeLists(lists...)); err != nil {
		return unavailable(err)
	}
	fpFilesCompacted.Hit()
	for n := ck.tail(); n < ck.committed; n++ {
		delete(ck.offsets, n)
		delete(ck.commits, n)
	}
	merged := slices.Concat(ck.obsolete, inputs) // before cover, which inputs is a part of, is written to
	ck.cover = append(ck.cover[:len(ck.cover)-len(inputs)], into)
	for _, id := range merged {
		// What stays behind costs space only: a larger run stands before it.
		_ = ck.store.Delete(ctx, id.name())
	}
	ck.obsolete = nil
	return nil
}

// times gives when a batch was planned and committed.
func (ck *checkpoint) times(ctx context.Context, n int64) (batchTimes, error) {
	var t batchTimes
	e, err := ck.offset(ctx, n)
	if err != nil {
		return t, err
	}
	t.planned = e.Timestamp
	if n <= ck.committed {
		c, err := ck.commit(ctx, n)
		if err != nil {
			return t, err
		}
		t.committed = c.Timestamp
	}
	return t, nil
}

// now gives a time as records hold it.
func (f *Flow) now() time.Time {
	clock := f.Clock
	if clock == nil {
		clock = time.Now
	}
	return clock().UTC().Truncate(time.Microsecond)
}
