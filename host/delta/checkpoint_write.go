package delta

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/fault"
)

var (
	fpBeforeCheckpoint  = failpoint.New("delta.before_checkpoint")
	fpCheckpointWritten = failpoint.New("delta.checkpoint_written")
)

const (
	defaultCheckpointInterval = 10
	defaultTombstoneRetention = 7 * 24 * time.Hour
)

func (s *Snapshot) checkpointInterval() int64 {
	if n, err := strconv.ParseInt(s.metadata.Configuration["delta.checkpointInterval"], 10, 64); err == nil && n > 0 {
		return n
	}
	return defaultCheckpointInterval
}

// tombstoneRetention is how long a remove stays in checkpoints, for VACUUM to know the file.
func (s *Snapshot) tombstoneRetention() time.Duration {
	if d, ok := parseInterval(s.metadata.Configuration["delta.deletedFileRetentionDuration"]); ok {
		return d
	}
	return defaultTombstoneRetention
}

// parseInterval reads "interval 1 week", "interval 2 days 3 hours".
func parseInterval(s string) (time.Duration, bool) {
	words := strings.Fields(strings.ToLower(s))
	if len(words) > 0 && words[0] == "interval" {
		words = words[1:]
	}
	if len(words) == 0 || len(words)%2 != 0 {
		return 0, false
	}
	units := map[string]time.Duration{
		"week": 7 * 24 * time.Hour, "day": 24 * time.Hour, "hour": time.Hour, "minute": time.Minute, "second": time.Second,
		"millisecond": time.Millisecond, "microsecond": time.Microsecond,
	}
	total := time.Duration(0)
	for i := 0; i < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i], 10, 32)
		unit, ok := units[strings.TrimSuffix(words[i+1], "s")]
		if err != nil || !ok || n < 0 {
			return 0, false
		}
		total += time.Duration(n) * unit
	}
	return total, true
}

// writeCheckpoint writes the classic checkpoint of a snapshot and the hint to
// it. Several writers may do so for one version: each replaces the other's
// file by one that holds the same state.
func (t *Table) writeCheckpoint(ctx context.Context, s *Snapshot) error {
	fpBeforeCheckpoint.Hit()
	w, err := t.store.Create(ctx, checkpointName(s.version))
	if err != nil {
		return err
	}
	out := &countingWriter{w: w}
	actions, err := t.encodeCheckpoint(ctx, s, out)
	if err != nil {
		return errors.Join(fault.Place(err, "DELTA_WRITE_FAILED", fault.Where{File: checkpointName(s.version)}), w.Abort())
	}
	if err := w.Commit(); err != nil {
		return errors.Join(err, w.Abort())
	}
	fpCheckpointWritten.Hit()
	if hint, ok, err := t.lastCheckpoint(ctx); err != nil || ok && hint > s.version {
		return err // another writer is ahead
	}
	hint, err := json.Marshal(map[string]int64{"version": s.version, "size": actions, "sizeInBytes": out.n, "numOfAddFiles": int64(s.files.n)})
	if err != nil {
		return fault.Wrap(err, "DELTA_WRITE_FAILED", "checkpoint hint")
	}
	return t.store.Put(ctx, lastCheckpointName, hint)
}

func structOf(fields ...arrow.Field) arrow.DataType { return arrow.StructOf(fields...) }

