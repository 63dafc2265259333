package state

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/failpoint"
)

var fpCompactionWritten = failpoint.New("cdc.compaction_written")

// CompactOptions say how much a compaction does and what it may forget.
type CompactOptions struct {
	// Entries bounds the entries that are read, about; 0 is a few million.
	Entries int64
	// Forget is a time of batches in µs: deletes of earlier batches that no
	// other event of their key precedes are left out where nothing older lies
	// beneath. 0 keeps all.
	Forget int64
}

const defaultCompaction = 4 << 20

// Compaction is what Compact made: runs that a later manifest puts in the place of others.
type Compaction struct{ pieces []*piece }

// piece is one merge that was done.
type piece struct {
	from, to uint32
	inputs   []RunInfo
	before   []int64 // of each input, the entries in front of the range
	within   []int64 // and in it
	run      RunInfo // Entries is 0 when nothing was left

	forgotten []rowcode.Hash // of keys with several entries, those of which deletes are gone
}

// Read gives how many entries were read.
func (c *Compaction) Read() int64 {
	n := int64(0)
	for _, p := range c.pieces {
		n += p.read()
	}
	return n
}

func (p *piece) read() int64 {
	n := int64(0)
	for _, w := range p.within {
		n += w
	}
	return n
}

// Written gives how many entries were written.
func (c *Compaction) Written() int64 {
	n := int64(0)
	for _, p := range c.pieces {
		n += p.run.Entries
	}
	return n
}

// Compact merges runs of a valid manifest into new ones, as far as that is due
// and within the bound; nil when it is not. It changes nothing that is there, so
// it may run beside anything and be killed at any time; what it wrote counts as
// soon as a manifest that adopted it does.
func (s *Store) Compact(ctx context.Context, m *Manifest, opt CompactOptions) (*Compaction, error) {
	limit := opt.Entries
	if limit <= 0 {
		limit = defaultCompaction
	}
	c := &Compaction{}
	after := *m
	for left := limit; ; {
		work, ok := plan(after.Runs, limit)
		if !ok || work.entries > left && len(c.pieces) > 0 {
			break
		}
		p, err := s.merge(ctx, &after, work, opt.Forget)
		if err != nil {
			return nil, err
		}
		c.pieces = append(c.pieces, p)
		after.Runs = p.replace(after.Runs, p.places(after.Runs))
		left -= max(p.read(), 1)
	}
	if len(c.pieces) == 0 {
		return nil, nil
	}
	return c, nil
}

// merge does one merge.
func (s *Store) merge(ctx context.Context, m *Manifest, work merge, before int64) (*piece, error) {
	p := &piece{from: work.from, to: work.to}
	st := &State{store: s, manifest: Manifest{PerKey: m.PerKey}}
	defer func() { _ = st.Release() }() // the store keeps the runs and meets an error when it closes
	for _, i := range work.runs {
		p.inputs = append(p.inputs, m.Runs[i])
		if err := st.add(ctx, m.Runs[i]); err != nil {
			return nil, err
		}
	}
	if err := st.give(valuesOf(st.runs)); err != nil {
		return nil, err
	}
	if err := p.count(st.runs); err != nil {
		return nil, err
	}
	rules := mergeRules{perKey: m.PerKey, removed: !work.bottom, forget: work.bottom, before: before, below: m.Truncated}
	if rules.forget && !m.PerKey {
		above := &State{store: s}
		defer func() { _ = above.Release() }() // as st
		for _, r := range m.Runs[work.runs[len(work.runs)-1]+1:] {
			if r.From >= work.to || r.to() <= work.from {
				continue
			}
			if err := above.add(ctx, r); err != nil {
				return nil, err
			}
		}
		rules.above = above.runs
	}
	rows, err := st.scan(ctx, sliceStart(work.from), sliceStart(work.to), rules)
	if err != nil {
		return nil, err
	}
	defer rows.Release()
	if p.run, err = s.write(ctx, rows); err != nil {
		return nil, err
	}
	if !m.PerKey {
		p.forgotten = rows.forgotten
	}
	p.run = p.run.part(work.from, work.to, p.run.Entries)
	fpCompactionWritten.Hit()
	return p, nil
}

