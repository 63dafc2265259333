package weir

// ListBuilder builds an array column: Append starts a list, then its elements go to Elem.
//
//	items.Append()
//	items.Elem().Int64().Append(1)
//	items.Elem().Int64().Append(2) // [1, 2]
type ListBuilder struct {
	validity
	kind   Kind
	width  int
	starts []int64
	off    []int32
	big    []int64
	elem   ColumnBuilder
}

// Append starts a list, empty until elements are added.
func (b *ListBuilder) Append() { b.starts = append(b.starts, int64(b.elem.Len())) }

// AppendNull adds a null in place of a list.
func (b *ListBuilder) AppendNull() {
	b.Append()
	if b.kind == KindFixedList {
		for range b.width {
			b.elem.AppendNull()
		}
	}
	b.null(len(b.starts)-1, len(b.starts))
}

// Elem gives the column that the elements of all lists go to.
func (b *ListBuilder) Elem() *ColumnBuilder { return &b.elem }

// Len gives the number of lists since the last Flush.
func (b *ListBuilder) Len() int { return len(b.starts) }

func (b *ListBuilder) reset() { b.starts = b.starts[:0]; b.validity.reset(); b.elem.reset() }

func (b *ListBuilder) encode(e *encoder) {
	b.validity.encode(e, len(b.starts))
	b.encodeOffsets(e)
	b.elem.encode(e)
}

func (b *ListBuilder) encodeOffsets(e *encoder) {
	end := int64(b.elem.Len())
	switch b.kind {
	case KindFixedList:
	case KindLargeList:
		b.big = append(append(b.big[:0], b.starts...), end)
		e.buffer(bytesOf(b.big))
	default:
		b.off = b.off[:0]
		for _, start := range b.starts {
			b.off = append(b.off, int32(start))
		}
		b.off = append(b.off, int32(end))
		e.buffer(bytesOf(b.off))
	}
}

func (b *ListBuilder) check(path string) error {
	if len(b.starts) == 0 && b.elem.Len() > 0 || len(b.starts) > 0 && b.starts[0] != 0 {
		return errorf("[OUTPUT_INVALID] column ", path, ": elements were added before the first list")
	}
	if b.kind == KindFixedList {
		for i := range b.starts {
			if b.starts[i] != int64(i*b.width) || b.elem.Len() != len(b.starts)*b.width {
				return errorf("[OUTPUT_INVALID] column ", path, ": not every list has ", itoa(int64(b.width)), " elements")
			}
		}
	} else if err := checkOffset(path, int64(b.elem.Len())); err != nil {
		return err
	}
	return b.elem.check()
}

func (b *ListBuilder) dataType() DataType {
	return DataType{Kind: b.kind, Width: b.width, Fields: []Field{b.elem.field()}}
}

// MapBuilder builds a map column: Append starts a map, then its entries go to Key and Value.
type MapBuilder struct {
	ListBuilder
	entries *StructBuilder
}

// Key gives the column that the keys of all maps go to; a key is never null.
func (b *MapBuilder) Key() *ColumnBuilder { return b.entries.columns[0] }

// Value gives the column that the values of all maps go to.
func (b *MapBuilder) Value() *ColumnBuilder { return b.entries.columns[1] }

// Append starts a map, empty until entries are added.
func (b *MapBuilder) Append() { b.starts = append(b.starts, int64(b.Key().Len())) }

// AppendNull adds a null in place of a map.
func (b *MapBuilder) AppendNull() {
	b.Append()
	b.null(len(b.starts)-1, len(b.starts))
}

func (b *MapBuilder) encode(e *encoder) {
	b.entries.n = b.Key().Len()
	b.ListBuilder.encode(e)
}

func (b *MapBuilder) check(path string) error {
	b.entries.n = b.Key().Len()
	return b.ListBuilder.check(path)
}

func (b *MapBuilder) dataType() DataType {
	key, value := b.Key().field(), b.Value().field()
	key.Name, key.Nullable, value.Name = "key", false, "value"
	return DataType{Kind: KindMap, Fields: []Field{key, value}}
}

// StructBuilder builds a struct column: Append adds a row, then each field gets its value.
type StructBuilder struct {
	validity
	columnSet
	n int
}

// Append adds a row; then append one value to each field.
func (b *StructBuilder) Append() { b.n++ }

// AppendNull adds a null; the fields get theirs.
func (b *StructBuilder) AppendNull() {
	b.n++
	b.null(b.n-1, b.n)
	for _, c := range b.columns {
		if c.b != nil && c.b.Len() < b.n {
			c.b.AppendNull()
		}
	}
}

// Column gives a field. Where the type is not declared, its first use adds it, with nulls for the
// rows before.
func (b *StructBuilder) Column(name string) *ColumnBuilder {
	c := b.columnSet.column(name)
	c.behind = max(b.n-1, 0)
	return c
}

// Len gives the number of rows since the last Flush.
func (b *StructBuilder) Len() int { return b.n }

func (b *StructBuilder) reset() {
	b.n = 0
	b.validity.reset()
	for _, c := range b.columns {
		c.reset()
	}
}

func (b *StructBuilder) encode(e *encoder) {
	b.validity.encode(e, b.n)
	for _, c := range b.columns {
		c.encode(e)
	}
}

func (b *StructBuilder) check(string) error { return b.checkRows(b.n) }

func (b *StructBuilder) dataType() DataType { return DataType{Kind: KindStruct, Fields: b.fields()} }
