package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi/coltype"
)

// wide has a column of every type that the engines share.
const wide = "id BIGINT, name STRING, qty INT, amount DECIMAL(18,2), price DOUBLE, flag BOOLEAN, day DATE, at TIMESTAMP, " +
	"blob BINARY, tags ARRAY<STRING>, attrs MAP<STRING,INT>, addr STRUCT<city: STRING, zip: INT>"

// narrow is for tables whose point is not their types.
const narrow = "id BIGINT, name STRING, qty INT"

// schemaOf reads a column list as SQL has it.
func schemaOf(ddl string) (*arrow.Schema, error) {
	columns, err := coltype.ParseDDL(ddl)
	if err != nil {
		return nil, err
	}
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = arrow.Field{Name: c.Name(), Type: c.Type, Nullable: !c.NotNull}
	}
	return arrow.NewSchema(fields, nil), nil
}

// names hold what is awkward in paths, JSON and statistics.
var names = []any{"plain", "a/b c%d", "", nil, "größe", "日本語", `quo"te\`, strings.Repeat("long ", 20), "x=y:z", " pad "}

// row gives the values of row id of every column there can be; every tenth is null.
func row(id int) map[string]any {
	all := map[string]any{
		"id": id, "name": names[id%len(names)], "qty": id % 7, "amount": fmt.Sprintf("%d.%02d", id-50, id%100),
		"price": float64(id) / 3, "flag": id%2 == 0, "day": fmt.Sprintf("2024-02-%02d", id%28+1),
		"at": fmt.Sprintf("2024-03-%02dT%02d:59:59.%06dZ", id%28+1, id%24, id*997%1000000), "blob": fmt.Appendf(nil, "blob %d", id),
		"tags": []any{"t", nil, fmt.Sprint(id)}[:id%4%4], "attrs": []any{map[string]any{"key": "k", "value": id}},
		"addr": map[string]any{"city": fmt.Sprint("city ", id%5), "zip": id * 11},
		"wall": fmt.Sprintf("2024-03-%02dT01:02:03.%06d", id%28+1, id), "small": id % 100, "twice": 2 * id,
	}
	if id%10 == 9 {
		for k := range all {
			if k != "id" && k != "twice" {
				all[k] = nil
			}
		}
	}
	return all
}

// rows gives the rows from..to-1 in a schema.
func rows(schema *arrow.Schema, from, to int) (arrow.RecordBatch, error) {
	list := make([]map[string]any, 0, to-from)
	for id := from; id < to; id++ {
		all := row(id)
		one := map[string]any{}
		for _, f := range schema.Fields() {
			v, ok := all[f.Name]
			if !ok {
				return nil, fmt.Errorf("rows have no column %s", f.Name)
			}
			one[f.Name] = v
		}
		list = append(list, one)
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, bytes.NewReader(raw))
	return rec, err
}
