package delta

import (
	"context"
	"errors"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/weir-data/weir/host/fault"
)

// files checks the live files, several at once: on object stores the time goes into waiting.
func (c *checker) files(ctx context.Context) error {
	files, err := c.snapshot.Files(ctx)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4 * runtime.GOMAXPROCS(0))
	for i := range files {
		g.Go(func() error {
			f := &files[i]
			if err := c.file(ctx, f); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				c.found(f.Path, nil, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// file checks one live file and counts it.
func (c *checker) file(ctx context.Context, f *AddFile) error {
	rows, err := c.dataFile(ctx, f)
	if err != nil {
		return err
	}
	deleted, err := c.vector(ctx, f, rows)
	if err != nil {
		return err
	}
	if c.opt.Decode {
		if err := c.decode(ctx, f); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Files++
	c.report.Bytes += f.Size
	c.report.Rows += max(rows, 0)
	c.report.DeletedRows += deleted
	if f.DeletionVector != nil {
		c.report.DeletionVectors++
	}
	return nil
}

// dataFile compares size and rows with the log and gives the physical rows, -1 when they are not known.
func (c *checker) dataFile(ctx context.Context, f *AddFile) (int64, error) {
	said, known := f.NumRecords()
	if !known {
		said = -1
	}
	o, err := c.table.openFile(ctx, f.Path)
	if err != nil {
		return 0, err
	}
	if size := o.Size(); size != f.Size {
		return 0, errors.Join(fault.New("DELTA_FILE_SIZE_MISMATCH", "the file has %d bytes, the log says %d", size, f.Size), o.Close())
	}
	if c.opt.NamesOnly {
		return said, o.Close()
	}
	r, err := c.table.newParquetReader(o)
	if err != nil {
		return 0, fault.Wrap(errors.Join(err, o.Close()), "DELTA_INVALID_DATA_FILE", "the file is no readable Parquet file")
	}
	pf := &parquetFile{o, r}
	rows := r.NumRows()
	if err := pf.close(); err != nil {
		return 0, err
	}
	if known && said != rows {
		return 0, fault.New("DELTA_ROW_COUNT_MISMATCH", "the file has %d rows, the statistics in the log say %d", rows, said)
	}
	return rows, nil
}

// vector checks that the rows a deletion vector names are in the file.
func (c *checker) vector(ctx context.Context, f *AddFile, rows int64) (int64, error) {
	if f.DeletionVector == nil {
		return 0, nil
	}
	deleted, err := c.table.loadDV(ctx, f.DeletionVector)
	if err != nil {
		return 0, err
	}
	if last := deleted.Last(); rows >= 0 && last >= rows {
		return 0, invalidDV("it deletes row %d of a file of %d rows", last, rows)
	}
	if _, ok := f.NumRecords(); !ok {
		return 0, fault.New("DELTA_INVALID_LOG", "a file with a deletion vector has no numRecords in its statistics")
	}
	return f.DeletionVector.Cardinality, nil
}

// decode reads all rows of a file.
func (c *checker) decode(ctx context.Context, f *AddFile) error {
	r, err := c.snapshot.Scan(ctx, ScanOptions{Files: []AddFile{*f}})
	if err != nil {
		return err
	}
	defer r.Release()
	for r.Next() {
	}
	return r.Err()
}
