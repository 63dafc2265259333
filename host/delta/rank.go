package delta

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
)

// ranker tells the rank of a value among those of its column, from a sample of
// them: ranks spread evenly however the values are spread. 0 is null.
//
// Values are compared as keys whose order is theirs: numbers and times as
// integers, texts, bytes and decimals as bytes.
type ranker struct {
	numbers []uint64
	texts   [][]byte
}

// nestedColumn is a column that may lie in structs: it is null where one of them is.
type nestedColumn struct {
	leaf  arrow.Array
	above []arrow.Array
}

func (c nestedColumn) isNull(i int) bool {
	if c.leaf.IsNull(i) {
		return true
	}
	for _, a := range c.above {
		if a.IsNull(i) {
			return true
		}
	}
	return false
}

// sample takes in the values of a column.
func (r *ranker) sample(c nestedColumn) error {
	arr := c.leaf
	for i := range arr.Len() {
		if c.isNull(i) {
			continue
		}
		if n, ok := numberKey(arr, i); ok {
			r.numbers = append(r.numbers, n)
		} else if b, ok := textKey(arr, i); ok {
			r.texts = append(r.texts, bytes.Clone(b))
		} else {
			return fault.New("DELTA_CLUSTERING_COLUMN_TYPE", "values of type %s have no order to cluster by", arr.DataType())
		}
	}
	return nil
}

// ready makes the bounds between the ranks of what was sampled; ranks are below the given number.
func (r *ranker) ready(ranks int) {
	slices.Sort(r.numbers)
	r.numbers = quantiles(slices.Compact(r.numbers), ranks-1)
	slices.SortFunc(r.texts, bytes.Compare)
	r.texts = quantiles(slices.CompactFunc(r.texts, bytes.Equal), ranks-1)
}

// quantiles picks at most n-1 values that cut sorted into n parts of like size.
func quantiles[T any](sorted []T, n int) []T {
	if len(sorted) < n {
		return sorted
	}
	out := make([]T, 0, n-1)
	for i := 1; i < n; i++ {
		out = append(out, sorted[i*len(sorted)/n])
	}
	return out
}

// rank gives the rank of row i: 1 below the first bound, one more from each bound on.
func (r *ranker) rank(c nestedColumn, i int) uint32 {
	if c.isNull(i) {
		return 0
	}
	arr := c.leaf
	if n, ok := numberKey(arr, i); ok {
		at, found := slices.BinarySearch(r.numbers, n)
		return position(at, found)
	}
	b, _ := textKey(arr, i)
	at, found := slices.BinarySearchFunc(r.texts, b, bytes.Compare)
	return position(at, found)
}

func position(at int, found bool) uint32 {
	if found {
		at++
	}
	return uint32(at) + 1
}

// numberKey maps a value to an integer of the same order. NaN comes last, -0.0 is 0.0.
func numberKey(arr arrow.Array, i int) (uint64, bool) {
	const sign = 1 << 63
	switch a := arr.(type) {
	case *array.Int8, *array.Int16, *array.Int32, *array.Int64:
		return uint64(intValue(arr, i)) ^ sign, true
	case *array.Boolean:
		if a.Value(i) {
			return 1, true
		}
		return 0, true
	case *array.Date32:
		return uint64(int64(a.Value(i))) ^ sign, true
	case *array.Timestamp:
		return uint64(a.Value(i)) ^ sign, true
	case *array.Float32:
		return floatKey(float64(a.Value(i))), true
	case *array.Float64:
		return floatKey(a.Value(i)), true
	}
	return 0, false
}

func floatKey(f float64) uint64 {
	switch {
	case math.IsNaN(f):
		return math.MaxUint64
	case f == 0:
		return 1 << 63
	}
	bits := math.Float64bits(f)
	if bits>>63 != 0 {
		return ^bits
	}
	return bits | 1<<63
}

// textKey maps a value to bytes of the same order.
func textKey(arr arrow.Array, i int) ([]byte, bool) {
	switch a := arr.(type) {
	case *array.String:
		return []byte(a.Value(i)), true
	case *array.Binary:
		return a.Value(i), true
	case *array.Decimal128:
		v := a.Value(i)
		b := binary.BigEndian.AppendUint64(nil, uint64(v.HighBits())^1<<63)
		return binary.BigEndian.AppendUint64(b, v.LowBits()), true
	}
	return nil, false
}
