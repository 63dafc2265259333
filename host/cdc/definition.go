package cdc

import (
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/cdc/state"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// The hidden columns of the rows that an application takes, behind those of the
// target. The flow's last step computes them from its clauses.
const (
	// SequenceColumn is the value of SEQUENCE BY, of any orderable type.
	SequenceColumn = "__weir_cdc_sequence"
	// DeleteColumn and TruncateColumn are what the conditions say, BOOLEAN; NULL is
	// false. A flow without the clause has no such column.
	DeleteColumn   = "__weir_cdc_delete"
	TruncateColumn = "__weir_cdc_truncate"
	// TieColumn is the prefix of the columns that decide between changes of one
	// key and sequence; a number from 0 follows.
	TieColumn = "__weir_cdc_tie_"

	// HiddenPrefix is that of all of them.
	HiddenPrefix = "__weir_cdc_"
)

// The columns that SCD type 2 adds, unless the definition asks for technical ones.
const (
	StartColumn = "__START_AT"
	EndColumn   = "__END_AT"
)

// Definition is what a flow declares of its changes, and where its state lies.
// Names of columns are compared without case.
type Definition struct {
	Dataset, Flow string
	// StateID is the application whose transaction version in the target names the
	// valid version of the state: <pipeline id>/<dataset>/cdc-state.
	StateID string
	// Keys are the columns that make a row the same row, in any order.
	Keys    []string
	SCDType int // 1 or 2
	// Technical says that SCD type 2 adds _tech_valid_from, _tech_valid_to,
	// _tech_is_current and _tech_hash, in place of __START_AT and __END_AT.
	Technical bool
	// Tracked are the columns whose change opens a row in SCD type 2; the zero
	// value is all that are no keys.
	Tracked Choice
	// IgnoreNulls are the columns, or fields of structs (a.b), in which a NULL says
	// nothing; nil is none, the zero value all that are no keys.
	IgnoreNulls *Choice
	// LastBy says by which columns the last of several changes with one sequence
	// is found: their names, for the record. Their values are the tie columns.
	LastBy []string
	// Tombstones is how long a removed key is remembered, 0 for good.
	Tombstones time.Duration

	// Memory is about how many bytes of changes are held; more are spilled to
	// TempDir. 0 is 256 MiB.
	Memory  int64
	TempDir string // "" is the system's
	// Workers is how many parts of a batch are worked on at once; 0 is one for each core.
	Workers int
	// ScanShare is when the state is read from end to end rather than asked for
	// keys: a batch has at least this share of its entries. 0 is 1.
	ScanShare float64

	// State keeps what was seen. Cache is the folder of the key index.
	State *state.Store
	Cache string
}

// Choice is a list of columns, or all but a list.
type Choice struct {
	Only   []string // nil for all but Except
	Except []string
}

// has tells whether a column, or a field of one, is chosen: by its own name or
// by that of what holds it.
func (c *Choice) has(path string) bool {
	listed := func(list []string) bool {
		return slices.ContainsFunc(list, func(name string) bool {
			return strings.EqualFold(name, path) || len(path) > len(name) && path[len(name)] == '.' && strings.EqualFold(path[:len(name)], name)
		})
	}
	if c.Only != nil {
		return listed(c.Only)
	}
	return !listed(c.Except)
}

// technical tells whether a column says how a row came here rather than what it
// says. Such columns do not count when two changes are compared: a replayed file
// has other ones.
func technical(name string) bool { return strings.HasPrefix(name, "_") }

// columnNamed finds a column whatever its case, -1 for none.
func columnNamed(s *arrow.Schema, name string) int {
	return slices.IndexFunc(s.Fields(), func(f arrow.Field) bool { return strings.EqualFold(f.Name, name) })
}

// Schema gives the target's columns for rows of these.
func (d *Definition) Schema(rows *arrow.Schema) (*arrow.Schema, error) {
	var fields []arrow.Field
	for _, f := range rows.Fields() {
		switch {
		case strings.HasPrefix(f.Name, HiddenPrefix):
			continue
		case d.adds(f.Name) || strings.EqualFold(f.Name, StartColumn) || strings.EqualFold(f.Name, EndColumn):
			return nil, d.fault("AUTOCDC_RESERVED_COLUMN", "the rows have a column %s, which is the target's own", f.Name).
				WithHint("Leave it out with COLUMNS * EXCEPT, or rename it in a view")
		}
		fields = append(fields, f)
	}
	for _, key := range d.Keys {
		if i := columnNamed(rows, key); i < 0 {
			return nil, d.fault("AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA", "the rows have no column %s, which is a key", key).WithHint("Keep the keys")
		}
	}
	at := columnNamed(rows, SequenceColumn)
	if at < 0 {
		return nil, d.fault("INTERNAL_ERROR", "the rows have no sequence")
	}
	return arrow.NewSchema(append(fields, d.added(rows.Field(at).Type)...), nil), nil
}

// interval names the columns of an interval.
func (d *Definition) interval() relation.Interval {
	if d.Technical {
		return relation.Intervals[1]
	}
	return relation.Intervals[0]
}

// added are the columns that SCD type 2 adds, for sequences of a type.
func (d *Definition) added(sequence arrow.DataType) []arrow.Field {
	if d.SCDType != 2 {
		return nil
	}
	in := d.interval()
	fields := []arrow.Field{{Name: in.Start, Type: sequence, Nullable: true}, {Name: in.End, Type: sequence, Nullable: true}}
	if d.Technical {
		fields = append(fields, arrow.Field{Name: relation.IsCurrentColumn, Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
			arrow.Field{Name: relation.HashColumn, Type: arrow.BinaryTypes.String, Nullable: true})
	}
	return fields
}

// byHand refuses a target to which somebody has added what would say a second time
// from when until when a row holds: nothing would keep it.
func (d *Definition) byHand(target *arrow.Schema) error {
	if d.SCDType != 2 || d.Technical || columnNamed(target, StartColumn) < 0 {
		return nil // without a start it is a table of the other kind
	}
	tech := Definition{SCDType: 2, Technical: true}
	for _, f := range target.Fields() {
		if tech.adds(f.Name) {
			return d.fault("INTERVAL_COLUMN_BY_HAND", "the target has got a column %s, and AUTO CDC alone knows which version of a row holds", f.Name).
				WithHint("Drop the column. A view of the intervals under those names is made where the table property weir.intervalView is true")
		}
	}
	return nil
}

// adds tells whether a column is one of them.
func (d *Definition) adds(name string) bool {
	return slices.ContainsFunc(d.added(arrow.Null), func(f arrow.Field) bool { return strings.EqualFold(f.Name, name) })
}

func (d *Definition) fault(code, format string, args ...any) *fault.Error {
	return fault.New(code, format, args...).At(fault.Where{Dataset: d.Dataset, Flow: d.Flow})
}
