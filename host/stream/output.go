package stream

import (
	"context"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// outputSchema is what a batch writes.
type outputSchema struct {
	// rows is the columns that the batch has, in the table's spelling.
	rows *arrow.Schema
	// table is the target's schema after the batch, nil when it stays as it is.
	table *arrow.Schema
}

// flowSchema takes the source's columns through the steps and the target's
// declaration, without any rows.
func (f *Flow) flowSchema(ctx context.Context, in *arrow.Schema) (*arrow.Schema, error) {
	rows, err := f.rowSchema(ctx, in)
	if err != nil {
		return nil, err
	}
	return f.targetSchema(rows)
}

// rowSchema gives the columns of the rows that the last step gives.
func (f *Flow) rowSchema(ctx context.Context, in *arrow.Schema) (*arrow.Schema, error) {
	s, err := f.stepSchema(ctx, in)
	if err != nil {
		return nil, err
	}
	return relation.DataSchema(s), nil
}

// targetSchema gives the target's columns for such rows.
func (f *Flow) targetSchema(rows *arrow.Schema) (_ *arrow.Schema, err error) {
	if f.Apply != nil {
		if rows, err = f.Apply.Schema(rows); err != nil {
			return nil, err
		}
	}
	return declared(rows, f.Target.Columns)
}

// planRows works out what a batch of such a source writes.
func (f *Flow) planRows(ctx context.Context, source *arrow.Schema, target *delta.Snapshot, replace bool) (outputSchema, error) {
	rows, err := f.rowSchema(ctx, source)
	if err != nil {
		return outputSchema{}, err
	}
	columns, err := f.targetSchema(rows)
	if err != nil {
		return outputSchema{}, err
	}
	if fitter, ok := f.Apply.(Fitter); ok && target != nil && !replace {
		if err := fitter.Fits(target, columns); err != nil {
			return outputSchema{}, err
		}
	}
	out, err := planOutput(target, columns, replace)
	if err == nil && f.Apply != nil {
		out.rows = rows // the application makes the target's of them
	}
	return out, err
}

// stepSchema gives the columns behind the last step, hidden ones included.
func (f *Flow) stepSchema(ctx context.Context, s *arrow.Schema) (*arrow.Schema, error) {
	for _, step := range f.Steps {
		var err error
		if s, err = step.Schema(ctx, s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// declared gives the declared columns after comparing them with the query's.
func declared(query, columns *arrow.Schema) (*arrow.Schema, error) {
	if columns == nil {
		return query, nil
	}
	have := map[string]arrow.Field{}
	for _, f := range query.Fields() {
		have[strings.ToLower(f.Name)] = f
	}
	mismatch := func(format string, args ...any) error {
		return fault.New("USER_SPECIFIED_AND_INFERRED_SCHEMA_NOT_COMPATIBLE", format, args...).
			WithHint("Make the declared columns and those of the query the same")
	}
	for _, want := range columns.Fields() {
		f, ok := have[strings.ToLower(want.Name)]
		switch {
		case !ok:
			return nil, mismatch("column %q is declared, but the query does not give it", want.Name)
		case !sameType(f.Type, want.Type):
			return nil, mismatch("column %q is declared as %s, the query gives %s", want.Name, want.Type, f.Type)
		}
		delete(have, strings.ToLower(want.Name))
	}
	for _, f := range query.Fields() {
		if _, extra := have[strings.ToLower(f.Name)]; extra {
			return nil, mismatch("the query gives column %q, which is not declared", f.Name)
		}
	}
	return columns, nil
}

// sameType compares types; whether a nested value may be null and what field
// metadata says does not count.
func sameType(a, b arrow.DataType) bool {
	if a.ID() != b.ID() {
		return false
	}
	switch x := a.(type) {
	case *arrow.StructType:
		y := b.(*arrow.StructType)
		if x.NumFields() != y.NumFields() {
			return false
		}
		for i := range x.NumFields() {
			if x.Field(i).Name != y.Field(i).Name || !sameType(x.Field(i).Type, y.Field(i).Type) {
				return false
			}
		}
		return true
	case *arrow.ListType:
		return sameType(x.Elem(), b.(*arrow.ListType).Elem())
	case *arrow.MapType:
		y := b.(*arrow.MapType)
		return sameType(x.KeyType(), y.KeyType()) && sameType(x.ItemType(), y.ItemType())
	}
	return arrow.TypeEqual(a, b)
}

// planOutput fits the flow's columns to the target. replace is true when the
// batch replaces every row, and with them the columns.
func planOutput(snap *delta.Snapshot, columns *arrow.Schema, replace bool) (outputSchema, error) {
	if snap == nil || replace {
		return outputSchema{rows: columns, table: columns}, nil
	}
	merged, added, err := snap.MergeSchema(columns)
	if err != nil {
		return outputSchema{}, err
	}
	// The table's spelling of a name wins, since Delta compares without case.
	spelling := map[string]string{}
	for _, f := range merged.Fields() {
		spelling[strings.ToLower(f.Name)] = f.Name
	}
	fields := make([]arrow.Field, columns.NumFields())
	for i, f := range columns.Fields() {
		if name, ok := spelling[strings.ToLower(f.Name)]; ok {
			f.Name = name
		}
		fields[i] = f
	}
	out := outputSchema{rows: arrow.NewSchema(fields, nil)}
	if len(added) > 0 {
		out.table = merged
	}
	return out, nil
}

// project gives the target's columns of a batch of the last step, by name. The
// caller releases it.
func project(rec arrow.RecordBatch, file *arrow.Schema) (arrow.RecordBatch, error) {
	at := map[string]int{}
	for i, f := range rec.Schema().Fields() {
		at[strings.ToLower(f.Name)] = i
	}
	cols := make([]arrow.Array, file.NumFields())
	for i, f := range file.Fields() {
		c, ok := at[strings.ToLower(f.Name)]
		if !ok {
			return nil, fault.New("STEP_SCHEMA_MISMATCH", "the last step gives no column %q, although it promised one", f.Name)
		}
		col := rec.Column(c)
		if !sameType(col.DataType(), f.Type) {
			return nil, fault.New("STEP_SCHEMA_MISMATCH", "the last step gives column %q as %s, although it promised %s", f.Name, col.DataType(), f.Type)
		}
		if !f.Nullable && col.NullN() > 0 {
			return nil, fault.New("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "column %q is NOT NULL, and %d rows have no value for it", f.Name, col.NullN())
		}
		cols[i] = col
	}
	// The columns may differ from the schema in inner nullability and metadata
	// only, which the check of types above has passed.
	fields := make([]arrow.Field, len(cols))
	for i, f := range file.Fields() {
		fields[i] = arrow.Field{Name: f.Name, Type: cols[i].DataType(), Nullable: f.Nullable}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, rec.NumRows()), nil
}
