package delta

import (
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

// SchemaChange changes columns that are there; new ones come with
// Commit.Schema. Paths name columns as they were before the change: struct
// fields by name, and "element", "key" and "value" below an array or a map.
type SchemaChange struct {
	// Rename and Drop need column mapping (delta.columnMapping.mode): the data
	// files stay as they are.
	Rename []Rename
	Drop   [][]string
	// Widen needs delta.enableTypeWidening.
	Widen []Widening
	// NotNull forbids nulls; the rows there are must have none. Nullable allows them again.
	NotNull  [][]string
	Nullable [][]string
	// Comments are set, or taken away when empty.
	Comments []ColumnComment
}

// Rename gives a column or a struct field another name in its place.
type Rename struct {
	From []string
	To   string
}

// Widening gives a column, field, element, key or value a type that holds every value of its own.
type Widening struct {
	Column []string
	To     arrow.DataType
}

// ColumnComment is the comment of a column or a struct field.
type ColumnComment struct {
	Column  []string
	Comment string
}

func (c *SchemaChange) empty() bool {
	return len(c.Rename)+len(c.Drop)+len(c.Widen)+len(c.NotNull)+len(c.Nullable)+len(c.Comments) == 0
}

// place is where a path leads to.
type place struct {
	parent *structType
	field  *field    // the nearest field on the path
	below  []string  // from there through arrays and maps
	typ    *dataType // what is there
	stored []string  // the path in files that have column mapping
	// outright tells that the path leads through structs only.
	outright bool
}

// locate follows a path, names ignoring case when none fits exactly.
func (t *structType) locate(path []string) (*place, error) {
	missing := func() error {
		return fault.New("DELTA_COLUMN_NOT_FOUND", "the table has no column %q", strings.Join(path, "."))
	}
	if len(path) == 0 {
		return nil, missing()
	}
	var top dataType = t
	p := &place{typ: &top, outright: true}
	for _, step := range path {
		switch at := (*p.typ).(type) {
		case *structType:
			f := at.findFold(step)
			if f == nil {
				return nil, missing()
			}
			p = &place{parent: at, field: f, typ: &f.typ, stored: append(p.stored, f.physicalName()), outright: p.outright && len(p.below) == 0}
			continue
		case *arrayType:
			if strings.EqualFold(step, "element") {
				p.below, p.typ = append(p.below, "element"), &at.elem
				continue
			}
		case *mapType:
			if strings.EqualFold(step, "key") {
				p.below, p.typ = append(p.below, "key"), &at.key
				continue
			}
			if strings.EqualFold(step, "value") {
				p.below, p.typ = append(p.below, "value"), &at.value
				continue
			}
		}
		return nil, missing()
	}
	return p, nil
}

// locateField follows a path that must end at a column or a struct field.
func (t *structType) locateField(path []string) (*place, error) {
	p, err := t.locate(path)
	if err == nil && len(p.below) > 0 {
		err = fault.New("DELTA_UNSUPPORTED_SCHEMA_CHANGE", "%q is part of a type and no column or struct field", strings.Join(path, "."))
	}
	return p, err
}

// apply makes the change on a copy of the schema, and follows it in the
// partition columns and properties, which name columns.
func (c *SchemaChange) apply(r *revision) error {
	if c.empty() {
		return nil
	}
	tree := cloneType(r.schema).(*structType)
	partitionBy, stats := columnsNamed(tree, r.partitionBy), statsFields(tree, r.conf)
	var edits []func()
	for _, one := range []func(*revision, *structType) ([]func(), error){c.renames, c.drops, c.widenings, c.remarks} {
		more, err := one(r, tree)
		if err != nil {
			return err
		}
		edits = append(edits, more...)
	}
	for _, edit := range edits {
		edit()
	}
	r.schema, r.partitionBy = tree, namesOf(partitionBy)
	stats.follow(tree, r.conf)
	return checkNames(tree, "")
}

func columnsNamed(t *structType, names []string) (out []*field) {
	for _, name := range names {
		if f := t.find(name); f != nil {
			out = append(out, f)
		}
	}
	return out
}

func namesOf(fields []*field) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.name
	}
	return out
}

// checkNames refuses columns whose names differ at most in case, and empty structs.
func checkNames(t dataType, path string) error {
	switch t := t.(type) {
	case *structType:
		if dup := duplicate(t.fields); dup != "" {
			return fault.New("DELTA_DUPLICATE_COLUMNS_FOUND", "column %q appears twice (names are compared ignoring case)", path+dup)
		}
		if len(t.fields) == 0 {
			return fault.New("DELTA_UNSUPPORTED_DROP_COLUMN", "column %q would have no fields left", strings.TrimSuffix(path, "."))
		}
		for _, f := range t.fields {
			if err := checkNames(f.typ, path+f.name+"."); err != nil {
				return err
			}
		}
	case *arrayType:
		return checkNames(t.elem, path+"element.")
	case *mapType:
		if err := checkNames(t.key, path+"key."); err != nil {
			return err
		}
		return checkNames(t.value, path+"value.")
	}
	return nil
}

func (c *SchemaChange) renames(r *revision, tree *structType) (edits []func(), err error) {
	for _, one := range c.Rename {
		p, err := tree.locateField(one.From)
		if err != nil {
			return nil, err
		}
		path := strings.Join(one.From, ".")
		switch {
		case !r.mapped():
			return nil, fault.New("DELTA_UNSUPPORTED_RENAME_COLUMN", "column %q cannot be renamed: the data files have it under this name", path).
				WithHint("Set the table property %s = name first", mappingModeKey)
		case one.To == "":
			return nil, fault.New("DELTA_UNSUPPORTED_RENAME_COLUMN", "column %q cannot have an empty name", path)
		}
		if err := r.checkDependents(tree, path, one.From[0], p.field); err != nil {
			return nil, err
		}
		edits = append(edits, func() { p.field.name = one.To })
	}
	return edits, nil
}

