package rowcode

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
)

// An order code is made of these pieces, so that it says itself where it ends:
//
//	whole numbers, dates, times   8 bytes, big-endian, the sign bit flipped
//	unsigned numbers              8 bytes, big-endian
//	float, double                 8 bytes: the bits of the double, flipped so that they ascend
//	decimal                       16 or 32 bytes, big-endian, the sign bit flipped
//	boolean                       1 byte
//	text, binary                  the bytes, 00 written as 00 FF, then 00 01
//	struct                        each field: 00 for NULL, else 01 and its code
//	array                         each element: 01 for NULL, else 02 and its code; then 00
const (
	fieldNull    = 0
	fieldPresent = 1

	listEnd     = 0
	listNull    = 1
	listPresent = 2

	escape     = 0x00
	escapeZero = 0xFF
	escapeEnd  = 0x01
)

// appender appends the code of row i of the array it was made for, which is not NULL there.
type appender func(dst []byte, i int) []byte

// orderOf makes the appender of an array.
func orderOf(col arrow.Array) (appender, error) {
	switch a := col.(type) {
	case *array.Boolean:
		return func(dst []byte, i int) []byte {
			if a.Value(i) {
				return append(dst, 1)
			}
			return append(dst, 0)
		}, nil
	case *array.Int8:
		return signed(a.Int8Values()), nil
	case *array.Int16:
		return signed(a.Int16Values()), nil
	case *array.Int32:
		return signed(a.Int32Values()), nil
	case *array.Int64:
		return signed(a.Int64Values()), nil
	case *array.Date32:
		return signed(a.Date32Values()), nil
	case *array.Timestamp:
		return signed(a.TimestampValues()), nil
	case *array.Time32:
		return signed(a.Time32Values()), nil
	case *array.Time64:
		return signed(a.Time64Values()), nil
	case *array.Duration:
		return signed(a.DurationValues()), nil
	case *array.Uint8:
		return unsigned(a.Uint8Values()), nil
	case *array.Uint16:
		return unsigned(a.Uint16Values()), nil
	case *array.Uint32:
		return unsigned(a.Uint32Values()), nil
	case *array.Uint64:
		return unsigned(a.Uint64Values()), nil
	case *array.Float32:
		values := a.Float32Values()
		return func(dst []byte, i int) []byte { return appendFloat(dst, float64(values[i])) }, nil
	case *array.Float64:
		values := a.Float64Values()
		return func(dst []byte, i int) []byte { return appendFloat(dst, values[i]) }, nil
	case *array.Decimal128:
		values := a.Values()
		return func(dst []byte, i int) []byte {
			dst = binary.BigEndian.AppendUint64(dst, uint64(values[i].HighBits())^signBit)
			return binary.BigEndian.AppendUint64(dst, values[i].LowBits())
		}, nil
	case *array.Decimal256:
		return func(dst []byte, i int) []byte {
			words := a.Value(i).Array()
			dst = binary.BigEndian.AppendUint64(dst, words[3]^signBit)
			for w := 2; w >= 0; w-- {
				dst = binary.BigEndian.AppendUint64(dst, words[w])
			}
			return dst
		}, nil
	case *array.String:
		return func(dst []byte, i int) []byte { return appendEscaped(dst, a.Value(i)) }, nil
	case *array.LargeString:
		return func(dst []byte, i int) []byte { return appendEscaped(dst, a.Value(i)) }, nil
	case *array.Binary:
		return func(dst []byte, i int) []byte { return appendEscaped(dst, a.ValueString(i)) }, nil
	case *array.LargeBinary:
		return func(dst []byte, i int) []byte { return appendEscaped(dst, a.ValueString(i)) }, nil
	case *array.FixedSizeBinary:
		return func(dst []byte, i int) []byte { return appendEscaped(dst, string(a.Value(i))) }, nil
	case *array.Struct:
		return structOrder(a)
	case array.ListLike:
		if _, isMap := col.(*array.Map); !isMap {
			return listOrder(a)
		}
	}
	return nil, notOrderable(col.DataType())
}

