package ingest

import "github.com/apache/arrow-go/v18/arrow"

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

// Field is one column of a Schema.
type Field struct {
	Name   string
	Type   arrow.DataType
	Origin Origin
}

// Schema is one version of the schema of a source: the data columns in order,
// then the partition columns. Rescued data, _metadata and the row number are
// not part of it; ArrowSchema adds them.
type Schema struct {
	// Version counts from 0; each evolution adds one.
	Version int
	// Batch is the micro-batch that made this version.
	Batch  int64
	Fields []Field
}

// MarshalSchema writes a schema as JSON; FORMAT.md describes it.
func MarshalSchema(s *Schema) ([]byte, error) { return nil, nil }

// UnmarshalSchema reads what MarshalSchema wrote.
func UnmarshalSchema(data []byte) (*Schema, error) { return nil, nil }
