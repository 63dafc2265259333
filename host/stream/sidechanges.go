package stream

import (
	"context"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// ChangeRange is the range of a change data feed that is read whole. From and To
// are versions, or instants with ByTime; To is "" for the newest.
type ChangeRange struct {
	From, To string
	ByTime   bool
}

// Options reads the range.
func (r ChangeRange) Options() (opt delta.ChangesOptions, err error) {
	opt.To = -1
	refused := func(what, text string, err error) error {
		e := fault.New("DELTA_INVALID_CDC_RANGE", "the %s of the changes is %q", what, text)
		if err != nil {
			e = fault.Wrap(err, "DELTA_INVALID_CDC_RANGE", "the %s of the changes is %q", what, text)
		}
		return e.
			WithHint("Write a version, or an instant such as '2026-11-30 10:00:00'")
	}
	if r.ByTime {
		from, err := parseInstant(r.From)
		if err != nil {
			return opt, refused("beginning", r.From, err)
		}
		opt.FromTime = *from
		if r.To == "" {
			return opt, nil
		}
		to, err := parseInstant(r.To)
		if err != nil {
			return opt, refused("end", r.To, err)
		}
		opt.ToTime = *to
		return opt, nil
	}
	if opt.From, err = strconv.ParseInt(r.From, 10, 64); err != nil || opt.From < 0 {
		return opt, refused("beginning", r.From, err)
	}
	if r.To == "" {
		return opt, nil
	}
	if opt.To, err = strconv.ParseInt(r.To, 10, 64); err != nil || opt.To < opt.From {
		return opt, refused("end", r.To, err)
	}
	return opt, nil
}

// OpenSideChanges reads the change data feed of a side input, no further than
// the version that the batch pins. The caller releases the reader.
func (t *Task) OpenSideChanges(ctx context.Context, name string, of ChangeRange) (array.RecordReader, error) {
	if t.hooks == nil {
		return nil, fault.New("INTERNAL_ERROR", "the task does not run")
	}
	table, snap, err := t.hooks.sideSnapshot(ctx, name)
	if err != nil {
		return nil, err
	}
	at := func(err error) error {
		return fault.Place(err, "DELTA_SOURCE_UNAVAILABLE", fault.Where{Dataset: name})
	}
	opt, err := of.Options()
	if err != nil {
		return nil, at(err)
	}
	if of.ByTime {
		if opt, err = table.ResolveChanges(ctx, opt); err != nil {
			return nil, at(err)
		}
	}
	if opt.To < 0 || opt.To > snap.Version() { // what is not there yet comes with a later refresh
		opt.To = snap.Version()
	}
	if opt.From > opt.To {
		schema, err := snap.ChangesSchema()
		if err != nil {
			return nil, at(err)
		}
		return array.NewRecordReader(schema, nil)
	}
	r, err := table.Changes(ctx, opt)
	if err != nil {
		return nil, at(err)
	}
	if q := t.hooks.query; q != nil {
		r = counting(r, func(rows int64) { q.read(sourceCounts{rows: rows}, 0, 0) })
	}
	return r, nil
}
