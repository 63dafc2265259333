package delta

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
)

// WriteOptions says what a FileWriter writes.
type WriteOptions struct {
	// Schema holds the columns of the table as they will be with the commit; nil takes the snapshot's.
	Schema *arrow.Schema
	// Snapshot is the table to write to; nil is a new one.
	Snapshot *Snapshot
	// PartitionBy is for a new table or one whose rows are all replaced; nil takes the snapshot's.
	PartitionBy []string
	// Name is what the names of the files are made of. The same rows under the
	// same name give the same files, byte for byte.
	Name string
	// TargetSize is about how large a file becomes; 0 is the table's
	// delta.targetFileSize, or else 128 MiB.
	TargetSize int64
	// Properties are those that the commit will set, Unset those that it takes away.
	Properties map[string]string
	Unset      []string
	// ClusterBy is for a new table; these columns always get statistics.
	ClusterBy []string
	// Replace says that the commit will replace all rows, so that Schema may be any.
	Replace bool
	// Redefines is that of the commit.
	Redefines bool
	// RowTracking keeps the identity of rows that the files take over from
	// others: batches may have the columns RowIDColumn and RowCommitVersionColumn,
	// null where a row is new. For tables whose row tracking is enabled.
	RowTracking bool

	changeType bool   // batches have the column _change_type, and so do the files
	folder     string // in which the files go, "" or that of the change files
	holds      []rule // beside those of the table
	quick      bool   // the files are small, are packed soon, and are waited for: compress less hard
}

const (
	defaultTargetSize = 128 << 20
	// A chunk is what is encoded at once. Its limits are of rows and of their
	// bytes, not of the batches that come in, so that files do not depend on those.
	chunkRows  = 32 << 10
	chunkBytes = 16 << 20
	// maxOpenFiles bounds how many partitions are written at once, and
	// maxOpenBytes the rows they hold back for their row groups.
	maxOpenFiles = 256
	maxOpenBytes = 256 << 20
)

// FileWriter writes rows to data files of a table, which Commit then adds. It
// is for one goroutine at a time, and Close or Abort must end it.
type FileWriter struct {
	table       *Table
	opt         WriteOptions
	tree        *structType
	schema      *arrow.Schema // of the table
	hidden      []hiddenColumn
	row         *arrow.Schema // of the table, and the hidden columns
	partitionBy []string
	partitions  []string // partitionBy as the log names the columns
	properties  map[string]string
	always      [][]string // columns that get statistics in any case
	layout      *layout
	parquet     *arrow.Schema // of all columns in the files
	codec       codec
	rules       *rowRules // nil when the table has none
	adapter     *adapter

	pending      []arrow.RecordBatch // of the table's schema, less than a chunk
	pendingRows  int
	pendingBytes int64

	encoding chan error // of the chunk in the background, which owns what follows

	open   map[string]*partFile // by directory
	parts  map[string]int       // files begun, by directory
	clock  int
	added  []AddFile
	closed bool
}

// Write starts writing files of the table. They are no part of it until Commit.
func (t *Table) Write(ctx context.Context, opt WriteOptions) (*FileWriter, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if opt.Name == "" || strings.ContainsAny(opt.Name, "/\\\x00") {
		return nil, fault.New("DELTA_COMMIT_FAILED", "%q cannot be part of a file name", opt.Name)
	}
	w := &FileWriter{table: t, opt: opt,
		adapter: &adapter{mem: t.mem, match: matchName}, open: map[string]*partFile{}, parts: map[string]int{}}
	err := w.resolve()
	if err != nil {
		return nil, err
	}
	if w.rules, err = rulesOf(t, w.tree, w.protocol(), w.properties); err != nil {
		return nil, err
	}
	if len(opt.holds) > 0 {
		if w.rules == nil {
			w.rules = newRowRules(t, w.tree)
		}
		w.rules.checks = append(w.rules.checks, opt.holds...)
	}
	if w.codec, err = codecOf(w.properties); err != nil {
		return nil, err
	}
	if w.opt.TargetSize <= 0 {
		if w.opt.TargetSize, err = targetSize(w.properties); err != nil {
			return nil, err
		}
	}
	w.schema = arrow.NewSchema(arrowFields(w.tree), nil)
	if opt.RowTracking {
		if w.hidden, err = trackingColumns(w.properties); err != nil {
			return nil, err
		}
	}
	if opt.changeType {
		w.hidden = append(w.hidden, changeTypeHidden)
	}
	w.row, w.parquet = withHidden(w.schema, w.hidden, false), withHidden(w.layout.schema, w.hidden, true)
	return w, nil
}

