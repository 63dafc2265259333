package pipeline

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/sql"
)

// changes is what an auto_cdc flow does with the changes of its source. Columns
// are dotted paths, expressions are SQL over the columns of the source.
type changes struct {
	keys              []string
	sequenceBy        sql.Expression
	deleteWhen        sql.Expression
	truncateWhen      sql.Expression
	ignoreNulls       bool
	ignoreNullsOn     []string // nil for all but ignoreNullsExcept
	ignoreNullsExcept []string
	columns           []string // nil for all but except
	except            []string
	scdType           int
	history           []string // nil for all but historyExcept
	historyExcept     []string
}

func changesOfStatement(c *sql.AutoCDC) *changes {
	return &changes{
		keys: c.Keys, sequenceBy: c.SequenceBy, deleteWhen: c.DeleteWhen, truncateWhen: c.TruncateWhen,
		ignoreNulls:   c.IgnoreNullUpdates || c.IgnoreNullOn != nil || c.IgnoreNullExcept != nil,
		ignoreNullsOn: c.IgnoreNullOn, ignoreNullsExcept: c.IgnoreNullExcept,
		columns: c.Columns, except: c.Except, scdType: c.SCDType, history: c.TrackHistory, historyExcept: c.TrackExcept,
	}
}

func changesOfManifest(f *abi.Flow) *changes {
	return &changes{
		keys: f.Keys, sequenceBy: sql.Expression{Text: f.SequenceBy}, deleteWhen: sql.Expression{Text: f.ApplyAsDeletes}, truncateWhen: sql.Expression{Text: f.ApplyAsTruncates},
		ignoreNulls: f.IgnoreNullUpdates, columns: f.ColumnList, except: f.ExceptColumnList,
		scdType: f.StoredAsSCDType, history: f.TrackHistoryColumnList, historyExcept: f.TrackHistoryExceptColumnList,
	}
}

// changesPlan gives what an auto_cdc flow does as a plan shows it.
func (f *flow) changesPlan() *ChangesPlan {
	if f.cdc == nil {
		return nil
	}
	return &ChangesPlan{
		Source: f.body.inputs[0].id(), Keys: f.cdc.keys, SequenceBy: f.cdc.sequenceBy.Text, SCDType: f.cdc.scdType,
		DeletesWhen: f.cdc.deleteWhen.Text, TruncatesWhen: f.cdc.truncateWhen.Text,
	}
}

// changed checks an auto_cdc flow against the columns of its source and gives
// those of its target.
func (pl *planner) changed(ctx context.Context, f *flow, source *arrow.Schema) (*arrow.Schema, error) {
	c := f.cdc
	for _, list := range []struct {
		clause string
		names  []string
	}{
		{"KEYS", c.keys}, {"COLUMNS", c.columns}, {"COLUMNS * EXCEPT", c.except}, {"TRACK HISTORY ON", c.history},
		{"TRACK HISTORY ON * EXCEPT", c.historyExcept}, {"IGNORE NULL UPDATES ON", c.ignoreNullsOn}, {"IGNORE NULL UPDATES ON * EXCEPT", c.ignoreNullsExcept},
	} {
		seen := map[string]bool{}
		for _, name := range list.names {
			if _, ok := fieldFold(source, strings.SplitN(name, ".", 2)[0]); !ok {
				e := fault.New("UNRESOLVED_COLUMN", "%s names %q, which is no column of the source", list.clause, name)
				return nil, suggest(e, name, columnNames(source), "")
			}
			if seen[strings.ToLower(name)] {
				return nil, fault.New("COLUMN_ALREADY_EXISTS", "%s names %q twice", list.clause, name)
			}
			seen[strings.ToLower(name)] = true
		}
	}
	switch {
	case len(c.keys) == 0:
		return nil, fault.New("INVALID_FLOW", "an AUTO CDC flow without keys").WithHint("Name under KEYS the columns that identify a row")
	case c.sequenceBy.Text == "":
		return nil, fault.New("INVALID_FLOW", "an AUTO CDC flow without SEQUENCE BY").WithHint("Name the column that orders the changes of a key")
	case c.scdType != 1 && c.scdType != 2:
		return nil, fault.New("INVALID_FLOW", "SCD type %d", c.scdType).WithHint("Use 1 or 2")
	case c.scdType == 1 && (c.history != nil || c.historyExcept != nil):
		return nil, fault.New("INVALID_FLOW", "TRACK HISTORY is for SCD type 2").WithHint("Write STORED AS SCD TYPE 2, or leave it out")
	}
	sequence, err := pl.expression(ctx, "SEQUENCE BY", c.sequenceBy, source)
	if err != nil {
		return nil, err
	}
	for _, e := range []struct {
		clause string
		text   sql.Expression
	}{{"APPLY AS DELETE WHEN", c.deleteWhen}, {"APPLY AS TRUNCATE WHEN", c.truncateWhen}} {
		if e.text.Text == "" {
			continue
		}
		if t, err := pl.expression(ctx, e.clause, e.text, source); err != nil {
			return nil, err
		} else if t.ID() != arrow.BOOL {
			return nil, fault.New("DATATYPE_MISMATCH", "%s (%s) is of type %s", e.clause, e.text.Text, typeName(t)).WithHint("It must be a condition")
		}
	}
	if c.truncateWhen.Text != "" && c.scdType == 2 {
		return nil, fault.New("NOT_SUPPORTED", "APPLY AS TRUNCATE WHEN is for SCD type 1")
	}
	if c.scdType != 2 {
		return c.target(source, sequence, ""), nil
	}
	if err := checkHandmade(f.target, columnNames(c.target(source, sequence, ""))); err != nil {
		return nil, err
	}
	return c.target(source, sequence, pl.p.spec.IntervalColumns), nil
}

// target gives the columns of the table that the changes are merged into.
func (c *changes) target(source *arrow.Schema, sequence arrow.DataType, intervals string) *arrow.Schema {
	listed := func(list []string, name string) bool {
		return slices.ContainsFunc(list, func(n string) bool { return strings.EqualFold(n, name) })
	}
	var fields []arrow.Field
	for _, f := range source.Fields() {
		if c.columns != nil && !listed(c.columns, f.Name) && !listed(c.keys, f.Name) || listed(c.except, f.Name) && !listed(c.keys, f.Name) {
			continue
		}
		fields = append(fields, f)
	}
	return arrow.NewSchema(append(fields, intervalFields(intervals, sequence)...), nil)
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
