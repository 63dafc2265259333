package delta

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// RowCounts tells how many rows the live files hold.
type RowCounts struct {
	Physical int64 // deleted ones counted
	Deleted  int64 // by deletion vectors
}

// Live counts the rows that a scan gives.
func (c RowCounts) Live() int64 { return c.Physical - c.Deleted }

// footersAtOnce is how many files without statistics are asked at once.
const footersAtOnce = 8

// RowCounts counts rows from statistics, and from the footers of files that have none.
func (s *Snapshot) RowCounts(ctx context.Context) (RowCounts, error) {
	var c RowCounts
	var bare []*AddFile
	s.files.each(func(_ string, f *AddFile) {
		if n, ok := f.NumRecords(); ok {
			c.Physical += n
		} else {
			bare = append(bare, f)
		}
		if f.DeletionVector != nil {
			c.Deleted += f.DeletionVector.Cardinality
		}
	})
	counts := make([]int64, len(bare))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(footersAtOnce)
	for i, f := range bare {
		g.Go(func() (err error) {
			if err = ctx.Err(); err == nil {
				counts[i], err = s.table.footerRows(ctx, f)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return RowCounts{}, err
	}
	for _, n := range counts {
		c.Physical += n
	}
	return c, nil
}

// LiveRows counts the rows a scan gives, see RowCounts.
func (s *Snapshot) LiveRows() (int64, error) {
	c, err := s.RowCounts(context.Background())
	return c.Live(), err
}
