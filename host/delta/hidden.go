package delta

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
)

// Columns of data files that are not in the table's schema, by the names that
// batches have them under. In the files they have the names that the protocol
// or the table's properties say.
const (
	// RowIDColumn is the stable row id of a row; see ScanOptions.RowTracking.
	RowIDColumn = "__weir_row_id"
	// RowCommitVersionColumn is the version that inserted or last updated the row.
	RowCommitVersionColumn = "__weir_row_commit_version"

	changeTypeColumn = "_change_type"
)

const (
	rowIDNameKey            = "delta.rowTracking.materializedRowIdColumnName"
	rowCommitVersionNameKey = "delta.rowTracking.materializedRowCommitVersionColumnName"
)

// hiddenColumn is such a column: its name in batches, and its field in files.
type hiddenColumn struct {
	name  string
	field arrow.Field
}

// trackingColumns are those that keep the identity of rows that are copied or updated.
func trackingColumns(properties map[string]string) ([]hiddenColumn, error) {
	out := []hiddenColumn{{name: RowIDColumn}, {name: RowCommitVersionColumn}}
	for i, key := range []string{rowIDNameKey, rowCommitVersionNameKey} {
		if properties[key] == "" {
			return nil, fault.New("DELTA_INVALID_LOG", "row tracking is enabled, but the property %s is missing", key)
		}
		out[i].field = arrow.Field{Name: properties[key], Type: arrow.PrimitiveTypes.Int64, Nullable: true}
	}
	return out, nil
}

var changeTypeHidden = hiddenColumn{changeTypeColumn, arrow.Field{Name: changeTypeColumn, Type: arrow.BinaryTypes.String, Nullable: true}}

// withHidden gives a schema with the hidden columns behind it, as batches or as files have them.
func withHidden(schema *arrow.Schema, hidden []hiddenColumn, inFile bool) *arrow.Schema {
	if len(hidden) == 0 {
		return schema
	}
	fields := slices.Clone(schema.Fields())
	for _, h := range hidden {
		f := h.field
		if !inFile {
			f.Name = h.name
		}
		fields = append(fields, f)
	}
	return arrow.NewSchema(fields, nil)
}

// hiddenOf takes the hidden columns out of a batch and marks them used; one that
// the batch lacks is null.
func (w *FileWriter) hiddenOf(rec arrow.RecordBatch, used []bool) ([]arrow.Array, error) {
	out := make([]arrow.Array, len(w.hidden))
	for i, h := range w.hidden {
		j := slices.IndexFunc(rec.Schema().Fields(), func(f arrow.Field) bool { return f.Name == h.name })
		if j < 0 {
			out[i] = array.MakeArrayOfNull(w.table.mem, h.field.Type, int(rec.NumRows()))
			continue
		}
		if !arrow.TypeEqual(rec.Column(j).DataType(), h.field.Type) {
			releaseArrays(out)
			return nil, fault.New("DELTA_TYPE_MISMATCH", "column %s is %s, not %s", h.name, rec.Column(j).DataType(), h.field.Type)
		}
		used[j] = true
		out[i] = rec.Column(j)
		out[i].Retain()
	}
	return out, nil
}
