package delta

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

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

// The columns of checkpoints: one for each kind of action; a row fills one of them.
var (
	txnColumn = optional("txn", structOf(optional("appId", textType), optional("version", longType), optional("lastUpdated", longType)))
	addFields = []arrow.Field{optional("path", textType), optional("partitionValues", mapsType), optional("size", longType),
		optional("modificationTime", longType), optional("dataChange", boolType), optional("stats", textType), optional("tags", mapsType),
		optional("deletionVector", dvType), optional("baseRowId", longType), optional("defaultRowCommitVersion", longType), optional("clusteringProvider", textType)}
	removeColumn = optional("remove", structOf(optional("path", textType), optional("deletionTimestamp", longType), optional("dataChange", boolType),
		optional("extendedFileMetadata", boolType), optional("partitionValues", mapsType), optional("size", longType),
		optional("deletionVector", dvType), optional("baseRowId", longType), optional("defaultRowCommitVersion", longType)))
	metadataColumn = optional("metaData", structOf(optional("id", textType), optional("name", textType), optional("description", textType),
		optional("format", structOf(optional("provider", textType), optional("options", mapsType))), optional("schemaString", textType),
		optional("partitionColumns", listType), optional("configuration", mapsType), optional("createdTime", longType)))
	protocolColumn = optional("protocol", structOf(optional("minReaderVersion", intType), optional("minWriterVersion", intType),
		optional("readerFeatures", listType), optional("writerFeatures", listType)))
	domainColumn             = optional("domainMetadata", structOf(optional("domain", textType), optional("configuration", textType), optional("removed", boolType)))
	checkpointMetadataColumn = optional("checkpointMetadata", structOf(optional("version", longType), optional("tags", mapsType)))
	sidecarColumn            = optional("sidecar", structOf(optional("path", textType), optional("sizeInBytes", longType), optional("modificationTime", longType), optional("tags", mapsType)))
)

// groupActions is how many actions a row group has: readers decode several at once.
const groupActions = 64 << 10

// actionWriter writes actions into a Parquet file, one kind after the other.
type actionWriter struct {
	ctx    context.Context
	mem    memory.Allocator
	schema *arrow.Schema
	pq     *pqarrow.FileWriter
	stats  *checkpointStats
}

// encodeActions writes a file of actions: only add and remove for a sidecar.
func (t *Table) encodeActions(ctx context.Context, s *Snapshot, out *countingWriter, filesOnly bool, fill func(*actionWriter) error) (err error) {
	defer guard(&err, "DELTA_WRITE_FAILED", "the checkpoint")
	w := &actionWriter{ctx: ctx, mem: t.mem, stats: s.checkpointStats(t.mem)}
	add := optional("add", structOf(append(slices.Clone(addFields), w.stats.fields()...)...))
	columns := []arrow.Field{txnColumn, add, removeColumn, metadataColumn, protocolColumn, domainColumn, checkpointMetadataColumn, sidecarColumn}
	switch {
	case filesOnly:
		columns = []arrow.Field{add, removeColumn}
	case !s.protocol.has("v2Checkpoint"):
		columns = columns[:6]
	}
	w.schema = arrow.NewSchema(columns, nil)
	props := parquet.NewWriterProperties(parquet.WithAllocator(t.mem), parquet.WithCompression(compress.Codecs.Snappy), parquet.WithMaxRowGroupLength(groupActions),
		// What differs in every row gains nothing from a dictionary.
		parquet.WithDictionaryFor("add.path", false), parquet.WithDictionaryFor("add.stats", false), parquet.WithDictionaryFor("remove.path", false))
	if w.pq, err = pqarrow.NewFileWriter(w.schema, out, props, pqarrow.NewArrowWriterProperties(pqarrow.WithAllocator(t.mem))); err != nil {
		return err
	}
	err = fill(w)
	return errors.Join(err, w.pq.Close(), out.err)
}

// rows writes n actions of one kind; fill gives the fields of the i-th in their order.
func (w *actionWriter) rows(column string, n int, fill func(r *actionRow, i int)) error {
	if n == 0 {
		return nil
	}
	return w.built(column, w.schema.Field(w.schema.FieldIndices(column)[0]).Type, n, fill, func(arr arrow.Array, _, _ int) (arrow.Array, error) { return arr, nil })
}

