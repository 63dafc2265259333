package cdc

import (
	"bytes"
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/cdc/state"
	"github.com/weir-data/weir/host/stream"
)

// merger brings entries of the state and of a batch together. It is not changed
// by that and may work on several parts at once.
type merger struct {
	*layout
	mem memory.Allocator
	// whole says that all entries of a part's hashes are there, and that the state
	// is written anew from what comes out.
	whole bool
	// rewrite says that all rows are written anew, those that stay among them.
	rewrite bool
	// was and is are the orders of the latest TRUNCATE, before the batch and with it.
	was, is []byte
	// forget is the time before which deletes are forgotten, 0 for never.
	forget int64
	// unique says that two fresh entries of one key and order contradict each other
	// even when they say the same.
	unique bool
	// width is how many bytes of an order are the sequence's; 0: it says itself, -1: all.
	width int
}

// outcome is what comes of one part. The caller releases it.
type outcome struct {
	inserted arrow.RecordBatch // rows of the target
	updated  arrow.RecordBatch
	replaced []rowcode.Hash    // the rows that those of updated take the place of
	removed  []rowcode.Hash    // the rows that go
	entries  arrow.RecordBatch // for the state, sorted
	counts   stream.Counts
	ties     ties
	// stored counts the changes that the state did not have before.
	stored int64
	// tombstones is by how much the number of deletes in the state changes, or
	// what it is when it is written anew.
	tombstones int64
}

func (o *outcome) release() {
	for _, rec := range []arrow.RecordBatch{o.inserted, o.updated, o.entries} {
		if rec != nil {
			rec.Release()
		}
	}
	o.inserted, o.updated, o.entries = nil, nil, nil
}

// work is the merge of one part.
type work struct {
	*merger
	*entries
	out    *outcome
	leaves []*lookup // one for each inherited column

	// Of the key at hand.
	line          []event // all of it
	before, after []event
	shown, shows  []row
	wasBy, isBy   [][]int32 // authors, by inherited column

	insert, update picks
	replaced       []int32 // heads of old rows
	removed        []int32
	kept           []int32 // for the state
	hidden         []int   // those of kept that only hide what is forgotten
}

// merge does so for one part. old and fresh stay the caller's; old may be nil.
func (m *merger) merge(ctx context.Context, old, fresh arrow.RecordBatch) (*outcome, error) {
	n := 0
	all := fresh
	if old != nil && old.NumRows() > 0 {
		var err error
		if all, err = joined(fresh.Schema(), []arrow.RecordBatch{old, fresh}, m.mem); err != nil {
			return nil, err
		}
		defer all.Release()
		n = int(old.NumRows())
	}
	w := &work{merger: m, entries: entriesOf(all, n), out: &outcome{}}
	w.prepare()
	defer w.releaseLeaves()
	spots := w.sorted()
	for from, to := 0, 0; from < len(spots); from = to {
		for to = from + 1; to < len(spots) && spots[to].a == spots[from].a && spots[to].b == spots[from].b && w.sameKey(spots[from].at, spots[to].at); to++ {
		}
		if err := w.key(spots[from:to]); err != nil {
			return nil, err
		}
	}
	if err := w.finish(ctx); err != nil {
		w.out.release()
		return nil, err
	}
	return w.out, nil
}

// key works on the entries of one key.
func (w *work) key(spots []spot) error {
	if err := w.gather(spots); err != nil {
		return err
	}
	if w.forget > 0 {
		forget(w.line, func(ref int32) bool { return w.times[ref] < w.forget })
	}
	old, fresh, late := 0, 0, 0
	w.before, w.after = w.before[:0], w.after[:0]
	for _, e := range w.line {
		dead := len(w.is) > 0 && bytes.Compare(w.order(e.ref), w.is) < 0
		switch {
		case e.gone:
			continue
		case e.old:
			old++
			if len(w.was) == 0 || bytes.Compare(w.order(e.ref), w.was) >= 0 {
				w.before = append(w.before, e)
			}
		default:
			if fresh++; dead {
				late++
			}
		}
		if !dead {
			w.after = append(w.after, e)
		}
	}
	w.out.counts.Unchanged += int64(late)
	w.store(fresh)
	switch {
	case fresh == 0 && len(w.after) == old && !w.rewrite:
	case w.SCDType == 2:
		w.compareHistory()
	default:
		w.compareNewest(fresh - late)
	}
	return nil
}

