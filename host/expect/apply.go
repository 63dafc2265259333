package expect

import (
	"context"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// Sink takes what Apply lets through. Batches are Apply's: who keeps one
// beyond the call retains it.
type Sink struct {
	// Keep gets the rows that stay, hidden columns included, in input order.
	Keep func(ctx context.Context, rec arrow.RecordBatch) error
	// Quarantine gets the rows set aside and, per row, the names of the rules
	// that keep it out. It may be nil when no rule quarantines.
	Quarantine func(ctx context.Context, rec arrow.RecordBatch, rules [][]string) error
	// Refused gets the rows that do not stay, for whatever reason, beside; may be nil.
	Refused func(ctx context.Context, rec arrow.RecordBatch) error
	// Locate says where a __weir_row comes from, for errors; may be nil.
	Locate func(row int64) string
	// Alloc is where filtered batches live; nil: the default allocator.
	Alloc memory.Allocator
}

// RuleCounts is what one rule saw.
type RuleCounts struct {
	Name string
	// Dataset is the view that has the rule; "" is the flow's own target.
	Dataset        string
	Passed, Failed int64
}

// Counts sums up a run of Apply.
type Counts struct {
	Rows        int64 // read
	Kept        int64
	Dropped     int64 // left out without a trace, each row once
	Quarantined int64
	Rules       []RuleCounts // in the order of the rules
}

// maxPositions is how many violating rows an error names.
const maxPositions = 5

// Apply reads in to its end, counts violations and hands each row to where the
// rules send it. Once a Fail rule is violated nothing more is handed over; the
// rest is only read, so that the error can give the number.
func Apply(ctx context.Context, rules []Rule, in array.RecordReader, sink Sink) (Counts, error) {
	a, err := newApplication(ctx, rules, sink)
	if err != nil {
		return Counts{}, err
	}
	for in.Next() {
		if err := ctx.Err(); err != nil {
			return a.counts, err
		}
		if err := a.batch(in.RecordBatch()); err != nil {
			return a.counts, err
		}
	}
	a.settle()
	if err := in.Err(); err != nil {
		return a.counts, err
	}
	return a.counts, a.violation()
}

// application is one run of Apply.
type application struct {
	ctx   context.Context
	rules []Rule
	sink  Sink

	fail, drop, quarantine int64 // bits of the rules with that action
	counts                 Counts
	positions              []string // of the first rows that violate a Fail rule
	failed                 bool
}

func newApplication(ctx context.Context, rules []Rule, sink Sink) (*application, error) {
	if len(rules) > relation.MaskBits {
		return nil, fault.New("TOO_MANY_EXPECTATIONS", "%d expectations on one dataset", len(rules)).
			WithHint("At most %d fit; join conditions with AND", relation.MaskBits)
	}
	if sink.Alloc == nil {
		sink.Alloc = memory.DefaultAllocator
	}
	a := &application{ctx: compute.WithAllocator(ctx, sink.Alloc), rules: rules, sink: sink}
	a.counts.Rules = make([]RuleCounts, len(rules))
	for i, r := range rules {
		a.counts.Rules[i].Name = r.Name
		switch bit := int64(1) << i; r.Action {
		case Warn:
		case Drop:
			a.drop |= bit
		case Fail:
			a.fail |= bit
		case Quarantine:
			a.quarantine |= bit
		default:
			return nil, fault.New("INVALID_EXPECTATION", "expectation %s has the unknown action %d", r.Name, r.Action)
		}
	}
	if a.quarantine != 0 && sink.Quarantine == nil {
		return nil, fault.New("INTERNAL_ERROR", "a rule quarantines but there is no quarantine")
	}
	return a, nil
}

// batch sorts the rows of one batch.
func (a *application) batch(rec arrow.RecordBatch) error {
	n := int(rec.NumRows())
	if n == 0 {
		return nil
	}
	a.counts.Rows += int64(n)
	if len(a.rules) == 0 {
		return a.keep(rec)
	}
	column, ok := relation.Int64Column(rec, relation.MaskColumn)
	if !ok || column.NullN() > 0 {
		return fault.New("INTERNAL_ERROR", "the rows carry no %s", relation.MaskColumn)
	}
	masks := column.Int64Values()
	out, aside, violated := a.count(masks)
	if violated&a.fail != 0 {
		a.note(rec, masks)
	}
	if a.failed {
		return nil
	}
	if out == 0 {
		return a.keep(rec)
	}
	if aside > 0 {
		if err := a.setAside(rec, masks, aside); err != nil {
			return err
		}
	}
	if a.sink.Refused != nil {
		if err := a.refuse(rec, masks, out); err != nil {
			return err
		}
	}
	a.counts.Dropped += int64(out - aside)
	if out == n {
		return nil
	}
	kept, err := a.filter(rec, n-out, func(i int) bool { return masks[i]&(a.drop|a.quarantine) == 0 })
	if err != nil {
		return err
	}
	defer kept.Release()
	return a.keep(kept)
}

// count counts violations per rule; it gives the rows that do not stay, those
// of them that go to quarantine, and every bit seen.
func (a *application) count(masks []int64) (out, aside int, violated int64) {
	for _, m := range masks {
		if m == 0 {
			continue
		}
		violated |= m
		if m&(a.drop|a.quarantine) != 0 {
			out++
		}
		if m&a.quarantine != 0 {
			aside++
		}
	}
	if violated == 0 {
		return
	}
	for i := range a.rules {
		bit := int64(1) << i
		if violated&bit == 0 {
			continue
		}
		for _, m := range masks {
			a.counts.Rules[i].Failed += m >> i & 1
		}
	}
	return
}

// note remembers where rows violate a Fail rule.
func (a *application) note(rec arrow.RecordBatch, masks []int64) {
	a.failed = true
	rows, ok := relation.Int64Column(rec, relation.RowColumn)
	for i, m := range masks {
		if m&a.fail == 0 || !ok || len(a.positions) == maxPositions {
			continue
		}
		if a.sink.Locate != nil {
			a.positions = append(a.positions, a.sink.Locate(rows.Value(i)))
		} else {
			a.positions = append(a.positions, fmt.Sprintf("row %d", rows.Value(i)+1))
		}
	}
}

func (a *application) keep(rec arrow.RecordBatch) error {
	if a.failed {
		return nil
	}
	a.counts.Kept += rec.NumRows()
	return a.sink.Keep(a.ctx, rec)
}

// setAside hands over the rows that go to quarantine.
func (a *application) setAside(rec arrow.RecordBatch, masks []int64, rows int) error {
	part, err := a.filter(rec, rows, func(i int) bool { return masks[i]&a.quarantine != 0 })
	if err != nil {
		return err
	}
	defer part.Release()
	names := make([][]string, 0, rows)
	for _, m := range masks {
		if m&a.quarantine == 0 {
			continue
		}
		var violated []string
		for i, r := range a.rules {
			if m>>i&1 == 1 && r.Action != Warn {
				violated = append(violated, r.Name)
			}
		}
		names = append(names, violated)
	}
	a.counts.Quarantined += int64(rows)
	return a.sink.Quarantine(a.ctx, part, names)
}

// refuse hands over the rows that do not stay.
func (a *application) refuse(rec arrow.RecordBatch, masks []int64, rows int) error {
	part, err := a.filter(rec, rows, func(i int) bool { return masks[i]&(a.drop|a.quarantine) != 0 })
	if err != nil {
		return err
	}
	defer part.Release()
	return a.sink.Refused(a.ctx, part)
}

// filter gives the n rows that pick chooses; the caller releases them.
func (a *application) filter(rec arrow.RecordBatch, n int, pick func(int) bool) (arrow.RecordBatch, error) {
	if n == int(rec.NumRows()) {
		rec.Retain()
		return rec, nil
	}
	b := array.NewBooleanBuilder(a.sink.Alloc)
	defer b.Release()
	b.Reserve(int(rec.NumRows()))
	for i := range int(rec.NumRows()) {
		b.UnsafeAppend(pick(i))
	}
	chosen := b.NewBooleanArray()
	defer chosen.Release()
	out, err := compute.FilterRecordBatch(a.ctx, rec, chosen, compute.DefaultFilterOptions())
	if err != nil {
		return nil, fault.Wrap(err, "INTERNAL_ERROR", "rows cannot be filtered")
	}
	return out, nil
}

// settle fills in what follows from the rest.
func (a *application) settle() {
	for i := range a.counts.Rules {
		a.counts.Rules[i].Passed = a.counts.Rows - a.counts.Rules[i].Failed
	}
}

// violation is the error of violated Fail rules, or nil.
func (a *application) violation() error {
	if !a.failed {
		return nil
	}
	var names []string
	for i, r := range a.rules {
		if r.Action == Fail && a.counts.Rules[i].Failed > 0 {
			names = append(names, fmt.Sprintf("%s (%s) by %d of %d rows", r.Name, r.Condition, a.counts.Rules[i].Failed, a.counts.Rows))
		}
	}
	msg := "violated: " + strings.Join(names, "; ")
	if len(a.positions) > 0 {
		msg += "; first at " + strings.Join(a.positions, ", ")
	}
	return fault.New("EXPECTATION_VIOLATED", "%s", msg).
		WithHint("Nothing of the batch is committed: correct the source, or choose DROP ROW or QUARANTINE")
}
