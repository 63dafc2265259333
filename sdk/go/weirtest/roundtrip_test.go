//go:build !wasip1

package weirtest

import (
	"fmt"
	"reflect"
	"testing"
)

func TestEveryTypeSurvivesTheWire(t *testing.T) {
	for _, c := range []struct {
		typ    string
		values []any
	}{
		{"void", []any{nil, nil}},
		{"boolean", []any{true, nil, false, true, true, false, nil, true, false, true}},
		{"tinyint", []any{int64(-128), nil, int64(127)}},
		{"smallint", []any{int64(-32768), nil, int64(32767)}},
		{"int", []any{int64(-1 << 31), nil, int64(1<<31 - 1)}},
		{"bigint", []any{int64(-1 << 63), nil, int64(1<<63 - 1)}},
		{"uint8", []any{int64(255), nil, int64(0)}},
		{"uint16", []any{int64(65535), nil}},
		{"uint32", []any{int64(1<<32 - 1), nil}},
		{"uint64", []any{uint64(1<<64 - 1), nil}},
		{"float", []any{1.5, nil, -0.25}},
		{"double", []any{1e300, nil, -0.1}},
		{"decimal(38,10)", []any{"1234567890123456789012345678.0123456789", nil, "-0.0000000001"}},
		{"decimal256(50,3)", []any{"-12345.678", nil, "12345678901234567890.000"}},
		{"string", []any{"", nil, "Zürich", "a"}},
		{"large_string", []any{"", nil, "Zürich", "a"}},
		{"binary", []any{"\x00\xff", nil, ""}},
		{"large_binary", []any{"\x00\xff", nil, ""}},
		{"fixed_size_binary(3)", []any{"abc", nil, "def"}},
		{"date", []any{"1969-12-31", nil, "2026-07-29", "0001-01-01", "9999-12-31"}},
		{"timestamp", []any{"2026-07-29T02:15:04Z", nil, "1969-12-31T23:59:59.999999Z"}},
		{"timestamp_ntz", []any{"2026-07-29T02:15:04.5Z", nil}[1:]},
		{"timestamp(ms,'Europe/Zurich')", []any{"2026-07-29T02:15:04Z", nil}},
		{"timestamp_ntz(ns)", []any{"2026-07-29T02:15:04Z", nil}},
		{"timestamp_ntz(s)", []any{"2026-07-29T02:15:04Z", nil}},
		{"time", []any{int64(86399999999), nil}},
		{"time(ms)", []any{int64(86399999), nil}},
		{"time(ns)", []any{int64(1), nil}},
		{"duration(s)", []any{int64(-5), nil}},
		{"array<int>", []any{[]any{int64(1), nil, int64(3)}, nil, []any{}, []any{int64(4)}}},
		{"large_array<string>", []any{[]any{"x", nil}, nil, []any{}}},
		{"fixed_size_array<int,2>", []any{[]any{int64(1), nil}, nil, []any{int64(3), int64(4)}}},
		{"map<string,bigint>", []any{[]Entry{{"a", int64(1)}, {"b", nil}}, nil, []Entry{}}},
		{"struct<a: int, b: struct<c: string>>", []any{
			map[string]any{"a": int64(1), "b": map[string]any{"c": "x"}}, nil,
			map[string]any{"a": nil, "b": nil}}},
		{"array<struct<sku: string, qty: bigint, tags: array<string>>>", []any{
			[]any{map[string]any{"sku": "a", "qty": int64(1), "tags": []any{"x", "y"}}, nil}, nil, []any{}}},
		{"map<string,array<decimal(5,2)>>", []any{[]Entry{{"k", []any{"1.25", nil}}}, []Entry{}}},
	} {
		for _, size := range []int{1, 2, 1000} {
			t.Run(fmt.Sprintf("%s by %d", c.typ, size), func(t *testing.T) {
				var rows []Row
				for i, v := range c.values {
					rows = append(rows, Row{v, int64(i)})
				}
				in := Table("`a column` "+c.typ+", n bigint", rows...).Batches(size)
				if in.err != nil {
					t.Fatal(in.err)
				}
				messages, err := in.messages()
				if err != nil {
					t.Fatal(err)
				}
				fields, got, err := decode(messages)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got, rows) {
					t.Errorf("got\n%s\nwant\n%s", text(got), text(rows))
				}
				if fields[0].Type.String() != in.fields[0].Type.String() || fields[0].Name != "a column" {
					t.Errorf("the column came back as %q of type %s", fields[0].Name, fields[0].Type)
				}
				for i, m := range messages {
					if len(m)%8 != 0 {
						t.Errorf("message %d has %d bytes, no multiple of 8", i, len(m))
					}
				}
			})
		}
	}
}

func TestNoRowsKeepTheSchema(t *testing.T) {
	messages, err := Table("a string, b array<struct<c: int>>").messages()
	if err != nil {
		t.Fatal(err)
	}
	fields, rows, err := decode(messages)
	if err != nil || len(rows) != 0 || len(fields) != 2 || fields[1].Type.String() != "array<struct<c:int>>" {
		t.Errorf("got %v, %v, %v", fields, rows, err)
	}
}
