package delta

import (
	"context"
	"maps"
	"time"

	"github.com/weir-data/weir/host/fault"
)

// Description is what `weir delta describe` prints.
type Description struct {
	Version     int64     `json:"version"`
	Timestamp   time.Time `json:"timestamp"`
	ID          string    `json:"id"`
	Name        string    `json:"name,omitempty"`
	Description string    `json:"description,omitempty"`
	MinReader   int       `json:"min_reader"`
	MinWriter   int       `json:"min_writer"`
	Features    []string  `json:"features"`
	Files       int       `json:"files"`
	LiveFiles   int       `json:"live_files"` // the same number
	SizeBytes   int64     `json:"size_bytes"`
	// The rows a scan gives, those that the files hold, and those that deletion
	// vectors take away. The first two are nil where RowsUnknown says why: a file
	// without statistics cannot be read.
	LiveRows         *int64            `json:"live_rows"`
	PhysicalRows     *int64            `json:"physical_rows"`
	DVRows           int64             `json:"dv_rows"`
	RowsUnknown      string            `json:"rows_unknown,omitempty"`
	Schema           []Column          `json:"schema"`
	PartitionColumns []string          `json:"partition_columns"`
	ClusterColumns   []string          `json:"cluster_columns,omitempty"`
	Properties       map[string]string `json:"properties"`
	Txns             map[string]int64  `json:"txns"`
	DomainMetadata   map[string]string `json:"domain_metadata"`
}

// Column is one column of a Description, its type in Spark's spelling.
type Column struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`
	Comment  string `json:"comment,omitempty"`
}

// Describe tells what the newest version of the table is like.
func (t *Table) Describe(ctx context.Context) (*Description, error) {
	s, err := t.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return s.Describe(ctx)
}

// Describe tells what the table is like. Files that are gone or out of reach do
// not keep it from telling what the log knows.
func (s *Snapshot) Describe(ctx context.Context) (*Description, error) {
	d := &Description{
		Version: s.version, Timestamp: s.time, ID: s.metadata.ID, Name: s.metadata.Name, Description: s.metadata.Description,
		MinReader: s.protocol.MinReaderVersion, MinWriter: s.protocol.MinWriterVersion, Features: s.Features(),
		Files: s.files.n, LiveFiles: s.files.n, PartitionColumns: append([]string{}, s.metadata.PartitionColumns...),
		ClusterColumns: s.clusterColumns(), Properties: maps.Clone(s.metadata.Configuration), Txns: map[string]int64{},
		DomainMetadata: s.Domains(),
	}
	rows, err := s.RowCounts(ctx)
	switch {
	case err == nil:
		live := rows.Live()
		d.LiveRows, d.PhysicalRows = &live, &rows.Physical
	case fault.Is(err, "DELTA_FILE_NOT_FOUND") || fault.Is(err, "DELTA_UNSUPPORTED_FEATURE") || fault.Is(err, "DELTA_INVALID_DATA_FILE"):
		d.RowsUnknown = err.Error()
	default:
		return nil, err
	}
	s.files.each(func(_ string, f *AddFile) {
		d.SizeBytes += f.Size
		if f.DeletionVector != nil {
			d.DVRows += f.DeletionVector.Cardinality
		}
	})
	if d.Properties == nil {
		d.Properties = map[string]string{}
	}
	if d.Features == nil {
		d.Features = []string{}
	}
	for _, f := range s.schema.fields {
		d.Schema = append(d.Schema, Column{f.name, f.typ.sparkName(), f.nullable, f.comment()})
	}
	for app, txn := range s.txns {
		d.Txns[app] = txn.Version
	}
	return d, nil
}
