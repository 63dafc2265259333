package rowcode

import (
	"bytes"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/zeebo/xxh3"
)

// Hash is an xxh3-128 hash.
type Hash [16]byte

// Compare orders hashes by their bytes.
func (h Hash) Compare(o Hash) int { return bytes.Compare(h[:], o[:]) }

// HashOf hashes one code.
func HashOf(code []byte) Hash { return xxh3.Hash128(code).Bytes() }

// Bytes is a list of byte strings, laid out as Arrow lays out binary columns.
type Bytes struct {
	Offsets []int32 // one more than there are values
	Data    []byte
}

// Len is the number of values.
func (b Bytes) Len() int { return max(0, len(b.Offsets)-1) }

// At gives a value, which must not be changed.
func (b Bytes) At(i int) []byte {
	from, to := b.Offsets[i], b.Offsets[i+1]
	return b.Data[from:to:to]
}

// Binary gives the values as an Arrow column that shares their memory.
func (b Bytes) Binary() *array.Binary {
	if len(b.Offsets) == 0 {
		b.Offsets = []int32{0}
	}
	offsets := memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(b.Offsets))
	data := array.NewData(arrow.BinaryTypes.Binary, b.Len(), []*memory.Buffer{nil, offsets, memory.NewBufferBytes(b.Data)}, nil, 0, 0)
	defer data.Release()
	return array.NewBinaryData(data)
}

// Hashes hashes each key.
func Hashes(keys Bytes) []Hash {
	out := make([]Hash, keys.Len())
	for i := range out {
		out[i] = HashOf(keys.At(i))
	}
	return out
}
