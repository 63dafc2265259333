package delta

import (
	"context"
	"encoding/json"

	"github.com/apache/arrow-go/v18/arrow"
)

// NullCounts tells how many rows of each top-level column are NULL.
type NullCounts struct {
	Rows int64
	// Nulls is by column, in the order of the schema; -1 is not known.
	Nulls []int64
}

// NullCounts counts from statistics, without opening a file. A column is known
// where all live files have its count and no deleted rows.
func (s *Snapshot) NullCounts(ctx context.Context) (NullCounts, error) {
	rows, err := s.RowCounts(ctx)
	if err != nil {
		return NullCounts{}, err
	}
	c := s.nullsOfStats()
	return NullCounts{Rows: rows.Live(), Nulls: c.nulls(len(s.arrow.Fields()))}, nil
}

// CountNulls counts from statistics, and reads the columns of those files that
// lack them. Of a table with statistics it reads nothing.
func (s *Snapshot) CountNulls(ctx context.Context) (NullCounts, error) {
	out, err := s.NullCounts(ctx)
	if err != nil {
		return out, err
	}
	stats := s.nullsOfStats()
	for i, f := range s.arrow.Fields() {
		if len(stats.bare[i]) == 0 {
			continue
		}
		read, err := s.readNulls(ctx, f.Name, stats.bare[i])
		if err != nil {
			return out, err
		}
		out.Nulls[i] = stats.counted[i] + read
	}
	return out, nil
}

// statsNulls is what the statistics know: a sum per column, and the files that do not tell.
type statsNulls struct {
	counted map[int]int64
	bare    map[int][]AddFile
}

func (c statsNulls) nulls(columns int) []int64 {
	out := make([]int64, columns)
	for i := range out {
		if out[i] = c.counted[i]; len(c.bare[i]) > 0 {
			out[i] = -1
		}
	}
	return out
}

func (s *Snapshot) nullsOfStats() statsNulls {
	c := statsNulls{map[int]int64{}, map[int][]AddFile{}}
	fields := s.schema.fields
	partition := map[string]bool{}
	for _, name := range s.metadata.PartitionColumns {
		partition[name] = true
	}
	s.files.each(func(_ string, f *AddFile) {
		rows, known := f.NumRecords()
		var stats struct {
			Nulls map[string]json.RawMessage `json:"nullCount"`
		}
		if f.Stats != "" {
			// What cannot be read is not known.
			_ = json.Unmarshal([]byte(f.Stats), &stats)
		}
		for i, field := range fields {
			n, ok := int64(0), false
			switch value := f.PartitionValues[field.physicalName()]; {
			case partition[field.name]:
				if ok = known && f.DeletionVector == nil; value == nil || *value == "" {
					n = rows
				}
			case f.DeletionVector == nil:
				ok = json.Unmarshal(stats.Nulls[field.physicalName()], &n) == nil
			}
			if !ok {
				c.bare[i] = append(c.bare[i], *f)
				continue
			}
			c.counted[i] += n
		}
	})
	return c
}

// readNulls counts the nulls of one column in files.
func (s *Snapshot) readNulls(ctx context.Context, column string, files []AddFile) (n int64, err error) {
	r, err := s.Scan(ctx, ScanOptions{Columns: []string{column}, Files: files})
	if err != nil {
		return 0, err
	}
	defer r.Release()
	for r.Next() {
		if col := r.RecordBatch().Column(0); col.DataType().ID() == arrow.NULL {
			n += int64(col.Len())
		} else {
			n += int64(col.NullN())
		}
	}
	return n, r.Err()
}
