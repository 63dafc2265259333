package sql

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
)

// GuestRelations checks the text of a guest's query and lists the relations that it reads.
func (e *Engine) GuestRelations(ctx context.Context, q Query) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkGuestText(q.Text, q.places().where(0)); err != nil {
		return nil, err
	}
	tree, o, err := parseSelect(q.Text, q.places())
	if err != nil {
		return nil, err
	}
	if err := expandIntervals(tree, o, intervals{}); err != nil {
		return nil, err
	}
	if err := q.checkGuest(tree, &rewriter{origin: o}); err != nil {
		return nil, err
	}
	return e.Relations(ctx, q.Text)
}

// CheckGuestExpression holds a text that is not the operator's to being one
// expression over the columns of a row: no relation, no aggregate, and nothing
// that guests may not call. The text can then stand in a larger query.
func (e *Engine) CheckGuestExpression(ctx context.Context, text string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	item, r, err := oneExpression(text, newOrigin("", text, 1), true)
	if err != nil {
		return err
	}
	return r.expr(item, place{condition: true})
}

// checkGuest checks the tree of a guest's text and puts the parameters in.
func (q *Query) checkGuest(tree node, r *rewriter) error {
	c := &guestChecker{r: r, params: q.Guest.Params, used: make([]bool, len(q.Guest.Params))}
	return c.statement(tree)
}

// checkGuestCondition checks the one expression of a guest's condition.
func checkGuestCondition(item node, r *rewriter) error {
	c := &guestChecker{r: r}
	return c.walk(map[string]any(item), 0)
}

// runGuest is Run for a guest's query: what it gives and takes is bounded.
func (e *Engine) runGuest(ctx context.Context, q Query, inputs map[string]array.RecordReader) (array.RecordReader, error) {
	if q.Clock.IsZero() {
		return nil, fault.New("INTERNAL_ERROR", "a guest's query runs without the batch timestamp")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r := &guestResult{ctx: ctx, cancel: cancel, limits: q.Guest.withDefaults()}
	r.left = r.limits.Time
	r.refs.Store(1)
	err := r.timed(func() error {
		var err error
		r.RecordReader, err = e.runPlan(ctx, q, inputs)
		return err
	})
	if err != nil {
		cancel(nil)
		return nil, err
	}
	return r, nil
}

// guestResult is the result of a guest's query.
type guestResult struct {
	array.RecordReader
	refs   atomic.Int64
	ctx    context.Context
	cancel context.CancelCauseFunc
	limits Guest
	left   time.Duration // the query may still run
	rows   int64
	bytes  int64
	batch  arrow.RecordBatch
	err    error
}

// timed runs a part of the query: what the reader does in between is not its time.
func (r *guestResult) timed(part func() error) error {
	start := time.Now()
	alarm := time.AfterFunc(r.left, func() {
		r.cancel(fault.New(limitCode, "the query is over the limit query_time = %s", r.limits.Time).
			WithHint("Read less, or raise the limit"))
	})
	err := part()
	alarm.Stop()
	r.left -= time.Since(start)
	var over *fault.Error
	if err != nil && errors.As(context.Cause(r.ctx), &over) {
		return over
	}
	return err
}

func (r *guestResult) Next() bool {
	r.batch = nil
	if r.err != nil {
		return false
	}
	more := false
	r.err = r.timed(func() error {
		more = r.RecordReader.Next()
		return r.RecordReader.Err()
	})
	if r.err != nil || !more {
		return false
	}
	batch := r.RecordReader.RecordBatch()
	r.rows += batch.NumRows()
	for _, c := range batch.Columns() {
		r.bytes += int64(c.Data().SizeInBytes())
	}
	switch {
	case r.rows > r.limits.Rows:
		r.err = overGuest("query_rows", r.limits.Rows, "the number of rows of the query").WithHint("Ask for fewer rows, or raise the limit")
	case r.bytes > r.limits.Bytes:
		r.err = overGuest("query_bytes", r.limits.Bytes, fmt.Sprintf("the result of the query, %d bytes so far,", r.bytes)).WithHint("Ask for less, or raise the limit")
	}
	if r.err != nil {
		return false
	}
	r.batch = batch
	return true
}

func (r *guestResult) RecordBatch() arrow.RecordBatch { return r.batch }

// Record is RecordBatch under its old name, which the interface still has.
func (r *guestResult) Record() arrow.RecordBatch { return r.batch }

func (r *guestResult) Err() error { return r.err }

func (r *guestResult) Retain() { r.refs.Add(1) }

func (r *guestResult) Release() {
	if r.refs.Add(-1) == 0 {
		r.RecordReader.Release()
		r.cancel(nil)
	}
}