func optional(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

var (
	textType = arrow.BinaryTypes.String
	longType = arrow.PrimitiveTypes.Int64
	intType  = arrow.PrimitiveTypes.Int32
	boolType = arrow.FixedWidthTypes.Boolean
	mapsType = arrow.MapOf(textType, textType)
	listType = arrow.ListOf(textType)
	dvType   = structOf(optional("storageType", textType), optional("pathOrInlineDv", textType), optional("offset", intType),
		optional("sizeInBytes", intType), optional("cardinality", longType))
)

// checkpointSchema has one column for each action; a row fills one of them.
var checkpointSchema = arrow.NewSchema([]arrow.Field{
	optional("txn", structOf(optional("appId", textType), optional("version", longType), optional("lastUpdated", longType))),
	optional("add", structOf(optional("path", textType), optional("partitionValues", mapsType), optional("size", longType),
		optional("modificationTime", longType), optional("dataChange", boolType), optional("stats", textType), optional("tags", mapsType),
		optional("deletionVector", dvType), optional("baseRowId", longType), optional("defaultRowCommitVersion", longType), optional("clusteringProvider", textType))),
	optional("remove", structOf(optional("path", textType), optional("deletionTimestamp", longType), optional("dataChange", boolType),
		optional("extendedFileMetadata", boolType), optional("partitionValues", mapsType), optional("size", longType),
		optional("deletionVector", dvType), optional("baseRowId", longType), optional("defaultRowCommitVersion", longType))),
	optional("metaData", structOf(optional("id", textType), optional("name", textType), optional("description", textType),
		optional("format", structOf(optional("provider", textType), optional("options", mapsType))), optional("schemaString", textType),
		optional("partitionColumns", listType), optional("configuration", mapsType), optional("createdTime", longType))),
	optional("protocol", structOf(optional("minReaderVersion", intType), optional("minWriterVersion", intType),
		optional("readerFeatures", listType), optional("writerFeatures", listType))),
	optional("domainMetadata", structOf(optional("domain", textType), optional("configuration", textType), optional("removed", boolType))),
}, nil)

// encodeCheckpoint writes the state in a fixed order and counts its actions.
func (t *Table) encodeCheckpoint(ctx context.Context, s *Snapshot, out *countingWriter) (n int64, err error) {
	defer guard(&err, "DELTA_WRITE_FAILED", "the checkpoint")
	props := parquet.NewWriterProperties(parquet.WithAllocator(t.mem), parquet.WithCompression(compress.Codecs.Snappy))
	pq, err := pqarrow.NewFileWriter(checkpointSchema, out, props, pqarrow.NewArrowWriterProperties(pqarrow.WithAllocator(t.mem)))
	if err != nil {
		return 0, err
	}
	w := &checkpointWriter{pq: pq, b: array.NewRecordBuilder(t.mem, checkpointSchema)}
	defer w.b.Release()
	err = w.state(ctx, s, t.now().Add(-s.tombstoneRetention()).UnixMilli())
	if err == nil {
		err = w.flush()
	}
	return w.total, errors.Join(err, pq.Close(), out.err)
}

type checkpointWriter struct {
	pq    *pqarrow.FileWriter
	b     *array.RecordBuilder
	rows  int
	total int64
}

// The columns of checkpointSchema.
const (
	colTxn = iota
	colAdd
	colRemove
	colMetadata
	colProtocol
	colDomain
)

func (w *checkpointWriter) state(ctx context.Context, s *Snapshot, expired int64) error {
	if err := w.row(colProtocol, func(r *actionRow) { r.protocol(s.protocol) }); err != nil {
		return err
	}
	if err := w.row(colMetadata, func(r *actionRow) { r.metadata(s.metadata) }); err != nil {
		return err
	}
	for _, app := range slices.Sorted(maps.Keys(s.txns)) {
		txn := s.txns[app]
		if err := w.row(colTxn, func(r *actionRow) { r.text(txn.AppID); r.long(&txn.Version); r.long(txn.LastUpdated) }); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.domains)) {
		d := s.domains[name]
		if err := w.row(colDomain, func(r *actionRow) { r.text(d.Domain); r.text(d.Configuration); r.bool(false) }); err != nil {
			return err
		}
	}
	var tombs []*RemoveFile
	s.tombs.each(func(_ string, f *RemoveFile) {
		if f.DeletionTimestamp != nil && *f.DeletionTimestamp > expired {
			tombs = append(tombs, f)
		}
	})
	slices.SortFunc(tombs, func(a, b *RemoveFile) int {
		return strings.Compare(a.Path+"\x00"+a.DeletionVector.id(), b.Path+"\x00"+b.DeletionVector.id())
	})
	for _, f := range tombs {
		if err := w.row(colRemove, func(r *actionRow) { r.remove(f) }); err != nil {
			return err
		}
	}
	files, err := s.Files(ctx)
	if err != nil {
		return err
	}
	for i := range files {
		if err := w.row(colAdd, func(r *actionRow) { r.add(&files[i]) }); err != nil {
			return err
		}
	}
	return nil
}

// row appends one action and writes a batch when there are enough.
func (w *checkpointWriter) row(col int, fill func(*actionRow)) error {
	for i, b := range w.b.Fields() {
		if i != col {
			b.AppendNull()
		}
	}
	r := newActionRow(w.b.Field(col).(*array.StructBuilder))
	fill(r)
	w.rows++
	w.total++
	if w.rows < checkpointBatch {
		return nil
	}
	return w.flush()
}

func (w *checkpointWriter) flush() error {
	if w.rows == 0 {
		return nil
	}
	w.rows = 0
	rec := w.b.NewRecordBatch()
	defer rec.Release()
	return w.pq.WriteBuffered(rec)
}