// built is rows with the type that is filled, and with what is made of each array of it.
func (w *actionWriter) built(column string, t arrow.DataType, n int, fill func(r *actionRow, i int), whole func(arr arrow.Array, from, to int) (arrow.Array, error)) error {
	b := array.NewBuilder(w.mem, t).(*array.StructBuilder)
	defer b.Release()
	for from := 0; from < n; from += checkpointBatch {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		to := min(from+checkpointBatch, n)
		for i := from; i < to; i++ {
			fill(newActionRow(b), i)
		}
		arr, err := whole(b.NewArray(), from, to)
		if err != nil {
			return err
		}
		if err := w.write(column, arr); err != nil {
			return err
		}
	}
	return nil
}

// write writes the rows of one column; the others are null there. It takes the array over.
func (w *actionWriter) write(column string, arr arrow.Array) error {
	columns := make([]arrow.Array, w.schema.NumFields())
	for i, f := range w.schema.Fields() {
		if f.Name == column {
			columns[i] = arr
		} else {
			columns[i] = array.MakeArrayOfNull(w.mem, f.Type, arr.Len())
		}
	}
	rec := array.NewRecordBatch(w.schema, columns, int64(arr.Len()))
	for _, c := range columns {
		c.Release()
	}
	defer rec.Release()
	return w.pq.WriteBuffered(rec)
}

// smallActions writes all that is neither file nor sidecar.
func (w *actionWriter) smallActions(s *Snapshot) error {
	txns, domains := s.sortedTxns(), s.sortedDomains()
	return errors.Join(
		w.rows("protocol", 1, func(r *actionRow, _ int) { r.protocol(s.protocol) }),
		w.rows("metaData", 1, func(r *actionRow, _ int) { r.metadata(s.metadata) }),
		w.rows("txn", len(txns), func(r *actionRow, i int) {
			r.text(txns[i].AppID)
			r.long(&txns[i].Version)
			r.long(txns[i].LastUpdated)
		}),
		w.rows("domainMetadata", len(domains), func(r *actionRow, i int) { r.text(domains[i].Domain); r.text(domains[i].Configuration); r.bool(false) }),
	)
}

// sortedTxns gives the transactions that a checkpoint holds.
func (s *Snapshot) sortedTxns() []Txn {
	out := make([]Txn, 0, len(s.txns))
	for _, app := range slices.Sorted(maps.Keys(s.txns)) {
		if txn := s.txns[app]; !s.expired(txn) {
			out = append(out, txn)
		}
	}
	return out
}

func (s *Snapshot) sortedDomains() []DomainMetadata {
	out := make([]DomainMetadata, 0, len(s.domains))
	for _, name := range slices.Sorted(maps.Keys(s.domains)) {
		out = append(out, s.domains[name])
	}
	return out
}

func (w *actionWriter) adds(files []*AddFile) error {
	if len(files) == 0 {
		return nil
	}
	fill := func(r *actionRow, i int) { r.add(files[i], w.stats.json) }
	return w.built("add", structOf(addFields...), len(files), fill, func(arr arrow.Array, from, to int) (arrow.Array, error) {
		if w.stats.parsed == nil {
			return arr, nil
		}
		defer arr.Release()
		parsed, err := w.stats.parsed.columns(files[from:to])
		if err != nil {
			return nil, err
		}
		columns := make([]arrow.Array, 0, len(addFields)+len(parsed))
		for i := range addFields {
			c := arr.(*array.Struct).Field(i)
			c.Retain()
			columns = append(columns, c)
		}
		return structArray(append(columns, parsed...), w.schema.Field(w.schema.FieldIndices("add")[0]).Type)
	})
}

func (w *actionWriter) removes(files []*RemoveFile) error {
	return w.rows("remove", len(files), func(r *actionRow, i int) { r.remove(files[i]) })
}

// sidecars writes what makes a V2 checkpoint of the file: its version, and where the files are.
func (w *actionWriter) sidecars(version int64, plan []sidecarPlan) error {
	return errors.Join(
		w.rows("checkpointMetadata", 1, func(r *actionRow, _ int) { r.long(&version); r.stringMap(map[string]string{}) }),
		w.rows("sidecar", len(plan), func(r *actionRow, i int) {
			f := &plan[i].file
			r.text(f.Path)
			r.long(&f.SizeInBytes)
			r.long(&f.ModificationTime)
			r.stringMap(map[string]string{})
		}),
	)
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

func (r *actionRow) add(f *AddFile, stats bool) {
	r.text(f.Path)
	r.partitionValues(f.PartitionValues)
	r.long(&f.Size)
	r.long(&f.ModificationTime)
	r.bool(false) // a checkpoint changes no data
	if stats {
		r.text(f.Stats)
	} else {
		r.text("")
	}
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
