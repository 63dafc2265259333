package delta

import (
	"context"
	"maps"
	"time"
)

// Description is what `weir delta describe` prints.
type Description struct {
	Version          int64             `json:"version"`
	Timestamp        time.Time         `json:"timestamp"`
	ID               string            `json:"id"`
	Name             string            `json:"name,omitempty"`
	Description      string            `json:"description,omitempty"`
	MinReader        int               `json:"min_reader"`
	MinWriter        int               `json:"min_writer"`
	Features         []string          `json:"features"`
	Files            int               `json:"files"`
	SizeBytes        int64             `json:"size_bytes"`
	LiveRows         int64             `json:"live_rows"`
	Schema           []Column          `json:"schema"`
	PartitionColumns []string          `json:"partition_columns"`
	ClusterColumns   []string          `json:"cluster_columns,omitempty"`
	Properties       map[string]string `json:"properties"`
	Txns             map[string]int64  `json:"txns"`
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
	return s.Describe()
}

// Describe tells what the table is like.
func (s *Snapshot) Describe() (*Description, error) {
	rows, err := s.LiveRows()
	if err != nil {
		return nil, err
	}
	d := &Description{
		Version: s.version, Timestamp: s.time, ID: s.metadata.ID, Name: s.metadata.Name, Description: s.metadata.Description,
		MinReader: s.protocol.MinReaderVersion, MinWriter: s.protocol.MinWriterVersion, Features: s.Features(),
		Files: s.files.n, LiveRows: rows, PartitionColumns: append([]string{}, s.metadata.PartitionColumns...),
		ClusterColumns: s.clusterColumns(), Properties: maps.Clone(s.metadata.Configuration), Txns: map[string]int64{},
	}
	if d.Properties == nil {
		d.Properties = map[string]string{}
	}
	if d.Features == nil {
		d.Features = []string{}
	}
	s.files.each(func(_ string, f *AddFile) { d.SizeBytes += f.Size })
	for _, f := range s.schema.fields {
		d.Schema = append(d.Schema, Column{f.name, f.typ.sparkName(), f.nullable, f.comment()})
	}
	for app, txn := range s.txns {
		d.Txns[app] = txn.Version
	}
	return d, nil
}