// actionRow fills the fields of one struct in their order.
type actionRow struct {
	s    *array.StructBuilder
	next int
}

func newActionRow(s *array.StructBuilder) *actionRow {
	s.Append(true)
	return &actionRow{s: s}
}

func (r *actionRow) field() array.Builder {
	b := r.s.FieldBuilder(r.next)
	r.next++
	return b
}

// text appends a string; the empty one is null.
func (r *actionRow) text(v string) {
	if b := r.field().(*array.StringBuilder); v == "" {
		b.AppendNull()
	} else {
		b.Append(v)
	}
}

func (r *actionRow) long(v *int64) {
	if b := r.field().(*array.Int64Builder); v == nil {
		b.AppendNull()
	} else {
		b.Append(*v)
	}
}

func (r *actionRow) int(v *int32) {
	if b := r.field().(*array.Int32Builder); v == nil {
		b.AppendNull()
	} else {
		b.Append(*v)
	}
}

func (r *actionRow) bool(v bool) { r.field().(*array.BooleanBuilder).Append(v) }

func (r *actionRow) list(v []string) {
	b := r.field().(*array.ListBuilder)
	if v == nil {
		b.AppendNull()
		return
	}
	b.Append(true)
	for _, s := range v {
		b.ValueBuilder().(*array.StringBuilder).Append(s)
	}
}

// stringMap appends a map in the order of its keys; nil is null.
func (r *actionRow) stringMap(v map[string]string) {
	b := r.field().(*array.MapBuilder)
	if v == nil {
		b.AppendNull()
		return
	}
	b.Append(true)
	for _, k := range slices.Sorted(maps.Keys(v)) {
		b.KeyBuilder().(*array.StringBuilder).Append(k)
		b.ItemBuilder().(*array.StringBuilder).Append(v[k])
	}
}

func (r *actionRow) partitionValues(v map[string]*string) {
	b := r.field().(*array.MapBuilder)
	b.Append(true)
	for _, k := range slices.Sorted(maps.Keys(v)) {
		b.KeyBuilder().(*array.StringBuilder).Append(k)
		if s := v[k]; s == nil {
			b.ItemBuilder().AppendNull()
		} else {
			b.ItemBuilder().(*array.StringBuilder).Append(*s)
		}
	}
}

func (r *actionRow) deletionVector(dv *DeletionVector) {
	b := r.field().(*array.StructBuilder)
	if dv == nil {
		b.AppendNull()
		return
	}
	d := newActionRow(b)
	d.text(dv.StorageType)
	d.text(dv.PathOrInlineDv)
	d.int(dv.Offset)
	d.int(&dv.SizeInBytes)
	d.long(&dv.Cardinality)
}

func (r *actionRow) add(f *AddFile) {
	r.text(f.Path)
	r.partitionValues(f.PartitionValues)
	r.long(&f.Size)
	r.long(&f.ModificationTime)
	r.bool(false) // a checkpoint changes no data
	r.text(f.Stats)
	r.stringMap(f.Tags)
	r.deletionVector(f.DeletionVector)
	r.long(f.BaseRowID)
	r.long(f.DefaultRowCommitVersion)
	r.text(f.ClusteringProvider)
}

func (r *actionRow) remove(f *RemoveFile) {
	r.text(f.Path)
	r.long(f.DeletionTimestamp)
	r.bool(false)
	r.bool(f.ExtendedFileMetadata)
	r.partitionValues(f.PartitionValues)
	r.long(f.Size)
	r.deletionVector(f.DeletionVector)
	r.long(f.BaseRowID)
	r.long(f.DefaultRowCommitVersion)
}

func (r *actionRow) metadata(m *Metadata) {
	r.text(m.ID)
	r.text(m.Name)
	r.text(m.Description)
	f := newActionRow(r.field().(*array.StructBuilder))
	f.text(m.Format.Provider)
	f.stringMap(notNil(m.Format.Options))
	r.text(m.SchemaString)
	r.list(append([]string{}, m.PartitionColumns...))
	r.stringMap(notNil(m.Configuration))
	r.long(m.CreatedTime)
}

func notNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func (r *actionRow) protocol(p *Protocol) {
	reader, writer := int32(p.MinReaderVersion), int32(p.MinWriterVersion)
	r.int(&reader)
	r.int(&writer)
	r.list(p.ReaderFeatures) // null, not empty, below 3/7
	r.list(p.WriterFeatures)
}
