package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// Loss is what a flow has read and its source no longer holds: what a full
// refresh would not bring back.
type Loss struct {
	// Files are gone; Examples are some of their paths.
	Files    int64
	Examples []string
	// Rows are no longer in the source table, or no longer as changes of it.
	Rows int64
	// Snapshots were taken and would not be given again; Examples are their versions.
	Snapshots int64
}

// Any tells whether there is a loss.
func (l Loss) Any() bool { return l.Files > 0 || l.Rows > 0 || l.Snapshots > 0 }

// String says it in words.
func (l Loss) String() string {
	switch {
	case l.Snapshots > 0 && len(l.Examples) > 0:
		return fmt.Sprintf("%d snapshots that the table was made of are no longer given, such as %s", l.Snapshots, l.Examples[0])
	case l.Snapshots > 0:
		return fmt.Sprintf("the table shows what %d earlier snapshots of its source changed, and the source is only the newest", l.Snapshots)
	case l.Files > 0 && len(l.Examples) > 0:
		return fmt.Sprintf("%d files that were ingested are no longer there, such as %s", l.Files, l.Examples[0])
	case l.Files > 0:
		return fmt.Sprintf("%d files that were ingested are no longer there", l.Files)
	}
	return fmt.Sprintf("at least %d rows that were read are no longer in the source table", l.Rows)
}

// lossExamples is how many paths a Loss names.
const lossExamples = 3

// Missing finds out what a full refresh of a flow would lose. checkpoint is
// rooted as Flow.Checkpoint. A flow that never ran loses nothing. A source that
// cannot be read at all is an error.
func Missing(ctx context.Context, checkpoint storage.Store, source Source) (Loss, error) {
	numbers, err := generationNumbers(ctx, checkpoint)
	if err != nil {
		return Loss{}, err
	}
	slices.Sort(numbers)
	for _, n := range slices.Backward(numbers) {
		var gen generation
		if err := getRecord(ctx, checkpoint, generationPath(n), &gen); err != nil {
			return Loss{}, err
		}
		if gen.Kind != appendGeneration {
			return Loss{}, nil
		}
		ck, err := loadCheckpoint(ctx, checkpoint, gen)
		if err != nil {
			return Loss{}, err
		}
		// One that was made and never got further has replaced nothing: the
		// rows are still those of the generation before.
		if ck.planned >= 0 || !gen.Replace {
			if ck.planned < 0 {
				return Loss{}, nil
			}
			return source.missing(ctx, ck)
		}
	}
	return Loss{}, nil
}

// missing compares the files that were read with the listing: two sorted
// lists, walked once side by side.
func (s *fileSource) missing(ctx context.Context, ck *checkpoint) (loss Loss, err error) {
	known, err := ck.known(ctx)
	if err != nil {
		return Loss{}, err
	}
	defer func() { err = errors.Join(err, known.close()) }()
	gone := func() {
		path, f := known.view()
		if states[f.state] == SkippedMissing {
			return // it was gone when its turn came
		}
		loss.Files++
		if len(loss.Examples) < lossExamples {
			loss.Examples = append(loss.Examples, string(path))
		}
	}
	more, err := known.next()
	if err != nil {
		return Loss{}, err
	}
	for f, err := range s.src.List(ctx) {
		if err != nil {
			return Loss{}, err
		}
		if !more {
			break
		}
		for more {
			path, _ := known.view()
			if string(path) > f.Path {
				break
			}
			if string(path) < f.Path {
				gone()
			}
			if more, err = known.next(); err != nil {
				return Loss{}, err
			}
		}
	}
	for more {
		gone()
		if more, err = known.next(); err != nil {
			return Loss{}, err
		}
	}
	return loss, nil
}

// missing finds the rows that left the table since the flow began to read it.
func (s *deltaSource) missing(ctx context.Context, ck *checkpoint) (Loss, error) {
	snap, err := s.table.Snapshot(ctx)
	if err != nil {
		return Loss{}, s.at(err)
	}
	off, err := s.begin(ctx, snap)
	if err != nil {
		return Loss{}, err
	}
	if !off.Start.Snapshot {
		// The flow would begin with this version again, so it has to be there.
		if off.Start.Version <= snap.Version() {
			_, err = s.snapshot(ctx, off.Start.Version)
		}
		return Loss{}, err
	}
	first, err := ck.offset(ctx, 0)
	if err != nil || first.Source.Table == nil {
		return Loss{}, err
	}
	taken, replaced, err := s.taken(ctx, first.Source.Table.Start.Version, snap.Version())
	if err != nil || replaced {
		// A full refresh of the source was answered for there.
		return Loss{Rows: taken}, err
	}
	// The log need not go back to the beginning any more. A table that rows were
	// only added to has at least as many as were read.
	read := int64(0)
	for n := int64(0); n <= ck.committed; n++ {
		c, err := ck.commit(ctx, n)
		if err != nil {
			return Loss{}, err
		}
		read += c.Metrics.InputRows
		delete(ck.commits, n)
	}
	live, err := s.live(ctx, snap.Version())
	return Loss{Rows: max(read-live, taken, 0)}, err
}

// taken counts the rows that versions after from took from the table, as far
// as its log goes back. A version that replaced all rows begins the count
// again, and is told.
func (s *deltaSource) taken(ctx context.Context, from, until int64) (rows int64, replaced bool, err error) {
	oldest, err := s.table.OldestVersion(ctx)
	if err != nil {
		return 0, false, s.at(err)
	}
	from = max(from+1, oldest+1)
	if from > until {
		return 0, false, nil
	}
	for entry, err := range s.table.Log(ctx, from, until) {
		if err != nil {
			return 0, false, s.at(err)
		}
		if !slices.ContainsFunc(entry.Removes, func(r delta.RemoveFile) bool { return r.DataChange }) {
			continue
		}
		if entry.CommitInfo != nil && entry.CommitInfo.OperationParameters[fullRefreshKey] == "true" {
			rows, replaced = 0, true
			continue
		}
		before, err := s.live(ctx, entry.Version-1)
		if err != nil {
			return 0, false, err
		}
		after, err := s.live(ctx, entry.Version)
		if err != nil {
			return 0, false, err
		}
		rows += max(before-after, 0)
	}
	return rows, replaced, nil
}

// live counts the rows of a version.
func (s *deltaSource) live(ctx context.Context, version int64) (int64, error) {
	snap, err := s.snapshot(ctx, version)
	if err != nil {
		return 0, err
	}
	counts, err := snap.RowCounts(ctx)
	if err != nil {
		return 0, fault.Wrap(err, "DELTA_SOURCE_UNAVAILABLE", "the rows of version %d cannot be counted", version).At(fault.Where{Dataset: s.name})
	}
	return counts.Live(), nil
}
