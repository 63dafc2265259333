package main

import (
	"testing"

	"github.com/weir-data/weir/sdk/go/weirtest"
)

const (
	documentColumns = "order_id string, order_ts timestamp, customer_id string, currency string, total_amount decimal(18,2), items array<struct<price: double, qty: bigint, sku: string>>, _rescued_data string"
	orderTable      = "silver.shop_order"
	lineTable       = "silver.shop_order_line"
)

type item = map[string]any

var someDocuments = []weirtest.Row{
	{"o1", "2026-07-28T02:15:04Z", "c1", "USD", "123.45", []any{item{"sku": "A", "qty": 2, "price": 10.5}, item{"sku": "B", "qty": 1, "price": 102.45}}, nil},
	{"o2", "2026-07-28T02:15:05Z", nil, nil, nil, []any{}, nil},
	{nil, nil, nil, nil, nil, nil, `{"_corrupt_record":"{\"order_id\": "}`},
	{"o3", nil, "c3", "EUR", "0.00", nil, nil},
}

// covers A6
func TestOrdersAreTypedOneRowPerDocument(t *testing.T) {
	m := weirtest.Load(t, nil)
	for _, size := range []int{1, 3, 100} {
		got := m.Run(orderTable, weirtest.Table(documentColumns, someDocuments...).Batches(size))
		got.Equal(t,
			weirtest.Row{"o1", "2026-07-28T02:15:04Z", "c1", "USD", "123.45", int64(2)},
			weirtest.Row{"o2", "2026-07-28T02:15:05Z", nil, nil, nil, int64(0)},
			weirtest.Row{"o3", nil, "c3", "EUR", "0.00", int64(0)})
		if codes := got.Codes(); len(codes) != 1 || codes[2] != "MISSING_ORDER_ID" {
			t.Errorf("row errors %v", got.RowErrors)
		}
	}
}

func TestItemsBecomeLines(t *testing.T) {
	m := weirtest.Load(t, nil)
	for _, size := range []int{1, 3, 100} {
		got := m.Run(lineTable, weirtest.Table(documentColumns, someDocuments...).Batches(size))
		got.Equal(t,
			weirtest.Row{"o1", int64(1), "A", int64(2), "10.50", "21.00", "USD"},
			weirtest.Row{"o1", int64(2), "B", int64(1), "102.45", "102.45", "USD"})
		if codes := got.Codes(); len(codes) != 1 || codes[2] != "MISSING_ORDER_ID" {
			t.Errorf("row errors %v", got.RowErrors)
		}
	}
}

func TestFieldsComeAsInferenceMakesThem(t *testing.T) {
	m := weirtest.Load(t, nil)
	columns := "order_id bigint, order_ts string, customer_id int, currency string, total_amount double, items array<struct<sku: string, qty: double, price: string>>"
	rows := []weirtest.Row{
		{584677, "2016-12-26T09:28:48+01:00", 38, "EUR", 36.98, []any{item{"sku": "Z", "qty": 2.0, "price": "1.005"}}},
		{584678, "yesterday", 38, "EUR", 36.98, []any{item{"sku": "Z", "qty": 0.5, "price": "1"}}},
		{584679, nil, 38, "EUR", "NaN", []any{item{"sku": "Z", "qty": 1, "price": "one"}}},
		{584680, nil, 38, "EUR", 1e20, []any{item{"sku": nil, "qty": 1, "price": "1"}, nil}},
		{584681, nil, 38, "EUR", nil, []any{nil}},
	}
	got := m.Run(orderTable, weirtest.Table(columns, rows...))
	got.Equal(t, weirtest.Row{"584677", "2016-12-26T08:28:48Z", "38", "EUR", "36.98", int64(1)},
		weirtest.Row{"584681", nil, "38", "EUR", nil, int64(1)})
	if codes := got.Codes(); codes[1] != "INVALID_TIMESTAMP" || codes[2] != "INVALID_AMOUNT" || codes[3] != "INVALID_AMOUNT" {
		t.Errorf("row errors %v", got.RowErrors)
	}
	got = m.Run(lineTable, weirtest.Table(columns, rows...))
	got.Equal(t, weirtest.Row{"584677", int64(1), "Z", int64(2), "1.01", "2.02", "EUR"})
	if len(got.RowErrors) != 4 {
		t.Errorf("row errors %v", got.RowErrors)
	}
}

func TestDocumentsWithoutItemsAtAll(t *testing.T) {
	m := weirtest.Load(t, nil)
	for _, typ := range []string{"void", "array<void>", "array<struct<price: double, qty: bigint, sku: string>>"} {
		in := weirtest.Table("order_id string, order_ts timestamp, customer_id string, currency string, total_amount double, items "+typ,
			weirtest.Row{"o1", nil, nil, nil, 1.0, nil})
		m.Run(orderTable, in).Equal(t, weirtest.Row{"o1", nil, nil, nil, "1.00", int64(0)})
		m.Run(lineTable, in).Equal(t)
	}
}

func TestManyItemsAreWrittenInParts(t *testing.T) {
	var many []any
	for range 1000 {
		many = append(many, item{"sku": "A", "qty": 1, "price": 1.0})
	}
	var rows []weirtest.Row
	for range 200 {
		rows = append(rows, weirtest.Row{"o", nil, nil, nil, nil, many, nil})
	}
	if got := weirtest.Load(t, nil).Run(lineTable, weirtest.Table(documentColumns, rows...)); len(got.Rows) != 200_000 {
		t.Errorf("%d rows, %v", len(got.Rows), got.Err)
	}
}
