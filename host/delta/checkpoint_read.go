package delta

import (
	"context"
	"errors"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/weir-data/weir/host/fault"
)

const sidecarFolder = logFolder + "/_sidecars/"

// checkpointBatch is how many actions are decoded at once.
const checkpointBatch = 16 << 10

// readCheckpoint takes the state that a checkpoint holds into r.
func (t *Table) readCheckpoint(ctx context.Context, r *replay, cp checkpointFiles) error {
	r.s.version = cp.version
	var sidecars []sidecar
	for _, name := range cp.names {
		var more []sidecar
		var err error
		if strings.HasSuffix(name, ".json") {
			more, err = t.readJSONCheckpoint(ctx, r, name)
		} else {
			more, err = t.readParquetCheckpoint(ctx, r, escapePath(name))
		}
		if err != nil {
			return checkpointError(err, name)
		}
		sidecars = append(sidecars, more...)
	}
	for _, s := range sidecars {
		uri := s.Path
		if !strings.Contains(uri, "/") {
			uri = sidecarFolder + uri
		}
		if _, err := t.readParquetCheckpoint(ctx, r, uri); err != nil {
			return checkpointError(err, uri)
		}
	}
	if r.s.protocol == nil || r.s.metadata == nil {
		return checkpointError(fault.New("DELTA_INVALID_CHECKPOINT", "it has no protocol or no metaData action"), cp.names[0])
	}
	return nil
}

func checkpointError(err error, name string) error {
	return fault.Place(err, "DELTA_INVALID_CHECKPOINT", fault.Where{File: name})
}

func (t *Table) readJSONCheckpoint(ctx context.Context, r *replay, name string) ([]sidecar, error) {
	data, err := t.store.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	c, err := decodeActions(data)
	if err != nil {
		return nil, err
	}
	return c.sidecars, r.apply(c, r.s.version)
}

func (t *Table) readParquetCheckpoint(ctx context.Context, r *replay, uri string) ([]sidecar, error) {
	pf, err := t.openParquet(ctx, uri)
	if err != nil {
		return nil, err
	}
	sidecars, err := t.decodeCheckpoint(ctx, r, pf.reader)
	return sidecars, errors.Join(err, pf.close())
}

// decodeCheckpoint reads the actions of one file. Statistics come from the
// string where there is one; only files that have none pay for the struct.
func (t *Table) decodeCheckpoint(ctx context.Context, r *replay, pq *file.Reader) (sidecars []sidecar, err error) {
	defer guard(&err, "DELTA_INVALID_CHECKPOINT", "the checkpoint")
	parsed := needsParsedStats(pq)
	cols, err := openCheckpointColumns(ctx, t, pq, parsed)
	defer cols.release()
	if err != nil {
		return nil, err
	}
	for left := pq.NumRows(); left > 0; {
		n := min(left, checkpointBatch)
		left -= n
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c := &commitActions{}
		if err := cols.next(int(n), c); err != nil {
			return nil, err
		}
		sidecars = append(sidecars, c.sidecars...)
		if err := r.apply(c, r.s.version); err != nil {
			return nil, err
		}
	}
	return sidecars, nil
}

// needsParsedStats tells whether some add has no string of statistics although the file has the struct.
func needsParsedStats(pq *file.Reader) bool {
	schema := pq.MetaData().Schema
	stats, parsed, path := -1, false, -1
	for i := range schema.NumColumns() {
		switch p := schema.Column(i).Path(); {
		case p == "add.stats":
			stats = i
		case p == "add.path":
			path = i
		case strings.HasPrefix(p, "add.stats_parsed."):
			parsed = true
		}
	}
	if !parsed || path < 0 {
		return false
	}
	if stats < 0 {
		return true
	}
	// The string is null for rows that are no adds; more nulls than the path has are adds without it.
	for g := range pq.NumRowGroups() {
		a, errA := nullCount(pq, g, stats)
		b, errB := nullCount(pq, g, path)
		if errA != nil || errB != nil || a < 0 || b < 0 || a > b {
			return true
		}
	}
	return false
}

// nullCount reads the statistics of a column chunk; -1 is unknown.
func nullCount(pq *file.Reader, group, col int) (int64, error) {
	chunk, err := pq.MetaData().RowGroup(group).ColumnChunk(col)
	if err != nil {
		return -1, err
	}
	st, err := chunk.Statistics()
	if err != nil || st == nil || !st.HasNullCount() {
		return -1, err
	}
	return st.NullCount(), nil
}

// checkpointColumns reads the actions side by side.
type checkpointColumns struct {
	table   *Table
	readers []*pqarrow.ColumnReader
	names   []string
}

