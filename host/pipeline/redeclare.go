package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/events"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/sql"
)

// declaredProperty lists the properties that the definition gave the table, so
// that one which is declared no longer is taken away, and one which somebody
// set by hand stays.
const declaredProperty = "weir.declaredProperties"

func declaredText(keys []string) string {
	text, err := json.Marshal(keys)
	if err != nil {
		panic(err) // texts always encode
	}
	return string(text)
}

// declaredIn reads which properties the definition gave a table; one that
// somebody spoilt says that it gave none.
func declaredIn(properties map[string]string) (keys []string) {
	if json.Unmarshal([]byte(properties[declaredProperty]), &keys) != nil {
		return nil
	}
	return keys
}

const changeFeed = "delta.enableChangeDataFeed"

// unalterable is what a definition asks of a table that is there and that only
// new rows can give it; nil when there is nothing.
func unalterable(d *dataset, s *delta.Snapshot) *fault.Error {
	refuse := func(code, format string, args ...any) *fault.Error {
		return fault.New(code, format, args...).WithHint("A full refresh of the table allows it: weir run --full-refresh %s", d.id)
	}
	if have := s.PartitionColumns(); !slices.EqualFunc(have, d.partitionBy, strings.EqualFold) {
		return refuse("DELTA_PARTITION_COLUMNS_CHANGED", "the table is partitioned by (%s) and is defined by (%s)", strings.Join(have, ", "), strings.Join(d.partitionBy, ", "))
	}
	for _, c := range d.columns {
		if _, ok := fieldFold(s.Schema(), c.Name); !ok {
			continue
		}
		if have := s.Generated(c.Name); have != c.Generated {
			return refuse("DELTA_UNSUPPORTED_SCHEMA_CHANGE", "column %q is generated as (%s) in the table and as (%s) in the definition; the rows there are have the old values", c.Name, have, c.Generated)
		}
	}
	return nil
}

// checkDefinitions refuses definitions that the tables there are cannot follow,
// before an update writes anything.
func (p *Pipeline) checkDefinitions(ctx context.Context, chosen *selection) error {
	var refused []error
	for _, d := range chosen.tables(p.graph) {
		at := fault.Where{Dataset: d.id, File: d.place.File, Line: d.place.Line}
		for _, key := range d.constraints() {
			if err := p.checkGuestConstraint(ctx, d, key); err != nil {
				refused = append(refused, located(err, "INVALID_EXPECTATION", at))
			}
		}
		if d.kind != streamingTable || chosen.full[d] {
			continue
		}
		snapshot, err := snapshotOf(ctx, p.tableOf(d))
		if err != nil {
			return located(err, "DELTA_TABLE_UNREADABLE", at)
		}
		if snapshot == nil {
			continue
		}
		if e := unalterable(d, snapshot); e != nil {
			refused = append(refused, e.At(at))
		}
	}
	return errors.Join(refused...)
}

// redeclare brings a table that is there to what its definition says by now. A
// refresh that replaces all rows does so itself, in the same commit.
func (u *update) redeclare(ctx context.Context, d *dataset, first *FlowResult) error {
	table := u.p.tableOf(d)
	snapshot, err := snapshotOf(ctx, table)
	if err != nil || snapshot == nil {
		return err
	}
	c := redeclaration(d, snapshot)
	feeds := strings.EqualFold(c.Properties[changeFeed], "true") && !strings.EqualFold(snapshot.Properties()[changeFeed], "true")
	if d.kind != streamingTable || u.chosen.full[d] {
		u.mu.Lock()
		u.unset[d] = c.Unset
		u.mu.Unlock()
		if feeds {
			u.tellFeed(first, "the version that this update writes")
		}
		return nil
	}
	what := changesOf(c)
	if len(what) == 0 {
		return nil
	}
	c.Operation, c.EngineInfo, c.Parameters = "ALTER TABLE", "weir", map[string]any{"changes": strings.Join(what, ", ")}
	res, err := table.Commit(ctx, *c)
	if err != nil {
		return fault.Wrap(err, codeOr(err, "DELTA_COMMIT_FAILED"), "the table cannot become what its definition says (%s)", strings.Join(what, ", "))
	}
	u.mu.Lock()
	u.log.Emit(events.Event{
		Type: events.RuntimeDetails, Origin: events.Origin{DatasetName: d.id},
		Message: fmt.Sprintf("%s follows its definition since version %d: %s", d.id, res.Version, strings.Join(what, ", ")),
		Details: events.SettingDetails{Code: "TABLE_ALTERED", Setting: strings.Join(what, ", "), Line: int(d.place.Line)},
	})
	u.mu.Unlock()
	if feeds {
		u.tellFeed(first, fmt.Sprintf("version %d", res.Version))
	}
	return nil
}