func (c *SchemaChange) drops(r *revision, tree *structType) (edits []func(), err error) {
	for _, path := range c.Drop {
		p, err := tree.locateField(path)
		if err != nil {
			return nil, err
		}
		name := strings.Join(path, ".")
		refuse := func(code, why string) error { return fault.New(code, "column %q cannot be dropped: %s", name, why) }
		switch {
		case !r.mapped():
			return nil, fault.New("DELTA_UNSUPPORTED_DROP_COLUMN", "column %q cannot be dropped: the data files have it under this name", name).
				WithHint("Set the table property %s = name first", mappingModeKey)
		case p.parent == tree && slices.Contains(r.partitionBy, p.field.name):
			return nil, refuse("DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN", "the table is partitioned by it")
		case r.clustersBelow(p.stored):
			return nil, refuse("DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN", "the table is clustered by it")
		}
		if err := r.checkDependents(tree, name, path[0], p.field); err != nil {
			return nil, err
		}
		edits = append(edits, func() {
			p.parent.fields = slices.DeleteFunc(p.parent.fields, func(f *field) bool { return f == p.field })
		})
	}
	return edits, nil
}

func (c *SchemaChange) widenings(r *revision, tree *structType) (edits []func(), err error) {
	for _, one := range c.Widen {
		p, err := tree.locate(one.Column)
		if err != nil {
			return nil, err
		}
		path := strings.Join(one.Column, ".")
		to, err := typeFromArrow(arrow.Field{Type: one.To}, path)
		if err != nil {
			return nil, err
		}
		if sameType(*p.typ, to) {
			continue
		}
		old, _ := (*p.typ).(*primitive)
		if old == nil || !r.mayBecome(old, to, false) {
			return nil, r.cannotBecome(path, *p.typ, to)
		}
		if err := r.checkDependents(tree, path, one.Column[0], p.field); err != nil {
			return nil, err
		}
		edits = append(edits, func() {
			if old.arrow.ID() != arrow.NULL {
				p.field.recordTypeChange(old, to.(*primitive), p.below)
			}
			*p.typ = to
		})
	}
	return edits, nil
}

func (c *SchemaChange) remarks(_ *revision, tree *structType) (edits []func(), err error) {
	for _, path := range c.NotNull {
		p, err := tree.locateField(path)
		if err != nil {
			return nil, err
		}
		if !p.outright {
			return nil, fault.New("DELTA_UNSUPPORTED_SCHEMA_CHANGE", "column %q cannot be NOT NULL: it lies within an array or a map", strings.Join(path, "."))
		}
		edits = append(edits, func() { p.field.nullable = false })
	}
	for _, path := range c.Nullable {
		p, err := tree.locateField(path)
		if err != nil {
			return nil, err
		}
		edits = append(edits, func() { p.field.nullable = true })
	}
	for _, one := range c.Comments {
		p, err := tree.locateField(one.Column)
		if err != nil {
			return nil, err
		}
		edits = append(edits, func() {
			p.field.meta = maps.Clone(p.field.meta)
			if one.Comment == "" {
				delete(p.field.meta, commentKey)
			} else {
				p.field.setMeta(commentKey, one.Comment)
			}
		})
	}
	return edits, nil
}

// cloneType copies a tree; the metadata of fields is shared.
func cloneType(t dataType) dataType {
	switch t := t.(type) {
	case *structType:
		out := &structType{fields: make([]*field, len(t.fields))}
		for i, f := range t.fields {
			out.fields[i] = &field{f.name, cloneType(f.typ), f.nullable, f.meta}
		}
		return out
	case *arrayType:
		return &arrayType{cloneType(t.elem), t.containsNull}
	case *mapType:
		return &mapType{cloneType(t.key), cloneType(t.value), t.containsNull}
	}
	return t
}

// checkDependents refuses a change of a column that an expression of the table
// names: it would mean something else afterwards, or nothing. Expressions are
// not parsed; the name alone counts.
func (r *revision) checkDependents(tree *structType, path, column string, changed *field) error {
	for k, expr := range r.conf {
		if strings.HasPrefix(strings.ToLower(k), "delta.constraints.") && mentions(expr, column) {
			return fault.New("DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE", "column %q cannot be changed: constraint %s needs it (%s)", path, k, expr)
		}
	}
	for _, f := range tree.fields {
		for _, key := range []string{"delta.generationExpression", "delta.invariants"} {
			if expr := f.metaString(key); expr != "" && (mentions(expr, column) || f == changed) {
				return fault.New("DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE", "column %q cannot be changed: column %q has an expression that needs it (%s)", path, f.name, expr)
			}
		}
	}
	return nil
}

// mentions tells whether an SQL expression holds a name, in backticks or bare, ignoring case.
func mentions(expr, name string) bool {
	lower, name := strings.ToLower(expr), strings.ToLower(name)
	for from := 0; ; {
		i := strings.Index(lower[from:], name)
		if i < 0 || name == "" {
			return false
		}
		start, end := from+i, from+i+len(name)
		if (start == 0 || !inName(lower[start-1])) && (end == len(lower) || !inName(lower[end])) {
			return true
		}
		from = start + 1
	}
}

func inName(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 0x80
}
