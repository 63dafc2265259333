package ingest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/fault"
)

// Origin says where a column of a Schema comes from.
type Origin string

// The origins.
const (
	Inferred  Origin = "inferred"
	Hint      Origin = "hint"
	Declared  Origin = "declared"
	Partition Origin = "partition"
	Evolved   Origin = "evolved"
)

var origins = []Origin{Inferred, Hint, Declared, Partition, Evolved}

// Field is one column of a Schema.
type Field struct {
	Name    string
	Type    arrow.DataType
	Origin  Origin
	Comment string
}

// Schema is one version of the schema of a source: data and partition columns
// in order, new columns of later versions at the end. Rescued data, _metadata
// and the row number are not part of it; ArrowSchema adds them.
type Schema struct {
	// Version counts from 0; each evolution adds one.
	Version int
	// Batch is the micro-batch that made this version; the batch loop sets it.
	Batch  int64
	Fields []Field
}

// schemaFormat is the version of the JSON form.
const schemaFormat = 1

type schemaJSON struct {
	Format  int         `json:"format"`
	Version int         `json:"version"`
	Batch   int64       `json:"batch"`
	Fields  []fieldJSON `json:"fields"`
}

type fieldJSON struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Origin  Origin `json:"origin"`
	Comment string `json:"comment,omitempty"`
}

// MarshalSchema writes a schema as JSON; FORMAT.md describes it.
func MarshalSchema(s *Schema) ([]byte, error) {
	out := schemaJSON{Format: schemaFormat, Version: s.Version, Batch: s.Batch, Fields: []fieldJSON{}}
	for _, f := range s.Fields {
		name, err := coltype.Name(f.Type)
		if err != nil {
			return nil, fault.Wrap(err, fault.CodeOf(err), "column %s", f.Name)
		}
		out.Fields = append(out.Fields, fieldJSON{f.Name, name, f.Origin, f.Comment})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(out); err != nil {
		return nil, fault.Wrap(err, "INVALID_SCHEMA_VERSION", "cannot be written")
	}
	return b.Bytes(), nil
}

// UnmarshalSchema reads what MarshalSchema wrote. Anything it does not know is
// an error: a schema half understood would lose columns.
func UnmarshalSchema(data []byte) (*Schema, error) {
	const code = "INVALID_SCHEMA_VERSION"
	var in schemaJSON
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, fault.Wrap(err, code, "not a schema version file")
	}
	if dec.More() {
		return nil, fault.New(code, "something follows the schema")
	}
	if in.Format != schemaFormat {
		return nil, fault.New(code, "format %d is not known; this build reads format %d", in.Format, schemaFormat)
	}
	if in.Version < 0 {
		return nil, fault.New(code, "version %d is negative", in.Version)
	}
	s := &Schema{Version: in.Version, Batch: in.Batch}
	seen := map[string]bool{}
	for _, f := range in.Fields {
		dt, err := coltype.Parse(f.Type)
		if err != nil {
			return nil, fault.Wrap(err, code, "column %q", f.Name)
		}
		if f.Name == "" || seen[strings.ToLower(f.Name)] {
			return nil, fault.New(code, "column name %q is empty or stands twice", f.Name)
		}
		seen[strings.ToLower(f.Name)] = true
		if !slices.Contains(origins, f.Origin) {
			return nil, fault.New(code, "column %q: unknown origin %q", f.Name, f.Origin)
		}
		s.Fields = append(s.Fields, Field{f.Name, dt, f.Origin, f.Comment})
	}
	return s, nil
}

// declared makes the schema of the option schema.
func (s *Source) declared() *Schema {
	out := &Schema{}
	for _, f := range s.config.schema {
		origin := Declared
		if slices.ContainsFunc(s.config.partitions, func(p string) bool { return strings.EqualFold(p, f.Name()) }) {
			origin = Partition
		}
		out.Fields = append(out.Fields, Field{f.Name(), f.Type, origin, f.Comment})
	}
	return out
}

