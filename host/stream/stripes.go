package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/delta"
)

const (
	// stripeRows is what one writer takes before it is the turn of the next: as
	// many rows as a writer encodes at once.
	stripeRows = 32 << 10
	// firstStripes go to the first writer alone, so that a small result is one file.
	firstStripes = 16
	// maxWriters bounds the files of a task that are encoded at once.
	maxWriters = 8
)

// rowWriter takes the rows of a task into data files.
type rowWriter interface {
	Write(ctx context.Context, rec arrow.RecordBatch) error
	Close(ctx context.Context) ([]delta.AddFile, error)
	Abort(ctx context.Context) error
}

// striped deals the rows of a large result out to several writers, which encode
// at the same time. Which row goes where follows from its place in the result
// and the number of writers alone.
type striped struct {
	open    func(i int) (rowWriter, error)
	n       int
	writers []rowWriter // those begun
	rows    int64       // taken
}

func newStriped(n int, open func(i int) (rowWriter, error)) (*striped, error) {
	s := &striped{open: open, n: n}
	// A result without rows still meets the table's rules.
	_, err := s.writer(0)
	return s, err
}

func (s *striped) writer(i int) (rowWriter, error) {
	for len(s.writers) <= i {
		w, err := s.open(len(s.writers))
		if err != nil {
			return nil, err
		}
		s.writers = append(s.writers, w)
	}
	return s.writers[i], nil
}

// Write takes in a batch.
func (s *striped) Write(ctx context.Context, rec arrow.RecordBatch) error {
	for done := int64(0); done < rec.NumRows(); {
		stripe := s.rows / stripeRows
		at := 0
		if stripe >= firstStripes {
			at = int(stripe) % s.n
		}
		w, err := s.writer(at)
		if err != nil {
			return err
		}
		n := min(stripeRows-s.rows%stripeRows, rec.NumRows()-done)
		part := rec.NewSlice(done, done+n)
		err = w.Write(ctx, part)
		part.Release()
		if err != nil {
			return err
		}
		done += n
		s.rows += n
	}
	return nil
}

// Close ends all writers and gives their files.
func (s *striped) Close(ctx context.Context) (adds []delta.AddFile, err error) {
	for i, w := range s.writers {
		files, cerr := w.Close(ctx)
		if cerr != nil {
			rest := &striped{writers: s.writers[i+1:]}
			return nil, errors.Join(cerr, rest.Abort(context.WithoutCancel(ctx)))
		}
		adds = append(adds, files...)
	}
	return adds, nil
}

// Abort gives up what was written.
func (s *striped) Abort(ctx context.Context) error {
	var errs []error
	for _, w := range s.writers {
		errs = append(errs, w.Abort(ctx))
	}
	return errors.Join(errs...)
}

// stripeName is the stem of the files of a task's i-th writer.
func stripeName(task string, i int) string {
	if i == 0 {
		return task
	}
	return fmt.Sprintf("%s.%d", task, i)
}
