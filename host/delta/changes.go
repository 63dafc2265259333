package delta

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// Columns that Changes adds behind those of the table. A table with the feed on
// has no columns of these names.
const (
	// ChangeTypeColumn tells what happened to the row: insert, delete,
	// update_preimage, update_postimage, or what another writer put there.
	ChangeTypeColumn = changeTypeColumn
	// CommitVersionColumn is the version that changed the row, a BIGINT.
	CommitVersionColumn = "_commit_version"
	// CommitTimestampColumn is the time of that version, a TIMESTAMP.
	CommitTimestampColumn = "_commit_timestamp"
)

// ChangesOptions says which changes are read.
type ChangesOptions struct {
	// From and To are the first and the last version, both included; To < 0 is the newest.
	From, To int64
	// FromTime and ToTime, where set, replace them: the first version at or after
	// FromTime, and the last one at or before ToTime.
	FromTime, ToTime time.Time
	// Columns are top-level columns of the table; nil is all.
	Columns []string
	// BatchRows is the most rows a batch has; 0 is 32,768.
	BatchRows int
}

// Changes reads the change data feed: the rows that versions inserted, deleted
// and updated, version by version, in the schema of the last one, followed by
// ChangeTypeColumn, CommitVersionColumn and CommitTimestampColumn.
//
// Where a version wrote change files they hold its changes. Otherwise its
// inserts and deletes follow from the files it added and removed, and from what
// changed in their deletion vectors; files that are marked as moving rows only
// give none.
//
// The feed (delta.enableChangeDataFeed) must have been on in every version of
// the range, else Changes or the reader fails with DELTA_MISSING_CHANGE_DATA;
// rows of the versions before may have come by then. One version's list of
// files is held at a time, and about one row group.
func (t *Table) Changes(ctx context.Context, opt ChangesOptions) (array.RecordReader, error) {
	opt, err := t.ResolveChanges(ctx, opt)
	if err != nil {
		return nil, err
	}
	end, err := t.SnapshotAt(ctx, opt.To)
	if err != nil {
		return nil, err
	}
	start := end
	if opt.From < opt.To {
		if start, err = t.SnapshotAt(ctx, opt.From); err != nil {
			return nil, err
		}
	}
	return end.changes(ctx, start, opt)
}

// Changes reads the feed of versions From to To as Table.Changes does, in the
// columns of the snapshot, which is of version To or a later one. It does not
// look whether the feed was on in version From: the caller knows, and saves
// making a snapshot of it.
func (s *Snapshot) Changes(ctx context.Context, opt ChangesOptions) (array.RecordReader, error) {
	if opt.From < 0 || opt.From > opt.To || opt.To > s.version || !opt.FromTime.IsZero() || !opt.ToTime.IsZero() {
		return nil, fault.New("DELTA_INVALID_CDC_RANGE", "the changes would begin with version %d and end with version %d of %d", opt.From, opt.To, s.version)
	}
	return s.changes(ctx, s, opt)
}

// ChangesSchema gives the columns of the feed, as Changes reads it.
func (s *Snapshot) ChangesSchema() (*arrow.Schema, error) { return WithChangeColumns(s.arrow) }

// WithChangeColumns gives the columns of a table and those of its change data
// feed behind them. A table that has one of the latter's names has no feed.
func WithChangeColumns(table *arrow.Schema) (*arrow.Schema, error) {
	fields := table.Fields()
	for _, f := range fields {
		for _, c := range changeFields {
			if strings.EqualFold(f.Name, c.Name) {
				return nil, fault.New("DELTA_RESERVED_COLUMN", "the table has a column %q, a name that its change data feed needs", f.Name)
			}
		}
	}
	return arrow.NewSchema(append(fields, changeFields...), nil), nil
}

// RecordsChanges tells whether the change data feed is on in the snapshot's version.
func (s *Snapshot) RecordsChanges() bool { return recordsChanges(s.metadata) }

func recordsChanges(m *Metadata) bool {
	return strings.EqualFold(m.Configuration["delta.enableChangeDataFeed"], "true")
}

