package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/sql"
	"github.com/weir-data/weir/host/stream"
)

// changeStep is the last step of an auto_cdc flow. One SELECT computes from each
// change what is to be known of it beside its columns, and which expectations it
// violates; then only the columns that the target gets are kept.
type changeStep struct {
	flow   *flow
	engine *lazyEngine
	stream bool
	rules  []expect.Rule
	alloc  memory.Allocator
}

// Schema gives the selected columns, what is known of the change, and the
// columns that every row carries.
func (s *changeStep) Schema(ctx context.Context, in *arrow.Schema) (*arrow.Schema, error) {
	m, err := s.over(ctx, in)
	if err != nil {
		return nil, err
	}
	if p := s.plain(m, in); p != nil {
		return p.schema, nil
	}
	all, err := s.inner(m, in).Schema(ctx, in)
	if err != nil {
		return nil, err
	}
	out, _ := s.kept(m, all)
	return out, nil
}

// Run computes them.
func (s *changeStep) Run(ctx context.Context, t *stream.Task, in array.RecordReader) (array.RecordReader, error) {
	m, err := s.over(ctx, in.Schema())
	if err != nil {
		return nil, err
	}
	if p := s.plain(m, in.Schema()); p != nil {
		return mapped(in, p.schema, p.compute), nil
	}
	return s.computed(ctx, t, in, m)
}

// computed computes them with the SQL engine.
func (s *changeStep) computed(ctx context.Context, t *stream.Task, in array.RecordReader, m *merging) (array.RecordReader, error) {
	r, err := s.inner(m, in.Schema()).Run(ctx, t, in)
	if err != nil {
		return nil, err
	}
	out, places := s.kept(m, r.Schema())
	masked := slices.IndexFunc(out.Fields(), func(f arrow.Field) bool { return f.Name == relation.MaskColumn })
	return releasing(mapped(r, out, func(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
		kept := columnsOf(rec, out, places)
		if masked < 0 {
			return kept, nil
		}
		defer kept.Release()
		return s.unmasked(kept, masked), nil
	}), r.Release), nil
}

// over lays the changes over columns like these.
func (s *changeStep) over(ctx context.Context, in *arrow.Schema) (*merging, error) {
	m, err := s.flow.over(relation.DataSchema(in))
	if err != nil {
		return nil, err
	}
	return m, s.engine.checkChanges(ctx, m.changes)
}

// inner is the SELECT over columns like these.
func (s *changeStep) inner(m *merging, in *arrow.Schema) *sqlStep {
	var text strings.Builder
	text.WriteString("SELECT *")
	add := func(expression, name string) { text.WriteString(", (" + expression + "\n) AS " + quotedName(name)) }
	compute := func(expression, name string) {
		add(expression, computedPrefix+strings.TrimPrefix(name, cdc.HiddenPrefix))
	}
	for _, c := range s.flow.target.columns {
		if _, ok := fieldFold(in, c.Name); c.Generated != "" && !ok {
			add("CAST(("+c.Generated+"\n) AS "+typeName(c.Type)+")", c.Name)
		}
	}
	compute(m.sequenceBy.Text, cdc.SequenceColumn)
	if m.deleteWhen.Text != "" {
		compute(m.deleteWhen.Text, cdc.DeleteColumn)
	}
	if m.truncateWhen.Text != "" {
		compute(m.truncateWhen.Text, cdc.TruncateColumn)
	}
	for i, tie := range m.ties {
		compute(tie, fmt.Sprint(cdc.TieColumn, i))
	}
	text.WriteString(" FROM source")
	step := &sqlStep{engine: s.engine, query: sql.Query{Text: text.String()}, from: "source"}
	if s.stream {
		step.query.Stream = "source"
	}
	withRules(&step.query, s.rules)
	return step
}

// kept gives the columns that go on, with their places: those of the target and
// the flow's own.
func (s *changeStep) kept(m *merging, all *arrow.Schema) (*arrow.Schema, []int) {
	out, places := pick(all, func(name string) bool {
		switch {
		case name == relation.RowColumn, name == relation.MaskColumn, strings.HasPrefix(name, computedPrefix):
			return true
		case relation.Hidden(name):
			return false
		case slices.ContainsFunc(m.selected, func(f arrow.Field) bool { return strings.EqualFold(f.Name, name) }):
			return true
		}
		return slices.ContainsFunc(s.flow.target.columns, func(c sql.Column) bool { return c.Generated != "" && strings.EqualFold(c.Name, name) })
	})
	fields := out.Fields()
	for i := range fields {
		if rest, computed := strings.CutPrefix(fields[i].Name, computedPrefix); computed {
			fields[i].Name = cdc.HiddenPrefix + rest
		}
	}
	return arrow.NewSchema(fields, nil), places
}

// unmasked lets changes that put no row into the table pass its expectations:
// what a delete carries beside its key is not looked at. The caller releases it.
func (s *changeStep) unmasked(rec arrow.RecordBatch, masked int) arrow.RecordBatch {
	var flags []*array.Boolean
	for i, f := range rec.Schema().Fields() {
		if f.Name == cdc.DeleteColumn || f.Name == cdc.TruncateColumn {
			flags = append(flags, rec.Column(i).(*array.Boolean))
		}
	}
	mask := rec.Column(masked).(*array.Int64)
	gone := func(i int) bool {
		return slices.ContainsFunc(flags, func(b *array.Boolean) bool { return b.IsValid(i) && b.Value(i) })
	}
	b := array.NewInt64Builder(s.alloc)
	defer b.Release()
	b.Reserve(mask.Len())
	for i := range mask.Len() {
		v := mask.Value(i)
		if v != 0 && gone(i) {
			v = 0
		}
		b.Append(v)
	}
	cols := slices.Clone(rec.Columns())
	cols[masked] = b.NewArray()
	defer cols[masked].Release()
	return array.NewRecordBatch(rec.Schema(), cols, rec.NumRows())
}

// checkChanges holds the expressions of a module to what SQL of guests may do.
func (e *lazyEngine) checkChanges(ctx context.Context, c *changes) error {
	if !c.guest {
		return nil
	}
	engine, err := e.get(ctx)
	if err != nil {
		return err
	}
	for _, clause := range []struct {
		name string
		text sql.Expression
	}{{"sequence_by", c.sequenceBy}, {"apply_as_deletes", c.deleteWhen}, {"apply_as_truncates", c.truncateWhen}} {
		if clause.text.Text == "" {
			continue
		}
		if err := engine.CheckGuestExpression(ctx, clause.text.Text); err != nil {
			return fault.Wrap(err, codeOr(err, "INVALID_FLOW"), "%s may not be computed", clause.name)
		}
	}
	return nil
}
