package main

import "github.com/weir-data/weir/sdk/go"

// flushRows bounds a batch of lines, since documents may have any number of items.
const flushRows = 1 << 16

// orderLines writes one row per item. A document with an item that cannot be read gives none of its
// lines: half an order would look like a whole one.
func orderLines(c *weir.Call) error {
	in, out := c.Input(0), c.Output()
	to := lineColumns{
		id: out.Column("order_id").String(), number: out.Column("line_number").Int32(), sku: out.Column("sku").String(),
		quantity: out.Column("quantity").Int64(), price: out.Column("price").Decimal128(amountPrecision, amountScale),
		amount: out.Column("line_amount").Decimal128(amountPrecision, amountScale), currency: out.Column("currency").String(),
	}
	var lines []line
	for in.Next() {
		b := in.Batch()
		ids, currencies := textsOf(b.Column("order_id")), textsOf(b.Column("currency"))
		items := itemsOf(b.Column("items"))
		for i := range b.Len() {
			id, ok := ids.at(i)
			if !ok {
				b.RowError(i, "MISSING_ORDER_ID", "the document has no order_id")
				continue
			}
			var problem string
			if lines, problem = items.read(i, lines[:0]); problem != "" {
				b.RowError(i, "INVALID_ITEM", problem)
				continue
			}
			for n, l := range lines {
				to.append(id, n+1, l)
				appendText(to.currency, &currencies, i)
			}
			if to.id.Len() >= flushRows {
				if err := out.Flush(); err != nil {
					return err
				}
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}

type lineColumns struct {
	id, sku, currency *weir.StringBuilder
	number            *weir.NumberBuilder[int32]
	quantity          *weir.NumberBuilder[int64]
	price, amount     *weir.DecimalBuilder
}

func (to *lineColumns) append(id string, number int, l line) {
	to.id.Append(id)
	to.number.Append(int32(number))
	to.sku.Append(l.sku)
	to.quantity.Append(l.quantity)
	to.price.Append(l.price)
	to.amount.Append(l.amount)
}

// line is one item, read.
type line struct {
	sku           string
	quantity      int64
	price, amount weir.Decimal128
}

// items is the nested column items: array<struct<sku, qty, price>>.
type items struct {
	lists    weir.Lists
	each     weir.Structs
	sku      texts
	quantity weir.Numerics
	price    weir.Numerics
	none     bool // no document of the batch has items, so their type is not known
}

func itemsOf(c weir.Column) items {
	v := items{lists: c.List()}
	elem := v.lists.Elem()
	if elem.Type().Kind == weir.KindNull {
		v.none = true
		return v
	}
	v.each = elem.Struct()
	v.sku, v.quantity, v.price = textsOf(v.each.Column("sku")), v.each.Column("qty").Numeric(), v.each.Column("price").Numeric()
	return v
}

// read appends the items of document i, or says what is wrong with one of them.
func (v *items) read(i int, lines []line) ([]line, string) {
	if v.none || v.lists.Null(i) {
		return lines, ""
	}
	start, end := v.lists.At(i)
	for at := start; at < end; at++ {
		l, problem := v.item(at)
		if problem != "" {
			return nil, problem
		}
		lines = append(lines, l)
	}
	return lines, ""
}

func (v *items) item(at int) (l line, problem string) {
	if v.each.Null(at) {
		return l, "an item is null"
	}
	var ok bool
	if l.sku, ok = v.sku.at(at); !ok {
		return l, "an item has no sku"
	}
	quantity, scale, ok := v.quantity.At(at)
	if quantity, ok = whole(quantity, scale, ok && !v.quantity.Null(at)); !ok {
		return l, "the qty of an item is no whole number"
	}
	l.quantity = quantity.Int64()
	if l.price, ok = amountAt(&v.price, at); !ok || v.price.Null(at) {
		return l, "the price of an item is no number that fits decimal(18,2)"
	}
	if l.amount, ok = quantity.Mul(l.price); !ok || !l.amount.Fits(amountPrecision) {
		return l, "the amount of an item does not fit decimal(18,2)"
	}
	return l, ""
}

// whole gives a number without its decimals when they are all zero.
func whole(d weir.Decimal128, scale int, ok bool) (weir.Decimal128, bool) {
	n := d.DivPow10(scale, weir.Down)
	back, fits := n.MulPow10(scale)
	return n, ok && fits && back == d && n.IsInt64()
}
