package abi

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestQueriesAreReadStrictly(t *testing.T) {
	q, err := ParseQuery([]byte(`{"sql": "SELECT ?", "params": ["a", 1, 1.5, -9223372036854775808, 9223372036854775808, true, null, {"type": "date", "value": "2026-01-31"}, {"type": "int", "value": 7}, {"type": "int", "value": null}]}`))
	want := Query{SQL: "SELECT ?", Params: []Param{
		{Type: "string", Value: "a"}, {Type: "bigint", Value: "1"}, {Type: "double", Value: "1.5"}, {Type: "bigint", Value: "-9223372036854775808"}, {Type: "double", Value: "9223372036854775808"},
		{Type: "boolean", Value: "true"}, {Null: true}, {Type: "date", Value: "2026-01-31"}, {Type: "int", Value: "7"}, {Type: "int", Null: true},
	}}
	if err != nil || !reflect.DeepEqual(q, want) {
		t.Errorf("%+v %v", q, err)
	}
	for text, part := range map[string]string{
		``: "not JSON", `[]`: "expected an object", `{}`: "sql", `{"sql": ""}`: "sql", `{"sql": 1}`: "sql", `{"sql": "x", "sql": "y"}`: "stands twice",
		`{"sql": "x", "SQL": "y"}`: "SQL", `{"sql": "x", "params": {}}`: "params", `{"sql": "x", "params": [[]]}`: "params[0]", `{"sql": "x", "params": [{"value": 1}]}`: "params[0].type",
		`{"sql": "x", "params": [{"type": "int", "value": []}]}`: "params[0].value", `{"sql": "x", "params": [{"type": "int", "value": 1, "more": 1}]}`: "more", `{"sql": "x"} x`: "more text", "{\"sql\": \"\xff\"}": "UTF-8",
	} {
		_, err := ParseQuery([]byte(text))
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeInvalidQuery || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %s", text, err, part)
		}
	}
}
