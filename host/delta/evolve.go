package delta

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

// evolve gives the table's schema after a commit with the schema next: the old
// columns, with all their metadata, and then the added ones. When all rows are
// replaced, next stands for itself, and old columns lend only their metadata:
// without their comments and expressions when next redefines the table.
func (r *revision) evolve(next *arrow.Schema, replace, redefine bool) (*structType, error) {
	want, err := fromArrow(next.Fields(), "")
	if err != nil {
		return nil, err
	}
	if replace {
		for _, f := range want.fields {
			if o := r.schema.find(f.name); o != nil && sameType(o.typ, f.typ) {
				lent := o.meta
				if redefine {
					lent = maps.Clone(lent)
					delete(lent, commentKey)
					delete(lent, generationKey)
				}
				f.typ, f.meta = o.typ, withOwn(lent, f, commentKey, generationKey)
			}
		}
		return want, nil
	}
	out, err := r.evolveStruct(r.schema, want, "")
	if err != nil {
		return nil, err
	}
	recordTypeChanges(r.schema, out)
	return out, nil
}

func (r *revision) evolveStruct(old, want *structType, path string) (*structType, error) {
	out := &structType{}
	for _, o := range old.fields {
		w := want.find(o.name)
		if w == nil {
			return nil, fault.New("DELTA_UNSUPPORTED_SCHEMA_CHANGE", "column %q of the table is missing", path+o.name).
				WithHint("Columns can be added; taking one away needs Commit.Change.Drop, or a commit that replaces all rows")
		}
		t, err := r.evolveType(o.typ, w.typ, path+o.name)
		if err != nil {
			return nil, err
		}
		out.fields = append(out.fields, &field{o.name, t, o.nullable, withOwn(o.meta, w, commentKey)})
	}
	for _, w := range want.fields {
		if old.find(w.name) != nil {
			continue
		}
		if !w.nullable {
			return nil, fault.New("DELTA_UNSUPPORTED_SCHEMA_CHANGE", "new column %q is NOT NULL, but the rows there are have no value for it", path+w.name)
		}
		out.fields = append(out.fields, w)
	}
	if dup := duplicate(out.fields); dup != "" {
		return nil, fault.New("DELTA_DUPLICATE_COLUMNS_FOUND", "column %q differs from another only in case", path+dup)
	}
	return out, nil
}

func (r *revision) evolveType(old, want dataType, path string) (dataType, error) {
	switch o := old.(type) {
	case *structType:
		if w, ok := want.(*structType); ok {
			return r.evolveStruct(o, w, path+".")
		}
	case *arrayType:
		if w, ok := want.(*arrayType); ok {
			elem, err := r.evolveType(o.elem, w.elem, path+".element")
			return &arrayType{elem, o.containsNull}, err
		}
	case *mapType:
		if w, ok := want.(*mapType); ok {
			key, err := r.evolveType(o.key, w.key, path+".key")
			if err != nil {
				return nil, err
			}
			value, err := r.evolveType(o.value, w.value, path+".value")
			return &mapType{key, value, o.containsNull}, err
		}
	case *primitive:
		if sameType(old, want) || isVariant(o) && isVariantShape(want) {
			return old, nil
		}
		if r.mayBecome(o, want, false) {
			return want, nil
		}
	}
	return nil, clash(path, old, want)
}

func clash(path string, table, other dataType) error {
	return fault.New("DELTA_FAILED_TO_MERGE_FIELDS", "column %q is %s in the table and %s in the data", path, table.sparkName(), other.sparkName()).
		WithHint("Cast the column to %s, or replace all rows", table.sparkName())
}

// sameType compares what is stored, not nullability and metadata.
func sameType(a, b dataType) bool { return a.sparkName() == b.sparkName() }

// withOwn gives meta with what f has of its own under the keys.
func withOwn(meta map[string]json.RawMessage, f *field, keys ...string) map[string]json.RawMessage {
	own := maps.Clone(f.meta)
	maps.DeleteFunc(own, func(key string, _ json.RawMessage) bool { return !slices.Contains(keys, key) })
	if len(own) == 0 {
		return meta
	}
	out := maps.Clone(meta)
	if out == nil {
		return own
	}
	maps.Copy(out, own)
	return out
}

// withComments sets comments of top-level columns.
func withComments(t *structType, comments map[string]string) (*structType, error) {
	if len(comments) == 0 {
		return t, nil
	}
	out := &structType{fields: slices.Clone(t.fields)}
	for name, comment := range comments {
		i := slices.IndexFunc(out.fields, func(f *field) bool { return f.name == name })
		if i < 0 {
			return nil, fault.New("DELTA_COLUMN_NOT_FOUND", "column %q, which has a comment, is not in the schema", name)
		}
		f := *out.fields[i]
		f.meta = maps.Clone(f.meta)
		f.setMeta(commentKey, comment)
		out.fields[i] = &f
	}
	return out, nil
}

