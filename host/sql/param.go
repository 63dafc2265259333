package sql

import (
	"encoding/base64"
	"encoding/hex"
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
	Type  string // by abi/coltype's names; "" is a NULL without one
	Value string
	Null  bool
}

// tree gives the value as a constant.
func (p Param) tree() (node, error) {
	if p.Type == "" {
		return fill[any]("NULL")
	}
	t, err := coltype.Parse(p.Type)
	if err != nil {
		return nil, fault.New("INVALID_QUERY_PARAMETER", "%q is no type of a parameter", p.Type)
	}
	name, err := p.check(t)
	if err != nil {
		return nil, err
	}
	if p.Null {
		return fill[any]("CAST(NULL AS " + name + ")")
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
	null := p.Null
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