// count finds how many entries of each input lie before the range and in it.
func (p *piece) count(views []view) error {
	for _, v := range views {
		rank := func(h []byte, otherwise int64) (n int64, err error) {
			if h == nil {
				return otherwise, nil
			}
			err = v.guard(func() (err error) {
				n, err = v.rank(h)
				return err
			})
			return n, err
		}
		total := int64(0)
		for _, b := range v.index.blocks {
			total += b.rows
		}
		first, err1 := rank(v.from, 0)
		from, err2 := rank(sliceStart(p.from), 0)
		to, err3 := rank(sliceStart(p.to), total)
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		p.before = append(p.before, from-first)
		p.within = append(p.within, to-from)
	}
	return nil
}

// rank gives how many entries of the file have a lower hash.
func (r *run) rank(h []byte) (int64, error) {
	at, err := r.blockOf(0, h)
	if err != nil {
		return 0, err
	}
	n := int64(0)
	for _, b := range r.index.blocks[:at] {
		n += b.rows
	}
	if at == len(r.index.blocks) {
		return n, nil
	}
	b, err := r.block(at, false)
	if err != nil {
		return 0, err
	}
	return n + int64(b.lowerBound(0, h)), nil
}

// Adopt puts the new runs of a compaction in the place of those they were made
// from, and tells whether there was any for which that fits: m has those runs, as
// it has not after a full refresh; it follows the version that the compaction
// began with, since later ones may have swept the run; and it has no newer events
// of a key whose deletes were forgotten, which counted when those events were
// applied. The rest of the compaction is of no use.
func (s *Store) Adopt(ctx context.Context, m *Manifest, c *Compaction) (bool, error) {
	any := false
	for _, p := range c.pieces {
		places := p.places(m.Runs)
		if stamp, ok := runStamp(p.run.Name); places == nil || ok && stamp < m.K {
			continue
		}
		later, err := s.touched(ctx, m.Runs[places[len(places)-1]+1:], p)
		if err != nil {
			return any, err
		}
		if !later {
			m.Runs = p.replace(m.Runs, places)
			any = true
		}
	}
	return any, nil
}

// places finds the inputs in a list of runs; nil when they are not there one over the other.
func (p *piece) places(runs []RunInfo) []int {
	var places []int
	for i, r := range runs {
		if r.From >= p.to || r.to() <= p.from {
			continue
		}
		switch n := len(places); {
		case n < len(p.inputs) && same(r, p.inputs[n]):
			places = append(places, i)
		case n > 0 && n < len(p.inputs):
			return nil
		}
	}
	if len(places) != len(p.inputs) {
		return nil
	}
	return places
}

// touched says whether runs have entries of keys of which something was forgotten.
func (s *Store) touched(ctx context.Context, runs []RunInfo, p *piece) (bool, error) {
	if len(p.forgotten) == 0 {
		return false, nil
	}
	st := &State{store: s}
	defer func() { _ = st.Release() }() // the store keeps the runs and meets an error when it closes
	errTouched := errors.New("touched")
	for _, r := range runs {
		if r.From >= p.to || r.to() <= p.from {
			continue
		}
		if err := st.add(ctx, r); err != nil {
			return false, err
		}
		v := st.runs[len(st.runs)-1]
		first, last := v.among(p.forgotten)
		touched := false
		err := v.guard(func() error {
			err := v.search(p.forgotten[first:last], func(int, *block, int) error {
				touched = true
				return errTouched
			})
			if touched {
				return nil
			}
			return err
		})
		if err != nil || touched {
			return touched, err
		}
	}
	return false, nil
}

// replace gives the list with the new run, and what is left of those it was made from.
func (p *piece) replace(runs []RunInfo, places []int) []RunInfo {
	var out []RunInfo
	for i, r := range runs {
		n := slices.Index(places, i)
		if n < 0 {
			out = append(out, r)
			continue
		}
		if before := p.before[n]; r.From < p.from && before > 0 {
			out = append(out, r.part(r.From, p.from, before))
		}
		if after := r.Entries - p.before[n] - p.within[n]; p.to < r.to() && after > 0 {
			out = append(out, r.part(p.to, r.to(), after))
		}
		if n == len(places)-1 && p.run.Entries > 0 {
			out = append(out, p.run)
		}
	}
	return out
}

func same(a, b RunInfo) bool { return a.Name == b.Name && a.From == b.From && a.To == b.To }

// valuesOf gives the value columns of all runs together; the newest decides on a column's type.
func valuesOf(views []view) []arrow.Field {
	var out []arrow.Field
	for i := len(views) - 1; i >= 0; i-- {
		for _, f := range valueFields(views[i].schema) {
			if !slices.ContainsFunc(out, func(o arrow.Field) bool { return strings.EqualFold(o.Name, f.Name) }) {
				out = append(out, f)
			}
		}
	}
	return out
}