// protocol gives the table's, or nil when it is new.
func (w *FileWriter) protocol() *Protocol {
	if w.opt.Snapshot == nil {
		return nil
	}
	return w.opt.Snapshot.protocol
}

// resolve finds schema, partitioning and properties as they will be with the commit.
func (w *FileWriter) resolve() (err error) {
	s := w.opt.Snapshot
	if s != nil {
		if err := checkWritable(s.protocol, s.metadata, s.schema); err != nil {
			return err
		}
	}
	r, err := revise(s, &demand{schema: w.opt.Schema, partitionBy: w.opt.PartitionBy, clusterBy: w.opt.ClusterBy, properties: w.opt.Properties, unset: w.opt.Unset, replace: w.opt.Replace, redefine: w.opt.Redefines})
	if err != nil {
		return err
	}
	w.tree, w.partitionBy, w.properties, w.always = r.schema, r.partitionBy, r.conf, r.clusterBy
	w.partitions = storedNames(w.tree, w.partitionBy, r.mapped())
	w.layout, err = newLayout(w.tree, w.partitionBy, r.mapped())
	return err
}

// Schema gives the columns that Write expects. Batches may have them in any
// order, lack some (null) or have narrower types.
func (w *FileWriter) Schema() *arrow.Schema { return w.schema }

// Write takes in a batch. It keeps no reference to it after it returns but
// through retained columns of less than a chunk.
func (w *FileWriter) Write(ctx context.Context, rec arrow.RecordBatch) error {
	return w.take(ctx, rec, w.rules)
}

