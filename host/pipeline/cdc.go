package pipeline

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/sql"
)

// changes is what an auto_cdc flow does with the changes of its source. Columns
// are dotted paths, expressions are SQL over the columns of the source.
type changes struct {
	keys         []string
	sequenceBy   sql.Expression // without a text: the version of a change feed
	deleteWhen   sql.Expression
	truncateWhen sql.Expression
	columns      []string // nil for all but except
	except       []string
	scdType      int
	tracked      cdc.Choice
	ignoreNulls  *cdc.Choice // nil for none
	lastBy       []string    // nil: the target's property says
	// guest says that the expressions are a module's and not the operator's.
	guest bool
}

func changesOfStatement(c *sql.AutoCDC) *changes {
	out := &changes{
		keys: c.Keys, sequenceBy: c.SequenceBy, deleteWhen: c.DeleteWhen, truncateWhen: c.TruncateWhen,
		columns: c.Columns, except: c.Except, scdType: c.SCDType, tracked: cdc.Choice{Only: c.TrackHistory, Except: c.TrackExcept},
	}
	if c.IgnoreNullUpdates || c.IgnoreNullOn != nil || c.IgnoreNullExcept != nil {
		out.ignoreNulls = &cdc.Choice{Only: c.IgnoreNullOn, Except: c.IgnoreNullExcept}
	}
	return out
}

func changesOfManifest(f *abi.Flow) *changes {
	out := &changes{
		keys: f.Keys, sequenceBy: sql.Expression{Text: f.SequenceBy}, deleteWhen: sql.Expression{Text: f.ApplyAsDeletes}, truncateWhen: sql.Expression{Text: f.ApplyAsTruncates},
		columns: f.ColumnList, except: f.ExceptColumnList, scdType: f.StoredAsSCDType,
		tracked: cdc.Choice{Only: f.TrackHistoryColumnList, Except: f.TrackHistoryExceptColumnList},
		lastBy:  f.TiesLastBy, guest: true,
	}
	if f.IgnoreNullUpdates || f.IgnoreNullUpdatesColumnList != nil || f.IgnoreNullUpdatesExceptList != nil {
		out.ignoreNulls = &cdc.Choice{Only: f.IgnoreNullUpdatesColumnList, Except: f.IgnoreNullUpdatesExceptList}
	}
	return out
}

// merges tells whether flows merge changes into the dataset.
func (d *dataset) merges() bool { return slices.ContainsFunc(d.flows, (*flow).merges) }

// merges tells whether the flow merges changes by key.
func (f *flow) merges() bool { return f.kind == autoCDCFlow || f.kind == snapshotFlow }

// runsOnce tells whether the flow takes what is there one time.
func (f *flow) runsOnce() bool { return f.kind == onceFlow || f.once }

// merging is an auto_cdc flow over a source of known columns: what the changes
// declare and what follows from the source.
type merging struct {
	*changes
	feed     bool          // the source is a change feed
	selected []arrow.Field // of the source, in its order
	// lastBy names what decides between changes with one sequence, ties is how
	// each is computed.
	lastBy, ties []string
}

// over lays the changes of a flow over the columns of its source.
func (f *flow) over(source *arrow.Schema) (*merging, error) {
	c := *f.cdc
	m := &merging{changes: &c, feed: f.readsFeed()}
	if m.feed {
		if err := c.takeFeed(source); err != nil {
			return nil, err
		}
	}
	if err := c.checkLists(source); err != nil {
		return nil, err
	}
	if err := c.check(source); err != nil {
		return nil, err
	}
	for _, col := range source.Fields() {
		if c.selects(col.Name, m.feed) {
			m.selected = append(m.selected, col)
		}
	}
	return m, m.settleTies(f, source)
}

// settleTies finds what decides between changes of a key with one sequence. One
// commit may delete a row and insert another of its key: in a change feed, which
// says both of the same version, the row that is there is the later.
func (m *merging) settleTies(f *flow, source *arrow.Schema) (err error) {
	if m.lastBy, err = f.lastBy(); err != nil {
		return err
	}
	for _, name := range m.lastBy {
		if _, ok := fieldAt(source, name); !ok {
			e := fault.New("UNRESOLVED_COLUMN", "%s names %q, which is no column of the source", tiesProperty, name)
			return suggest(e, name, columnNames(source), "")
		}
		m.ties = append(m.ties, quotedPath(source, name))
	}
	if _, told := fieldFold(source, delta.ChangeTypeColumn); len(m.lastBy) == 0 && m.feed && told && m.byVersion() {
		m.lastBy, m.ties = []string{delta.ChangeTypeColumn}, []string{delta.ChangeTypeColumn + " <> 'delete'"}
	}
	return nil
}

// quotedPath spells a column, or a field of one, in SQL.
func quotedPath(source *arrow.Schema, path string) string {
	if _, whole := fieldFold(source, path); whole {
		return quotedName(path)
	}
	parts := strings.Split(path, ".")
	for i := range parts {
		parts[i] = quotedName(parts[i])
	}
	return strings.Join(parts, ".")
}

func quotedName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

func listed(list []string, name string) bool {
	return slices.ContainsFunc(list, func(n string) bool { return strings.EqualFold(n, name) })
}

// selects tells whether a column of the source is one of the target's.
func (c *changes) selects(name string, feed bool) bool {
	switch {
	case c.columns != nil:
		return listed(c.columns, name)
	case feed && listed(feedColumns, name):
		return false
	}
	return !listed(c.except, name)
}

