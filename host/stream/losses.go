package stream

import (
	"context"
	"errors"
	"fmt"

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
}

// Any tells whether there is a loss.
func (l Loss) Any() bool { return l.Files > 0 || l.Rows > 0 }

// String says it in words.
func (l Loss) String() string {
	switch {
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
	gen, ok, err := newestGeneration(ctx, checkpoint)
	if err != nil || !ok || gen.Kind != appendGeneration {
		return Loss{}, err
	}
	ck, err := loadCheckpoint(ctx, checkpoint, gen)
	if err != nil || ck.planned < 0 {
		return Loss{}, err
	}
	return source.missing(ctx, ck)
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

// missing compares the rows that were read with those that the table has. A
// table only ever appended to has at least as many.
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
	read := int64(0)
	for n := int64(0); n <= ck.committed; n++ {
		c, err := ck.commit(ctx, n)
		if err != nil {
			return Loss{}, err
		}
		read += c.Metrics.InputRows
		delete(ck.commits, n)
	}
	live, err := snap.LiveRows()
	if err != nil {
		return Loss{}, fault.Wrap(err, "DELTA_SOURCE_UNAVAILABLE", "the rows of the table cannot be counted").At(fault.Where{Dataset: s.name})
	}
	return Loss{Rows: max(read-live, 0)}, nil
}
