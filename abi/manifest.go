package abi

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/abi/coltype"
)

// Manifest is what a module says it carries. It belongs to a module and a
// configuration, since names of datasets may depend on the configuration.
type Manifest struct {
	ABI       int        `json:"abi"`
	Module    string     `json:"module"`
	Version   string     `json:"version,omitempty"`
	SDK       string     `json:"sdk,omitempty"`
	Functions []Function `json:"functions,omitzero"`
	Datasets  []Dataset  `json:"datasets,omitzero"`
	Flows     []Flow     `json:"flows,omitzero"`
}

// Function is one dataset function; its number in a call is its place in the
// manifest's list.
type Function struct {
	Name        string      `json:"name"`
	Kind        string      `json:"kind"`
	Comment     string      `json:"comment,omitempty"`
	Inputs      []Input     `json:"inputs,omitzero"`
	RowAligned  bool        `json:"row_aligned,omitempty"`
	Passthrough Passthrough `json:"passthrough,omitzero"`
	Output      []Column    `json:"output,omitzero"` // nil: not declared; empty: no columns
	Outputs     []Output    `json:"outputs,omitzero"`
	Reuse       bool        `json:"reuse,omitempty"`
	Conf        []string    `json:"conf,omitzero"` // keys or prefix.*
	// Version is the type of a snapshot provider's versions, as VersionType reads it.
	Version string `json:"version,omitempty"`
}

// Input is one input of a function: a dataset by name, or a source.
type Input struct {
	Dataset string   `json:"dataset,omitempty"`
	Source  *Source  `json:"source,omitempty"`
	Mode    string   `json:"mode"`
	Columns []string `json:"columns,omitzero"` // nil: all data columns; empty: none, row counts only
	// Options are those of the stream of a dataset: skipChangeCommits, readChangeFeed and others.
	Options map[string]string `json:"options,omitzero"`
}

// Source is an input that is not a dataset, such as files.
type Source struct {
	Format  string            `json:"format"`
	Path    string            `json:"path,omitempty"`
	Options map[string]string `json:"options,omitzero"`
}

// Column is a column of an output or of a dataset.
type Column struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"` // true when absent
	Comment  string `json:"comment,omitempty"`
}

// Field gives the column as an Arrow field. A column of a parsed manifest has
// a type that reads, so only hand-made columns give an error.
func (c Column) Field() (arrow.Field, error) {
	dt, err := coltype.Parse(c.Type)
	if err != nil {
		return arrow.Field{}, err
	}
	return coltype.Field{Path: []string{c.Name}, Type: dt, NotNull: !c.Nullable, Comment: c.Comment}.Arrow(), nil
}

// Output is one of several outputs of a function.
type Output struct {
	Dataset string   `json:"dataset"`
	Mode    string   `json:"mode"`
	Keys    []string `json:"keys,omitzero"`
}

// Rename is one column that the host carries around the guest.
type Rename struct {
	Input  string
	Output string
}

// Passthrough is a JSON object from input name to output name that keeps its order.
type Passthrough []Rename

// MarshalJSON writes the object in order.
func (p Passthrough) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, r := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		for j, s := range []string{r.Input, r.Output} {
			text, err := json.Marshal(s)
			if err != nil {
				return nil, err
			}
			b.Write(text)
			if j == 0 {
				b.WriteByte(':')
			}
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Dataset is a dataset that the module declares.
type Dataset struct {
	Name            string            `json:"name"`
	Type            string            `json:"type"`
	Function        string            `json:"function,omitempty"`
	Comment         string            `json:"comment,omitempty"`
	Private         bool              `json:"private,omitempty"`
	TableProperties map[string]string `json:"table_properties,omitzero"`
	PartitionBy     []string          `json:"partition_by,omitzero"`
	ClusterBy       []string          `json:"cluster_by,omitzero"`
	Schema          []Column          `json:"schema,omitzero"`
	Expectations    []Expectation     `json:"expectations,omitzero"`
	OnRowError      string            `json:"on_row_error,omitempty"` // "" when absent: a flow's own counts, else fail
	Format          string            `json:"format,omitempty"`
	Options         map[string]string `json:"options,omitzero"`
}

// Expectation is a rule on the rows of a dataset.
type Expectation struct {
	Name        string `json:"name"`
	Condition   string `json:"condition"`
	OnViolation string `json:"on_violation"` // warn when absent
	Null        string `json:"null"`         // violate when absent
}

// Flow is a flow into a dataset of this or another module.
type Flow struct {
	Name     string `json:"name,omitempty"` // the target's name when absent
	Type     string `json:"type"`
	Target   string `json:"target"`
	Function string `json:"function,omitempty"`
	Source   string `json:"source,omitempty"`
	// SourceOptions are those of the stream of Source.
	SourceOptions map[string]string `json:"source_options,omitzero"`
	Once          bool              `json:"once,omitempty"`
	OnRowError    string            `json:"on_row_error,omitempty"`

	Keys                         []string `json:"keys,omitzero"`
	SequenceBy                   string   `json:"sequence_by,omitempty"`
	ApplyAsDeletes               string   `json:"apply_as_deletes,omitempty"`
	ApplyAsTruncates             string   `json:"apply_as_truncates,omitempty"`
	IgnoreNullUpdates            bool     `json:"ignore_null_updates,omitempty"`
	IgnoreNullUpdatesColumnList  []string `json:"ignore_null_updates_column_list,omitzero"`
	IgnoreNullUpdatesExceptList  []string `json:"ignore_null_updates_except_column_list,omitzero"`
	ColumnList                   []string `json:"column_list,omitzero"`
	ExceptColumnList             []string `json:"except_column_list,omitzero"`
	StoredAsSCDType              int      `json:"stored_as_scd_type,omitempty"` // 1 when absent in an AUTO CDC flow
	TrackHistoryColumnList       []string `json:"track_history_column_list,omitzero"`
	TrackHistoryExceptColumnList []string `json:"track_history_except_column_list,omitzero"`
	// TiesLastBy are the columns that decide between two changes of a key with one
	// sequence, highest first; without them such a tie is an error.
	TiesLastBy []string `json:"ties_last_by,omitzero"`
}

// Function finds a function by name and gives its number.
func (m *Manifest) Function(name string) (*Function, int, bool) {
	for i := range m.Functions {
		if m.Functions[i].Name == name {
			return &m.Functions[i], i, true
		}
	}
	return nil, -1, false
}

// Granted reports whether a list of keys or prefix.* covers the key.
func Granted(list []string, key string) bool {
	for _, g := range list {
		if g == key || g == "*" || strings.HasSuffix(g, ".*") && strings.HasPrefix(key, g[:len(g)-1]) {
			return true
		}
	}
	return false
}
