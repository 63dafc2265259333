package delta

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"golang.org/x/sync/errgroup"

	"github.com/weir-data/weir/host/fault"
)

// ScanOptions narrows a scan.
type ScanOptions struct {
	// Columns are top-level columns, in the order wanted; nil is all of the table's.
	Columns []string
	// Files are the files to read, in this order; nil is all live ones, by path.
	Files []AddFile
	// Where leaves out files, and row groups of files, that hold no row for which
	// it is true. It does not filter: other rows than those come, too.
	Where *Predicate
	// BatchRows is the most rows a batch has; 0 is 32,768.
	BatchRows int
	// RowIndex adds a last column, RowIndexColumn: where the row lies in its
	// file, deleted rows counted. A batch never holds rows of two files.
	RowIndex bool
	// RowTracking adds two columns behind the table's, RowIDColumn and
	// RowCommitVersionColumn: the stable identity of the row and the version
	// that inserted or last updated it. They are null in files that have none.
	RowTracking bool
}

// RowIndexColumn is the name of the column that ScanOptions.RowIndex adds, of type BIGINT.
const RowIndexColumn = "__weir_row_index"

const defaultBatchRows = 32 << 10

// Scan reads rows. Every batch has the table's schema: columns that a file
// lacks are null. Files are opened one after the other, and of a file about one
// row group is held. The caller releases the reader.
func (s *Snapshot) Scan(ctx context.Context, opt ScanOptions) (array.RecordReader, error) {
	files, err := s.filesToScan(ctx, opt)
	if err != nil {
		return nil, err
	}
	sc, err := s.scanner(ctx, files, opt)
	if err == nil && opt.Where != nil {
		sc.where, err = s.prune(opt.Where)
	}
	return sc, err
}

// pick reads the given rows of one file, those that are live, in the file's order.
func (s *Snapshot) pick(ctx context.Context, f *AddFile, rows *RowSet, opt ScanOptions) (*scanner, error) {
	sc, err := s.scanner(ctx, []AddFile{*f}, opt)
	if err == nil {
		sc.only = rows
	}
	return sc, err
}

// scanner begins to read files as the options say.
func (s *Snapshot) scanner(ctx context.Context, files []AddFile, opt ScanOptions) (*scanner, error) {
	fields := s.schema.fields
	if opt.Columns != nil {
		fields = make([]*field, len(opt.Columns))
		for i, name := range opt.Columns {
			if fields[i] = s.schema.findFold(name); fields[i] == nil {
				return nil, fault.New("DELTA_COLUMN_NOT_FOUND", "the table has no column %q", name)
			}
		}
	}
	out := arrowFields(&structType{fields})
	if opt.RowTracking {
		out = append(out, trackingFields()...)
	}
	if opt.RowIndex {
		out = append(out, arrow.Field{Name: RowIndexColumn, Type: arrow.PrimitiveTypes.Int64})
	}
	sc := &scanner{ctx: ctx, snapshot: s, fields: fields, schema: arrow.NewSchema(out, nil), files: files, rows: opt.BatchRows, rowIndex: opt.RowIndex, tracking: opt.RowTracking}
	if sc.rows <= 0 {
		sc.rows = defaultBatchRows
	}
	sc.refs.Store(1)
	return sc, nil
}

// scanner implements array.RecordReader.
type scanner struct {
	ctx      context.Context
	snapshot *Snapshot
	fields   []*field
	schema   *arrow.Schema
	files    []AddFile
	rows     int
	rowIndex bool
	tracking bool
	// changeType adds ChangeTypeColumn as the file has it.
	changeType bool
	only       *RowSet // of the one file that is read; nil: all rows
	where      *pruner // leaves out row groups; nil: none

	file *fileScan
	rec  arrow.RecordBatch
	err  error
	refs atomic.Int64
}

func (s *scanner) Schema() *arrow.Schema          { return s.schema }
func (s *scanner) RecordBatch() arrow.RecordBatch { return s.rec }
func (s *scanner) Record() arrow.RecordBatch      { return s.rec }
func (s *scanner) Err() error                     { return s.err }
func (s *scanner) Retain()                        { s.refs.Add(1) }

func (s *scanner) Release() {
	if s.refs.Add(-1) == 0 {
		s.drop()
		s.err = errors.Join(s.err, s.closeFile())
		s.files = nil
	}
}

func (s *scanner) drop() {
	if s.rec != nil {
		s.rec.Release()
		s.rec = nil
	}
}

func (s *scanner) closeFile() error {
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.close()
}

func (s *scanner) Next() bool {
	s.drop()
	for s.err == nil {
		if s.err = s.ctx.Err(); s.err != nil {
			return false
		}
		if s.file == nil {
			if len(s.files) == 0 {
				return false
			}
			s.file, s.err = s.open(&s.files[0])
			s.files = s.files[1:]
			continue
		}
		cols, n, err := s.file.next(s.rows)
		switch {
		case err != nil:
			s.err = errors.Join(fault.Place(err, "DELTA_INVALID_DATA_FILE", fault.Where{File: s.file.add.Path}), s.closeFile())
		case n < 0:
			s.err = s.closeFile()
		case n > 0:
			s.rec = array.NewRecordBatch(s.schema, cols, n)
			releaseArrays(cols)
			return true
		}
	}
	return false
}

// fileScan reads the wanted columns of one file.
type fileScan struct {
	table   *Table
	add     *AddFile
	file    *parquetFile
	columns []column
	total   int64
	pos     int64
	pace    pace
	deleted *RowSet
	only    *RowSet    // nil: all that are not deleted
	without [][2]int64 // runs of rows that are not read, to come
}

