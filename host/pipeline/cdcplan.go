package pipeline

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/cdc/state"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/sql"
)

// changed checks an auto_cdc flow against the columns of its source and gives
// those of its target.
func (pl *planner) changed(ctx context.Context, f *flow, source *arrow.Schema) (*arrow.Schema, error) {
	m, err := f.over(source)
	if err != nil {
		return nil, err
	}
	if err := pl.p.engine.checkChanges(ctx, m.changes); err != nil {
		return nil, err
	}
	sequence, err := pl.expression(ctx, "SEQUENCE BY", m.sequenceBy, source)
	if err != nil {
		return nil, err
	}
	if err := rowcode.Orderable(sequence); err != nil {
		return nil, fault.New("AUTOCDC_MICROBATCH_VALIDATION.NON_ORDERABLE_SEQUENCE", "SEQUENCE BY (%s) is of type %s, whose values have no order", m.sequenceBy.Text, typeName(sequence)).
			WithHint("Use a number, a time, a text, or a STRUCT of such")
	}
	for i, tie := range m.ties {
		t, err := pl.expression(ctx, tiesProperty, sql.Expression{Text: tie}, source)
		if err != nil {
			return nil, err
		}
		if rowcode.Orderable(t) != nil {
			return nil, fault.New("INVALID_OPTION", "%s names %s, which is of type %s, whose values have no order", tiesProperty, m.lastBy[i], typeName(t))
		}
	}
	for _, e := range []struct {
		clause string
		text   sql.Expression
	}{{"APPLY AS DELETE WHEN", m.deleteWhen}, {"APPLY AS TRUNCATE WHEN", m.truncateWhen}} {
		if e.text.Text == "" {
			continue
		}
		if t, err := pl.expression(ctx, e.clause, e.text, source); err != nil {
			return nil, err
		} else if t.ID() != arrow.BOOL {
			return nil, fault.New("DATATYPE_MISMATCH", "%s (%s) is of type %s", e.clause, e.text.Text, typeName(t)).WithHint("It must be a condition")
		}
	}
	if m.scdType == 2 {
		if err := checkHandmade(f.target, columnNames(arrow.NewSchema(m.selected, nil))); err != nil {
			return nil, err
		}
	}
	if warning := sequenceWarning(m, sequence); warning != nil {
		pl.warnings = append(pl.warnings, warning.At(f.where()).Error())
	}
	out, err := declared(f.target, m.target(f.target, sequence, pl.p.spec.IntervalColumns))
	if err == nil && !pl.made {
		err = pl.checkDrift(ctx, f, m, out, sequence)
	}
	return out, err
}

// checkDrift warns of a definition that the table cannot follow: an update that
// finds changes will refuse it, unless it is a full refresh.
func (pl *planner) checkDrift(ctx context.Context, f *flow, m *merging, columns *arrow.Schema, sequence arrow.DataType) error {
	identity, known, err := pl.p.catalog().Identity(ctx, pl.p.spec.Name)
	if err != nil || !known {
		return err
	}
	snapshot, err := snapshotOf(ctx, pl.p.tableOf(f.target))
	if err != nil {
		return err
	}
	def := pl.p.mergeDefinition(f)
	def.StateID, def.LastBy = stateID(identity.PipelineID, f.target), m.lastBy
	def.State = state.Open(pl.p.folder("checkpoints", f.target.id, stateFolder), "", pl.p.opts.Alloc)
	err = def.Agrees(ctx, snapshot, columns, sequence)
	var drifted *fault.Error
	if errors.As(err, &drifted) && strings.HasSuffix(drifted.Code, "_DRIFT") {
		pl.warnings = append(pl.warnings, drifted.At(f.where()).Error())
		err = nil
	}
	return errors.Join(err, def.State.Close())
}

// target gives the columns of the table that the changes are merged into.
func (m *merging) target(d *dataset, sequence arrow.DataType, intervals string) *arrow.Schema {
	fields := append([]arrow.Field{}, m.selected...)
	for _, c := range d.columns {
		if _, given := fieldFold(arrow.NewSchema(fields, nil), c.Name); c.Generated != "" && !given {
			fields = append(fields, arrow.Field{Name: c.Name, Type: c.Type, Nullable: true})
		}
	}
	for i := range fields {
		fields[i].Nullable = true
	}
	if m.scdType == 2 {
		fields = append(fields, intervalFields(intervals, sequence)...)
	}
	return arrow.NewSchema(fields, nil)
}

// sequenceWarning tells of a sequence that two changes of a key may share: a
// clock is no counter.
func sequenceWarning(m *merging, t arrow.DataType) *fault.Error {
	switch t.ID() {
	case arrow.TIMESTAMP, arrow.DATE32:
	default:
		return nil
	}
	text := strings.TrimSpace(m.sequenceBy.Text)
	e := fault.New("CDC_SEQUENCE_BARE_TIME", "SEQUENCE BY %s is a %s: two changes of a key at the same time have no order, and fail the flow", text, strings.ToLower(typeName(t)))
	switch {
	case m.feed:
		return e.WithHint("The source is a change feed: leave SEQUENCE BY out, or write SEQUENCE BY _commit_version")
	case len(m.lastBy) > 0:
		return nil // the author has said which of them wins
	}
	return e.WithHint("Add what counts up: SEQUENCE BY STRUCT(%s, counter). Or say which of them wins: TBLPROPERTIES ('%s' = 'last_by(column)')", text, tiesProperty)
}

// agree holds that the flows into a table give it the same columns.
func (d *dataset) agree(first *flow, all *arrow.Schema, f *flow, of *arrow.Schema) error {
	for _, side := range []struct {
		has, lacks   *flow
		with, within *arrow.Schema
	}{{first, f, all, of}, {f, first, of, all}} {
		for _, c := range side.with.Fields() {
			other, ok := fieldFold(side.within, c.Name)
			if !ok {
				return side.has.disagrees(side.lacks, "column "+c.Name, typeName(c.Type), "none")
			}
			if !arrow.TypeEqual(c.Type, other.Type) {
				return side.has.disagrees(side.lacks, "the type of column "+c.Name, typeName(c.Type), typeName(other.Type))
			}
		}
	}
	if a, b := trackedOf(first, all), trackedOf(f, of); a != b {
		return first.disagrees(f, "the columns whose history is tracked", a, b)
	}
	return nil
}

// trackedOf gives the columns that open a new row, in words.
func trackedOf(f *flow, columns *arrow.Schema) string {
	if f.cdc.scdType != 2 {
		return ""
	}
	var out []string
	for _, c := range columns.Fields() {
		tracked := listed(f.cdc.tracked.Only, c.Name) || f.cdc.tracked.Only == nil && !listed(f.cdc.tracked.Except, c.Name)
		if tracked && !listed(f.cdc.keys, c.Name) {
			out = append(out, strings.ToLower(c.Name))
		}
	}
	slices.Sort(out)
	return names(out)
}

// expression gives the type of an expression over the columns of a source.
func (pl *planner) expression(ctx context.Context, clause string, e sql.Expression, source *arrow.Schema) (arrow.DataType, error) {
	s := &sqlStep{engine: pl.p.engine, query: e.Select("source"), from: "source"}
	s.query.Stream = "source"
	out, err := s.Schema(ctx, relation.SourceColumns(source.Fields(), false))
	if err != nil {
		return nil, fault.Wrap(err, codeOr(err, "INVALID_FLOW"), "%s cannot be computed", clause)
	}
	return out.Field(0).Type, nil
}
