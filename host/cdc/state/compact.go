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

// Compaction is a run that a later manifest puts in the place of others.
type Compaction struct {
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
	for _, w := range c.within {
		n += w
	}
	return n
}

// Written gives how many entries were written.
func (c *Compaction) Written() int64 { return c.run.Entries }

// Compact merges some of a manifest's runs into a new one, if that is due; nil
// when it is not. It changes nothing that is there, so it may run beside
// anything and be killed at any time; what it wrote counts as soon as a
// manifest that adopted it does.
func (s *Store) Compact(ctx context.Context, m *Manifest, opt CompactOptions) (*Compaction, error) {
	limit := opt.Entries
	if limit <= 0 {
		limit = defaultCompaction
	}
	work, ok := plan(m.Runs, limit)
	if !ok {
		return nil, nil
	}
	c := &Compaction{from: work.from, to: work.to}
	st := &State{store: s, manifest: Manifest{PerKey: m.PerKey}}
	defer func() { _ = st.Release() }() // the store keeps the runs and meets an error when it closes
	for _, i := range work.runs {
		c.inputs = append(c.inputs, m.Runs[i])
		if err := st.add(ctx, m.Runs[i]); err != nil {
			return nil, err
		}
	}
	if err := st.give(valuesOf(st.runs)); err != nil {
		return nil, err
	}
	if err := c.count(st.runs); err != nil {
		return nil, err
	}
	rules := mergeRules{perKey: m.PerKey, removed: !work.bottom, forget: work.bottom, before: opt.Forget, below: m.Truncated}
	rows, err := st.scan(ctx, sliceStart(work.from), sliceStart(work.to), rules)
	if err != nil {
		return nil, err
	}
	defer rows.Release()
	if c.run, err = s.write(ctx, rows); err != nil {
		return nil, err
	}
	if !m.PerKey {
		c.forgotten = rows.forgotten
	}
	c.run = c.run.part(work.from, work.to, c.run.Entries)
	fpCompactionWritten.Hit()
	return c, nil
}

// count finds how many entries of each input lie before the range and in it.
func (c *Compaction) count(views []view) error {
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
		from, err2 := rank(sliceStart(c.from), 0)
		to, err3 := rank(sliceStart(c.to), total)
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		c.before = append(c.before, from-first)
		c.within = append(c.within, to-from)
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

// Adopt puts the new run of a compaction in the place of those it was made
// from. It is false, and m stays as it is, when that does not fit any more: m
// does not have those runs, as after a full refresh; it follows a version that
// came after the compaction began, so that the run may have been swept; or it
// has newer events of a key whose deletes were forgotten, which counted when
// those events were applied. The compaction is then of no use.
func (s *Store) Adopt(ctx context.Context, m *Manifest, c *Compaction) (bool, error) {
	places := c.places(m.Runs)
	if stamp, ok := runStamp(c.run.Name); places == nil || ok && stamp < m.K {
		return false, nil
	}
	if later, err := s.touched(ctx, m.Runs[places[len(places)-1]+1:], c); err != nil || later {
		return false, err
	}
	m.Runs = c.replace(m.Runs, places)
	return true, nil
}

// places finds the inputs in a list of runs; nil when they are not there one over the other.
func (c *Compaction) places(runs []RunInfo) []int {
	var places []int
	for i, r := range runs {
		if r.From >= c.to || r.to() <= c.from {
			continue
		}
		switch n := len(places); {
		case n < len(c.inputs) && same(r, c.inputs[n]):
			places = append(places, i)
		case n > 0 && n < len(c.inputs):
			return nil
		}
	}
	if len(places) != len(c.inputs) {
		return nil
	}
	return places
}

// touched says whether runs have entries of keys of which something was forgotten.
func (s *Store) touched(ctx context.Context, runs []RunInfo, c *Compaction) (bool, error) {
	if len(c.forgotten) == 0 {
		return false, nil
	}
	st := &State{store: s}
	defer func() { _ = st.Release() }() // the store keeps the runs and meets an error when it closes
	errTouched := errors.New("touched")
	for _, r := range runs {
		if r.From >= c.to || r.to() <= c.from {
			continue
		}
		if err := st.add(ctx, r); err != nil {
			return false, err
		}
		v := st.runs[len(st.runs)-1]
		first, last := v.among(c.forgotten)
		touched := false
		err := v.guard(func() error {
			err := v.search(c.forgotten[first:last], func(int, *block, int) error {
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
func (c *Compaction) replace(runs []RunInfo, places []int) []RunInfo {
	var out []RunInfo
	for i, r := range runs {
		n := slices.Index(places, i)
		if n < 0 {
			out = append(out, r)
			continue
		}
		if before := c.before[n]; r.From < c.from && before > 0 {
			out = append(out, r.part(r.From, c.from, before))
		}
		if after := r.Entries - c.before[n] - c.within[n]; c.to < r.to() && after > 0 {
			out = append(out, r.part(c.to, r.to(), after))
		}
		if n == len(places)-1 && c.run.Entries > 0 {
			out = append(out, c.run)
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
