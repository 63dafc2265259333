package main

import "github.com/weir-data/weir/sdk/go"

const (
	amountPrecision = 18
	amountScale     = 2
)

// orders writes one row per document. What a document lacks is NULL, and the table's expectations
// judge it; what it has and cannot be read is a row error. A record that was no JSON comes with nothing
// but its rescued text, and so without an order_id.
func orders(c *weir.Call) error {
	in, out := c.Input(0), c.Output()
	to := orderColumns{
		id: out.Column("order_id").String(), ts: out.Column("order_ts").Timestamp(),
		customer: out.Column("customer_id").String(), currency: out.Column("currency").String(),
		total: out.Column("total_amount").Decimal128(amountPrecision, amountScale), lines: out.Column("line_count").Int32(),
	}
	for in.Next() {
		b := in.Batch()
		from := documentsOf(b)
		for i := range b.Len() {
			to.ids(from, i, b)
			to.time(from, i, b)
			to.amount(from, i, b)
			to.count(from, i)
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}

// documents is the columns of a batch that an order is made of.
type documents struct {
	id, customer, currency texts
	ts                     instants
	total                  weir.Numerics
	items                  weir.Lists
}

func documentsOf(b *weir.Batch) *documents {
	return &documents{
		id: textsOf(b.Column("order_id")), customer: textsOf(b.Column("customer_id")), currency: textsOf(b.Column("currency")),
		ts: instantsOf(b.Column("order_ts")), total: b.Column("total_amount").Numeric(), items: b.Column("items").List(),
	}
}

type orderColumns struct {
	id, customer, currency *weir.StringBuilder
	ts                     *weir.NumberBuilder[int64]
	total                  *weir.DecimalBuilder
	lines                  *weir.NumberBuilder[int32]
}

func (to *orderColumns) ids(from *documents, i int, b *weir.Batch) {
	id, ok := from.id.at(i)
	if !ok {
		b.RowError(i, "MISSING_ORDER_ID", "the document has no order_id")
	}
	to.id.Append(id)
	appendText(to.customer, &from.customer, i)
	appendText(to.currency, &from.currency, i)
}

func (to *orderColumns) time(from *documents, i int, b *weir.Batch) {
	if from.ts.null(i) {
		to.ts.AppendNull()
		return
	}
	ts, ok := from.ts.at(i)
	if !ok {
		b.RowError(i, "INVALID_TIMESTAMP", "order_ts is not an ISO 8601 timestamp")
	}
	to.ts.Append(ts)
}

func (to *orderColumns) amount(from *documents, i int, b *weir.Batch) {
	if from.total.Null(i) {
		to.total.AppendNull()
		return
	}
	d, ok := amountAt(&from.total, i)
	if !ok {
		b.RowError(i, "INVALID_AMOUNT", "total_amount is not a number that fits decimal(18,2)")
	}
	to.total.Append(d)
}

func (to *orderColumns) count(from *documents, i int) {
	if from.items.Null(i) {
		to.lines.Append(0)
		return
	}
	start, end := from.items.At(i)
	to.lines.Append(int32(end - start))
}

// amountAt reads an amount at the scale of amounts, rounded half away from zero; 0 when it does not fit.
func amountAt(v *weir.Numerics, i int) (weir.Decimal128, bool) {
	d, scale, ok := v.At(i)
	if ok {
		d, ok = d.Rescale(scale, amountScale, weir.HalfAwayFromZero)
	}
	if !ok || !d.Fits(amountPrecision) {
		return weir.Decimal128{}, false
	}
	return d, true
}