// find gives the field of that exact name.
func (t *structType) find(name string) *field {
	for _, f := range t.fields {
		if f.name == name {
			return f
		}
	}
	return nil
}

// findFold gives the field of that name, ignoring case when none fits exactly.
func (t *structType) findFold(name string) *field {
	if f := t.find(name); f != nil {
		return f
	}
	for _, f := range t.fields {
		if strings.EqualFold(f.name, name) {
			return f
		}
	}
	return nil
}

// leaf follows a path of struct fields.
func (t *structType) leaf(path []string) *field {
	var f *field
	for i, name := range path {
		if i > 0 {
			s, ok := f.typ.(*structType)
			if !ok {
				return nil
			}
			t = s
		}
		if f = t.find(name); f == nil {
			return nil
		}
	}
	return f
}

// MergeSchema adds to the table's columns those of a batch that it lacks, at
// the end, nested ones too, and names them. Names are matched ignoring case and
// the table's spelling stays. A column whose type the table's does not hold
// without loss is DELTA_FAILED_TO_MERGE_FIELDS.
func MergeSchema(table, batch *arrow.Schema) (merged *arrow.Schema, added []string, err error) {
	return (&merger{}).merge(table, batch)
}

// MergeSchema does what the function of that name does with the table's columns,
// and takes the wider type where that of a batch is one and the table has
// delta.enableTypeWidening. The names of such columns are among the changed.
func (s *Snapshot) MergeSchema(batch *arrow.Schema) (merged *arrow.Schema, changed []string, err error) {
	r := &revision{base: s, conf: s.metadata.Configuration}
	return (&merger{mayBecome: func(from *primitive, to dataType) bool { return r.mayBecome(from, to, true) }}).merge(s.Schema(), batch)
}

// merger merges schemas and gathers what changed.
type merger struct {
	mayBecome func(from *primitive, to dataType) bool // nil: types stay
	changed   []string
}

func (m *merger) merge(table, batch *arrow.Schema) (*arrow.Schema, []string, error) {
	old, err := fromArrow(table.Fields(), "")
	if err != nil {
		return nil, nil, err
	}
	more, err := fromArrow(batch.Fields(), "")
	if err != nil {
		return nil, nil, err
	}
	out, err := m.structs(old, more, "")
	if err != nil {
		return nil, nil, err
	}
	if len(m.changed) == 0 {
		return table, nil, nil
	}
	meta := table.Metadata()
	return arrow.NewSchema(arrowFields(out), &meta), m.changed, nil
}

func (m *merger) structs(old, more *structType, path string) (*structType, error) {
	out := &structType{fields: slices.Clone(old.fields)}
	for _, n := range more.fields {
		i := slices.IndexFunc(out.fields, func(f *field) bool { return strings.EqualFold(f.name, n.name) })
		if i < 0 {
			f := *n
			f.nullable = true // the rows there are have no value for it
			out.fields = append(out.fields, &f)
			m.changed = append(m.changed, path+n.name)
			continue
		}
		t, err := m.types(out.fields[i].typ, n.typ, path+out.fields[i].name)
		if err != nil {
			return nil, err
		}
		f := *out.fields[i]
		f.typ = t
		out.fields[i] = &f
	}
	return out, nil
}

func (m *merger) types(old, more dataType, path string) (dataType, error) {
	switch o := old.(type) {
	case *structType:
		if n, ok := more.(*structType); ok {
			return m.structs(o, n, path+".")
		}
	case *arrayType:
		if n, ok := more.(*arrayType); ok {
			elem, err := m.types(o.elem, n.elem, path+".element")
			return &arrayType{elem, o.containsNull}, err
		}
	case *mapType:
		if n, ok := more.(*mapType); ok {
			key, err := m.types(o.key, n.key, path+".key")
			if err != nil {
				return nil, err
			}
			value, err := m.types(o.value, n.value, path+".value")
			return &mapType{key, value, o.containsNull}, err
		}
	case *primitive:
		if isVariant(o) && isVariantShape(more) {
			return o, nil
		}
		if n, ok := more.(*primitive); ok && (n.name == o.name || n.arrow.ID() == arrow.NULL || widens(n.arrow, o.arrow)) {
			return o, nil
		}
		if m.mayBecome != nil && m.mayBecome(o, more) {
			m.changed = append(m.changed, path)
			return more, nil
		}
	}
	if n, ok := more.(*primitive); ok && n.arrow.ID() == arrow.NULL {
		return old, nil
	}
	return nil, clash(path, old, more)
}
