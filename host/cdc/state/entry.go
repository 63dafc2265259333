package state

import (
	"github.com/apache/arrow-go/v18/arrow"
)

// Columns of an entry, by place. The value columns of a state that has them follow.
const (
	Hash    = iota // fixed(16): rowcode.HashOf(key)
	Key            // binary: rowcode.Keys
	Order          // binary: rowcode.Sequences
	Kind           // uint8: Removed, Upsert or Delete
	Row            // fixed(16): rowcode.Rows of what counts for ties
	Tracked        // fixed(16): rowcode.Rows of the tracked columns
	Time           // int64: timestamp of the batch that brought the event, in µs
	Values         // the first value column
)

// Kinds of entries.
const (
	Removed uint8 = iota // hides the entry of older runs
	Upsert
	Delete
)

var hashType = &arrow.FixedSizeBinaryType{ByteWidth: 16}

// Schema gives the columns of entries with these value columns.
func Schema(values ...arrow.Field) *arrow.Schema {
	fields := []arrow.Field{
		Hash:    {Name: "hash", Type: hashType},
		Key:     {Name: "key", Type: arrow.BinaryTypes.Binary},
		Order:   {Name: "order", Type: arrow.BinaryTypes.Binary},
		Kind:    {Name: "kind", Type: arrow.PrimitiveTypes.Uint8},
		Row:     {Name: "row", Type: hashType},
		Tracked: {Name: "tracked", Type: hashType},
		Time:    {Name: "time", Type: arrow.PrimitiveTypes.Int64},
	}
	for _, v := range values {
		v.Nullable = true
		v.Metadata = arrow.Metadata{}
		fields = append(fields, v)
	}
	return arrow.NewSchema(fields, nil)
}

// valueFields gives the value columns of a schema.
func valueFields(s *arrow.Schema) []arrow.Field {
	if s.NumFields() <= Values {
		return nil
	}
	return s.Fields()[Values:]
}

// hasEntries checks that a schema starts with the columns of an entry.
func hasEntries(s *arrow.Schema) bool {
	want := Schema().Fields()
	if s.NumFields() < len(want) {
		return false
	}
	for i, f := range want {
		if !arrow.TypeEqual(s.Field(i).Type, f.Type) {
			return false
		}
	}
	return true
}