func (s *scanner) open(add *AddFile) (fs *fileScan, err error) {
	defer func() { err = fault.Place(err, "DELTA_INVALID_DATA_FILE", fault.Where{File: add.Path}) }()
	t := s.snapshot.table
	fs = &fileScan{table: t, add: add}
	if add.DeletionVector != nil {
		if fs.deleted, err = t.loadDV(s.ctx, add.DeletionVector); err != nil {
			return nil, err
		}
	}
	if fs.file, err = t.openParquet(s.ctx, add.Path); err != nil {
		return nil, err
	}
	fs.total = fs.file.reader.NumRows()
	if fs.deleted != nil && fs.deleted.Last() >= fs.total {
		err = invalidDV("row %d is deleted, the file has %d", fs.deleted.Last(), fs.total)
	}
	if s.only != nil {
		fs.only = s.only.Minus(fs.deleted)
	}
	if err == nil && s.where != nil {
		fs.without, err = s.where.groupsWithout(s.snapshot, add, fs.file)
	}
	if err == nil {
		fs.columns, err = s.snapshot.columns(s.ctx, add, fs.file, s.fields)
	}
	if err == nil && s.tracking {
		var tracked []column
		tracked, err = s.snapshot.trackingColumns(s.ctx, add, fs.file)
		fs.columns = append(fs.columns, tracked...)
	}
	if err == nil && s.changeType {
		var c column
		if c, err = t.changeTypeOf(s.ctx, fs.file); err == nil {
			fs.columns = append(fs.columns, c)
		}
	}
	if err == nil && s.rowIndex {
		fs.columns = append(fs.columns, &indexColumn{mem: t.mem})
	}
	if err != nil {
		return nil, errors.Join(err, fs.close())
	}
	for _, c := range fs.columns {
		if c, ok := c.(*storedColumn); ok {
			fs.pace.want(fs.file.reader, c.leaves)
		}
	}
	return fs, nil
}

func (f *fileScan) close() error {
	for _, c := range f.columns {
		if c != nil {
			c.release()
		}
	}
	f.columns = nil
	return f.file.close()
}

// next gives the wanted rows among the next n; the count is -1 at the end.
func (f *fileScan) next(n int) ([]arrow.Array, int64, error) {
	for len(f.without) > 0 && f.without[0][0] == f.pos {
		f.skip(f.without[0][1] - f.pos)
		f.pos, f.without = f.without[0][1], f.without[1:]
	}
	rows := min(int64(n), f.total-f.pos)
	if len(f.without) > 0 {
		rows = min(rows, f.without[0][0]-f.pos)
	}
	rows = f.pace.rows(rows)
	if rows <= 0 {
		return nil, -1, nil
	}
	runs, all := f.wanted(f.pos, f.pos+rows)
	f.pos += rows
	if all {
		cols, err := f.read(int(rows))
		return cols, rows, err
	}
	if len(runs) == 0 {
		f.skip(rows)
		return nil, 0, nil
	}
	first, last := runs[0][0], runs[len(runs)-1][1]
	f.skip(first)
	cols, err := f.read(int(last - first))
	if err != nil {
		return nil, 0, err
	}
	f.skip(rows - last)
	defer releaseArrays(cols)
	kept := int64(0)
	for i := range runs {
		runs[i][0] -= first
		runs[i][1] -= first
		kept += runs[i][1] - runs[i][0]
	}
	out := make([]arrow.Array, len(cols))
	for i, c := range cols {
		if out[i], err = gatherArray(f.table.mem, c, runs, kept); err != nil {
			releaseArrays(out)
			return nil, 0, err
		}
	}
	return out, kept, nil
}

// wanted gives the runs of rows of [from, to) that the scan gives, relative to
// from, or that it gives all of them.
func (f *fileScan) wanted(from, to int64) (runs [][2]int64, all bool) {
	switch {
	case f.only != nil:
		runs = f.only.runs(from, to)
	case f.deleted != nil:
		runs = f.deleted.live(from, to)
	default:
		return nil, true
	}
	return runs, len(runs) == 1 && runs[0] == [2]int64{0, to - from}
}

func (f *fileScan) skip(rows int64) {
	if rows > 0 {
		for _, c := range f.columns {
			c.skip(rows)
		}
	}
}

// read decodes the next rows of every column, several columns at once.
func (f *fileScan) read(rows int) ([]arrow.Array, error) {
	cols := make([]arrow.Array, len(f.columns))
	one := func(i int) (err error) {
		defer guard(&err, "DELTA_INVALID_DATA_FILE", "a column")
		cols[i], err = f.columns[i].next(rows)
		if err == nil && cols[i].Len() != rows {
			err = fault.New("DELTA_INVALID_DATA_FILE", "column %d ends early: %d of %d rows", i, cols[i].Len(), rows)
		}
		return err
	}
	var err error
	if len(cols) < 2 || rows < 1024 {
		for i := range cols {
			if err = one(i); err != nil {
				break
			}
		}
	} else {
		var g errgroup.Group
		g.SetLimit(runtime.GOMAXPROCS(0))
		for i := range cols {
			g.Go(func() error { return one(i) })
		}
		err = g.Wait()
	}
	if err != nil {
		releaseArrays(cols)
		return nil, err
	}
	f.pace.took(cols, int64(rows))
	return cols, nil
}
