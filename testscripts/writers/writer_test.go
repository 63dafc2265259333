package writers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/cloud"
)

var ctx = context.Background()

var schema = arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)

// Rows have ids by what they are for: those that the table begins with, and
// those that each writer appends.
const (
	rowsPerAppend = 5
	ownPool       = 1_000_000   // + writer*100_000 + step: in one file of all writers, each row wanted by one
	contested     = 5_000_000   // + step: in one file, each row wanted by all
	appended      = 100_000_000 // + writer*1_000_000 + step*10 + i
)

func poolRow(writer, step int) int64 { return ownPool + int64(writer)*100_000 + int64(step) }
func contestedRow(step int) int64    { return contested + int64(step) }
func appendedRow(writer, step, i int) int64 {
	return appended + int64(writer)*1_000_000 + int64(step)*10 + int64(i)
}

// deed is what a writer says of a commit that stands.
type deed struct {
	Writer  int     `json:"writer"`
	Version int64   `json:"version"` // -1: the writer cannot tell
	Added   []int64 `json:"added,omitempty"`
	Deleted []int64 `json:"deleted,omitempty"`
}

// openStore opens a folder or the URL of an object store.
func openStore(place string) (storage.Store, func() error, error) {
	if !cloud.IsURL(place) {
		d, err := storage.OpenDir(place)
		return d, func() error { return nil }, err
	}
	s, err := cloud.Open(ctx, place)
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

// write is the whole life of a writing process: it prints its deeds.
func write(place string, number, steps int) error {
	store, closing, err := openStore(place)
	if err != nil {
		return err
	}
	w := &writer{table: delta.Open(store), number: number}
	for step := range steps {
		if step%4 == 3 {
			err = w.remove(step)
		} else {
			err = w.add(step)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("writer %d, step %d: %w", number, step, err), closing())
		}
	}
	return closing()
}

type writer struct {
	table  *delta.Table
	number int
	// files that hold this writer's rows, by the step that appended them.
	files map[int]string
}

func (w *writer) say(d deed) error {
	d.Writer = w.number
	return json.NewEncoder(os.Stdout).Encode(d)
}

// add appends rows of its own: a blind append, which never conflicts.
func (w *writer) add(step int) error {
	s, err := w.table.Snapshot(ctx)
	if err != nil {
		return err
	}
	var ids []int64
	for i := range rowsPerAppend {
		ids = append(ids, appendedRow(w.number, step, i))
	}
	files, err := dataFiles(w.table, s, fmt.Sprintf("w%d-%d", w.number, step), ids)
	if err != nil {
		return err
	}
	res, err := w.table.Commit(ctx, delta.Commit{
		Read: s, Operation: "WRITE", Add: files, Txn: &delta.Txn{AppID: fmt.Sprint("writer-", w.number), Version: int64(step)},
	})
	if err = errors.Join(err, res.CheckpointError); err != nil {
		return err
	}
	if w.files == nil {
		w.files = map[int]string{}
	}
	w.files[step] = files[0].Path
	return w.say(deed{Version: res.Version, Added: ids})
}

func dataFiles(t *delta.Table, s *delta.Snapshot, name string, ids []int64) ([]delta.AddFile, error) {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(ids, nil)
	col := b.NewArray()
	defer col.Release()
	rec := array.NewRecordBatch(schema, []arrow.Array{col}, int64(len(ids)))
	defer rec.Release()
	fw, err := t.Write(ctx, delta.WriteOptions{Snapshot: s, Schema: schema, Name: name})
	if err != nil {
		return nil, err
	}
	if err := fw.Write(ctx, rec); err != nil {
		return nil, errors.Join(err, fw.Abort(ctx))
	}
	return fw.Close(ctx)
}

// remove deletes two of its own rows, the row of a shared file that is kept for
// it, and the row that all want, if it is still there. It starts again when
// somebody was faster.
func (w *writer) remove(step int) error {
	wanted := map[int64]bool{
		appendedRow(w.number, step-1, 0): true, appendedRow(w.number, step-2, 4): true,
		poolRow(w.number, step): true, contestedRow(step): true,
	}
	for {
		s, err := w.table.Snapshot(ctx)
		if err != nil {
			return err
		}
		m, err := s.Mutate(ctx, delta.MutateOptions{})
		if err != nil {
			return err
		}
		deleted, err := w.mark(s, m, wanted)
		if err != nil {
			return errors.Join(err, m.Abort(ctx))
		}
		res, err := m.Commit(ctx, delta.Commit{
			Read: s, Operation: "DELETE", Txn: &delta.Txn{AppID: fmt.Sprint("writer-", w.number), Version: int64(step)},
		})
		switch {
		case err == nil:
			if res.CheckpointError != nil {
				return res.CheckpointError
			}
			return w.say(deed{Version: res.Version, Deleted: deleted})
		case !strings.HasPrefix(fault.CodeOf(err), "DELTA_CONCURRENT_"):
			return err
		}
	}
}

// mark finds the wanted rows that are still there.
func (w *writer) mark(s *delta.Snapshot, m *delta.Mutation, wanted map[int64]bool) (deleted []int64, err error) {
	files, err := s.Files(ctx)
	if err != nil {
		return nil, err
	}
	for i := range files {
		lo, hi := int64(0), int64(1)<<62
		var stats struct{ MinValues, MaxValues struct{ ID int64 } }
		if json.Unmarshal([]byte(files[i].Stats), &stats) == nil && stats.MaxValues.ID > 0 {
			lo, hi = stats.MinValues.ID, stats.MaxValues.ID
		}
		near := false
		for id := range wanted {
			near = near || lo <= id && id <= hi
		}
		if !near {
			continue
		}
		rows := delta.NewRowSet()
		err := scanIDs(s, delta.ScanOptions{Files: files[i : i+1], RowIndex: true}, func(id, at int64) {
			if wanted[id] {
				rows.Add(at)
				deleted = append(deleted, id)
			}
		})
		if err != nil {
			return nil, err
		}
		if rows.Len() > 0 {
			if err := m.Delete(ctx, files[i], rows); err != nil {
				return nil, err
			}
		}
	}
	return deleted, nil
}

func scanIDs(s *delta.Snapshot, opt delta.ScanOptions, each func(id, at int64)) error {
	r, err := s.Scan(ctx, opt)
	if err != nil {
		return err
	}
	defer r.Release()
	for r.Next() {
		rec := r.RecordBatch()
		ids, ok := rec.Column(0).(*array.Int64)
		if !ok {
			return fmt.Errorf("id is %s", rec.Column(0).DataType())
		}
		var at *array.Int64
		if opt.RowIndex {
			if at, ok = rec.Column(1).(*array.Int64); !ok {
				return fmt.Errorf("the row index is %s", rec.Column(1).DataType())
			}
		}
		for i := range ids.Len() {
			if at != nil {
				each(ids.Value(i), at.Value(i))
			} else {
				each(ids.Value(i), 0)
			}
		}
	}
	return r.Err()
}

// child is what a process started by the test does.
func child(args string) error {
	parts := strings.SplitN(args, " ", 3)
	number, err1 := strconv.Atoi(parts[0])
	steps, err2 := strconv.Atoi(parts[1])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return write(parts[2], number, steps)
}
