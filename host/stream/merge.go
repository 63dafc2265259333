package stream

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// mergeBytes bounds what a batch may merge into one table: its rows are held
// in memory until they are committed.
const mergeBytes = 1 << 30

// mergeAttempts is how often a merge is made again on the table that another
// writer has changed meanwhile.
const mergeAttempts = 8

// keyedRows are the rows of one batch that are merged into a table, found by key.
type keyedRows struct {
	keys    []string
	columns []int // of the keys
	schema  *arrow.Schema
	name    string // stem of the files
	batches []arrow.RecordBatch
	bytes   int64
	index   map[string]int64
	rows    int64
}

func newKeyedRows(keys []string, schema *arrow.Schema, name string) *keyedRows {
	k := &keyedRows{keys: keys, schema: schema, name: name, index: map[string]int64{}}
	for _, key := range keys {
		k.columns = append(k.columns, columnNamed(schema, key))
	}
	return k
}

// columnNamed finds a column whatever its case, -1 for none.
func columnNamed(schema *arrow.Schema, name string) int {
	return slices.IndexFunc(schema.Fields(), func(f arrow.Field) bool { return strings.EqualFold(f.Name, name) })
}

// checkKeys tells whether rows of these columns can be merged into a table.
func checkKeys(keys []string, rows *arrow.Schema, snap *delta.Snapshot) error {
	for _, key := range keys {
		i := columnNamed(rows, key)
		if i < 0 {
			return fault.New("MERGE_KEY_NOT_FOUND", "the rows have no column %q, which they are merged by", key)
		}
		switch rows.Field(i).Type.ID() {
		case arrow.BOOL, arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.STRING, arrow.BINARY, arrow.DATE32, arrow.TIMESTAMP, arrow.DECIMAL128:
		default:
			return fault.New("UNSUPPORTED_MERGE_KEY", "column %q is %s; rows are merged by whole numbers, decimals, texts, bytes, booleans, dates and times", key, rows.Field(i).Type)
		}
	}
	if snap == nil {
		return nil
	}
	for _, f := range snap.Schema().Fields() {
		if columnNamed(rows, f.Name) < 0 {
			return fault.New("DELTA_MERGE_UNRESOLVED_EXPRESSION", "the table has a column %q, which the rows that are merged lack", f.Name).
				WithHint("Write all columns of the table")
		}
	}
	return nil
}

// add takes rows. A key that stands twice has no one outcome, and a null one
// equals none, so that it would be added again each time.
func (k *keyedRows) add(rec arrow.RecordBatch) error {
	if k.bytes += batchBytes(rec); k.bytes > mergeBytes {
		return fault.New("MERGE_TOO_LARGE", "a batch merges more than %d MiB into one table", mergeBytes>>20).
			WithHint("Make micro-batches smaller with maxFilesPerTrigger or maxBytesPerTrigger")
	}
	rec.Retain()
	k.batches = append(k.batches, rec)
	var key []byte
	for i := range int(rec.NumRows()) {
		key = key[:0]
		for n, c := range k.columns {
			col := rec.Column(c)
			if col.IsNull(i) {
				return fault.New("MERGE_NULL_KEY", "a row has no value in %q, which it is merged by", k.keys[n]).
					WithHint("Report such rows with RowError, or leave them out")
			}
			key = appendKey(key, col, i)
		}
		if _, twice := k.index[string(key)]; twice {
			return fault.New("DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE", "two rows of one batch have the same %s", strings.Join(k.keys, ", ")).
				WithHint("Let the handler keep one row of each key, the newest for example")
		}
		k.index[string(key)] = k.rows
		k.rows++
	}
	return nil
}

func batchBytes(rec arrow.RecordBatch) int64 {
	n := int64(0)
	for _, c := range rec.Columns() {
		n += int64(c.Data().SizeInBytes()) //nolint:gosec // of memory that is there
	}
	return n
}

func (k *keyedRows) release() {
	for _, b := range k.batches {
		b.Release()
	}
	k.batches = nil
}

// appendKey adds a value of one of the types that checkKeys lets pass, so that
// equal bytes are equal values of a column.
func appendKey(key []byte, col arrow.Array, i int) []byte {
	text := func(s string) []byte {
		key = binary.AppendUvarint(key, uint64(len(s)))
		return append(key, s...)
	}
	switch c := col.(type) {
	case *array.Boolean:
		if c.Value(i) {
			return append(key, 1)
		}
		return append(key, 0)
	case *array.Int8:
		return binary.AppendVarint(key, int64(c.Value(i)))
	case *array.Int16:
		return binary.AppendVarint(key, int64(c.Value(i)))
	case *array.Int32:
		return binary.AppendVarint(key, int64(c.Value(i)))
	case *array.Int64:
		return binary.AppendVarint(key, c.Value(i))
	case *array.Date32:
		return binary.AppendVarint(key, int64(c.Value(i)))
	case *array.Timestamp:
		return binary.AppendVarint(key, int64(c.Value(i)))
	case *array.Decimal128:
		v := c.Value(i)
		key = binary.LittleEndian.AppendUint64(key, uint64(v.HighBits())) //nolint:gosec // its bits
		return binary.LittleEndian.AppendUint64(key, v.LowBits())
	case *array.String:
		return text(c.Value(i))
	case *array.Binary:
		return text(string(c.Value(i)))
	}
	return text(col.ValueStr(i))
}