// assemble makes a schema from the shape of the records and of the partition values.
func (s *Source) assemble(data, partitions *shape) (*Schema, error) {
	c := s.config
	r := resolver{dropAllNull: c.dropAllNull, unusable: s.unusable}
	fields := r.fields(data)
	if c.format == formatCSV {
		sortAsSeen(fields, data)
	}
	if !c.inferTypes {
		for i := range fields {
			fields[i].Type = c.untyped(fields[i].Name, fields[i].Type)
		}
	}
	parts := r.fields(partitions)
	parts = inOrderOf(parts, c.partitions)
	for _, name := range c.partitions {
		if fieldIndex(parts, name) < 0 {
			parts = append(parts, arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true})
		}
	}
	out := &Schema{}
	for _, f := range fields {
		if fieldIndex(parts, f.Name) < 0 {
			out.Fields = append(out.Fields, Field{Name: f.Name, Type: f.Type, Origin: Inferred})
		}
	}
	for _, f := range parts {
		dt := f.Type
		if !c.inferTypes {
			dt = arrow.BinaryTypes.String
		}
		out.Fields = append(out.Fields, Field{Name: f.Name, Type: dt, Origin: Partition})
	}
	if err := s.applyHints(out, true); err != nil {
		return nil, err
	}
	if len(out.Fields) == 0 {
		hint := "Wait for the first file with data, or name the columns in schemaHints or schema"
		if c.format == formatJSON && !c.multiLine {
			hint += "; documents of several lines need multiLine"
		}
		return nil, fault.New("UNABLE_TO_INFER_SCHEMA", "the files have no record to take a schema from").WithHint("%s", hint).At(fault.Where{File: s.place.root})
	}
	return out, s.checkTypes(out)
}

// inOrderOf sorts fields by the order of names, those not named last, as they were.
func inOrderOf(fields []arrow.Field, names []string) []arrow.Field {
	rank := map[string]int{}
	for i, n := range names {
		if _, ok := rank[strings.ToLower(n)]; !ok {
			rank[strings.ToLower(n)] = i
		}
	}
	position := func(f arrow.Field) int {
		if p, ok := rank[strings.ToLower(f.Name)]; ok {
			return p
		}
		return len(names)
	}
	slices.SortStableFunc(fields, func(a, b arrow.Field) int { return position(a) - position(b) })
	return fields
}

// sortAsSeen brings fields into the order in which the files have them.
func sortAsSeen(fields []arrow.Field, sh *shape) {
	slices.SortStableFunc(fields, func(a, b arrow.Field) int {
		return b2i(sh.fields[b.Name].at.before(sh.fields[a.Name].at)) - b2i(sh.fields[a.Name].at.before(sh.fields[b.Name].at))
	})
}

func fieldIndex(fields []arrow.Field, name string) int {
	return slices.IndexFunc(fields, func(f arrow.Field) bool { return strings.EqualFold(f.Name, name) })
}

// untyped is the type of a column when types are not inferred: a string, but
// for a struct that a hint goes into, whose other fields are strings then.
func (c *config) untyped(name string, dt arrow.DataType) arrow.DataType {
	for _, h := range c.hints {
		if len(h.Path) > 1 && strings.EqualFold(h.Path[0], name) {
			return stringLeaves(dt)
		}
	}
	return arrow.BinaryTypes.String
}

func stringLeaves(dt arrow.DataType) arrow.DataType {
	switch t := dt.(type) {
	case *arrow.StructType:
		fields := slices.Clone(t.Fields())
		for i := range fields {
			fields[i].Type = stringLeaves(fields[i].Type)
		}
		return arrow.StructOf(fields...)
	case *arrow.ListType:
		return arrow.ListOf(stringLeaves(t.Elem()))
	}
	return arrow.BinaryTypes.String
}

// applyHints gives hinted columns their types. A hinted column that no record
// had is added when missing is true.
func (s *Source) applyHints(schema *Schema, missing bool) error {
	for _, h := range s.config.hints {
		i := slices.IndexFunc(schema.Fields, func(f Field) bool { return f.Name == h.Path[0] })
		if i < 0 {
			i = slices.IndexFunc(schema.Fields, func(f Field) bool { return strings.EqualFold(f.Name, h.Path[0]) })
		}
		if i < 0 {
			if !missing {
				continue
			}
			schema.Fields = append(schema.Fields, Field{Name: h.Path[0], Type: arrow.BinaryTypes.String})
			i = len(schema.Fields) - 1
		}
		f := &schema.Fields[i]
		dt, err := hinted(f.Type, h.Path[1:], h.Type)
		if err != nil {
			return fault.Wrap(err, "INVALID_SCHEMA_HINT", "schemaHints %s", h.Name())
		}
		f.Type = dt
		if f.Origin != Partition && (len(h.Path) == 1 || f.Origin == "") {
			f.Origin = Hint
		}
		if h.Comment != "" && len(h.Path) == 1 {
			f.Comment = h.Comment
		}
	}
	return nil
}