// tellFeed says from where on a feed that was enabled later tells of changes.
func (u *update) tellFeed(f *FlowResult, from string) {
	message := fmt.Sprintf("the change data feed of %s is on from %s; what changed before it cannot be read", f.Dataset, from)
	if !slices.Contains(f.Warnings, message) { // told in the pass before
		u.warn(f, message)
	}
}

// unsetOf gives the properties of a table that are declared no longer.
func (u *update) unsetOf(d *dataset) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.unset[d]
}

// redeclaration is what a table lacks of its definition.
func redeclaration(d *dataset, s *delta.Snapshot) *delta.Commit {
	c := &delta.Commit{Read: s, Properties: map[string]string{}}
	want, have := propertiesOf(d), s.Properties()
	for key, value := range want {
		if !s.Meets(key, value) {
			c.Properties[key] = value
		}
	}
	for _, key := range append(declaredIn(have), declaredProperty, keysProperty) {
		_, wanted := want[key]
		if _, there := have[key]; there && !wanted && !slices.Contains(c.Unset, key) {
			c.Unset = append(c.Unset, key)
		}
	}
	if comment := s.Metadata().Description; comment != d.comment {
		c.Comment, c.NoComment = d.comment, d.comment == ""
	}
	if clustered := s.ClusterColumns(); !d.clusterAuto && !slices.EqualFunc(clustered, d.clusterBy, strings.EqualFold) {
		c.ClusterBy = append([]string{}, d.clusterBy...)
	}
	declareColumns(d, s, &c.Change)
	return c
}

// declareColumns gives columns the comments and the nullability that the
// definition declares. A column that it names no longer may be NULL.
func declareColumns(d *dataset, s *delta.Snapshot, change *delta.SchemaChange) {
	if len(d.columns) == 0 {
		return
	}
	typed := declaredTarget(d.columns) != nil // else comments may be the query's
	for _, f := range s.Schema().Fields() {
		path := []string{f.Name}
		i := slices.IndexFunc(d.columns, func(c sql.Column) bool { return strings.EqualFold(c.Name, f.Name) })
		if i < 0 {
			if !f.Nullable {
				change.Nullable = append(change.Nullable, path)
			}
			continue
		}
		c := d.columns[i]
		switch {
		case c.NotNull && f.Nullable:
			change.NotNull = append(change.NotNull, path)
		case !c.NotNull && !f.Nullable:
			change.Nullable = append(change.Nullable, path)
		}
		if comment, _ := f.Metadata.GetValue("comment"); comment != c.Comment && (typed || c.Comment != "") {
			change.Comments = append(change.Comments, delta.ColumnComment{Column: path, Comment: c.Comment})
		}
	}
}

// changesOf lists what a redeclaration does.
func changesOf(c *delta.Commit) (what []string) {
	for _, key := range slices.Sorted(maps.Keys(c.Properties)) {
		if key != declaredProperty {
			what = append(what, key+" = "+c.Properties[key])
		}
	}
	for _, key := range c.Unset {
		if key != declaredProperty {
			what = append(what, "without "+key)
		}
	}
	if len(what) == 0 && len(c.Properties)+len(c.Unset) > 0 {
		what = append(what, "which properties are declared")
	}
	if c.Comment != "" || c.NoComment {
		what = append(what, "the comment")
	}
	if c.ClusterBy != nil {
		what = append(what, "clustered by ("+strings.Join(c.ClusterBy, ", ")+")")
	}
	for _, p := range c.Change.NotNull {
		what = append(what, p[0]+" NOT NULL")
	}
	for _, p := range c.Change.Nullable {
		what = append(what, p[0]+" may be NULL")
	}
	for _, comment := range c.Change.Comments {
		what = append(what, "the comment of "+comment.Column[0])
	}
	return what
}
