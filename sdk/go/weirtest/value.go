//go:build !wasip1

package weirtest

import (
	"fmt"
	"math/big"
	"reflect"
	"strconv"

	"github.com/weir-data/weir/sdk/go"
)

// appendValue appends a Go value to a column of a type.
func appendValue(c *weir.ColumnBuilder, t weir.DataType, v any) error {
	if v == nil {
		c.AppendNull()
		return nil
	}
	switch t.Kind {
	case weir.KindBool:
		b, ok := v.(bool)
		if !ok {
			return mismatch(t, v)
		}
		c.Bool().Append(b)
	case weir.KindString, weir.KindLargeString:
		s, ok := v.(string)
		if !ok {
			return mismatch(t, v)
		}
		c.String().Append(s)
	case weir.KindBinary, weir.KindLargeBinary, weir.KindFixedBinary:
		switch v := v.(type) {
		case string:
			c.Binary().Append(v)
		case []byte:
			c.Binary().AppendBytes(v)
		default:
			return mismatch(t, v)
		}
	case weir.KindFloat32, weir.KindFloat64:
		return appendFloat(c, t, v)
	case weir.KindList, weir.KindLargeList, weir.KindFixedList, weir.KindMap, weir.KindStruct:
		return appendNested(c, t, v)
	case weir.KindDecimal128, weir.KindDecimal256:
		return appendDecimal(c, t, v)
	case weir.KindNull:
		return mismatch(t, v)
	default:
		return appendInteger(c, t, v)
	}
	return nil
}

func mismatch(t weir.DataType, v any) error { return fmt.Errorf("%v (%T) is no %s", v, v, t) }

func appendFloat(c *weir.ColumnBuilder, t weir.DataType, v any) error {
	f, err := strconv.ParseFloat(fmt.Sprint(v), 64)
	if err != nil {
		return mismatch(t, v)
	}
	if t.Kind == weir.KindFloat32 {
		c.Float32().Append(float32(f))
	} else {
		c.Float64().Append(f)
	}
	return nil
}

func appendDecimal(c *weir.ColumnBuilder, t weir.DataType, v any) error {
	d, ok := weir.ParseDecimal(fmt.Sprint(v), t.Scale, weir.HalfUp)
	if back, s, fine := weir.ScanDecimal(fmt.Sprint(v)); !ok || !fine || s > t.Scale && back.DivPow10(s-t.Scale, weir.Up) != d {
		return mismatch(t, v)
	}
	if t.Kind == weir.KindDecimal128 {
		c.Decimal128(t.Precision, t.Scale).Append(d)
		return nil
	}
	sign := uint64(d.Hi >> 63)
	c.Decimal256(t.Precision, t.Scale).Append(weir.Decimal256{d.Lo, uint64(d.Hi), sign, sign})
	return nil
}

// appendInteger takes whole numbers, and text for dates and timestamps.
func appendInteger(c *weir.ColumnBuilder, t weir.DataType, v any) error {
	n, ok := integer(t, v)
	if !ok {
		return mismatch(t, v)
	}
	switch t.Kind {
	case weir.KindInt8:
		c.Int8().Append(int8(n))
	case weir.KindInt16:
		c.Int16().Append(int16(n))
	case weir.KindInt32:
		c.Int32().Append(int32(n))
	case weir.KindInt64:
		c.Int64().Append(n)
	case weir.KindUint8:
		c.Uint8().Append(uint8(n))
	case weir.KindUint16:
		c.Uint16().Append(uint16(n))
	case weir.KindUint32:
		c.Uint32().Append(uint32(n))
	case weir.KindUint64:
		c.Uint64().Append(uint64(n))
	case weir.KindDate32:
		c.Date().Append(weir.Date(n))
	case weir.KindTime32:
		c.Time32().Append(int32(n))
	case weir.KindTime64:
		c.Time().Append(n)
	case weir.KindTimestamp:
		c.Timestamp().Append(n)
	case weir.KindDuration:
		c.Duration().Append(n)
	default:
		return mismatch(t, v)
	}
	return nil
}

func integer(t weir.DataType, v any) (int64, bool) {
	if text, ok := v.(string); ok {
		switch t.Kind {
		case weir.KindDate32:
			d, ok := weir.ParseDate(text)
			return int64(d), ok
		case weir.KindTimestamp:
			micros, _, ok := weir.ParseTimestamp(text)
			return fromMicros(micros, t.Unit), ok
		}
		return 0, false
	}
	switch rv := reflect.ValueOf(v); {
	case rv.CanInt():
		return rv.Int(), true
	case rv.CanUint():
		return int64(rv.Uint()), true
	}
	return 0, false
}