func structOrder(a *array.Struct) (appender, error) {
	fields := make([]appender, a.NumField())
	for f := range fields {
		var err error
		if fields[f], err = orderOf(a.Field(f)); err != nil {
			return nil, err
		}
	}
	return func(dst []byte, i int) []byte {
		for f, field := range fields {
			if a.Field(f).IsNull(i) {
				dst = append(dst, fieldNull)
			} else {
				dst = field(append(dst, fieldPresent), i)
			}
		}
		return dst
	}, nil
}

func listOrder(a array.ListLike) (appender, error) {
	values := a.ListValues()
	element, err := orderOf(values)
	if err != nil {
		return nil, err
	}
	return func(dst []byte, i int) []byte {
		from, to := a.ValueOffsets(i)
		for e := int(from); e < int(to); e++ {
			if values.IsNull(e) {
				dst = append(dst, listNull)
			} else {
				dst = element(append(dst, listPresent), e)
			}
		}
		return append(dst, listEnd)
	}, nil
}

const signBit = uint64(1) << 63

func signed[T ~int8 | ~int16 | ~int32 | ~int64](values []T) appender {
	return func(dst []byte, i int) []byte {
		return binary.BigEndian.AppendUint64(dst, uint64(int64(values[i]))^signBit)
	}
}

func unsigned[T ~uint8 | ~uint16 | ~uint32 | ~uint64](values []T) appender {
	return func(dst []byte, i int) []byte { return binary.BigEndian.AppendUint64(dst, uint64(values[i])) }
}

func appendFloat(dst []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(dst, floatCode(v))
}

// floatCode maps doubles to numbers of the same order; all NaN are one, and so are both zeros.
func floatCode(v float64) uint64 {
	switch {
	case v != v:
		return math.MaxUint64
	case v == 0:
		return signBit
	}
	b := math.Float64bits(v)
	if b&signBit != 0 {
		return ^b
	}
	return b | signBit
}

func floatOf(code uint64) float64 {
	switch {
	case code == math.MaxUint64:
		return math.NaN()
	case code&signBit != 0:
		return math.Float64frombits(code &^ signBit)
	}
	return math.Float64frombits(^code)
}

func appendEscaped(dst []byte, v string) []byte {
	for i := 0; i < len(v); i++ {
		if v[i] == escape {
			dst = append(dst, v[:i+1]...)
			dst = append(dst, escapeZero)
			v, i = v[i+1:], -1
		}
	}
	dst = append(dst, v...)
	return append(dst, escape, escapeEnd)
}

// Orderable says whether values of t can be compared, with an error that names the part that cannot.
func Orderable(t arrow.DataType) error {
	switch t := t.(type) {
	case *arrow.StructType:
		for _, f := range t.Fields() {
			if err := Orderable(f.Type); err != nil {
				return err
			}
		}
		return nil
	case *arrow.MapType:
		return notOrderable(t)
	case *arrow.ListType, *arrow.LargeListType, *arrow.FixedSizeListType:
		return Orderable(t.(arrow.NestedType).Fields()[0].Type)
	}
	if scalar(t) {
		return nil
	}
	return notOrderable(t)
}

func scalar(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.BOOL, arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64,
		arrow.FLOAT32, arrow.FLOAT64, arrow.DECIMAL128, arrow.DECIMAL256, arrow.STRING, arrow.LARGE_STRING, arrow.BINARY, arrow.LARGE_BINARY,
		arrow.FIXED_SIZE_BINARY, arrow.DATE32, arrow.TIMESTAMP, arrow.TIME32, arrow.TIME64, arrow.DURATION:
		return true
	}
	return false
}

func notOrderable(t arrow.DataType) error {
	return fault.New("AUTOCDC_MICROBATCH_VALIDATION.NON_ORDERABLE_SEQUENCE", "values of type %s have no order", t)
}

// tooLong guards the 32-bit offsets of Bytes.
func tooLong(n int) error {
	if bits.Len64(uint64(n)) < 32 {
		return nil
	}
	return fault.New("CDC_KEYS_TOO_LARGE", "the keys or sequences of one batch of rows take more than 2 GiB").
		WithHint("Use shorter keys")
}
