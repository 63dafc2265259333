package pipeline

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/sql"
)

// plainChanges computes what the step does without the SQL engine: most changes
// say what they are in a column, and starting the engine takes longer than
// applying a small batch of them.
type plainChanges struct {
	schema   *arrow.Schema
	places   []int         // of the columns that go on
	computed []*sql.Simple // behind them
	alloc    memory.Allocator
}

// plain gives it when every expression and every column is simple enough, else nil.
func (s *changeStep) plain(m *merging, in *arrow.Schema) *plainChanges {
	if m.guest || !s.stream || len(s.rules) > 0 {
		return nil
	}
	for _, c := range s.flow.target.columns {
		if _, ok := fieldFold(in, c.Name); c.Generated != "" && !ok {
			return nil
		}
	}
	kept, places := s.kept(m, in)
	p := &plainChanges{places: places, alloc: s.alloc}
	fields := make([]arrow.Field, 0, kept.NumFields()+2)
	for _, f := range kept.Fields() {
		if !sql.PassesUnchanged(f.Type) {
			return nil
		}
		fields = append(fields, arrow.Field{Name: f.Name, Type: f.Type, Nullable: f.Name != relation.RowColumn})
	}
	add := func(text, name string) bool {
		if text == "" {
			return true
		}
		e := sql.SimpleExpression(text, relation.DataSchema(in))
		if e == nil {
			return false
		}
		p.computed = append(p.computed, e)
		fields = append(fields, arrow.Field{Name: name, Type: e.Type(), Nullable: true})
		return true
	}
	ok := add(m.sequenceBy.Text, cdc.SequenceColumn) && add(m.deleteWhen.Text, cdc.DeleteColumn) && add(m.truncateWhen.Text, cdc.TruncateColumn)
	for i, tie := range m.ties {
		ok = ok && add(tie, fmt.Sprint(cdc.TieColumn, i))
	}
	if !ok {
		return nil
	}
	p.schema = arrow.NewSchema(fields, nil)
	return p
}

// compute gives the columns of a batch that go on. The caller releases it.
func (p *plainChanges) compute(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, 0, p.schema.NumFields())
	for _, at := range p.places {
		cols = append(cols, rec.Column(at))
	}
	data := relation.Data(rec)
	defer data.Release()
	for _, e := range p.computed {
		col := e.Eval(p.alloc, data)
		defer col.Release()
		cols = append(cols, col)
	}
	return array.NewRecordBatch(p.schema, cols, rec.NumRows()), nil
}