// hinted replaces the type at a path below dt. What is no struct on the way
// becomes one; "element", "key" and "value" lead into arrays and maps.
func hinted(dt arrow.DataType, path []string, want arrow.DataType) (arrow.DataType, error) {
	if len(path) == 0 {
		return want, nil
	}
	switch t := dt.(type) {
	case *arrow.ListType:
		if !strings.EqualFold(path[0], "element") {
			return nil, fault.New("INVALID_SCHEMA_HINT", "an array is on the way: write element for what is in it")
		}
		elem, err := hinted(t.Elem(), path[1:], want)
		if err != nil {
			return nil, err
		}
		return arrow.ListOf(elem), nil
	case *arrow.MapType:
		switch strings.ToLower(path[0]) {
		case "value":
			item, err := hinted(t.ItemType(), path[1:], want)
			if err != nil {
				return nil, err
			}
			return arrow.MapOf(t.KeyType(), item), nil
		case "key":
			k, err := hinted(t.KeyType(), path[1:], want)
			if err != nil {
				return nil, err
			}
			return arrow.MapOf(k, t.ItemType()), nil
		}
		return nil, fault.New("INVALID_SCHEMA_HINT", "a map is on the way: write key or value for what is in it")
	}
	var fields []arrow.Field
	if t, ok := dt.(*arrow.StructType); ok {
		fields = slices.Clone(t.Fields())
	}
	i := fieldIndex(fields, path[0])
	if i < 0 {
		fields = append(fields, arrow.Field{Name: path[0], Type: arrow.BinaryTypes.String, Nullable: true})
		i = len(fields) - 1
	}
	child, err := hinted(fields[i].Type, path[1:], want)
	if err != nil {
		return nil, err
	}
	fields[i].Type = child
	return arrow.StructOf(fields...), nil
}

// pinned reports whether a struct, by its path, was hinted or declared and so does not evolve.
func (s *Source) pinned(c *column, origin Origin) bool {
	if origin == Declared {
		return true
	}
	var path []string
	for at := c; at != nil; at = at.parent {
		path = append(path, at.name)
	}
	slices.Reverse(path)
	for _, h := range s.config.hints {
		if len(h.Path) <= len(path) && slices.EqualFunc(h.Path, path[:len(h.Path)], strings.EqualFold) {
			return true
		}
	}
	return origin == Hint && !slices.ContainsFunc(s.config.hints, func(h coltype.Field) bool {
		return len(h.Path) > 1 && strings.EqualFold(h.Path[0], path[0])
	})
}

// evolved makes the next version from the shapes of unknown fields; nil when
// none of them can be a column. top holds new columns, below the new fields of
// structs that the schema has, by the path of the struct.
func (s *Source) evolved(schema *Schema, top *shape, below map[string]*shape) (*Schema, []Field) {
	next := &Schema{Version: schema.Version + 1, Batch: schema.Batch, Fields: slices.Clone(schema.Fields)}
	r := resolver{dropAllNull: s.config.dropAllNull, unusable: s.unusable}
	var added []Field
	// New fields inside structs first: their columns stay where they are.
	for _, path := range slices.Sorted(maps.Keys(below)) {
		fields := resolver{dropAllNull: r.dropAllNull}.fields(below[path])
		if len(fields) == 0 {
			continue
		}
		parts := strings.Split(path, "\x00")
		i := slices.IndexFunc(next.Fields, func(f Field) bool { return f.Name == parts[0] })
		if i < 0 {
			continue
		}
		dt := extend(next.Fields[i].Type, parts[1:], fields, s.config)
		next.Fields[i].Type = dt
		for _, f := range fields {
			name := parts[0]
			for _, p := range append(slices.Clone(parts[1:]), f.Name) {
				name = joinPath(name, p)
			}
			added = append(added, Field{Name: name, Type: f.Type, Origin: Evolved})
		}
	}
	fields := r.fields(top)
	if s.config.format == formatCSV {
		sortAsSeen(fields, top)
	}
	for _, f := range fields {
		if !s.config.inferTypes {
			f.Type = s.config.untyped(f.Name, f.Type)
		}
		one := &Schema{Fields: []Field{{Name: f.Name, Type: f.Type, Origin: Evolved}}}
		if err := s.applyHints(one, false); err == nil {
			f.Type = one.Fields[0].Type
		}
		added = append(added, Field{Name: f.Name, Type: f.Type, Origin: one.Fields[0].Origin})
		next.Fields = append(next.Fields, added[len(added)-1])
	}
	if len(added) == 0 {
		return nil, nil
	}
	return next, added
}

// extend appends fields to the struct at a path inside dt.
func extend(dt arrow.DataType, path []string, fields []arrow.Field, c *config) arrow.DataType {
	switch t := dt.(type) {
	case *arrow.ListType:
		return arrow.ListOf(extend(t.Elem(), path[1:], fields, c))
	case *arrow.MapType:
		return arrow.MapOf(t.KeyType(), extend(t.ItemType(), path[1:], fields, c))
	case *arrow.StructType:
		own := slices.Clone(t.Fields())
		if len(path) == 0 {
			for _, f := range fields {
				if !c.inferTypes {
					f.Type = stringLeaves(f.Type)
				}
				own = append(own, f)
			}
			return arrow.StructOf(own...)
		}
		for i := range own {
			if own[i].Name == path[0] {
				own[i].Type = extend(own[i].Type, path[1:], fields, c)
			}
		}
		return arrow.StructOf(own...)
	}
	return dt
}
