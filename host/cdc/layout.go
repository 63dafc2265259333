package cdc

import (
	"cmp"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/cdc/state"
)

// layout is a definition laid over the columns of a batch.
type layout struct {
	*Definition
	// values are the target's columns without those that SCD type 2 adds.
	values   *arrow.Schema
	sequence arrow.DataType
	// Places in values. The keys stand by name: their code must not depend on the
	// order in which a flow lists them.
	keys    []int
	counted []int // what two changes are compared by
	tracked []int
	// exact says that all columns but the keys are counted.
	exact bool
	// inherited are the columns and fields in which a NULL says nothing.
	inherited []*leaf
}

// newLayout finds the columns. columns are the target's after the batch.
func newLayout(d *Definition, columns *arrow.Schema, sequence arrow.DataType) (*layout, error) {
	l := &layout{Definition: d, sequence: sequence}
	var fields []arrow.Field
	for _, f := range columns.Fields() {
		if d.adds(f.Name) {
			continue
		}
		fields = append(fields, arrow.Field{Name: f.Name, Type: f.Type, Nullable: true})
	}
	l.values = arrow.NewSchema(fields, nil)
	for _, key := range d.Keys {
		i := columnNamed(l.values, key)
		if i < 0 {
			return nil, d.fault("AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA", "the target has no column %s, which is a key", key)
		}
		l.keys = append(l.keys, i)
	}
	slices.SortFunc(l.keys, func(a, b int) int {
		return cmp.Compare(strings.ToLower(fields[a].Name), strings.ToLower(fields[b].Name))
	})
	l.exact = true
	for i, f := range fields {
		if slices.Contains(l.keys, i) {
			continue
		}
		if technical(f.Name) {
			l.exact = false
		} else {
			l.counted = append(l.counted, i)
		}
		if d.SCDType == 2 && d.Tracked.has(f.Name) {
			l.tracked = append(l.tracked, i)
		}
		if d.IgnoreNulls != nil {
			l.inherited = d.IgnoreNulls.leaves(l.inherited, f, i, d.SCDType == 2 && d.Tracked.has(f.Name))
		}
	}
	return l, nil
}

// keeps tells whether the state has one entry for each change, with its values;
// else it has the newest of each key and no values.
func (l *layout) keeps() bool { return l.SCDType == 2 || l.IgnoreNulls != nil }

// entries are the columns of the state's entries with values.
func (l *layout) entries() *arrow.Schema { return state.Schema(l.values.Fields()...) }

// columns are those of the target: the values and, in SCD type 2, the interval.
func (l *layout) columns() *arrow.Schema {
	return arrow.NewSchema(append(l.values.Fields(), l.added(l.sequence)...), nil)
}

// sequenceWidth is how many bytes of an order are the sequence's: 0 when only its
// code tells, -1 when they all are.
func (a *apply) sequenceWidth() int {
	if len(a.LastBy) == 0 && len(a.made.LastBy) == 0 {
		return -1
	}
	switch a.sequence.ID() {
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.DATE32, arrow.TIMESTAMP, arrow.FLOAT32, arrow.FLOAT64:
		return 8
	case arrow.DECIMAL128:
		return 16
	}
	return 0
}