// checkLists holds that the lists name columns of the source, each once.
func (c *changes) checkLists(source *arrow.Schema) error {
	var ignored cdc.Choice
	if c.ignoreNulls != nil {
		ignored = *c.ignoreNulls
	}
	for _, list := range []struct {
		clause string
		names  []string
		nested bool // fields of structs may be named
	}{
		{"KEYS", c.keys, false}, {"COLUMNS", c.columns, false}, {"COLUMNS * EXCEPT", c.except, false},
		{"TRACK HISTORY ON", c.tracked.Only, false}, {"TRACK HISTORY ON * EXCEPT", c.tracked.Except, false},
		{"IGNORE NULL UPDATES ON", ignored.Only, true}, {"IGNORE NULL UPDATES ON * EXCEPT", ignored.Except, true},
	} {
		if list.names != nil && len(list.names) == 0 {
			return fault.New("INVALID_FLOW", "%s names no column", list.clause).WithHint("Leave it out, or name columns")
		}
		seen := map[string]bool{}
		for _, name := range list.names {
			if err := inSource(list.clause, name, source, list.nested); err != nil {
				return err
			}
			if seen[strings.ToLower(name)] {
				return fault.New("COLUMN_ALREADY_EXISTS", "%s names %q twice", list.clause, name)
			}
			seen[strings.ToLower(name)] = true
		}
	}
	return nil
}

// inSource holds that a name is that of a column of the source.
func inSource(clause, name string, source *arrow.Schema, nested bool) error {
	if _, ok := fieldFold(source, name); ok {
		return nil
	}
	_, inner := fieldAt(source, name)
	switch {
	case inner && nested:
		return nil
	case inner:
		return fault.New("AUTOCDC_MULTIPART_COLUMN_IDENTIFIER", "%s names %q, a field of a column", clause, name).WithHint("Name whole columns; a view can make one of a field")
	}
	e := fault.New("UNRESOLVED_COLUMN", "%s names %q, which is no column of the source", clause, name)
	return suggest(e, name, columnNames(source), "")
}

// computedPrefix begins the names under which SQL gives the columns that the flow
// itself computes; the application has a prefix that SQL may not use.
const computedPrefix = "__autocdc_"

// check refuses what does not go together, whatever the expressions are.
func (c *changes) check(source *arrow.Schema) error {
	switch {
	case len(c.keys) == 0:
		return fault.New("INVALID_FLOW", "an AUTO CDC flow without keys").WithHint("Name under KEYS the columns that identify a row")
	case c.sequenceBy.Text == "":
		return fault.New("INVALID_FLOW", "an AUTO CDC flow without SEQUENCE BY").
			WithHint("Name the column that orders the changes of a key. Only a change feed needs none: its rows say in which version they were committed")
	case c.scdType != 1 && c.scdType != 2:
		return fault.New("INVALID_FLOW", "SCD type %d", c.scdType).WithHint("Use 1 or 2")
	case c.scdType == 1 && (c.tracked.Only != nil || c.tracked.Except != nil):
		return fault.New("INVALID_FLOW", "TRACK HISTORY is for SCD type 2").WithHint("Write STORED AS SCD TYPE 2, or leave it out")
	case c.truncateWhen.Text != "" && c.scdType == 2:
		return fault.New("NOT_SUPPORTED", "APPLY AS TRUNCATE WHEN is for SCD type 1")
	}
	for _, key := range c.keys {
		if c.columns != nil && !listed(c.columns, key) || listed(c.except, key) {
			return fault.New("AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA", "COLUMNS leaves out the key %s", key).WithHint("Keep the keys")
		}
		if c.ignoreNulls != nil && listed(c.ignoreNulls.Only, key) {
			return fault.New("INVALID_FLOW", "IGNORE NULL UPDATES ON names the key %s, which is never NULL", key).WithHint("Leave it out")
		}
	}
	for _, f := range source.Fields() {
		if strings.EqualFold(f.Name, cdc.StartColumn) || strings.EqualFold(f.Name, cdc.EndColumn) {
			return fault.New("AUTOCDC_RESERVED_COLUMN_NAME_CONFLICT", "the source has a column %s, which SCD type 2 gives the target", f.Name).
				WithHint("Rename it in a view, and read that")
		}
		if strings.HasPrefix(strings.ToLower(f.Name), computedPrefix) {
			return fault.New("AUTOCDC_RESERVED_COLUMN_NAME_PREFIX_CONFLICT", "the source has a column %s; names that begin with %s are the flow's own", f.Name, computedPrefix).
				WithHint("Rename it in a view, and read that")
		}
	}
	return nil
}

// changesPlan gives what an auto_cdc flow does as a plan shows it.
func (f *flow) changesPlan() *ChangesPlan {
	if f.cdc == nil {
		return nil
	}
	c := *f.cdc
	if f.readsFeed() {
		c.defaultFeed()
	}
	return &ChangesPlan{
		Source: f.body.inputs[0].id(), Keys: c.keys, SequenceBy: c.sequenceBy.Text, SCDType: c.scdType,
		DeletesWhen: c.deleteWhen.Text, TruncatesWhen: c.truncateWhen.Text,
	}
}

// print is of all that a flow declares of its changes.
func (c *changes) print() string {
	if c == nil {
		return ""
	}
	text, err := json.Marshal([]any{c.keys, c.sequenceBy.Text, c.deleteWhen.Text, c.truncateWhen.Text, c.columns, c.except, c.scdType, c.tracked, c.ignoreNulls, c.lastBy})
	if err != nil {
		panic(err) // texts always encode
	}
	return string(text)
}
