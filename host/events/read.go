package events

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/weir-data/weir/host/delta"
)

// Filter picks events; a field that is zero picks all.
type Filter struct {
	UpdateID string
	Dataset  string
	Types    []string
	Levels   []Level
	Since    time.Time
	// After and Before bound Sequence.Control, both excluded.
	After, Before int64
	// Limit keeps the newest.
	Limit int
}

// Read gives events of the log, oldest first. A log that was never written has none.
func Read(ctx context.Context, table *delta.Table, f Filter) ([]Event, error) {
	snap, err := snapshotOf(ctx, table)
	if err != nil || snap == nil {
		return nil, err
	}
	if err := checkSchema(snap.Schema()); err != nil {
		return nil, err
	}
	return readFrom(ctx, snap, f)
}

func readFrom(ctx context.Context, snap *delta.Snapshot, f Filter) ([]Event, error) {
	var columns []string
	for _, c := range Schema.Fields() {
		columns = append(columns, c.Name)
	}
	rows, err := snap.Scan(ctx, delta.ScanOptions{Where: f.predicate(), Columns: columns})
	if err != nil {
		return nil, err
	}
	defer rows.Release()
	var out []Event
	for rows.Next() {
		rec := rows.RecordBatch()
		for i := range int(rec.NumRows()) {
			if e := decode(rec, i); f.picks(&e) {
				out = append(out, e)
			}
		}
		if f.Limit > 0 && len(out) > 2*f.Limit {
			out = newest(out, f.Limit)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return newest(out, f.Limit), nil
}

// newest sorts events and keeps the last n, all with 0.
func newest(list []Event, n int) []Event {
	slices.SortStableFunc(list, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Sequence.Control, b.Sequence.Control), a.Timestamp.Compare(b.Timestamp))
	})
	if n > 0 && len(list) > n {
		list = slices.Clone(list[len(list)-n:])
	}
	return list
}

// predicate leaves out files that hold none of the events.
func (f *Filter) predicate() *delta.Predicate {
	var all []*delta.Predicate
	number := []string{"sequence", "control_plane_seq_no"}
	if f.UpdateID != "" {
		all = append(all, delta.Compare([]string{"origin", "update_id"}, delta.Equal, f.UpdateID))
	}
	if len(f.Types) > 0 {
		all = append(all, delta.In([]string{"event_type"}, anyOf(f.Types)...))
	}
	if len(f.Levels) > 0 {
		levels := make([]string, len(f.Levels))
		for i, l := range f.Levels {
			levels[i] = string(l)
		}
		all = append(all, delta.In([]string{"level"}, anyOf(levels)...))
	}
	if !f.Since.IsZero() {
		all = append(all, delta.Compare([]string{"timestamp"}, delta.GreaterOrEqual, f.Since))
	}
	if f.After > 0 {
		all = append(all, delta.Compare(number, delta.Greater, f.After))
	}
	if f.Before > 0 {
		all = append(all, delta.Compare(number, delta.Less, f.Before))
	}
	if len(all) == 0 {
		return nil
	}
	return delta.And(all...)
}

func anyOf(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

func (f *Filter) picks(e *Event) bool {
	switch {
	case f.UpdateID != "" && e.Origin.UpdateID != f.UpdateID,
		f.Dataset != "" && e.Origin.DatasetName != f.Dataset,
		len(f.Types) > 0 && !slices.Contains(f.Types, e.Type),
		len(f.Levels) > 0 && !slices.Contains(f.Levels, e.Level),
		e.Timestamp.Before(f.Since),
		f.After > 0 && e.Sequence.Control <= f.After,
		f.Before > 0 && e.Sequence.Control >= f.Before:
		return false
	}
	return true
}

// DetailsOf reads the details of an event that was read into one of the types
// of details.go; false says that it has other ones.
func DetailsOf[T any](e *Event) (T, bool) {
	var out T
	raw, ok := e.Details.(json.RawMessage)
	if !ok {
		return out, false
	}
	var byType map[string]json.RawMessage
	if json.Unmarshal(raw, &byType) != nil || byType[e.Type] == nil {
		return out, false
	}
	err := json.Unmarshal(byType[e.Type], &out)
	return out, err == nil
}
