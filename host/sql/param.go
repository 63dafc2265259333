package sql

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/fault"
)

// Param is a value for a place in a guest's query. It becomes a typed constant of the
// tree: no text of it is ever read as SQL.
type Param struct {
	Type  string // by abi/coltype's names; "" is NULL
	Value string
}

// ParseParams reads the params of the ABI's query: texts, whole numbers, fractions, truth
// values, null, or {"type": …, "value": …}.
func ParseParams(list []json.RawMessage) ([]Param, error) {
	out := make([]Param, len(list))
	for i, raw := range list {
		p, err := parseParam(raw)
		if err != nil {
			return nil, fault.New("INVALID_QUERY_PARAMETER", "parameter %d: %v", i+1, err)
		}
		out[i] = p
	}
	return out, nil
}

func parseParam(raw json.RawMessage) (Param, error) {
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return Param{}, err
	}
	switch v := v.(type) {
	case nil:
		return Param{}, nil
	case bool:
		return Param{"boolean", strconv.FormatBool(v)}, nil
	case string:
		return Param{"string", v}, nil
	case json.Number:
		if _, err := v.Int64(); err == nil {
			return Param{"bigint", v.String()}, nil
		}
		return Param{"double", v.String()}, nil
	case map[string]any:
		typ, ok1 := v["type"].(string)
		value, ok2 := v["value"].(string)
		null, hasValue := v["value"]
		if ok1 && len(v) == 2 && ok2 {
			return Param{typ, value}, nil
		}
		if ok1 && len(v) == 2 && hasValue && null == nil {
			return Param{typ, nullOf}, nil
		}
	}
	return Param{}, fault.New("INVALID_QUERY_PARAMETER", "it is no text, number, truth value, null, or object of a type and a text value")
}

// nullOf stands in Value for a NULL of the type; a text of a guest's may well be it,
// and is then that NULL too.
const nullOf = "\x00null"

// tree gives the value as a constant.
func (p Param) tree() (node, error) {
	if p.Type == "" {
		return fill("NULL")
	}
	t, err := coltype.Parse(p.Type)
	if err != nil {
		return nil, fault.New("INVALID_QUERY_PARAMETER", "%q is no type of a parameter", p.Type)
	}
	name, err := p.check(t)
	if err != nil {
		return nil, err
	}
	if p.Value == nullOf {
		return fill("CAST(NULL AS " + name + ")")
	}
	if name == "VARCHAR" {
		return textConstant(p.Value), nil
	}
	if name == "BLOB" {
		bytes, err := base64.StdEncoding.DecodeString(p.Value)
		if err != nil {
			return nil, p.wrong("it is not base64")
		}
		return fill("unhex(__1)", textConstant(hex.EncodeToString(bytes)))
	}
	return fill("CAST(__1 AS "+name+")", textConstant(p.Value))
}

func (p Param) wrong(why string) error {
	return fault.New("INVALID_QUERY_PARAMETER", "a parameter of type %s: %s", p.Type, why)
}

// check names the type in DuckDB's words and looks at the value, so that what is wrong
// is said before the query runs.
func (p Param) check(t arrow.DataType) (string, error) {
	null := p.Value == nullOf
	whole := func(name string, bits int) (string, error) {
		if _, err := strconv.ParseInt(p.Value, 10, bits); err != nil && !null {
			return "", p.wrong("it is no whole number of that size")
		}
		return name, nil
	}
	switch t := t.(type) {
	case *arrow.StringType:
		return "VARCHAR", nil
	case *arrow.BinaryType:
		return "BLOB", nil
	case *arrow.BooleanType:
		if p.Value != "true" && p.Value != "false" && !null {
			return "", p.wrong("it is neither true nor false")
		}
		return "BOOLEAN", nil
	case *arrow.Int8Type:
		return whole("TINYINT", 8)
	case *arrow.Int16Type:
		return whole("SMALLINT", 16)
	case *arrow.Int32Type:
		return whole("INTEGER", 32)
	case *arrow.Int64Type:
		return whole("BIGINT", 64)
	case *arrow.Float32Type, *arrow.Float64Type:
		if _, err := strconv.ParseFloat(p.Value, 64); err != nil && !null {
			return "", p.wrong("it is no number")
		}
		if t.ID() == arrow.FLOAT32 {
			return "FLOAT", nil
		}
		return "DOUBLE", nil
	case *arrow.Decimal128Type:
		if _, err := strconv.ParseFloat(p.Value, 64); (err != nil || strings.ContainsAny(p.Value, "eExXnN_")) && !null {
			return "", p.wrong("it is no decimal")
		}
		return "DECIMAL(" + strconv.Itoa(int(t.Precision)) + "," + strconv.Itoa(int(t.Scale)) + ")", nil
	case *arrow.Date32Type:
		if _, err := time.Parse(time.DateOnly, p.Value); err != nil && !null {
			return "", p.wrong("it is no date such as 2026-01-31")
		}
		return "DATE", nil
	case *arrow.TimestampType:
		if t.Unit != arrow.Microsecond {
			break
		}
		if t.TimeZone == "" {
			return "TIMESTAMP", nil
		}
		return "TIMESTAMP WITH TIME ZONE", nil
	}
	return "", fault.New("INVALID_QUERY_PARAMETER", "a parameter cannot be of type %s", p.Type)
}
