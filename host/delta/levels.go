package delta

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
)

// leaf is what one Parquet column takes of a batch: values, and for each slot
// how far down its path it is defined and at which list it repeats.
type leaf struct {
	values   arrow.Array
	def, rep []int16
	nullable bool
}

// levels is a batch on its way down to a leaf: a slot for each row, and below a
// list for each of its elements, or one for the list when it has none.
type levels struct {
	def, rep []int16
	at       []int32 // the slot's index in the array, -1 where nothing is defined further down
	depth    int16   // lists above
}

// leavesOfColumn gives the leaves of a column, in the order of the Parquet columns.
// The caller releases their values.
func leavesOfColumn(f arrow.Field, arr arrow.Array) ([]leaf, error) {
	l := &levels{def: make([]int16, arr.Len()), at: make([]int32, arr.Len())}
	for i := range l.at {
		l.at[i] = int32(i)
	}
	return l.descend(nil, f, arr)
}

// descend adds the leaves of an array. It uses l up.
func (l *levels) descend(out []leaf, f arrow.Field, arr arrow.Array) ([]leaf, error) {
	if f.Nullable {
		l.define(arr)
	}
	switch a := arr.(type) {
	case *array.Struct:
		fields := a.DataType().(*arrow.StructType).Fields()
		for i, child := range fields {
			below := l
			if i+1 < len(fields) {
				below = l.copy()
			}
			var err error
			if out, err = below.descend(out, child, a.Field(i)); err != nil {
				return out, err
			}
		}
		return out, nil
	case *array.Map:
		child, err := l.repeat(a.List)
		if err != nil {
			return out, err
		}
		defer child.Release()
		return l.descend(out, arrow.Field{Type: child.DataType()}, child) // entries are never null
	case *array.List:
		child, err := l.repeat(a)
		if err != nil {
			return out, err
		}
		defer child.Release()
		return l.descend(out, a.DataType().(*arrow.ListType).ElemField(), child)
	}
	arr.Retain()
	return append(out, leaf{arr, l.def, l.rep, f.Nullable}), nil
}

func (l *levels) copy() *levels {
	c := &levels{def: append([]int16(nil), l.def...), at: append([]int32(nil), l.at...), depth: l.depth}
	if l.rep != nil {
		c.rep = append([]int16(nil), l.rep...)
	}
	return c
}

// define goes past a level that may be null.
func (l *levels) define(arr arrow.Array) {
	if arr.NullN() == 0 {
		for i, at := range l.at {
			if at >= 0 {
				l.def[i]++
			}
		}
		return
	}
	for i, at := range l.at {
		switch {
		case at < 0:
		case arr.IsNull(int(at)):
			l.at[i] = -1
		default:
			l.def[i]++
		}
	}
}

// repeat goes past a list, and gives the elements that its slots stand for.
func (l *levels) repeat(a *array.List) (arrow.Array, error) {
	first, last, count := int64(-1), int64(0), int64(0)
	for _, at := range l.at {
		if at < 0 {
			continue
		}
		if from, to := a.ValueOffsets(int(at)); to > from {
			if first < 0 {
				first = from
			}
			last = to
			count += to - from
		}
	}
	first = max(first, 0)
	if last-first != count {
		return nil, fault.New("DELTA_WRITE_FAILED", "a list that is null has elements")
	}
	l.depth++
	slots := len(l.at) + int(count)
	def, rep, index := make([]int16, 0, slots), make([]int16, 0, slots), make([]int32, 0, slots)
	for i, at := range l.at {
		repeats := int16(0)
		if l.rep != nil {
			repeats = l.rep[i]
		}
		var from, to int64
		if at >= 0 {
			from, to = a.ValueOffsets(int(at))
		}
		if from == to {
			def, rep, index = append(def, l.def[i]), append(rep, repeats), append(index, -1)
			continue
		}
		for e := from; e < to; e++ {
			def, rep, index = append(def, l.def[i]+1), append(rep, repeats), append(index, int32(e-first))
			repeats = l.depth
		}
	}
	l.def, l.rep, l.at = def, rep, index
	return array.NewSlice(a.ListValues(), first, last), nil
}
