package rowcode

import (
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// chunk is how many rows are coded at a time: few enough that their bytes stay near.
const chunk = 256

// column codes one column of many rows at a time, each value behind a lead:
// first it says how long each code is (measure), then it writes them (fill).
type column struct {
	col  arrow.Array
	lead []byte // before each value
	null []byte // in place of lead and value

	// One of these:
	words func(from int, out []uint64) // codes of 8 bytes
	texts *texts                       // bytes behind their length
	code  appender                     // anything else

	scratch []byte
	ends    [chunk]int32
	loaded  [chunk]uint64
}

// texts is a column of texts with 32-bit offsets.
type texts struct {
	offsets []int32
	data    []byte
}

// newColumn codes a column; code is used where nothing faster is known.
func newColumn(col arrow.Array, lead, null []byte, code appender, counted bool) *column {
	c := &column{col: col, lead: lead, null: null, words: wordsOf(col), code: code}
	if counted && c.words == nil {
		switch a := col.(type) {
		case *array.String:
			c.texts = &texts{a.ValueOffsets(), bufferOf(a)}
		case *array.Binary:
			c.texts = &texts{a.ValueOffsets(), bufferOf(a)}
		}
	}
	return c
}

// bufferOf gives the buffer that the offsets of a column of texts point into.
func bufferOf(a arrow.Array) []byte {
	if b := a.Data().Buffers()[2]; b != nil {
		return b.Bytes()
	}
	return nil
}

// measure adds the length of each code.
func (c *column) measure(from int, lens []int32) {
	lead, null := int32(len(c.lead)), int32(len(c.null))
	nulls := c.col.NullN() > 0
	switch {
	case c.words != nil:
		for i := range lens {
			if nulls && c.col.IsNull(from+i) {
				lens[i] += null
			} else {
				lens[i] += lead + 8
			}
		}
	case c.texts != nil:
		offsets := c.texts.offsets[from:]
		for i := range lens {
			if nulls && c.col.IsNull(from+i) {
				lens[i] += null
				continue
			}
			n := offsets[i+1] - offsets[i]
			lens[i] += lead + n + uvarintLen(uint32(n))
		}
	default:
		c.scratch = c.scratch[:0]
		for i := range lens {
			start := len(c.scratch)
			if nulls && c.col.IsNull(from+i) {
				c.scratch = append(c.scratch, c.null...)
			} else {
				c.scratch = c.code(append(c.scratch, c.lead...), from+i)
			}
			c.ends[i] = int32(len(c.scratch))
			lens[i] += int32(len(c.scratch) - start)
		}
	}
}

func uvarintLen(n uint32) int32 { return int32(bits.Len32(n|1)+6) / 7 }

// fill writes the code of each row where pos says, and moves pos behind it.
func (c *column) fill(from int, dst []byte, pos []int32) {
	nulls := c.col.NullN() > 0
	switch {
	case c.words != nil:
		words := c.loaded[:len(pos)]
		c.words(from, words)
		for i := range pos {
			if nulls && c.col.IsNull(from+i) {
				pos[i] += int32(copy(dst[pos[i]:], c.null))
				continue
			}
			p := dst[pos[i]:]
			n := copy(p, c.lead)
			binary.BigEndian.PutUint64(p[n:], words[i])
			pos[i] += int32(n) + 8
		}
	case c.texts != nil:
		offsets := c.texts.offsets[from:]
		for i := range pos {
			if nulls && c.col.IsNull(from+i) {
				pos[i] += int32(copy(dst[pos[i]:], c.null))
				continue
			}
			v := c.texts.data[offsets[i]:offsets[i+1]]
			p := dst[pos[i]:]
			n := copy(p, c.lead)
			n += binary.PutUvarint(p[n:], uint64(len(v)))
			n += copy(p[n:], v)
			pos[i] += int32(n)
		}
	default:
		start := int32(0)
		for i := range pos {
			pos[i] += int32(copy(dst[pos[i]:], c.scratch[start:c.ends[i]]))
			start = c.ends[i]
		}
	}
}

// wordsOf gives the codes of a column whose codes are 8 bytes; nil for others.
func wordsOf(col arrow.Array) func(from int, out []uint64) {
	switch a := col.(type) {
	case *array.Int8:
		return signedWords(a.Int8Values())
	case *array.Int16:
		return signedWords(a.Int16Values())
	case *array.Int32:
		return signedWords(a.Int32Values())
	case *array.Int64:
		return signedWords(a.Int64Values())
	case *array.Date32:
		return signedWords(a.Date32Values())
	case *array.Timestamp:
		return signedWords(a.TimestampValues())
	case *array.Float32:
		return floatWords(a.Float32Values())
	case *array.Float64:
		return floatWords(a.Float64Values())
	}
	return nil
}

func signedWords[T ~int8 | ~int16 | ~int32 | ~int64](values []T) func(int, []uint64) {
	return func(from int, out []uint64) {
		for i, v := range values[from : from+len(out)] {
			out[i] = uint64(int64(v)) ^ signBit
		}
	}
}

func floatWords[T float32 | float64](values []T) func(int, []uint64) {
	return func(from int, out []uint64) {
		for i, v := range values[from : from+len(out)] {
			out[i] = floatCode(float64(v))
		}
	}
}

// codeColumns gives the codes of n rows: those of the columns, one behind the other.
func codeColumns(n int, columns []*column) (Bytes, error) {
	out := Bytes{Offsets: make([]int32, n+1)}
	var pos [chunk]int32
	for from := 0; from < n; from += chunk {
		rows := min(chunk, n-from)
		ends := out.Offsets[from+1 : from+1+rows]
		for _, c := range columns {
			c.measure(from, ends)
		}
		size := len(out.Data)
		for i, length := range ends {
			pos[i] = int32(size)
			size += int(length)
			if err := tooLong(size); err != nil {
				return Bytes{}, err
			}
			ends[i] = int32(size)
		}
		out.Data = grown(out.Data, size, n-from)
		for _, c := range columns {
			c.fill(from, out.Data, pos[:rows])
		}
	}
	return out, nil
}

// grown makes room for codes, guessing from the first what all will take.
func grown(data []byte, size, left int) []byte {
	if size > cap(data) {
		room := max(size, 2*cap(data))
		if cap(data) == 0 {
			room = max(size, size/chunk*left+size/8)
		}
		data = append(make([]byte, 0, room), data...)
	}
	return data[:size]
}