// near is a condition that holds for every row whose keys are among those of
// the batch, nil when it would not help.
func (k *keyedRows) near() *delta.Predicate {
	var parts []*delta.Predicate
	for _, c := range k.columns {
		low, high, ok := k.bounds(c)
		if !ok {
			continue
		}
		column := []string{k.schema.Field(c).Name}
		parts = append(parts, delta.Compare(column, delta.GreaterOrEqual, low), delta.Compare(column, delta.LessOrEqual, high))
	}
	if len(parts) == 0 {
		return nil
	}
	return delta.And(parts...)
}

// bounds gives the least and the greatest value of a key column.
func (k *keyedRows) bounds(column int) (low, high any, ok bool) {
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	var first, last string
	wrap := func(v int64) any { return v }
	texts := false
	for _, b := range k.batches {
		col := b.Column(column)
		for i := range col.Len() {
			var v int64
			switch c := col.(type) {
			case *array.Int8:
				v = int64(c.Value(i))
			case *array.Int16:
				v = int64(c.Value(i))
			case *array.Int32:
				v = int64(c.Value(i))
			case *array.Int64:
				v = c.Value(i)
			case *array.Date32:
				v, wrap = int64(c.Value(i)), func(v int64) any { return arrow.Date32(v) } //nolint:gosec // it was one
			case *array.Timestamp:
				v, wrap = int64(c.Value(i)), func(v int64) any { return arrow.Timestamp(v) }
			case *array.String:
				s := c.Value(i)
				if !texts || s < first {
					first = strings.Clone(s)
				}
				if !texts || s > last {
					last = strings.Clone(s)
				}
				texts = true
				continue
			default:
				return nil, nil, false
			}
			least, most = min(least, v), max(most, v)
		}
	}
	if texts {
		return first, last, true
	}
	return wrap(least), wrap(most), least <= most
}

// match is a row of a file and the row of the batch that replaces it.
type match struct{ at, row int64 }

// merge updates the rows of the table that have a key of the batch, inserts the
// rest of the batch, and commits both at once. When another writer was faster
// it looks again.
func (a *attempt) merge(ctx context.Context, o *handling, outcome string) (delta.Result, error) {
	for n := 1; ; n++ {
		res, err := a.mergeOnce(ctx, o, outcome)
		if err == nil || n == mergeAttempts || !strings.HasPrefix(fault.CodeOf(err), "DELTA_CONCURRENT_") && fault.CodeOf(err) != "DELTA_METADATA_CHANGED" {
			return res, err
		}
		if o.snapshot, err = snapshot(ctx, o.Table); err != nil {
			return res, err
		}
		if v, ok := txn(o.snapshot, a.ck.gen.AppID); ok && v >= a.entry.Batch {
			return res, nil
		}
		if o.schema, err = planOutput(o.snapshot, o.schema.rows, false); err != nil {
			return res, err
		}
	}
}

func (a *attempt) mergeOnce(ctx context.Context, o *handling, outcome string) (res delta.Result, err error) {
	ctx = compute.WithAllocator(ctx, a.mem)
	all, err := concatenated(o.rows, a.mem)
	if err != nil {
		return res, err
	}
	defer all.Release()
	if o.snapshot == nil {
		return a.mergeIntoNothing(ctx, o, all, outcome)
	}
	m, err := o.snapshot.Mutate(ctx, delta.MutateOptions{Name: o.rows.name, Schema: o.schema.table})
	if err != nil {
		return res, err
	}
	defer func() {
		if err != nil {
			_ = m.Abort(context.WithoutCancel(ctx)) // the first error says more
		}
	}()
	near := o.rows.near()
	inserts, err := o.update(ctx, m, all, near, a.mem)
	if err != nil {
		return res, err
	}
	if len(inserts) > 0 {
		rest, err := taken(ctx, all, inserts, a.mem)
		if err != nil {
			return res, err
		}
		defer rest.Release()
		if err := m.Insert(ctx, rest); err != nil {
			return res, err
		}
	}
	c := a.commit(o.snapshot, nil)
	c.Operation = "MERGE"
	c.Parameters = map[string]any{"predicate": strings.Join(o.Keys, ", "), "queryId": a.ck.gen.AppID, outcomeKey: outcome}
	if c.Reads.Where = near; near == nil {
		c.Reads.Table = true
	}
	return m.Commit(ctx, c)
}

