package plugin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/runtime/wire"
)

// hidden reports whether a column is the host's own and no data column: a
// function without a projection does not get it.
func hidden(name string) bool { return strings.HasPrefix(name, "__weir_") || name == "_metadata" }

// projection finds the columns of an input that its function receives, and
// the input's schema with the manifest's spelling of their names.
func projection(number int, in abi.Input, schema *arrow.Schema, carry []string) (*arrow.Schema, []int, error) {
	columns := []int{}
	if in.Columns == nil {
		for i, f := range schema.Fields() {
			if !hidden(f.Name) && !slices.Contains(carry, f.Name) {
				columns = append(columns, i)
			}
		}
		return schema, columns, nil
	}
	fields := slices.Clone(schema.Fields())
	for _, name := range in.Columns {
		i, err := find(number, schema, name)
		if err != nil {
			return nil, nil, err
		}
		fields[i].Name = name
		columns = append(columns, i)
	}
	return arrow.NewSchema(fields, nil), columns, nil
}

// find looks a column up by its name, then by its name whatever the case, as SQL does.
func find(number int, schema *arrow.Schema, name string) (int, error) {
	match := -1
	for i, f := range schema.Fields() {
		if f.Name == name {
			return i, nil
		}
		if strings.EqualFold(f.Name, name) {
			if match >= 0 {
				return 0, errorf(CodeSchemaMismatch, "input %d has several columns %q that differ only in case", number, name)
			}
			match = i
		}
	}
	if match < 0 {
		return 0, errorf(CodeSchemaMismatch, "input %d has no column %q; it has %s", number, name, names(schema))
	}
	return match, nil
}

func names(schema *arrow.Schema) string {
	var out []string
	for i, f := range schema.Fields() {
		if i == 30 {
			out = append(out, fmt.Sprintf("and %d more", schema.NumFields()-i))
			break
		}
		out = append(out, f.Name)
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, ", ")
}

// signature is what a call of a function does with the columns: what each
// input sends, what the guest writes, what goes around it.
type signature struct {
	function *abi.Function
	number   int
	sent     []*arrow.Schema // of each input, renamed
	columns  [][]int         // of each input, those that are sent
	guests   []*arrow.Schema // what the guest writes to each output; nil when it is not declared
	before   []int           // columns of input 0 carried before the guest's
	after    []int           // and after
	carried  []arrow.Field   // their fields, before
	trailing []arrow.Field   // and after
}

// sign resolves a function's columns against the schemas of its inputs.
func (m *Module) sign(function string, inputs []*arrow.Schema, carry []string) (*signature, error) {
	f, number, ok := m.manifest.Function(function)
	if !ok {
		return nil, errorf(CodeNoFunction, "the module has no function of that name")
	}
	switch f.Kind {
	case abi.KindMap, abi.KindStateful, abi.KindQuery, abi.KindForeachBatch, abi.KindSnapshot:
	default:
		return nil, errorf(CodeNotSupported, "functions of kind %s do not run in this version", f.Kind)
	}
	if (f.Outputs != nil) != (f.Kind == abi.KindForeachBatch) {
		return nil, errorf(CodeNotSupported, "a function of kind %s names its outputs, others have one; this one is of kind %s", abi.KindForeachBatch, f.Kind)
	}
	if len(inputs) != len(f.Inputs) {
		return nil, errorf(CodeSchemaMismatch, "it was given %d inputs and declares %d", len(inputs), len(f.Inputs))
	}
	if n := int64(len(inputs)); n > m.limits.OpenInputs {
		return nil, overLimit("open_inputs", m.limits.OpenInputs, fmt.Sprintf("a function of %d inputs", n))
	}
	s := &signature{function: f, number: number}
	for i, in := range f.Inputs {
		own := carry
		if i > 0 {
			own = nil
		}
		sent, columns, err := projection(i, in, inputs[i], own)
		if err != nil {
			return nil, err
		}
		s.sent, s.columns = append(s.sent, sent), append(s.columns, columns)
	}
	if f.Output != nil {
		fields := make([]arrow.Field, 0, len(f.Output))
		for _, c := range f.Output {
			field, err := c.Field()
			if err != nil {
				return nil, because(err, CodeManifest, "output column %s", c.Name)
			}
			fields = append(fields, field)
		}
		s.guests = []*arrow.Schema{arrow.NewSchema(fields, nil)}
	}
	if !f.RowAligned {
		return s, nil
	}
	for _, r := range f.Passthrough {
		i, err := find(0, inputs[0], r.Input)
		if err != nil {
			return nil, err
		}
		field := inputs[0].Field(i)
		field.Name = r.Output
		s.before, s.carried = append(s.before, i), append(s.carried, field)
	}
	for _, name := range carry {
		i, err := find(0, inputs[0], name)
		if err != nil {
			return nil, err
		}
		s.after, s.trailing = append(s.after, i), append(s.trailing, inputs[0].Field(i))
	}
	return s, nil
}

// output gives the schema of the whole output, with what the guest writes.
func (s *signature) output(guest *arrow.Schema) (*arrow.Schema, error) {
	fields := slices.Concat(s.carried, guest.Fields(), s.trailing)
	seen := make(map[string]bool, len(fields))
	for _, f := range fields {
		key := strings.ToLower(f.Name)
		if seen[key] {
			return nil, errorf(CodeSchemaMismatch, "its output has two columns %q", f.Name)
		}
		seen[key] = true
	}
	return arrow.NewSchema(fields, nil), nil
}

// encoders makes one encoder an input.
func (s *signature) encoders() ([]*wire.Encoder, error) {
	out := make([]*wire.Encoder, len(s.sent))
	for i := range s.sent {
		var err error
		if out[i], err = wire.NewEncoder(s.sent[i], s.columns[i]); err != nil {
			return nil, because(err, CodeSchemaMismatch, "input %d cannot cross to the guest", i)
		}
	}
	return out, nil
}