func (c *checkpointColumns) release() {
	for _, r := range c.readers {
		r.Release()
	}
}

func openCheckpointColumns(ctx context.Context, t *Table, pq *file.Reader, parsed bool) (*checkpointColumns, error) {
	out := &checkpointColumns{table: t}
	fr, err := newArrowReader(pq, t.mem)
	if err != nil {
		return out, fault.Wrap(err, "DELTA_INVALID_CHECKPOINT", "the schema")
	}
	for i := range fr.Manifest.Fields {
		f := &fr.Manifest.Fields[i]
		switch f.Field.Name {
		case "add", "remove", "metaData", "protocol", "txn", "domainMetadata", "sidecar":
		default:
			continue
		}
		leaves := map[int]bool{}
		for j := range f.Children {
			switch name := f.Children[j].Field.Name; {
			case name == "partitionValues_parsed", name == "stats_parsed" && !parsed:
			default:
				leavesOf(&f.Children[j], leaves)
			}
		}
		if len(leaves) == 0 {
			continue
		}
		r, err := fr.GetFieldReader(ctx, i, leaves, allGroups(pq))
		if err != nil {
			return out, fault.Wrap(err, "DELTA_INVALID_CHECKPOINT", "column %s", f.Field.Name)
		}
		if r != nil {
			out.readers = append(out.readers, r)
			out.names = append(out.names, f.Field.Name)
		}
	}
	return out, nil
}

