package cdc

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/cdc/state"
)

// write works through the parts, several at once, and takes what comes of them
// to the table and the state in their order, so that the same batch gives the
// same files. What is counted comes back without rows.
func (a *apply) write(ctx context.Context, m *merger, parts *sealed, out *output) (total outcome, run state.RunInfo, err error) {
	columns := state.Schema()
	if a.keeps() {
		columns = a.entries()
	}
	pipe := newPipe(columns)
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		entries := pipe.reader(gctx)
		defer entries.Release()
		run, err = a.def.State.Write(gctx, entries)
		return err
	})
	ready := make([]chan *outcome, parts.count)
	for p := range ready {
		ready[p] = make(chan *outcome, 1)
	}
	workers := min(a.workers(), parts.count)
	ahead := make(chan struct{}, 2*workers) // bounds what waits to be written
	var next atomic.Int64
	for range workers {
		group.Go(func() error {
			for {
				select {
				case ahead <- struct{}{}:
				case <-gctx.Done():
					return gctx.Err()
				}
				p := int(next.Add(1) - 1)
				if p >= parts.count {
					return nil
				}
				o, err := a.part(gctx, m, parts, p)
				if err != nil {
					return err
				}
				ready[p] <- o
			}
		})
	}
	group.Go(func() error {
		end := sync.OnceFunc(pipe.close) // the rest of the state need not wait for the table's last file
		defer end()
		for p := range ready {
			select {
			case o := <-ready[p]:
				err := a.take(gctx, o, &total, out, pipe)
				o.release()
				if err != nil {
					return err
				}
				<-ahead
			case <-gctx.Done():
				return gctx.Err()
			}
		}
		end()
		if total.ties.count > 0 {
			return nil
		}
		return out.end(gctx)
	})
	err = group.Wait()
	pipe.drain()
	for _, c := range ready {
		select {
		case o := <-c:
			o.release()
		default:
		}
	}
	return total, run, err
}

// part merges one part.
func (a *apply) part(ctx context.Context, m *merger, parts *sealed, p int) (_ *outcome, err error) {
	fresh, err := parts.part(p)
	if err != nil {
		return nil, err
	}
	defer fresh.Release()
	old, err := a.entriesOf(ctx, m, fresh, p, parts.count)
	if err != nil {
		return nil, err
	}
	if old != nil {
		defer old.Release()
	}
	return m.merge(ctx, old, fresh)
}

// entriesOf gives the entries that the state has of the keys of a part, with the
// columns of fresh ones.
func (a *apply) entriesOf(ctx context.Context, m *merger, fresh arrow.RecordBatch, p, parts int) (arrow.RecordBatch, error) {
	if a.state == nil || a.state.Entries() == 0 || !m.whole && fresh.NumRows() == 0 {
		return nil, nil
	}
	if !m.whole {
		hashes := slices.Clone(hashesOf(fresh.Column(state.Hash)))
		slices.SortFunc(hashes, rowcode.Hash.Compare)
		found, err := a.state.Find(ctx, slices.Compact(hashes))
		if err != nil {
			return nil, err
		}
		defer found.Release()
		return a.widened(found, fresh.Schema())
	}
	r, err := a.state.Scan(ctx, p, parts)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	var batches []arrow.RecordBatch
	defer func() { releaseBatches(batches) }()
	for r.Next() {
		rec := r.RecordBatch()
		rec.Retain()
		batches = append(batches, rec)
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	all, err := joined(r.Schema(), batches, a.mem)
	if err != nil {
		return nil, err
	}
	defer all.Release()
	return a.widened(all, fresh.Schema())
}

// take brings what comes of a part to where it belongs.
func (a *apply) take(ctx context.Context, o *outcome, total *outcome, out *output, pipe *pipe) error {
	sum(&total.counts, o.counts)
	total.ties.merge(o.ties)
	total.stored += o.stored
	total.tombstones += o.tombstones
	if total.ties.count > 0 {
		return nil // nothing will be committed; the rest is only counted
	}
	// The state is written while the table's rows are.
	if err := pipe.send(ctx, o.entries); err != nil {
		return err
	}
	return out.take(ctx, o)
}
