package weir

// Copy appends row i of a column of any type; where the type of c is open, it becomes that of from.
// It is for functions that pass on columns they do not know: filters, routers.
func (c *ColumnBuilder) Copy(from Column, i int) {
	if c.b == nil {
		c.settle(*from.typ)
	} else if !c.b.dataType().equal(*from.typ) {
		c.complain(from.typ.String())
		c.AppendNull()
		return
	}
	if from.Null(i) {
		c.b.AppendNull()
		return
	}
	switch b := c.b.(type) {
	case *fixedBuilder:
		copy(b.extend(1), from.data[i*b.width:(i+1)*b.width])
	case *BoolBuilder:
		b.Append(from.Bool().At(i))
	case *StringBuilder:
		b.AppendBytes(from.bytes().Bytes(i))
	case *ListBuilder:
		b.Append()
		start, end := from.lists().At(i)
		for at := start; at < end; at++ {
			b.elem.Copy(from.children[0], at)
		}
	case *MapBuilder:
		m := Maps{from.lists()}
		b.Append()
		start, end := m.At(i)
		for at := start; at < end; at++ {
			b.Key().Copy(m.Keys(), at)
			b.Value().Copy(m.Values(), at)
		}
	case *StructBuilder:
		b.Append()
		for at, child := range b.columns {
			child.Copy(from.children[at], i)
		}
	}
}

// bytes views any column of strings or bytes.
func (c Column) bytes() Strings {
	if c.typ.Kind == KindString || c.typ.Kind == KindLargeString {
		return c.String()
	}
	return c.Binary()
}
