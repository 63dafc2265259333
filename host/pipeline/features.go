package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/sql"
)

// constraintPrefix begins the properties that are CHECK constraints.
const constraintPrefix = "delta.constraints."

// maxClusterColumns is how many columns a table can be clustered by.
const maxClusterColumns = 4

// takeFeatures checks what a definition asks of its Delta table and gives the
// properties the spelling that readers of the table look for.
func takeFeatures(d *dataset) error {
	given := d.properties
	d.properties = nil
	for _, key := range slices.Sorted(maps.Keys(given)) {
		name, err := delta.CheckProperty(key, given[key])
		if fault.Is(err, "DELTA_UNKNOWN_CONFIGURATION") {
			var e *fault.Error
			errors.As(err, &e)
			return suggest(e, key, delta.PropertyNames(), "Leave it out: no table and no reader would heed it")
		}
		if err != nil {
			return err
		}
		if d.isView() && strings.HasPrefix(name, "delta.") {
			return fault.New("NOT_SUPPORTED", "property %s of a view, which is no table", name).WithHint("Set it on the table that reads the view")
		}
		if _, twice := d.properties[name]; twice {
			return fault.New("INVALID_OPTION", "property %s is given twice", name)
		}
		if d.properties == nil {
			d.properties = map[string]string{}
		}
		d.properties[name] = given[key]
	}
	if d.kind == materializedView && strings.EqualFold(d.properties["delta.appendOnly"], "true") {
		return fault.New("DELTA_CANNOT_MODIFY_APPEND_ONLY", "a materialized view replaces its rows, which delta.appendOnly forbids").
			WithHint("Leave the property out, or make a streaming table")
	}
	return takeClustering(d)
}

// takeClustering checks the columns that a table is clustered by, as far as
// that needs no types.
func takeClustering(d *dataset) error {
	if len(d.clusterBy) == 1 && d.clusterBy[0] == "AUTO" {
		d.clusterBy, d.clusterAuto = nil, true
	}
	if len(d.clusterBy) > maxClusterColumns {
		return fault.New("DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS", "CLUSTER BY takes at most %d columns, not %d", maxClusterColumns, len(d.clusterBy)).
			WithHint("Name those that queries filter by most")
	}
	if len(d.partitionBy) > 0 && (len(d.clusterBy) > 0 || d.clusterAuto) {
		return fault.New("SPECIFY_CLUSTER_BY_WITH_PARTITIONED_BY_IS_NOT_ALLOWED", "the table is both partitioned and clustered").WithHint("Keep one of them")
	}
	for i, c := range d.clusterBy {
		if slices.ContainsFunc(d.clusterBy[:i], func(other string) bool { return strings.EqualFold(c, other) }) {
			return fault.New("DELTA_DUPLICATE_COLUMNS_FOUND", "CLUSTER BY names %q twice", c)
		}
	}
	return nil
}

// idleProperties are properties that ask a cluster to do something by itself,
// with what holds here. The table keeps them for writers that heed them.
var idleProperties = map[string]string{
	"delta.autoOptimize":                       "a batch is written into few files, and `weir delta optimize` packs small ones",
	"delta.autoOptimize.autoCompact":           "`weir delta optimize` packs small files",
	"delta.autoOptimize.optimizeWrite":         "a batch is written into few files as it is",
	"delta.tuneFileSizesForRewrites":           "delta.targetFileSize says how large files become",
	"delta.randomizeFilePrefixes":              "the names of files follow from flow, batch and task",
	"delta.randomPrefixLength":                 "the names of files follow from flow, batch and task",
	"delta.universalFormat.enabledFormats":     "no other format is written",
	"pipelines.autoOptimize.managed":           "nothing is optimized by itself; `weir delta optimize` does it",
	"pipelines.autoOptimize.zOrderCols":        "CLUSTER BY names the columns that `weir delta optimize` orders by",
	"pipelines.trigger.interval":               "a scheduler starts `weir run`",
	"delta.universalFormat.compatibility.mode": "no other format is written",
}

// idle tells which settings of the datasets have no effect here.
func (g *graph) idle() (out []Notice) {
	for _, d := range g.sorted() {
		idle := func(setting, instead string) {
			out = append(out, Notice{
				Code: "IGNORED_SETTING", Setting: setting, Line: int(d.place.Line),
				Message: fmt.Sprintf("%s of %s has no effect here: %s", setting, d.id, instead),
			})
		}
		for _, key := range slices.Sorted(maps.Keys(d.properties)) {
			// What AUTO CDC leaves in small pieces is packed beside the batches.
			packed := key == "delta.autoOptimize.autoCompact" && slices.ContainsFunc(d.flows, func(f *flow) bool { return f.cdc != nil })
			if instead, ok := idleProperties[key]; ok && !packed && !strings.EqualFold(d.properties[key], "false") {
				idle(key, instead)
			}
		}
		if d.clusterAuto {
			idle("CLUSTER BY AUTO", "nothing chooses keys. Name the columns that queries filter by")
		}
	}
	return out
}

// constraints gives the CHECK constraints that a definition declares, sorted.
func (d *dataset) constraints() (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(d.properties)) {
		if strings.HasPrefix(key, constraintPrefix) {
			keys = append(keys, key)
		}
	}
	return keys
}

// checkConstraints holds that CHECK constraints are conditions over the columns.
func (pl *planner) checkConstraints(ctx context.Context, d *dataset, columns *arrow.Schema) error {
	for _, key := range d.constraints() {
		if err := pl.p.checkGuestConstraint(ctx, d, key); err != nil {
			return err
		}
		t, err := pl.expression(ctx, key, sql.Expression{Text: d.properties[key]}, columns)
		if err != nil {
			return err
		}
		if t.ID() != arrow.BOOL {
			return fault.New("DATATYPE_MISMATCH", "%s (%s) is of type %s", key, d.properties[key], typeName(t)).WithHint("It must be a condition")
		}
	}
	return nil
}

// checkGuestConstraint holds a constraint that a module declares to what SQL of
// guests may do: once the table has it, every writer evaluates it.
func (p *Pipeline) checkGuestConstraint(ctx context.Context, d *dataset, key string) error {
	if !d.guest {
		return nil
	}
	engine, err := p.engine.get(ctx)
	if err != nil {
		return err
	}
	relations, err := engine.GuestRelations(ctx, sql.Query{Text: "SELECT (" + d.properties[key] + "\n) AS holds FROM source", Guest: &sql.Guest{}})
	if err != nil {
		return fault.Wrap(err, codeOr(err, "INVALID_EXPECTATION"), "%s may not be computed", key)
	}
	if len(relations) != 1 || relations[0] != "source" {
		return fault.New("NOT_SUPPORTED", "%s reads other tables", key).WithHint("A constraint looks at the columns of one row")
	}
	return nil
}

// fieldAt finds a column, or a field of a struct by its dotted path.
func fieldAt(s *arrow.Schema, path string) (arrow.Field, bool) {
	if f, ok := fieldFold(s, path); ok {
		return f, true
	}
	name, rest, nested := strings.Cut(path, ".")
	f, ok := fieldFold(s, name)
	if !ok || !nested {
		return f, ok && !nested
	}
	inner, ok := f.Type.(*arrow.StructType)
	if !ok || relation.Hidden(name) {
		return arrow.Field{}, false
	}
	return fieldAt(arrow.NewSchema(inner.Fields(), nil), rest)
}