// changes reads a range whose first version is like start.
func (s *Snapshot) changes(ctx context.Context, start *Snapshot, opt ChangesOptions) (array.RecordReader, error) {
	if _, err := s.ChangesSchema(); err != nil {
		return nil, err
	}
	clock := &commitClock{}
	if own, ok := s.timedSince(); !ok || own > opt.From {
		var err error
		if clock, err = s.table.clock(ctx); err != nil {
			return nil, err
		}
	}
	r := &changesReader{ctx: ctx, table: s.table, opt: opt, clock: clock, end: s, next: opt.From}
	if err := r.checkFeed(start.metadata, start.mapping, opt.From); err != nil {
		return nil, err
	}
	// Whether the columns are there is told now, not with the first file.
	probe, err := s.scanner(ctx, nil, ScanOptions{Columns: opt.Columns})
	if err != nil {
		return nil, err
	}
	r.schema = arrow.NewSchema(append(probe.Schema().Fields(), changeFields...), nil)
	probe.Release()
	r.refs.Store(1)
	return r, nil
}

var changeFields = []arrow.Field{
	{Name: ChangeTypeColumn, Type: arrow.BinaryTypes.String},
	{Name: CommitVersionColumn, Type: arrow.PrimitiveTypes.Int64},
	{Name: CommitTimestampColumn, Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
}

// ResolveChanges gives the options with From and To in the place of times and
// of "the newest", checked to be a range of versions that the table has.
func (t *Table) ResolveChanges(ctx context.Context, opt ChangesOptions) (ChangesOptions, error) {
	s, err := t.Snapshot(ctx)
	if err != nil {
		return opt, err
	}
	if !opt.FromTime.IsZero() {
		if opt.From, err = t.VersionSince(ctx, opt.FromTime); err != nil {
			return opt, err
		}
	}
	if !opt.ToTime.IsZero() {
		if opt.To, err = t.VersionAsOf(ctx, opt.ToTime); err != nil {
			return opt, err
		}
	}
	opt.FromTime, opt.ToTime = time.Time{}, time.Time{}
	if opt.To < 0 {
		opt.To = s.version
	}
	switch {
	case opt.From < 0:
		return opt, fault.New("DELTA_VERSION_NOT_FOUND", "version %d", opt.From)
	case max(opt.From, opt.To) > s.version:
		return opt, fault.New("DELTA_VERSION_NOT_FOUND", "version %d: the newest is %d", max(opt.From, opt.To), s.version)
	case opt.From > opt.To:
		return opt, fault.New("DELTA_INVALID_CDC_RANGE", "the changes would begin with version %d and end with version %d", opt.From, opt.To)
	}
	return opt, nil
}

// change is a file whose rows, or some of them, changed in one way.
type change struct {
	kind string // "" is what the file's own column says
	file AddFile
	rows *RowSet // nil: all that are live
}

// changesReader implements array.RecordReader.
type changesReader struct {
	ctx    context.Context
	table  *Table
	opt    ChangesOptions
	clock  *commitClock
	end    *Snapshot
	schema *arrow.Schema

	next    int64 // the version to read after the one at hand
	version int64
	time    time.Time
	changes []change // of the version, to come
	kind    string
	scan    *scanner

	rec  arrow.RecordBatch
	err  error
	refs atomic.Int64
}

func (r *changesReader) Schema() *arrow.Schema          { return r.schema }
func (r *changesReader) RecordBatch() arrow.RecordBatch { return r.rec }
func (r *changesReader) Record() arrow.RecordBatch      { return r.rec }
func (r *changesReader) Err() error                     { return r.err }
func (r *changesReader) Retain()                        { r.refs.Add(1) }

func (r *changesReader) Release() {
	if r.refs.Add(-1) == 0 {
		r.drop()
		r.closeScan()
		r.changes = nil
	}
}

func (r *changesReader) drop() {
	if r.rec != nil {
		r.rec.Release()
		r.rec = nil
	}
}

func (r *changesReader) closeScan() {
	if r.scan != nil {
		r.scan.Release()
		r.err = errors.Join(r.err, r.scan.Err())
		r.scan = nil
	}
}

func (r *changesReader) Next() bool {
	r.drop()
	for r.err == nil {
		switch {
		case r.scan != nil && r.scan.Next():
			rec := r.scan.RecordBatch()
			if r.kind == "" && rec.Column(int(rec.NumCols())-1).NullN() > 0 {
				r.err = fault.New("DELTA_INVALID_DATA_FILE", "a change file of version %d has rows without %s", r.version, ChangeTypeColumn)
				return false
			}
			r.rec = r.withChange(rec)
			return true
		case r.scan != nil:
			r.closeScan()
		case len(r.changes) > 0:
			c := r.changes[0]
			r.changes = r.changes[1:]
			r.kind = c.kind
			r.scan, r.err = r.open(&c)
		case r.next <= r.opt.To:
			r.err = r.load(r.next)
			r.next++
		default:
			return false
		}
	}
	return false
}

// checkFeed tells whether a version with this metadata records its changes, in
// files that the last version's schema can read.
func (r *changesReader) checkFeed(m *Metadata, mapping string, version int64) error {
	if !recordsChanges(m) {
		return fault.New("DELTA_MISSING_CHANGE_DATA", "versions %d to %d: delta.enableChangeDataFeed was off in version %d, so its changes are not recorded", r.opt.From, r.opt.To, version).
			WithHint("Begin with a later version")
	}
	if mapping != "none" && r.end.mapping == "none" {
		return fault.New("DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA", "column mapping was given up between version %d and version %d", version, r.opt.To).
			WithHint("Read the versions before and after apart")
	}
	return nil
}

// load lists the changes of one version.
func (r *changesReader) load(version int64) error {
	e, err := r.table.entry(r.ctx, version)
	if errors.Is(err, storage.ErrNotExist) {
		err = fault.Wrap(err, "DELTA_LOG_GAP", "version %d is not in the log any more", version).WithHint("Begin with a later version")
	}
	if err != nil {
		return err
	}
	if e.Metadata != nil {
		mode := e.Metadata.Configuration["delta.columnMapping.mode"]
		if mode == "" {
			mode = "none"
		}
		if err := r.checkFeed(e.Metadata, mode, version); err != nil {
			return err
		}
	}
	r.version, r.time = version, e.Timestamp
	if ms, ok := r.clock.files[version]; ok && (e.CommitInfo == nil || e.CommitInfo.InCommitTimestamp == nil) {
		r.time = time.UnixMilli(ms)
	}
	r.changes, err = r.table.changesOf(r.ctx, e, r.end)
	return err
}

// changesOf derives the changes of a version, deletes before inserts.
func (t *Table) changesOf(ctx context.Context, e *Entry, end *Snapshot) ([]change, error) {
	var out []change
	if len(e.ChangeData) > 0 {
		for _, c := range e.ChangeData {
			out = append(out, change{file: AddFile{Path: c.Path, PartitionValues: c.PartitionValues, Size: c.Size}})
		}
		return out, nil
	}
	if e.CommitInfo.mergedNothing() {
		return nil, nil
	}
	added := map[string]*AddFile{}
	for i := range e.Adds {
		if !e.Adds[i].DataChange {
			continue
		}
		path, err := canonicalPath(e.Adds[i].Path)
		if err != nil {
			return nil, err
		}
		added[path] = &e.Adds[i]
	}
	var inserts []change
	for i := range e.Removes {
		rm := &e.Removes[i]
		if !rm.DataChange {
			continue
		}
		path, err := canonicalPath(rm.Path)
		if err != nil {
			return nil, err
		}
		old := rm.file()
		add := added[path]
		if add == nil {
			if err := t.completeRemoved(ctx, &old, e.Version, end); err != nil {
				return nil, err
			}
			out = append(out, change{kind: "delete", file: old})
			continue
		}
		// The file stays, with another vector: the rows that differ changed.
		delete(added, path)
		before, err := t.DeletedRows(ctx, &old)
		if err != nil {
			return nil, err
		}
		after, err := t.DeletedRows(ctx, add)
		if err != nil {
			return nil, err
		}
		old.PartitionValues = add.PartitionValues
		if gone := after.Minus(before); gone.Len() > 0 {
			out = append(out, change{"delete", old, gone})
		}
		if back := before.Minus(after); back.Len() > 0 {
			inserts = append(inserts, change{"insert", *add, back})
		}
	}
	out = append(out, inserts...)
	for i := range e.Adds {
		path, err := canonicalPath(e.Adds[i].Path)
		if err != nil {
			return nil, err
		}
		if added[path] == &e.Adds[i] {
			out = append(out, change{kind: "insert", file: e.Adds[i]})
		}
	}
	return out, nil
}

// file gives a removed file as one that can be read.
func (rm *RemoveFile) file() AddFile {
	f := AddFile{Path: rm.Path, PartitionValues: rm.PartitionValues, Stats: rm.Stats, DeletionVector: rm.DeletionVector,
		BaseRowID: rm.BaseRowID, DefaultRowCommitVersion: rm.DefaultRowCommitVersion}
	if rm.Size != nil {
		f.Size = *rm.Size
	}
	return f
}

// completeRemoved finds the partition values that the remove actions of old
// writers lack in the version before.
func (t *Table) completeRemoved(ctx context.Context, f *AddFile, version int64, end *Snapshot) error {
	if f.PartitionValues != nil || len(end.metadata.PartitionColumns) == 0 || version == 0 {
		return nil
	}
	s, err := t.SnapshotAt(ctx, version-1)
	if err != nil {
		return err
	}
	key, err := fileKey(f.Path, f.DeletionVector)
	if err != nil {
		return err
	}
	if live, ok := s.files.get(key); ok {
		f.PartitionValues = live.PartitionValues
	}
	return nil
}

// mergedNothing recognises a MERGE of Spark that rewrote files without changing
// a row, and marked them as changed.
func (c *CommitInfo) mergedNothing() bool {
	if c == nil || c.Operation != "MERGE" {
		return false
	}
	for _, name := range []string{"numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"} {
		if c.OperationMetrics[name] != "0" {
			return false
		}
	}
	return true
}

// open begins to read the rows of a change.
func (r *changesReader) open(c *change) (*scanner, error) {
	view := r.end.partitionedLike(&c.file)
	sc, err := view.pick(r.ctx, &c.file, c.rows, ScanOptions{Columns: r.opt.Columns, BatchRows: r.opt.BatchRows})
	if err != nil {
		return nil, err
	}
	if c.kind == "" {
		sc.changeType = true
		sc.schema = arrow.NewSchema(append(sc.schema.Fields(), changeFields[0]), nil)
	}
	return sc, nil
}

// partitionedLike gives the snapshot as the table was when the file was
// written: what has a partition value is a partition column. Another version
// may have partitioned the table in another way.
func (s *Snapshot) partitionedLike(f *AddFile) *Snapshot {
	var columns []string
	for _, c := range s.schema.fields {
		key := c.name
		if s.mapping != "none" {
			key = c.physicalName()
		}
		if _, ok := f.PartitionValues[key]; ok {
			columns = append(columns, c.name)
		}
	}
	view, metadata := *s, *s.metadata
	metadata.PartitionColumns = columns
	view.metadata = &metadata
	return &view
}

// withChange adds what the batch's rows have in common.
func (r *changesReader) withChange(rec arrow.RecordBatch) arrow.RecordBatch {
	n := int(rec.NumRows())
	mem := r.table.mem
	cols := append([]arrow.Array{}, rec.Columns()...)
	own := len(cols)
	if r.kind != "" {
		b := array.NewStringBuilder(mem)
		defer b.Release()
		b.Reserve(n)
		b.ReserveData(n * len(r.kind))
		repeat(n, func() { b.Append(r.kind) })
		cols = append(cols, b.NewArray())
	}
	versions := array.NewInt64Builder(mem)
	defer versions.Release()
	versions.Reserve(n)
	repeat(n, func() { versions.UnsafeAppend(r.version) })
	times := array.NewTimestampBuilder(mem, changeFields[2].Type.(*arrow.TimestampType))
	defer times.Release()
	times.Reserve(n)
	repeat(n, func() { times.UnsafeAppend(arrow.Timestamp(r.time.UnixMicro())) })
	cols = append(cols, versions.NewArray(), times.NewArray())
	defer releaseArrays(cols[own:])
	return array.NewRecordBatch(r.schema, cols, rec.NumRows())
}

// changeTypeOf reads the column of a change file that says what happened to its rows.
func (t *Table) changeTypeOf(ctx context.Context, pf *parquetFile) (c column, err error) {
	defer guard(&err, "DELTA_INVALID_DATA_FILE", "the schema")
	fr, err := newArrowReader(pf.reader, t.mem)
	if err != nil {
		return nil, err
	}
	for i, f := range fr.Manifest.Fields {
		if f.Field.Name == ChangeTypeColumn {
			text := &field{name: ChangeTypeColumn, typ: &primitive{"string", arrow.BinaryTypes.String}}
			return newStoredColumn(ctx, fr, i, &adapter{mem: t.mem, match: matchName}, text)
		}
	}
	return nil, fault.New("DELTA_INVALID_DATA_FILE", "a change file has no column %s", ChangeTypeColumn)
}