// mergeIntoNothing makes the table of the batch's rows.
func (a *attempt) mergeIntoNothing(ctx context.Context, o *handling, all arrow.RecordBatch, outcome string) (res delta.Result, err error) {
	w, err := o.Table.Write(ctx, delta.WriteOptions{Schema: o.schema.table, Name: o.rows.name})
	if err != nil {
		return res, err
	}
	c := a.commit(nil, nil)
	c.Parameters[outcomeKey], c.Schema, c.Name = outcome, o.schema.table, o.Dataset
	if err := w.Write(ctx, all); err != nil {
		_ = w.Abort(context.WithoutCancel(ctx)) // the first error says more
		return res, err
	}
	if c.Add, err = w.Close(ctx); err != nil {
		return res, err
	}
	return o.Table.Commit(ctx, c)
}

// update replaces the rows that have a key of the batch, file by file, and
// gives the rows of the batch that met none.
func (o *handling) update(ctx context.Context, m *delta.Mutation, all arrow.RecordBatch, near *delta.Predicate, mem memory.Allocator) (inserts []int64, err error) {
	met := make([]bool, o.rows.rows)
	files, err := o.snapshot.FilesWhere(ctx, near)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		matches, err := o.matches(ctx, f, near)
		if err != nil {
			return nil, err
		}
		if len(matches) == 0 {
			continue
		}
		slices.SortFunc(matches, func(x, y match) int { return cmp.Compare(x.at, y.at) })
		at, rows := delta.NewRowSet(), make([]int64, len(matches))
		for i, x := range matches {
			at.Add(x.at)
			rows[i] = x.row
			met[x.row] = true
		}
		post, err := taken(ctx, all, rows, mem)
		if err != nil {
			return nil, err
		}
		err = m.Update(ctx, f, at, post)
		post.Release()
		if err != nil {
			return nil, err
		}
	}
	for i, ok := range met {
		if !ok {
			inserts = append(inserts, int64(i))
		}
	}
	return inserts, nil
}

// matches finds the rows of a file that have a key of the batch.
func (o *handling) matches(ctx context.Context, f delta.AddFile, near *delta.Predicate) (out []match, err error) {
	columns := make([]string, len(o.rows.columns))
	for i, c := range o.rows.columns {
		columns[i] = o.rows.schema.Field(c).Name
	}
	r, err := o.snapshot.Scan(ctx, delta.ScanOptions{Files: []delta.AddFile{f}, Columns: columns, Where: near, RowIndex: true})
	if err != nil {
		return nil, err
	}
	defer r.Release()
	var key []byte
	for r.Next() {
		rec := r.RecordBatch()
		index, ok := relation.Int64Column(rec, delta.RowIndexColumn)
		if !ok {
			return nil, fault.New("INTERNAL_ERROR", "a scan gives no row positions")
		}
	rows:
		for i := range int(rec.NumRows()) {
			key = key[:0]
			for c := range columns {
				col := rec.Column(c)
				if col.IsNull(i) {
					continue rows
				}
				key = appendKey(key, col, i)
			}
			if row, ok := o.rows.index[string(key)]; ok {
				out = append(out, match{index.Value(i), row})
			}
		}
	}
	return out, r.Err()
}

// concatenated gives all rows as one batch.
func concatenated(k *keyedRows, mem memory.Allocator) (arrow.RecordBatch, error) {
	if len(k.batches) == 1 {
		k.batches[0].Retain()
		return k.batches[0], nil
	}
	if len(k.batches) == 0 {
		b := array.NewRecordBuilder(mem, k.schema)
		defer b.Release()
		return b.NewRecordBatch(), nil
	}
	cols := make([]arrow.Array, k.schema.NumFields())
	defer func() {
		for _, c := range cols {
			if c != nil {
				c.Release()
			}
		}
	}()
	for i := range cols {
		parts := make([]arrow.Array, len(k.batches))
		for n, b := range k.batches {
			parts[n] = b.Column(i)
		}
		var err error
		if cols[i], err = array.Concatenate(parts, mem); err != nil {
			return nil, fault.Wrap(err, "INTERNAL_ERROR", "rows cannot be joined")
		}
	}
	return array.NewRecordBatch(k.batches[0].Schema(), cols, k.rows), nil
}

// taken gives rows of a batch, in the order asked for. The caller releases it.
func taken(ctx context.Context, rec arrow.RecordBatch, rows []int64, mem memory.Allocator) (arrow.RecordBatch, error) {
	b := array.NewInt64Builder(mem)
	defer b.Release()
	b.AppendValues(rows, nil)
	indices := b.NewArray()
	defer indices.Release()
	cols := make([]arrow.Array, rec.NumCols())
	defer func() {
		for _, c := range cols {
			if c != nil {
				c.Release()
			}
		}
	}()
	for i, col := range rec.Columns() {
		var err error
		if cols[i], err = compute.TakeArrayOpts(ctx, col, indices, compute.TakeOptions{}); err != nil {
			return nil, fault.Wrap(err, "INTERNAL_ERROR", "rows cannot be taken")
		}
	}
	return array.NewRecordBatch(rec.Schema(), cols, int64(len(rows))), nil
}
