package state

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// place is where a column is in a run.
type place struct {
	at      int  // -1: the run does not have it
	foreign bool // it had another type when the run was written
}

// columnsOf finds the columns of a schema in a run.
func columnsOf(r *run, schema *arrow.Schema, mem memory.Allocator) ([]place, error) {
	places := make([]place, schema.NumFields())
	for i, f := range schema.Fields() {
		if i < Values {
			places[i].at = i
			continue
		}
		j := find(r.schema, f.Name)
		places[i].at = j
		if j < 0 || alike(r.schema.Field(j).Type, f.Type) {
			continue
		}
		places[i].foreign = true
		if err := fits(mem, r.schema.Field(j).Type, f.Type); err != nil {
			return nil, fault.Wrap(err, "CDC_STATE_TYPE", "column %s has type %s in the state and %s in the target", f.Name, r.schema.Field(j).Type, f.Type).
				At(fault.Where{File: r.name}).WithHint("Run a full refresh of the target")
		}
	}
	return places, nil
}

// find gives the place of a value column, by its exact name where there is one; -1 when there is none.
func find(s *arrow.Schema, name string) int {
	fold := -1
	for i, f := range s.Fields() {
		switch {
		case i < Values:
		case f.Name == name:
			return i
		case fold < 0 && strings.EqualFold(f.Name, name):
			fold = i
		}
	}
	return fold
}

// fits says whether columns of one type can be given as another.
func fits(mem memory.Allocator, from, to arrow.DataType) error {
	b := array.NewBuilder(mem, from)
	defer b.Release()
	none := b.NewArray()
	defer none.Release()
	as, err := delta.Adapt(mem, none, to)
	if err == nil {
		as.Release()
	}
	return err
}

// alike says whether two types have the same values in the same buffers: what
// names list elements and whether NULL is allowed make no difference.
func alike(a, b arrow.DataType) bool {
	if a.ID() != b.ID() {
		return false
	}
	x, nested := a.(arrow.NestedType)
	if !nested {
		return arrow.TypeEqual(a, b)
	}
	y := b.(arrow.NestedType)
	if f, ok := a.(*arrow.FixedSizeListType); ok && f.Len() != b.(*arrow.FixedSizeListType).Len() {
		return false
	}
	if a.ID() == arrow.MAP {
		m, n := a.(*arrow.MapType), b.(*arrow.MapType)
		return alike(m.KeyType(), n.KeyType()) && alike(m.ItemType(), n.ItemType())
	}
	return slices.EqualFunc(x.Fields(), y.Fields(), func(f, g arrow.Field) bool {
		return (a.ID() != arrow.STRUCT || f.Name == g.Name) && alike(f.Type, g.Type)
	})
}

// gatherColumn copies spans of columns into one of type t. Columns that foreign
// names are adapted first.
func gatherColumn(mem memory.Allocator, t arrow.DataType, srcs []arrow.ArrayData, foreign []bool, spans []span) (arrow.ArrayData, error) {
	if !slices.Contains(foreign, true) {
		return gather(mem, t, srcs, spans)
	}
	srcs, spans = slices.Clone(srcs), slices.Clone(spans)
	defer func(own int) {
		for _, d := range srcs[own:] {
			d.Release()
		}
	}(len(srcs))
	for i := range foreign {
		if !foreign[i] {
			continue
		}
		var mine []span
		at := int32(0)
		for n, s := range spans {
			if int(s.src) == i {
				mine = append(mine, span{0, s.from, s.n})
				spans[n] = span{int32(len(srcs)), at, s.n}
				at += s.n
			}
		}
		data, err := adapted(mem, t, srcs[i], mine)
		if err != nil {
			return nil, err
		}
		srcs[i] = nil
		srcs = append(srcs, data)
	}
	return gather(mem, t, srcs, spans)
}

// adapted copies spans of one column and gives them as type t.
func adapted(mem memory.Allocator, t arrow.DataType, col arrow.ArrayData, spans []span) (arrow.ArrayData, error) {
	data, err := gather(mem, col.DataType(), []arrow.ArrayData{col}, spans)
	if err != nil {
		return nil, err
	}
	defer data.Release()
	was := array.MakeFromData(data)
	defer was.Release()
	is, err := delta.Adapt(mem, was, t)
	if err != nil {
		return nil, err
	}
	defer is.Release()
	is.Data().Retain()
	return is.Data(), nil
}