// take does so under some rules: none for rows that the table has already.
func (w *FileWriter) take(ctx context.Context, rec arrow.RecordBatch, rules *rowRules) error {
	if w.closed {
		return fault.New("DELTA_COMMIT_FAILED", "the writer is closed")
	}
	full, err := w.conform(ctx, rec, rules)
	if err != nil {
		return err
	}
	defer full.Release()
	for done := int64(0); done < full.NumRows(); {
		n := w.fill(full, done)
		if n > 0 {
			w.pending = append(w.pending, full.NewSlice(done, done+n))
			w.pendingRows += int(n)
			w.pendingBytes += batchBytes(full, done, done+n)
			done += n
		}
		if done < full.NumRows() || w.pendingRows == chunkRows {
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill tells how many rows of rec from row first on still fit the chunk. Since
// sizes add up row by row, the answer does not depend on how rows were batched.
func (w *FileWriter) fill(rec arrow.RecordBatch, first int64) int64 {
	room := min(int64(chunkRows-w.pendingRows), rec.NumRows()-first)
	if w.pendingBytes+batchBytes(rec, first, first+room) <= chunkBytes {
		return room
	}
	lo, hi := int64(0), room // lo rows fit, hi rows do not
	for hi-lo > 1 {
		mid := (lo + hi) / 2
		if w.pendingBytes+batchBytes(rec, first, first+mid) <= chunkBytes {
			lo = mid
		} else {
			hi = mid
		}
	}
	if lo == 0 && w.pendingRows == 0 {
		return 1 // one row is larger than a chunk
	}
	return lo
}

// conform gives a batch the table's schema and holds its rules.
func (w *FileWriter) conform(ctx context.Context, rec arrow.RecordBatch, rules *rowRules) (arrow.RecordBatch, error) {
	fields := rec.Schema().Fields()
	used := make([]bool, len(fields))
	absent := make([]bool, len(w.tree.fields))
	cols := make([]arrow.Array, len(w.tree.fields))
	defer func() { releaseArrays(cols) }()
	for i, f := range w.tree.fields {
		j := matchName(f, fields)
		if j < 0 {
			absent[i] = true
			cols[i] = w.adapter.nulls(f.typ, int(rec.NumRows()))
		} else {
			used[j] = true
			col, err := w.adapter.adapt(rec.Column(j), f.typ)
			if err != nil {
				return nil, within(err, "column "+f.name)
			}
			cols[i] = col
		}
	}
	if rules != nil {
		if err := rules.fill(ctx, cols, absent, rec.NumRows(), w.adapter); err != nil {
			return nil, err
		}
	}
	for i, f := range w.tree.fields {
		if err := checkNulls(f.typ, cols[i], f.nullable, f.name); err != nil {
			return nil, err
		}
	}
	if rules != nil {
		if err := rules.check(ctx, cols, absent, rec.NumRows()); err != nil {
			return nil, err
		}
	}
	hidden, err := w.hiddenOf(rec, used)
	if err != nil {
		return nil, err
	}
	cols = slices.Concat(cols, hidden)
	if j := slices.Index(used, false); j >= 0 {
		return nil, fault.New("DELTA_COLUMN_NOT_FOUND", "column %q of the batch is not in the table", fields[j].Name).
			WithHint("Add it with MergeSchema")
	}
	countNulls(cols) // they share buffers and counts with the caller's arrays
	return array.NewRecordBatch(w.row, cols, rec.NumRows()), nil
}

func releaseArrays(cols []arrow.Array) {
	for _, c := range cols {
		if c != nil {
			c.Release()
		}
	}
}

// checkNulls holds NOT NULL, in structs too.
func checkNulls(t dataType, arr arrow.Array, nullable bool, path string) error {
	if !nullable && arr.NullN() > 0 {
		return fault.New("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "column %q is NOT NULL and has %d nulls", path, arr.NullN())
	}
	st, ok := t.(*structType)
	if !ok {
		return nil
	}
	s := arr.(*array.Struct)
	for i, f := range st.fields {
		child := s.Field(i)
		if f.nullable || s.NullN() == 0 {
			if err := checkNulls(f.typ, child, f.nullable, path+"."+f.name); err != nil {
				return err
			}
			continue
		}
		// The child of a null struct has no value, which is no violation.
		for r := range s.Len() {
			if s.IsValid(r) && child.IsNull(r) {
				return fault.New("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "column %q is NOT NULL and has nulls", path+"."+f.name)
			}
		}
	}
	return nil
}

// flush encodes what is pending as one chunk, in the background: the next
// batch can be made meanwhile. It waits for the chunk before and tells how that went.
func (w *FileWriter) flush(ctx context.Context) error {
	if w.pendingRows == 0 {
		return nil
	}
	if err := errors.Join(w.wait(), ctx.Err()); err != nil {
		return err
	}
	pending := w.pending
	w.pending, w.pendingRows, w.pendingBytes = nil, 0, 0
	done := make(chan error, 1)
	w.encoding = done
	go func() { done <- w.encode(ctx, pending) }()
	return nil
}

// wait gives the outcome of the chunk that is being encoded.
func (w *FileWriter) wait() error {
	if w.encoding == nil {
		return nil
	}
	err := <-w.encoding
	w.encoding = nil
	return err
}

func (w *FileWriter) encode(ctx context.Context, pending []arrow.RecordBatch) (err error) {
	defer guard(&err, "DELTA_WRITE_FAILED", "a chunk")
	chunk, err := concatBatches(w.table.mem, w.row, pending)
	if err != nil {
		return err
	}
	defer chunk.Release()
	if len(w.partitionBy) == 0 {
		return w.writeTo(ctx, "", nil, chunk)
	}
	return w.split(ctx, chunk)
}

func releaseBatches(batches []arrow.RecordBatch) {
	for _, r := range batches {
		r.Release()
	}
}

// writeTo appends a chunk to the file of a directory.
func (w *FileWriter) writeTo(ctx context.Context, dir string, values map[string]*string, chunk arrow.RecordBatch) error {
	cols := w.dataColumns(chunk)
	defer releaseArrays(cols)
	p := w.open[dir]
	if p == nil {
		if err := w.makeRoom(); err != nil {
			return err
		}
		kind := "part"
		if w.opt.folder != "" {
			kind = "cdc"
		}
		name := fmt.Sprintf("%s%s%s-00000-%s-c%03d.%s.parquet", w.opt.folder, dir, kind, asciiName(w.opt.Name), w.parts[dir], w.codec.name)
		var err error
		if p, err = w.newPartFile(ctx, name, values, cols); err != nil {
			return err
		}
		w.parts[dir]++
		w.open[dir] = p
	}
	w.clock++
	p.used = w.clock
	if err := p.write(ctx, cols, int(chunk.NumRows())); err != nil {
		return err
	}
	if p.full() {
		return w.finish(dir)
	}
	return w.easeMemory()
}

// easeMemory closes files, those that hold back most first, until what is held back fits.
func (w *FileWriter) easeMemory() error {
	total := int64(0)
	for _, p := range w.open {
		total += p.groupBytes
	}
	for total > maxOpenBytes {
		largest := ""
		for dir, p := range w.open {
			if l := w.open[largest]; l == nil || p.groupBytes > l.groupBytes || p.groupBytes == l.groupBytes && dir < largest {
				largest = dir
			}
		}
		total -= w.open[largest].groupBytes
		if err := w.finish(largest); err != nil {
			return err
		}
	}
	return nil
}

// dataColumns gives the columns that go into files, as they lie there. The caller releases them.
func (w *FileWriter) dataColumns(chunk arrow.RecordBatch) []arrow.Array {
	kept := chunk.Columns()[:len(w.tree.fields)]
	if len(w.partitionBy) > 0 {
		kept = nil
		for i, f := range w.tree.fields {
			if !slices.Contains(w.partitionBy, f.name) {
				kept = append(kept, chunk.Column(i))
			}
		}
	}
	out := w.layout.columns(kept)
	for _, c := range chunk.Columns()[len(w.tree.fields):] {
		c.Retain()
		out = append(out, c)
	}
	return out
}

// makeRoom closes the file that was not written to for the longest time when too many are open.
func (w *FileWriter) makeRoom() error {
	if len(w.open) < maxOpenFiles {
		return nil
	}
	oldest := ""
	for dir, p := range w.open {
		if oldest == "" || p.used < w.open[oldest].used {
			oldest = dir
		}
	}
	return w.finish(oldest)
}

func (w *FileWriter) finish(dir string) error {
	p := w.open[dir]
	delete(w.open, dir)
	f, err := p.close()
	if err != nil {
		return err
	}
	w.added = append(w.added, f)
	return nil
}

// sized brings what was written so far to the files' sinks, and tells how many
// bytes that is. It ends the row groups.
func (w *FileWriter) sized(ctx context.Context) (int64, error) {
	if err := errors.Join(w.flush(ctx), w.wait()); err != nil {
		return 0, err
	}
	total := int64(0)
	for i := range w.added {
		total += w.added[i].Size
	}
	for _, p := range w.open {
		if err := p.endGroup(); err != nil {
			return 0, err
		}
		total += p.count.n
	}
	return total, nil
}

// Close writes what is left and gives the files, sorted by path. Without rows
// there are none. After an error everything written is removed.
func (w *FileWriter) Close(ctx context.Context) ([]AddFile, error) {
	if w.closed {
		return nil, fault.New("DELTA_COMMIT_FAILED", "the writer is closed")
	}
	err := w.flush(ctx)
	err = errors.Join(err, w.wait(), w.rules.close())
	dirs := slices.Sorted(maps.Keys(w.open))
	for _, dir := range dirs {
		if err == nil {
			err = w.finish(dir)
		}
	}
	if err != nil {
		return nil, errors.Join(err, w.Abort(ctx))
	}
	w.closed = true
	sortFiles(w.added)
	return w.added, nil
}

// Abort drops what was written and removes its files. After Close it does nothing.
func (w *FileWriter) Abort(ctx context.Context) error {
	if w.closed {
		return nil
	}
	w.closed = true
	errs := []error{w.rules.close()}
	_ = w.wait() // what went wrong with the last chunk is of no more interest
	releaseBatches(w.pending)
	w.pending = nil
	for _, p := range w.open {
		errs = append(errs, p.abort())
	}
	w.open = nil
	return errors.Join(append(errs, w.remove(ctx))...)
}

// remove deletes the files that are finished.
func (w *FileWriter) remove(ctx context.Context) error {
	var errs []error
	for i := range w.added {
		name, err := canonicalPath(w.added[i].Path)
		if err == nil {
			err = w.table.store.Delete(context.WithoutCancel(ctx), name)
		}
		errs = append(errs, err)
	}
	w.added = nil
	return errors.Join(errs...)
}

// split divides a chunk by partition and writes each part, in the order of
// first appearance; rows of a partition keep their order.
func (w *FileWriter) split(ctx context.Context, chunk arrow.RecordBatch) error {
	type part struct {
		dir    string
		values map[string]*string
		runs   [][2]int64
	}
	cols := make([]arrow.Array, len(w.partitionBy))
	for i, name := range w.partitionBy {
		cols[i] = chunk.Column(slices.IndexFunc(w.tree.fields, func(f *field) bool { return f.name == name }))
	}
	var parts []*part
	byKey := map[string]*part{}
	for row := range chunk.NumRows() {
		values := make([]*string, len(cols))
		var key strings.Builder
		for i, c := range cols {
			v, err := partitionValue(c, int(row))
			if err != nil {
				return within(err, "column "+w.partitionBy[i])
			}
			if values[i] = v; v != nil {
				key.WriteString(*v)
			}
			key.WriteByte(0)
		}
		p := byKey[key.String()]
		if p == nil {
			p = &part{values: map[string]*string{}}
			for i, name := range w.partitions {
				p.values[name] = values[i]
			}
			p.dir = partitionDir(w.partitions, p.values)
			byKey[key.String()] = p
			parts = append(parts, p)
		}
		if n := len(p.runs); n > 0 && p.runs[n-1][1] == row {
			p.runs[n-1][1] = row + 1
		} else {
			p.runs = append(p.runs, [2]int64{row, row + 1})
		}
	}
	for _, p := range parts {
		sub, err := gather(w.table.mem, chunk, p.runs)
		if err != nil {
			return err
		}
		err = w.writeTo(ctx, p.dir, p.values, sub)
		sub.Release()
		if err != nil {
			return err
		}
	}
	return nil
}
