package abi

import (
	"errors"
	"strconv"
)

// Query is what a guest asks with the import query.
type Query struct {
	SQL    string
	Params []Param
}

// Param is a value for a place of a query: a text of the given type.
type Param struct {
	Type  string // by the names of coltype; "" for a NULL without one
	Value string
	Null  bool
}

// ParseQuery reads the JSON of query, strictly. Errors are *Error.
func ParseQuery(data []byte) (Query, error) {
	n, err := parseJSON(data)
	if err == nil {
		o := n.object("")
		q := Query{SQL: o.required("sql")}
		if params := o.take("params"); params != nil {
			q.Params = o.params(params)
		}
		if err = o.end(); err == nil {
			return q, nil
		}
	}
	var e *Error
	if errors.As(err, &e) {
		e.Code = CodeInvalidQuery
	}
	return Query{}, err
}

// params reads a list of texts, numbers, truth values, nulls and typed values.
func (o *object) params(n *node) []Param {
	if n.kind != 'a' {
		o.refuse("params", "it is no list")
		return nil
	}
	out := make([]Param, len(n.items))
	for i := range n.items {
		item, at := &n.items[i], index("params", i)
		switch item.kind {
		case 's':
			out[i] = Param{Type: "string", Value: item.text}
		case 'b':
			out[i] = Param{Type: "boolean", Value: item.text}
		case 'n':
			out[i] = Param{Type: "double", Value: item.text}
			if _, err := strconv.ParseInt(item.text, 10, 64); err == nil {
				out[i].Type = "bigint"
			}
		case 0:
			out[i] = Param{Null: true}
		case 'o':
			typed := item.object(at)
			out[i].Type = typed.required("type")
			switch value := typed.take("value"); {
			case value == nil:
				out[i].Null = true
			case value.kind == 'a' || value.kind == 'o':
				typed.refuse("value", "it is no text, number, truth value or null")
			default:
				out[i].Value = value.text
			}
			if err := typed.end(); err != nil && o.err == nil {
				o.err = err
			}
		default:
			o.refuse(at, "it is no text, number, truth value, null, or object of type and value")
		}
	}
	return out
}