// next decodes n rows; a row holds one action.
func (c *checkpointColumns) next(n int, into *commitActions) error {
	for i, r := range c.readers {
		arr, err := nextArray(r, n, c.table.mem)
		if err != nil {
			return err
		}
		s, ok := arr.(*array.Struct)
		if !ok || s.Len() != n {
			arr.Release()
			return fault.New("DELTA_INVALID_CHECKPOINT", "column %s is a %s of %d rows, not a struct of %d", c.names[i], arr.DataType().Name(), arr.Len(), n)
		}
		err = takeActions(c.names[i], newActionRows(s), into)
		arr.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func takeActions(name string, rows *actionRows, into *commitActions) error {
	for i := range rows.s.Len() {
		if rows.s.IsNull(i) {
			continue
		}
		rows.i = i
		a := action{}
		switch name {
		case "add":
			f := rows.add()
			a.Add = &f
		case "remove":
			f := rows.remove()
			a.Remove = &f
		case "txn":
			a.Txn = &Txn{AppID: rows.str("appId"), Version: rows.int("version"), LastUpdated: rows.optInt("lastUpdated")}
		case "metaData":
			a.Metadata = rows.metadata()
		case "protocol":
			a.Protocol = &Protocol{
				MinReaderVersion: int(rows.int("minReaderVersion")), MinWriterVersion: int(rows.int("minWriterVersion")),
				ReaderFeatures: rows.list("readerFeatures"), WriterFeatures: rows.list("writerFeatures"),
			}
		case "domainMetadata":
			a.Domain = &DomainMetadata{Domain: rows.str("domain"), Configuration: rows.str("configuration"), Removed: rows.bool("removed")}
		case "sidecar":
			a.Sidecar = &sidecar{Path: rows.str("path"), SizeInBytes: rows.int("sizeInBytes")}
		}
		if rows.empty(name) {
			continue // some writers leave the struct itself non-null
		}
		if err := into.take(&a); err != nil {
			return err
		}
	}
	return nil
}

// actionRows reads one row of a struct column by field names. What is missing,
// null or of another type is the zero value: missing columns mean null.
type actionRows struct {
	s    *array.Struct
	i    int
	cols map[string]arrow.Array
}

func newActionRows(s *array.Struct) *actionRows {
	st := s.DataType().(*arrow.StructType)
	r := &actionRows{s: s, cols: make(map[string]arrow.Array, st.NumFields())}
	for i, f := range st.Fields() {
		r.cols[f.Name] = s.Field(i)
	}
	return r
}

// empty tells whether the required field of the action is null.
func (r *actionRows) empty(name string) bool {
	key := map[string]string{
		"add": "path", "remove": "path", "txn": "appId", "metaData": "schemaString", "protocol": "minReaderVersion", "domainMetadata": "domain", "sidecar": "path",
	}[name]
	c := r.cols[key]
	return c == nil || c.IsNull(r.i)
}

func (r *actionRows) str(name string) string { return textAt(r.cols[name], r.i) }

func textAt(arr arrow.Array, i int) string {
	if arr == nil || arr.IsNull(i) {
		return ""
	}
	switch a := arr.(type) {
	case *array.String:
		return strings.Clone(a.Value(i)) // the array's memory goes with the batch
	case *array.Binary:
		return string(a.Value(i))
	}
	return ""
}

func (r *actionRows) optInt(name string) *int64 {
	c := r.cols[name]
	if c == nil || c.IsNull(r.i) {
		return nil
	}
	v := intValue(c, r.i)
	return &v
}

func (r *actionRows) int(name string) int64 {
	if v := r.optInt(name); v != nil {
		return *v
	}
	return 0
}

func (r *actionRows) bool(name string) bool {
	b, ok := r.cols[name].(*array.Boolean)
	return ok && b.IsValid(r.i) && b.Value(r.i)
}

// list gives nil for null, which differs from an empty list.
func (r *actionRows) list(name string) []string {
	l, ok := r.cols[name].(*array.List)
	if !ok || l.IsNull(r.i) {
		return nil
	}
	from, to := l.ValueOffsets(r.i)
	out := make([]string, 0, to-from)
	for j := from; j < to; j++ {
		out = append(out, textAt(l.ListValues(), int(j)))
	}
	return out
}

func (r *actionRows) stringMap(name string) map[string]string {
	m, ok := r.cols[name].(*array.Map)
	if !ok || m.IsNull(r.i) {
		return nil
	}
	from, to := m.ValueOffsets(r.i)
	out := make(map[string]string, to-from)
	for j := from; j < to; j++ {
		out[textAt(m.Keys(), int(j))] = textAt(m.Items(), int(j))
	}
	return out
}

func (r *actionRows) partitionValues() map[string]*string {
	m, ok := r.cols["partitionValues"].(*array.Map)
	if !ok || m.IsNull(r.i) {
		return map[string]*string{}
	}
	from, to := m.ValueOffsets(r.i)
	out := make(map[string]*string, to-from)
	for j := from; j < to; j++ {
		var value *string
		if m.Items().IsValid(int(j)) {
			v := textAt(m.Items(), int(j))
			value = &v
		}
		out[textAt(m.Keys(), int(j))] = value
	}
	return out
}

func (r *actionRows) deletionVector() *DeletionVector {
	s, ok := r.cols["deletionVector"].(*array.Struct)
	if !ok || s.IsNull(r.i) {
		return nil
	}
	d := newActionRows(s)
	d.i = r.i
	if d.str("storageType") == "" {
		return nil
	}
	dv := &DeletionVector{
		StorageType: d.str("storageType"), PathOrInlineDv: d.str("pathOrInlineDv"),
		SizeInBytes: int32(d.int("sizeInBytes")), Cardinality: d.int("cardinality"),
	}
	if o := d.optInt("offset"); o != nil {
		v := int32(*o)
		dv.Offset = &v
	}
	return dv
}

func (r *actionRows) add() AddFile {
	f := AddFile{
		Path: r.str("path"), PartitionValues: r.partitionValues(), Size: r.int("size"), ModificationTime: r.int("modificationTime"),
		DataChange: r.bool("dataChange"), Stats: r.str("stats"), Tags: r.stringMap("tags"), DeletionVector: r.deletionVector(),
		BaseRowID: r.optInt("baseRowId"), DefaultRowCommitVersion: r.optInt("defaultRowCommitVersion"), ClusteringProvider: r.str("clusteringProvider"),
	}
	if parsed, ok := r.cols["stats_parsed"].(*array.Struct); ok && f.Stats == "" && parsed.IsValid(r.i) {
		f.Stats = statsFromStruct(parsed, r.i)
	}
	return f
}

func (r *actionRows) remove() RemoveFile {
	return RemoveFile{
		Path: r.str("path"), DeletionTimestamp: r.optInt("deletionTimestamp"), DataChange: r.bool("dataChange"),
		ExtendedFileMetadata: r.bool("extendedFileMetadata"), PartitionValues: r.partitionValues(), Size: r.optInt("size"), Tags: r.stringMap("tags"),
		DeletionVector: r.deletionVector(), BaseRowID: r.optInt("baseRowId"), DefaultRowCommitVersion: r.optInt("defaultRowCommitVersion"),
	}
}

func (r *actionRows) metadata() *Metadata {
	m := &Metadata{
		ID: r.str("id"), Name: r.str("name"), Description: r.str("description"), SchemaString: r.str("schemaString"),
		PartitionColumns: r.list("partitionColumns"), Configuration: r.stringMap("configuration"), CreatedTime: r.optInt("createdTime"),
	}
	if s, ok := r.cols["format"].(*array.Struct); ok && s.IsValid(r.i) {
		f := newActionRows(s)
		f.i = r.i
		m.Format = Format{Provider: f.str("provider"), Options: f.stringMap("options")}
	}
	if m.Format.Options == nil {
		m.Format.Options = map[string]string{}
	}
	return m
}
