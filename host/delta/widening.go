package delta

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

const (
	wideningKey    = "delta.enableTypeWidening"
	typeChangesKey = "delta.typeChanges"
)

// canWiden tells whether the protocol allows a column to change its type. What
// schema evolution may do by itself is less: an integer becomes a double or a
// decimal only when someone asks for it.
func canWiden(from, to arrow.DataType, byItself bool) bool {
	if arrow.TypeEqual(from, to) || !widens(from, to) {
		return false
	}
	d, ok := to.(*arrow.Decimal128Type)
	if !ok {
		return !byItself || to.ID() != arrow.FLOAT64 || from.ID() == arrow.FLOAT32
	}
	switch from.ID() {
	case arrow.DECIMAL128:
		return true
	case arrow.INT64:
		return !byItself && d.Precision-d.Scale >= 20
	}
	return !byItself && d.Precision-d.Scale >= 10
}

// mayBecome tells whether a column of the table can take another type. A void
// column has no values and can become anything.
func (r *revision) mayBecome(from *primitive, to dataType, byItself bool) bool {
	if from.arrow.ID() == arrow.NULL {
		return true
	}
	p, ok := to.(*primitive)
	return ok && r.widening() && canWiden(from.arrow, p.arrow, byItself)
}

// widening tells whether columns may be widened.
func (r *revision) widening() bool { return strings.EqualFold(r.conf[wideningKey], "true") }

// cannotBecome says why a column cannot take a type.
func (r *revision) cannotBecome(path string, from, to dataType) error {
	err := fault.New("DELTA_UNSUPPORTED_SCHEMA_CHANGE", "column %q of type %s cannot become %s", path, from.sparkName(), to.sparkName())
	f, ok1 := from.(*primitive)
	t, ok2 := to.(*primitive)
	if ok1 && ok2 && !r.widening() && canWiden(f.arrow, t.arrow, false) {
		return err.WithHint("Set the table property %s = true first", wideningKey)
	}
	return err
}

// typeChange is one step of a column's history.
type typeChange struct {
	FromType  string `json:"fromType"`
	ToType    string `json:"toType"`
	FieldPath string `json:"fieldPath,omitempty"`
}

// recordTypeChange adds a step to the history that the field keeps of itself
// and of the elements, keys and values below it.
func (f *field) recordTypeChange(from, to *primitive, below []string) {
	var history []json.RawMessage
	if raw, ok := f.meta[typeChangesKey]; ok {
		_ = json.Unmarshal(raw, &history) // one that cannot be read begins anew
	}
	step, _ := json.Marshal(typeChange{from.name, to.name, strings.Join(below, ".")}) // strings always have a JSON form
	raw, _ := json.Marshal(append(history, step))                                     // and so has a list of JSON
	f.meta = maps.Clone(f.meta)
	if f.meta == nil {
		f.meta = map[string]json.RawMessage{}
	}
	f.meta[typeChangesKey] = raw
}

// recordTypeChanges compares the fields of two versions of a schema, which have
// the old ones first and in order, and adds what was widened to the history.
func recordTypeChanges(old, next *structType) {
	for i, o := range old.fields {
		if i < len(next.fields) {
			next.fields[i].recordDifferences(o.typ, next.fields[i].typ, nil)
		}
	}
}

func (f *field) recordDifferences(old, next dataType, below []string) {
	deeper := func(step string) []string { return append(below[:len(below):len(below)], step) }
	switch o := old.(type) {
	case *structType:
		if n, ok := next.(*structType); ok {
			recordTypeChanges(o, n)
		}
	case *arrayType:
		if n, ok := next.(*arrayType); ok {
			f.recordDifferences(o.elem, n.elem, deeper("element"))
		}
	case *mapType:
		if n, ok := next.(*mapType); ok {
			f.recordDifferences(o.key, n.key, deeper("key"))
			f.recordDifferences(o.value, n.value, deeper("value"))
		}
	case *primitive:
		if n, ok := next.(*primitive); ok && n.name != o.name && o.arrow.ID() != arrow.NULL {
			f.recordTypeChange(o, n, below)
		}
	}
}

// checkTypeChanges refuses a table whose columns were changed in ways that we
// cannot follow in its old files.
func checkTypeChanges(p *Protocol, t *structType) (err error) {
	if !p.has("typeWidening") && !p.has("typeWidening-preview") {
		return nil
	}
	eachField(t, nil, func(f *field, path []string) {
		raw, ok := f.meta[typeChangesKey]
		if !ok || err != nil {
			return
		}
		var history []typeChange
		if json.Unmarshal(raw, &history) != nil {
			err = invalidSchema("column %q has a history of types that is not readable", strings.Join(path, "."))
			return
		}
		for _, step := range history {
			if !step.known() {
				err = unsupported("column %q was changed from %s to %s, which is no type widening", strings.Join(path, "."), step.FromType, step.ToType)
				return
			}
		}
	})
	return err
}

// known tells whether files from before the change can be read. Lengths of
// strings are no types of the log, but some writers note their change.
func (c *typeChange) known() bool {
	if isText(c.FromType) && isText(c.ToType) {
		return true
	}
	from, err1 := parsePrimitive(c.FromType)
	to, err2 := parsePrimitive(c.ToType)
	if err1 != nil || err2 != nil {
		return false
	}
	a, b := from.(*primitive).arrow, to.(*primitive).arrow
	// Integers were once widened to any decimal that holds them, not only to those
	// that hold all of a wider integer (delta-kernel-rs type-widening).
	return arrow.TypeEqual(a, b) || canWiden(a, b, false) || widens(a, b)
}

func isText(name string) bool {
	return name == "string" || strings.HasPrefix(name, "varchar(") || strings.HasPrefix(name, "char(")
}
