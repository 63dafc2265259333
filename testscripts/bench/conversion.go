package main

import (
	"errors"
	"math/rand/v2"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

const (
	batchRows = 64 << 10
	firstDay  = 10595 // 1999-01-04, the first of the ECB's days
	rateDays  = 9890
	rateRows  = 207_000
	maxAge    = 10
)

// currencies are as many as give rateRows on working days, euro aside.
var currencies = []string{"USD", "JPY", "GBP", "CHF", "SEK", "NOK", "CZK", "DKK", "HUF", "PLN", "RON", "ISK", "TRY", "AUD", "BRL", "CAD",
	"CNY", "HKD", "IDR", "ILS", "INR", "KRW", "MXN", "MYR", "NZD", "PHP", "SGD", "THB", "ZAR", "BGN"}

// rateTable makes the history of rates, currency by currency.
func rateTable() (batches, error) {
	schema, err := schemaOf("currency string, rate decimal(18,6), rate_date date")
	if err != nil {
		return batches{}, err
	}
	r := rand.New(rand.NewPCG(1, 2))
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	out := batches{schema: schema}
	rows := 0
	for _, c := range currencies {
		for day := firstDay; day < firstDay+rateDays && rows < rateRows; day++ {
			if day%7 >= 5 {
				continue
			}
			b.Field(0).(*array.StringBuilder).Append(c)
			b.Field(1).(*array.Decimal128Builder).Append(decimal128.FromI64(500_000 + r.Int64N(2e8)))
			b.Field(2).(*array.Date32Builder).Append(arrow.Date32(day))
			if rows++; rows%batchRows == 0 {
				out.list = append(out.list, b.NewRecordBatch())
			}
		}
	}
	out.list = append(out.list, b.NewRecordBatch())
	return out, nil
}

// itemTable makes order items in euro and ten other currencies.
func itemTable(count, rows int) (batches, error) {
	schema, err := schemaOf("VBELN string, POSNR int, NETWR decimal(15,2), WAERK string, ERDAT date, change_type string, change_seq bigint")
	if err != nil {
		return batches{}, err
	}
	r := rand.New(rand.NewPCG(3, 4))
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	names := append([]string{"EUR"}, currencies[:10]...)
	out := batches{schema: schema}
	for range count {
		for i := range rows {
			b.Field(0).(*array.StringBuilder).Append("0000004711")
			b.Field(1).(*array.Int32Builder).Append(int32(i))
			b.Field(2).(*array.Decimal128Builder).Append(decimal128.FromI64(r.Int64N(1e8)))
			b.Field(3).(*array.StringBuilder).Append(names[r.IntN(len(names))])
			b.Field(4).(*array.Date32Builder).Append(arrow.Date32(firstDay + 10 + r.IntN(rateDays-20)))
			b.Field(5).(*array.StringBuilder).Append("I")
			b.Field(6).(*array.Int64Builder).Append(int64(i))
		}
		out.list = append(out.list, b.NewRecordBatch())
	}
	return out, nil
}

// calendar has a currency's rate for each day, 0 where there is none.
type calendar [rateDays + maxAge]uint64

// convertNative is the loop of plugins/sap in Go over the same arrays, its
// table of a rate for each day included: what P1 compares the sandbox with.
func convertNative(items, rates batches) error {
	codes, calendars := make([]uint8, 1<<15), []*calendar{{}, {}}
	for i := range calendars[1] {
		calendars[1][i] = 1_000_000
	}
	codes[code("EUR")] = 1
	for _, batch := range rates.list {
		currency, rate, day := batch.Column(0).(*array.String), batch.Column(1).(*array.Decimal128), batch.Column(2).(*array.Date32)
		for i := range int(batch.NumRows()) {
			at := &codes[code(currency.Value(i))]
			if *at == 0 {
				*at = uint8(len(calendars))
				calendars = append(calendars, &calendar{})
			}
			calendars[*at][day.Value(i)-firstDay] = rate.Value(i).LowBits()
		}
	}
	for _, c := range calendars {
		last, age := uint64(0), 0
		for i, rate := range c {
			if age++; rate != 0 {
				last, age = rate, 0
			} else if age <= maxAge {
				c[i] = last
			}
		}
	}
	for _, batch := range items.list {
		if err := convertBatch(batch, codes, calendars); err != nil {
			return err
		}
	}
	return nil
}

func convertBatch(batch arrow.RecordBatch, codes []uint8, calendars []*calendar) error {
	amounts, days := batch.Column(2).(*array.Decimal128).Values(), batch.Column(4).(*array.Date32).Date32Values()
	currency := batch.Column(3).(*array.String)
	out := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 18, Scale: 2})
	defer out.Release()
	out.Reserve(len(amounts))
	for i, amount := range amounts {
		at := uint64(int64(days[i]) - firstDay)
		if at >= rateDays+maxAge {
			return errors.New("a day without a calendar")
		}
		sign := uint64(amount.HighBits())
		rate := calendars[codes[code(currency.Value(i))]][at]
		if rate == 0 || int64(sign) != int64(amount.LowBits())>>63 {
			return errors.New("a row without a rate, or an amount too large")
		}
		magnitude := ((amount.LowBits() ^ sign) - sign) * 1_000_000
		q := magnitude / rate
		if rem := magnitude - q*rate; rem >= rate-rem {
			q++
		}
		out.UnsafeAppend(decimal128.FromI64(int64((q ^ sign) - sign)))
	}
	out.NewArray().Release()
	return nil
}

// code packs three letters into fifteen bits.
func code(name string) int {
	return int(name[0]&31)<<10 | int(name[1]&31)<<5 | int(name[2]&31)
}
