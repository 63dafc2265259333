package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/goccy/go-yaml/ast"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/sql"
)

// The contracts of intervals: the columns that tables stored as SCD TYPE 2 have.
const (
	intervalsAutoCDC = "auto_cdc" // __START_AT and __END_AT, as in Lakeflow
	intervalsTech    = "tech"     // _tech_valid_from, _tech_valid_to, _tech_is_current, _tech_hash
)

const (
	// intervalViewProperty asks for a view that shows a table under the names of
	// the other contract.
	intervalViewProperty = "weir.intervalView"
	// historyKeysProperty tells readers of a table with history what its keys are.
	historyKeysProperty = "weir.historyKeys"

	intervalViewSuffix = "_intervals"
)

func readIntervalColumns(f *yamlFile, n ast.Node) (string, error) {
	text, err := f.requiredText(n, "interval_columns")
	if err != nil {
		return "", err
	}
	if text != intervalsAutoCDC && text != intervalsTech {
		return "", f.errAt(n, "interval_columns is %q", text).
			WithHint("Use %s for __START_AT and __END_AT, which is the default, or %s for _tech_valid_from, _tech_valid_to, _tech_is_current and _tech_hash", intervalsAutoCDC, intervalsTech)
	}
	return text, nil
}

// historical tells whether AUTO CDC keeps the history of the dataset's rows.
func (d *dataset) historical() bool {
	return slices.ContainsFunc(d.flows, func(f *flow) bool { return f.cdc != nil && f.cdc.scdType == 2 })
}

// cdcKeys gives the keys of a table that AUTO CDC keeps, nil for any other.
func (d *dataset) cdcKeys() []string {
	for _, f := range d.flows {
		if f.cdc != nil {
			return f.cdc.keys
		}
	}
	return nil
}

// historyKeys gives the keys of what an input reads, when it has history.
func (in *input) historyKeys() []string {
	switch {
	case in.dataset == nil || in.changes != nil:
		return nil
	case in.dataset.versionsOf != nil:
		return in.dataset.versionsOf.cdcKeys()
	}
	return in.dataset.cdcKeys()
}

// keysForQuery gives them for a query, which may read other pipelines' tables.
func (p *Pipeline) keysForQuery(ctx context.Context, in *input) ([]string, error) {
	if in.external.Table == "" {
		return in.historyKeys(), nil
	}
	s, err := snapshotOf(ctx, p.inputTable(in))
	return historyKeysOf(s), err
}

func historyKeysText(keys []string) string {
	text, err := json.Marshal(keys)
	if err != nil {
		panic(err) // texts always encode
	}
	return string(text)
}

// historyKeysOf reads them from a table of another pipeline; a property that somebody
// spoilt says nothing.
func historyKeysOf(s *delta.Snapshot) (keys []string) {
	if s == nil || json.Unmarshal([]byte(s.Metadata().Configuration[historyKeysProperty]), &keys) != nil {
		return nil
	}
	return keys
}

// intervalFields are the columns that a contract adds to a table with history.
func intervalFields(contract string, sequence arrow.DataType) []arrow.Field {
	field := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	switch contract {
	case intervalsAutoCDC:
		in := relation.Intervals[0]
		return []arrow.Field{field(in.Start, sequence), field(in.End, sequence)}
	case intervalsTech:
		in := relation.Intervals[1]
		return []arrow.Field{field(in.Start, sequence), field(in.End, sequence),
			field(relation.IsCurrentColumn, arrow.FixedWidthTypes.Boolean), field(relation.HashColumn, arrow.BinaryTypes.String)}
	}
	return nil
}

// takeIntervalView reads the property that asks for a view of the intervals.
func takeIntervalView(d *dataset, value string) error {
	switch strings.ToLower(value) {
	case "true":
		d.intervalView = true
	case "false":
	default:
		return fault.New("INVALID_OPTION", "%s is %q", intervalViewProperty, value).WithHint("Use true or false")
	}
	return nil
}

// addIntervalViews defines the views that tables ask for.
func addIntervalViews(g *graph, s *Spec, wrong *flaws) {
	for _, d := range g.sorted() {
		if d.intervalView {
			wrong.add(addIntervalView(g, s, d))
		}
	}
}

