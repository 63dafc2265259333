package ingest

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/storage"
)

// Kind is the spelling of a file source.
type Kind int

// The two spellings: in CloudFiles the options of Auto Loader carry the
// prefix "cloudFiles.", in ReadFiles they do not.
const (
	CloudFiles Kind = iota
	ReadFiles
)

// Env is what a source needs from outside.
type Env struct {
	// Open opens a folder by its absolute path or URI. Nil opens local folders,
	// and refuses one that does not exist.
	Open func(root string) (storage.Store, error)
	// Dir is where relative paths start; empty is the working directory.
	Dir string
}

// Source is a parsed file source; its methods may be called concurrently.
type Source struct {
	place  *place
	config *config
}

// File is one discovered file. Path is absolute, or a URI. Size is -1 and
// ModTimeMicros 0 until Complete when List had no need to look at the file.
type File struct {
	Path          string
	Size          int64
	ModTimeMicros int64
}

// Limits bounds a micro-batch; MaxBytes 0 is no bound. Like Auto Loader's, the
// bytes are a soft bound: the file that passes it is still part of the batch.
type Limits struct {
	MaxFiles int
	MaxBytes int64
}

// Parse checks path and options of a source without reading anything.
//
// The path may be a folder, a file or a glob. Errors: UNKNOWN_OPTION (with the
// nearest spelling), CF_UNPREFIXED_OPTION, CF_PREFIXED_OPTION, DUPLICATE_OPTION,
// MISSING_OPTION, INVALID_OPTION_VALUE, UNSUPPORTED_FORMAT, UNSUPPORTED_ENCODING,
// INVALID_DATETIME_PATTERN, INVALID_GLOB, NOT_SUPPORTED, and those of a schema text.
func Parse(kind Kind, path string, options map[string]string, env Env) (*Source, error) {
	c, err := parseOptions(kind, options)
	if err != nil {
		return nil, err
	}
	p, err := newPlace(path, env)
	if err != nil {
		return nil, err
	}
	s := &Source{place: p, config: c}
	if len(c.schema) > 0 {
		if err := s.checkTypes(s.declared()); err != nil {
			return nil, err
		}
	}
	for _, h := range c.hints {
		if _, err := newColumn(nil, nil, h.Name(), h.Type, func(*column) bool { return false }); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Limits gives the bounds of a micro-batch.
func (s *Source) Limits() Limits { return s.config.limits }

// Warnings tells what the user should know about the options, a sentence each.
func (s *Source) Warnings() []string { return s.config.warnings }

// RescuedColumn is the name of the rescued data column, or "" when there is none.
func (s *Source) RescuedColumn() string { return s.config.rescued }

// Evolves reports whether new columns in files lead to a new schema version.
func (s *Source) Evolves() bool { return s.config.evolve == addNewColumns }

// ArrowSchema gives the columns Read delivers: data, partitions, rescued data, _metadata, __weir_row.
func (s *Source) ArrowSchema(schema *Schema) *arrow.Schema {
	return relation.SourceColumns(s.dataFields(schema), true)
}

func (s *Source) dataFields(schema *Schema) []arrow.Field {
	var fields []arrow.Field
	for _, f := range schema.Fields {
		out := arrow.Field{Name: f.Name, Type: f.Type, Nullable: true}
		if f.Comment != "" {
			out.Metadata = arrow.NewMetadata([]string{"comment"}, []string{f.Comment})
		}
		fields = append(fields, out)
	}
	if s.config.rescued != "" {
		fields = append(fields, arrow.Field{Name: s.config.rescued, Type: arrow.BinaryTypes.String, Nullable: true})
	}
	return fields
}

// checkTypes refuses names that cannot be columns and types that no file can fill.
func (s *Source) checkTypes(schema *Schema) error {
	seen := map[string]string{}
	for _, f := range schema.Fields {
		if why := s.unusable(f.Name); why != "" {
			return fault.New("INVALID_SCHEMA", "column %q: %s", f.Name, why)
		}
		if twin, ok := seen[strings.ToLower(f.Name)]; ok {
			return fault.New("COLUMN_ALREADY_EXISTS", "columns %s and %s differ in nothing but case", twin, f.Name)
		}
		seen[strings.ToLower(f.Name)] = f.Name
		c, err := newColumn(nil, nil, f.Name, f.Type, func(*column) bool { return false })
		if err != nil {
			return err
		}
		if s.config.format == formatCSV && f.Origin != Partition && (c.obj != nil || c.elem != nil || c.kind == kindBinary) {
			return fault.New("UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE", "column %s: CSV cannot hold type %s", f.Name, coltype.String(f.Type))
		}
	}
	return nil
}

// unusable says why a field name of a file cannot be a column; "" when it can.
func (s *Source) unusable(name string) string {
	switch {
	case name == "":
		return "a column needs a name"
	case relation.Hidden(name):
		return "the name is taken by a hidden column"
	case s.config.rescued != "" && strings.EqualFold(name, s.config.rescued):
		return "the name is taken by the rescued data column"
	}
	return ""
}
