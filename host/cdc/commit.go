package cdc

import (
	"bytes"
	"context"
	"errors"

	"github.com/weir-data/weir/host/cdc/state"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/stream"
)

// later gives the greater of two orders.
func later(a, b []byte) []byte {
	if bytes.Compare(b, a) > 0 {
		return b
	}
	return a
}

// Commit takes the batch into the table.
func (a *application) Commit(ctx context.Context, c delta.Commit) (delta.Result, stream.Counts, error) {
	if err := a.flaws.err(a.def); err != nil {
		return delta.Result{}, stream.Counts{}, err
	}
	res, n, err := a.commit(ctx, c, a.truncate, stream.Counts{Truncated: a.truncates}, nil)
	return res, n, err
}

// commit works out what the entries that were added change, and commits it. n is
// what was counted before. note sets what else the state's version is to say.
func (a *apply) commit(ctx context.Context, c delta.Commit, truncate []byte, n stream.Counts, note func(*state.Manifest)) (delta.Result, stream.Counts, error) {
	next := a.was
	next.Base = -1
	if a.b.Target != nil {
		next.Base = a.b.Target.Version()
	}
	next.Truncated = later(a.was.Truncated, truncate)
	out := newOutput(a, &c)
	changed := a.b.Replace || !bytes.Equal(next.Truncated, a.was.Truncated)
	if a.layout != nil {
		stored, err := a.run(ctx, out, &next)
		if err != nil {
			return delta.Result{}, n, errors.Join(err, out.abort(context.WithoutCancel(ctx)))
		}
		changed = changed || stored
	}
	sum(&n, out.counts)
	next.Live += out.counts.Inserted - out.counts.Removed
	if note != nil {
		note(&next)
		changed = true
	}
	if changed {
		k, err := a.def.State.Put(ctx, &next)
		if err != nil {
			return delta.Result{}, n, errors.Join(err, out.abort(context.WithoutCancel(ctx)))
		}
		c.Also = append(c.Also, delta.Txn{AppID: a.def.StateID, Version: k})
	}
	if a.b.Settle != nil {
		if err := a.b.Settle(&c, n); err != nil {
			return delta.Result{}, n, errors.Join(err, out.abort(context.WithoutCancel(ctx)))
		}
	}
	res, err := out.commit(ctx)
	if err == nil && changed {
		a.sweep(ctx, next.K)
	}
	return res, n, err
}

func sum(n *stream.Counts, m stream.Counts) {
	n.Upserted += m.Upserted
	n.Deleted += m.Deleted
	n.Inserted += m.Inserted
	n.Updated += m.Updated
	n.Removed += m.Removed
	n.Closed += m.Closed
	n.Unchanged += m.Unchanged
}

// run merges the entries with the state, part by part, writes rows and entries,
// and notes in next what the state then is. It tells whether that is other than before.
func (a *apply) run(ctx context.Context, out *output, next *state.Manifest) (bool, error) {
	had := int64(0)
	if a.state != nil {
		had = a.state.Entries()
	}
	m := &merger{layout: a.layout, mem: a.mem, was: a.was.Truncated, is: next.Truncated, width: a.sequenceWidth(), unique: a.tied != nil}
	share := a.def.ScanShare
	if share == 0 {
		share = 1
	}
	m.whole = had == 0 || float64(a.changes.rows) >= share*float64(had) || !bytes.Equal(m.was, m.is)
	if a.def.Tombstones > 0 {
		m.forget = a.b.Timestamp.Add(-a.def.Tombstones).UnixMicro()
	}
	if a.changes.rows == 0 && bytes.Equal(m.was, m.is) {
		return false, nil
	}
	looked := int64(0)
	if m.whole {
		looked = had
	}
	parts, err := a.changes.seal(ctx, a.changes.parts(looked))
	defer parts.release()
	if err != nil {
		return false, err
	}
	if err := a.plan(ctx, m, parts, out); err != nil {
		return false, err
	}
	upkeep := a.startUpkeep(ctx, m)
	defer upkeep.end()
	total, run, err := a.write(ctx, m, parts, out)
	if err != nil {
		return false, err
	}
	tied := total.ties.err
	if a.tied != nil {
		tied = func(*Definition) error { return a.tied(&total.ties) }
	}
	if err := tied(a.def); err != nil {
		return false, err
	}
	out.counts = total.counts
	if total.stored == 0 && bytes.Equal(m.was, m.is) {
		return false, out.drop(ctx) // rows that were written anew are the same
	}
	made := a.record()
	if made.Removed = total.tombstones; !m.whole {
		made.Removed += a.made.Removed
	}
	next.PerKey = !a.keeps()
	if m.whole {
		next.Runs = nil
	}
	a.adopt(ctx, upkeep, next)
	if run.Entries > 0 {
		next.Runs = append(next.Runs, run)
	}
	next.Definition, err = made.encode()
	a.tombstones(made.Removed, next.Runs)
	return true, err
}

// plan decides by the first part whether the table's rows are looked for one by
// one or all written anew, for which no row has to be found: that takes the
// values from the state, and must look to readers like what it is.
func (a *apply) plan(ctx context.Context, m *merger, parts *sealed, out *output) error {
	if !m.whole || !a.keeps() || out.anew() || a.was.Live == 0 || out.traced() {
		return nil
	}
	o, err := a.part(ctx, m, parts, 0)
	if err != nil {
		return err
	}
	defer o.release()
	gone := int64(len(o.replaced) + len(o.removed))
	m.rewrite = 2*gone*int64(parts.count) >= a.was.Live
	out.rewrite = m.rewrite
	return nil
}