func fromMicros(micros int64, u weir.Unit) int64 {
	switch u {
	case weir.Second:
		return micros / 1_000_000
	case weir.Millisecond:
		return micros / 1000
	case weir.Nanosecond:
		return micros * 1000
	}
	return micros
}

func appendNested(c *weir.ColumnBuilder, t weir.DataType, v any) error {
	switch v := v.(type) {
	case []any:
		if t.Kind == weir.KindMap || t.Kind == weir.KindStruct {
			return mismatch(t, v)
		}
		list := c.List()
		list.Append()
		for _, e := range v {
			if err := appendValue(list.Elem(), t.Fields[0].Type, e); err != nil {
				return err
			}
		}
	case []Entry:
		if t.Kind != weir.KindMap {
			return mismatch(t, v)
		}
		m := c.Map()
		m.Append()
		for _, e := range v {
			if err := appendValue(m.Key(), t.Fields[0].Type, e.Key); err != nil {
				return err
			}
			if err := appendValue(m.Value(), t.Fields[1].Type, e.Value); err != nil {
				return err
			}
		}
	case map[string]any:
		if t.Kind != weir.KindStruct {
			return mismatch(t, v)
		}
		s := c.Struct()
		s.Append()
		for _, f := range t.Fields {
			if err := appendValue(s.Column(f.Name), f.Type, v[f.Name]); err != nil {
				return err
			}
		}
	default:
		return mismatch(t, v)
	}
	return nil
}

// value reads row i of a column as the Go value that Row describes: integers as int64, decimals,
// dates and timestamps as text.
func value(c weir.Column, i int) any {
	if c.Null(i) {
		return nil
	}
	t := c.Type()
	switch t.Kind {
	case weir.KindBool:
		return c.Bool().At(i)
	case weir.KindInt8:
		return int64(c.Int8().At(i))
	case weir.KindInt16:
		return int64(c.Int16().At(i))
	case weir.KindInt32:
		return int64(c.Int32().At(i))
	case weir.KindInt64:
		return c.Int64().At(i)
	case weir.KindUint8:
		return int64(c.Uint8().At(i))
	case weir.KindUint16:
		return int64(c.Uint16().At(i))
	case weir.KindUint32:
		return int64(c.Uint32().At(i))
	case weir.KindUint64:
		return c.Uint64().At(i)
	case weir.KindFloat32:
		return float64(c.Float32().At(i))
	case weir.KindFloat64:
		return c.Float64().At(i)
	case weir.KindDecimal128:
		return c.Decimal128().At(i).Text(t.Scale)
	case weir.KindDecimal256:
		return wideText(c.Decimal256().At(i), t.Scale)
	case weir.KindString, weir.KindLargeString:
		return string(c.String().Bytes(i))
	case weir.KindBinary, weir.KindLargeBinary, weir.KindFixedBinary:
		return string(c.Binary().Bytes(i))
	case weir.KindDate32:
		return c.Date().At(i).String()
	case weir.KindTimestamp:
		return string(weir.AppendTimestamp(nil, c.Timestamp().Micros(i)))
	case weir.KindTime32:
		return int64(c.Time32().At(i))
	case weir.KindTime64:
		return c.Time().At(i)
	case weir.KindDuration:
		return c.Duration().At(i)
	}
	return nestedValue(c, i)
}

func nestedValue(c weir.Column, i int) any {
	switch c.Type().Kind {
	case weir.KindStruct:
		s := c.Struct()
		out := map[string]any{}
		for _, f := range s.Fields() {
			out[f.Name] = value(s.Column(f.Name), i)
		}
		return out
	case weir.KindMap:
		m := c.Map()
		out := []Entry{}
		for start, end := m.At(i); start < end; start++ {
			out = append(out, Entry{value(m.Keys(), start), value(m.Values(), start)})
		}
		return out
	}
	list := c.List()
	out := []any{}
	for start, end := list.At(i); start < end; start++ {
		out = append(out, value(list.Elem(), start))
	}
	return out
}

func wideText(d weir.Decimal256, scale int) string {
	v := big.NewInt(int64(d[3]))
	for i := 2; i >= 0; i-- {
		v.Lsh(v, 64).Add(v, new(big.Int).SetUint64(d[i]))
	}
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	return new(big.Rat).SetFrac(v, ten).FloatString(scale)
}