func addIntervalView(g *graph, s *Spec, d *dataset) error {
	refuse := func(format string, args ...any) *fault.Error {
		return fault.New("INVALID_OPTION", format, args...).At(fault.Where{Dataset: d.id}).At(d.place)
	}
	switch {
	case !d.historical():
		return refuse("%s on a table without history", intervalViewProperty).WithHint("Only a table stored as SCD TYPE 2 has intervals")
	case d.private:
		return refuse("%s on a private table: a view is published", intervalViewProperty).WithHint("Leave out PRIVATE or the property")
	case s.IntervalColumns == intervalsTech:
		return refuse("%s: with interval_columns: %s the table has those columns itself", intervalViewProperty, intervalsTech).WithHint("Leave the property out")
	}
	in := relation.Intervals[0]
	to := relation.Intervals[1]
	name := func(table string) string {
		return "`" + strings.Join([]string{escaped(d.name.Catalog), escaped(d.name.Schema), escaped(table)}, "`.`") + "`"
	}
	text := "CREATE VIEW " + name(d.name.Table+intervalViewSuffix) +
		" COMMENT 'The intervals of " + strings.ReplaceAll(d.id, "'", "''") + " under the technical names of a warehouse' AS\n" +
		"SELECT * EXCEPT (" + in.Start + ", " + in.End + "),\n" +
		"  " + in.Start + " AS " + to.Start + ",\n  " + in.End + " AS " + to.End + ",\n  " + in.End + " IS NULL AS " + relation.IsCurrentColumn + "\n" +
		"FROM " + name(d.name.Table)
	statements, err := sql.ParsePipeline("view "+d.id+intervalViewSuffix, text, sql.Settings{Catalog: s.Catalog, Schema: s.Schema})
	if err != nil {
		return fault.Wrap(err, "INTERNAL_ERROR", "the view of the intervals of %s cannot be defined", d.id)
	}
	if err := registerStatement(g, &statements[0]); err != nil {
		return err
	}
	view, _, _, err := g.lookup(name(d.name.Table + intervalViewSuffix))
	if err != nil {
		return err
	}
	view.versionsOf, view.place = d, d.place
	view.flows[0].place = d.place
	return nil
}

func escaped(part string) string { return strings.ReplaceAll(part, "`", "``") }

// checkHandmade refuses columns that claim to say what the intervals of a table
// say already: nothing would keep them.
func checkHandmade(d *dataset, source []string) error {
	for _, name := range source {
		for _, reserved := range []string{relation.IsCurrentColumn, relation.HashColumn, relation.Intervals[1].Start, relation.Intervals[1].End} {
			if strings.EqualFold(name, reserved) {
				return fault.New("INTERVAL_COLUMN_BY_HAND", "the rows bring a column %s, and AUTO CDC alone knows which version of a row holds", name).
					WithHint("Leave it out with COLUMNS * EXCEPT (%s). For those names set %s = true on the table, which gives the view %s%s, or interval_columns: %s in the spec",
						name, intervalViewProperty, d.name.Table, intervalViewSuffix, intervalsTech)
			}
		}
	}
	return nil
}

// checkContracts holds that the pipeline's tables keep the contract of their catalogs.
func (p *Pipeline) checkContracts(ctx context.Context, datasets []*dataset) error {
	var refused []error
	for _, d := range datasets {
		if !d.historical() {
			continue
		}
		contract, made, err := p.catalog().Contract(ctx, d.name.Catalog)
		if err != nil {
			return err
		}
		if made {
			if err := contract.Check(d.name, p.spec.IntervalColumns); err != nil {
				refused = append(refused, fault.Place(err, "INTERVAL_CONTRACT_CONFLICT", d.place))
			}
		}
	}
	return errors.Join(refused...)
}

// agreeOnIntervals makes the contract of a catalog with its first table that has history.
func (u *update) agreeOnIntervals(ctx context.Context, d *dataset) error {
	if !d.historical() {
		return nil
	}
	err := u.p.catalog().Agree(ctx, d.name, u.p.spec.Name, u.p.spec.IntervalColumns)
	return fault.Place(err, "CATALOG_UNAVAILABLE", d.place)
}
