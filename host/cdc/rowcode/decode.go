package rowcode

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"

	"github.com/weir-data/weir/host/fault"
)

// AppendOrder appends the value of an order code to a builder of its type. What
// follows the value's own code (see Sequences) is ignored, and no bytes are NULL.
// A code that no value of t has is an error, and nothing is appended.
func AppendOrder(b array.Builder, t arrow.DataType, code []byte) error {
	if _, err := Prefix(t, code); err != nil {
		return err
	}
	if len(code) == 0 {
		b.AppendNull()
		return nil
	}
	_, err := (&decoder{rest: code}).append(b, t)
	return err
}

// Prefix gives the part of an order code that belongs to its first value, of type t.
func Prefix(t arrow.DataType, code []byte) ([]byte, error) {
	if len(code) == 0 {
		return code, nil
	}
	d := &decoder{rest: code}
	if _, err := d.append(nil, t); err != nil {
		return nil, err
	}
	return code[: len(code)-len(d.rest) : len(code)-len(d.rest)], nil
}

// maxDepth bounds what a type can make the decoder recurse.
const maxDepth = 64

// decoder reads codes. Without a builder it only checks them.
type decoder struct {
	rest  []byte
	depth int
}

func (d *decoder) append(b array.Builder, t arrow.DataType) (bool, error) {
	if d.depth++; d.depth > maxDepth {
		return false, damaged(t)
	}
	defer func() { d.depth-- }()
	switch t := t.(type) {
	case *arrow.StructType:
		return true, d.structure(b, t)
	case *arrow.ListType, *arrow.LargeListType, *arrow.FixedSizeListType:
		return true, d.list(b, t)
	case *arrow.StringType, *arrow.LargeStringType, *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.FixedSizeBinaryType:
		return true, d.text(b, t)
	}
	return true, d.number(b, t)
}

func (d *decoder) take(t arrow.DataType, n int) ([]byte, error) {
	if len(d.rest) < n {
		return nil, damaged(t)
	}
	p := d.rest[:n]
	d.rest = d.rest[n:]
	return p, nil
}

func (d *decoder) structure(b array.Builder, t *arrow.StructType) error {
	sb, _ := b.(*array.StructBuilder)
	if sb != nil {
		sb.Append(true)
	}
	for f, field := range t.Fields() {
		mark, err := d.take(t, 1)
		if err != nil {
			return err
		}
		var fb array.Builder
		if sb != nil {
			fb = sb.FieldBuilder(f)
		}
		switch {
		case mark[0] == fieldNull && fb != nil:
			fb.AppendNull()
		case mark[0] == fieldPresent:
			if _, err := d.append(fb, field.Type); err != nil {
				return err
			}
		case mark[0] != fieldNull:
			return damaged(t)
		}
	}
	return nil
}

func (d *decoder) list(b array.Builder, t arrow.DataType) error {
	element := t.(arrow.NestedType).Fields()[0].Type
	lb, _ := b.(array.ListLikeBuilder)
	var eb array.Builder
	if lb != nil {
		lb.Append(true)
		eb = lb.ValueBuilder()
	}
	for n := 0; ; n++ {
		mark, err := d.take(t, 1)
		if err != nil {
			return err
		}
		switch mark[0] {
		case listEnd:
			if fixed, ok := t.(*arrow.FixedSizeListType); ok && int(fixed.Len()) != n {
				return damaged(t)
			}
			return nil
		case listNull:
			if eb != nil {
				eb.AppendNull()
			}
		case listPresent:
			if _, err := d.append(eb, element); err != nil {
				return err
			}
		default:
			return damaged(t)
		}
	}
}

func (d *decoder) text(b array.Builder, t arrow.DataType) error {
	var value []byte
	for {
		at := bytes.IndexByte(d.rest, escape)
		if at < 0 || at+1 >= len(d.rest) {
			return damaged(t)
		}
		value = append(value, d.rest[:at]...)
		mark := d.rest[at+1]
		d.rest = d.rest[at+2:]
		if mark == escapeEnd {
			break
		}
		if mark != escapeZero {
			return damaged(t)
		}
		value = append(value, escape)
	}
	if fixed, ok := t.(*arrow.FixedSizeBinaryType); ok && fixed.ByteWidth != len(value) {
		return damaged(t)
	}
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(string(value))
	case *array.LargeStringBuilder:
		b.Append(string(value))
	case *array.BinaryBuilder:
		b.Append(value)
	case *array.FixedSizeBinaryBuilder:
		b.Append(value)
	}
	return nil
}