// gather makes the timeline of a key: of several entries of one order, which
// must say the same, the first that was applied stays. What columns of last_by
// would say of a change that came before they were named is not known: others of
// its sequence are as if of its order.
func (w *work) gather(spots []spot) error {
	w.line = w.line[:0]
	moment := int32(0)
	bare := false // what stands last was applied before there were columns that decide
	for _, s := range spots {
		n := len(w.line)
		twice := n > 0 && bytes.Equal(w.order(w.line[n-1].ref), w.order(s.at))
		again := twice
		if n > 0 && !twice {
			var err error
			if again, err = w.sameMoment(w.line[n-1].ref, s.at); err != nil {
				return err
			}
		}
		if twice || bare && again {
			last := &w.line[n-1]
			if !w.same(last.ref, s.at) || w.unique && !last.old {
				w.out.ties.add(w, s.at)
			} else if last.old {
				last.again = s.at
			} else if !w.exact && w.less(s.at, last.ref) {
				last.ref, last.tracked = s.at, w.entries.tracked[s.at]
			}
			w.out.counts.Unchanged++
			continue
		}
		if n > 0 && !again {
			moment++
		}
		if w.width >= 0 {
			sequence, err := w.sequenceOf(w.order(s.at))
			if err != nil {
				return err
			}
			bare = len(sequence) == len(w.order(s.at))
		}
		w.line = append(w.line, event{
			ref: s.at, moment: moment, upsert: w.kinds[s.at] == state.Upsert, old: w.isOld(s.at), again: never, tracked: w.entries.tracked[s.at],
		})
	}
	return nil
}

// sameMoment tells whether two entries have one sequence.
func (w *work) sameMoment(a, b int32) (bool, error) {
	if w.width < 0 {
		return false, nil // their orders differ, and are nothing but the sequence
	}
	x, err := w.sequenceOf(w.order(a))
	return err == nil && bytes.HasPrefix(w.order(b), x), err
}

// sequenceOf gives the part of an order that is the sequence's. What says itself
// where it ends is no beginning of another one.
func (m *merger) sequenceOf(order []byte) ([]byte, error) {
	switch {
	case m.width < 0:
		return order, nil
	case m.width > 0 && len(order) >= m.width:
		return order[:m.width], nil
	}
	return rowcode.Prefix(m.sequence, order)
}

// store notes what the state is to have of the key.
func (w *work) store(fresh int) {
	switch {
	case fresh == 0 && !w.whole:
	case w.keeps():
		w.storeAll()
	default:
		// One entry: the last change, be it a delete.
		n := len(w.after)
		if n == 0 || !w.whole && w.after[n-1].old {
			return
		}
		w.keep(w.after[n-1])
		if !w.whole && w.replacesDelete() {
			w.out.tombstones--
		}
	}
}

// replacesDelete tells whether the state's one entry of the key is a delete.
func (w *work) replacesDelete() bool {
	for _, e := range w.line {
		if e.old {
			return !e.upsert
		}
	}
	return false
}

// storeAll keeps every change; what is forgotten is hidden for good, or else a
// change that came meanwhile would bring it back.
func (w *work) storeAll() {
	next := 0
	for _, e := range w.line {
		switch {
		case e.gone && !w.whole:
			w.hidden = append(w.hidden, len(w.kept))
			w.kept = append(w.kept, e.ref)
			w.out.tombstones--
		case next < len(w.after) && w.after[next].ref == e.ref:
			next++
			if w.whole || !e.old {
				w.keep(e)
			}
		}
	}
}

func (w *work) keep(e event) {
	w.kept = append(w.kept, e.ref)
	if !e.old {
		w.out.stored++
	}
	if !e.upsert {
		w.out.tombstones++
	}
}