func (d *decoder) number(b array.Builder, t arrow.DataType) error {
	switch t := t.(type) {
	case *arrow.BooleanType:
		p, err := d.take(t, 1)
		if err != nil || p[0] > 1 {
			return damaged(t)
		}
		if b, ok := b.(*array.BooleanBuilder); ok {
			b.Append(p[0] == 1)
		}
		return nil
	case *arrow.Decimal128Type:
		p, err := d.take(t, 16)
		if err != nil {
			return err
		}
		v := decimal128.New(int64(binary.BigEndian.Uint64(p)^signBit), binary.BigEndian.Uint64(p[8:]))
		if !v.FitsInPrecision(t.Precision) {
			return damaged(t)
		}
		if b, ok := b.(*array.Decimal128Builder); ok {
			b.Append(v)
		}
		return nil
	case *arrow.Decimal256Type:
		p, err := d.take(t, 32)
		if err != nil {
			return err
		}
		v := decimal256.New(binary.BigEndian.Uint64(p)^signBit, binary.BigEndian.Uint64(p[8:]), binary.BigEndian.Uint64(p[16:]), binary.BigEndian.Uint64(p[24:]))
		if !v.FitsInPrecision(t.Precision) {
			return damaged(t)
		}
		if b, ok := b.(*array.Decimal256Builder); ok {
			b.Append(v)
		}
		return nil
	}
	if !scalar(t) {
		return notOrderable(t)
	}
	p, err := d.take(t, 8)
	if err != nil {
		return err
	}
	return appendWord(b, t, binary.BigEndian.Uint64(p))
}

// appendWord appends a value of one of the types whose code is 8 bytes.
func appendWord(b array.Builder, t arrow.DataType, code uint64) error {
	v := int64(code ^ signBit)
	fits := true
	switch t.ID() {
	case arrow.INT8:
		fits = v == int64(int8(v))
	case arrow.INT16:
		fits = v == int64(int16(v))
	case arrow.INT32, arrow.DATE32, arrow.TIME32:
		fits = v == int64(int32(v))
	case arrow.UINT8:
		fits = code <= math.MaxUint8
	case arrow.UINT16:
		fits = code <= math.MaxUint16
	case arrow.UINT32:
		fits = code <= math.MaxUint32
	case arrow.FLOAT32:
		f := floatOf(code)
		fits = floatCode(f) == code && floatCode(float64(float32(f))) == code
	case arrow.FLOAT64:
		fits = floatCode(floatOf(code)) == code
	}
	if !fits {
		return damaged(t)
	}
	switch b := b.(type) {
	case *array.Int8Builder:
		b.Append(int8(v))
	case *array.Int16Builder:
		b.Append(int16(v))
	case *array.Int32Builder:
		b.Append(int32(v))
	case *array.Int64Builder:
		b.Append(v)
	case *array.Uint8Builder:
		b.Append(uint8(code))
	case *array.Uint16Builder:
		b.Append(uint16(code))
	case *array.Uint32Builder:
		b.Append(uint32(code))
	case *array.Uint64Builder:
		b.Append(code)
	case *array.Float32Builder:
		b.Append(float32(floatOf(code)))
	case *array.Float64Builder:
		b.Append(floatOf(code))
	case *array.Date32Builder:
		b.Append(arrow.Date32(v))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v))
	case *array.Time32Builder:
		b.Append(arrow.Time32(v))
	case *array.Time64Builder:
		b.Append(arrow.Time64(v))
	case *array.DurationBuilder:
		b.Append(arrow.Duration(v))
	}
	return nil
}

func damaged(t arrow.DataType) error {
	return fault.New("CDC_STATE_CORRUPT", "a sequence in the state is not the code of a value of type %s", t).
		WithHint("Run a full refresh of the target")
}
