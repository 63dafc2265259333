package stream

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// deltaOptions are the options of a Delta source, in Spark's spelling.
type deltaOptions struct {
	maxFiles          int
	maxBytes          int64
	skipChangeCommits bool
	ignoreDeletes     bool
}

// NewDeltaSource makes the source of a flow that reads a Delta table as a
// stream: first the rows it holds, by file path, then what each further
// version adds. name is how messages call the table.
func NewDeltaSource(name string, table *delta.Table, options map[string]string) (Source, error) {
	s := &deltaSource{name: name, table: table, opt: deltaOptions{maxFiles: 1000}}
	for key, value := range options {
		var err error
		switch strings.ToLower(key) {
		case "maxfilespertrigger":
			s.opt.maxFiles, err = strconv.Atoi(value)
			if err == nil && s.opt.maxFiles <= 0 {
				err = strconv.ErrRange
			}
		case "maxbytespertrigger":
			s.opt.maxBytes, err = parseBytes(value)
		case "skipchangecommits":
			s.opt.skipChangeCommits, err = strconv.ParseBool(value)
		case "ignoredeletes":
			s.opt.ignoreDeletes, err = strconv.ParseBool(value)
		default:
			return nil, fault.New("UNKNOWN_OPTION", "a stream of a table has no option %q", key).
				WithHint("It knows maxFilesPerTrigger, maxBytesPerTrigger, skipChangeCommits and ignoreDeletes").
				At(fault.Where{Dataset: name})
		}
		if err != nil {
			return nil, fault.Wrap(err, "INVALID_OPTION", "option %s=%q", key, value).At(fault.Where{Dataset: name})
		}
	}
	return s, nil
}

// parseBytes reads a size such as 100, 64k or 10g.
func parseBytes(s string) (int64, error) {
	s = strings.TrimSuffix(strings.ToLower(strings.TrimSpace(s)), "b")
	factor := int64(1)
	if n := len(s); n > 0 {
		if i := strings.IndexByte("kmgt", s[n-1]); i >= 0 {
			factor = 1 << (10 * (i + 1))
			s = s[:n-1]
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil && (n <= 0 || n > (1<<62)/factor) {
		err = strconv.ErrRange
	}
	return n * factor, err
}

type deltaSource struct {
	name  string
	table *delta.Table
	opt   deltaOptions

	mu   sync.Mutex
	seen *delta.Snapshot // the last one used
}

func (s *deltaSource) kind() string { return deltaKind }

// snapshot gives the table at a version.
func (s *deltaSource) snapshot(ctx context.Context, version int64) (*delta.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil || s.seen.Version() != version {
		snap, err := s.table.SnapshotAt(ctx, version)
		if err != nil {
			return nil, s.at(err)
		}
		s.seen = snap
	}
	return s.seen, nil
}

func (s *deltaSource) at(err error) error {
	return fault.Place(err, "DELTA_SOURCE_UNAVAILABLE", fault.Where{Dataset: s.name})
}

// position gives where the next batch starts, and the table's newest version.
func (s *deltaSource) position(ctx context.Context, ck *checkpoint) (*tableOffset, *delta.Snapshot, error) {
	snap, err := s.table.Snapshot(ctx)
	if err != nil {
		return nil, nil, s.at(err)
	}
	if ck.planned < 0 {
		start := tablePosition{Version: snap.Version(), Snapshot: true}
		return &tableOffset{TableID: snap.Metadata().ID, Start: start, End: start}, snap, nil
	}
	e, err := ck.offset(ctx, ck.planned)
	if err != nil {
		return nil, nil, err
	}
	last := e.Source.Table
	if e.Source.Kind != deltaKind || last == nil {
		return nil, nil, sourceKindChanged(e.Source.Kind, deltaKind)
	}
	if id := snap.Metadata().ID; id != last.TableID {
		return nil, nil, fault.New("DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE", "the table was made again (id %s, was %s)", id, last.TableID).
			WithHint("Run a full refresh of the table that reads from it").At(fault.Where{Dataset: s.name})
	}
	if last.End.Version > snap.Version()+1 {
		return nil, nil, fault.New("DELTA_SOURCE_VERSION_MISSING", "version %d was read, but the table now ends with version %d", last.End.Version-1, snap.Version()).
			WithHint("The table was restored to an older state. Run a full refresh of the table that reads from it").At(fault.Where{Dataset: s.name})
	}
	return &tableOffset{TableID: last.TableID, Start: last.End, End: last.End}, snap, nil
}

func sourceKindChanged(was, is string) error {
	return fault.New("SOURCE_CHANGED", "the flow's checkpoint is of a %s source, the flow now has a %s source", was, is).
		WithHint("Run a full refresh of this table, or give the flow another name")
}

func (s *deltaSource) capture(ctx context.Context, ck *checkpoint) (backlog, error) {
	at, snap, err := s.position(ctx, ck)
	if err != nil {
		return nil, err
	}
	return &tableBacklog{src: s, id: at.TableID, at: at.Start, until: snap.Version()}, nil
}

func (s *deltaSource) empty(ctx context.Context, ck *checkpoint) (*sourceOffset, error) {
	at, _, err := s.position(ctx, ck)
	if err != nil {
		return nil, err
	}
	return &sourceOffset{Kind: deltaKind, Table: at}, nil
}

// tableBacklog is the part of a table's log that a run takes from.
type tableBacklog struct {
	src   *deltaSource
	id    string
	at    tablePosition
	until int64
}

func (b *tableBacklog) next(ctx context.Context) (*sourceOffset, error) {
	off := &tableOffset{TableID: b.id, Start: b.at, End: b.at}
	files, bytes := 0, int64(0)
	for f, err := range b.src.walk(ctx, b.at, b.until) {
		if err != nil {
			if files > 0 {
				break // first what comes before it; then it is met again
			}
			return nil, err
		}
		files++
		bytes += f.add.Size
		off.End = f.after
		if files >= b.src.opt.maxFiles || (b.src.opt.maxBytes > 0 && bytes >= b.src.opt.maxBytes) {
			break
		}
	}
	if files == 0 {
		return nil, nil
	}
	b.at = off.End
	return &sourceOffset{Kind: deltaKind, Table: off}, nil
}

// left does not look at the log for the sake of a figure.
func (b *tableBacklog) left() Backlog { return Backlog{Files: -1, Bytes: -1} }

// streamed is a file of the stream and the position behind it.
type streamed struct {
	add   delta.AddFile
	after tablePosition
}

// walk gives the files of the stream from a position up to a version.
func (s *deltaSource) walk(ctx context.Context, from tablePosition, until int64) iter.Seq2[streamed, error] {
	return func(yield func(streamed, error) bool) {
		if from.Snapshot {
			files, err := s.snapshotFiles(ctx, from.Version)
			if err != nil {
				yield(streamed{}, err)
				return
			}
			for i := from.Index; i < len(files); i++ {
				after := tablePosition{Version: from.Version, Index: i + 1, Snapshot: true}
				if i+1 == len(files) {
					after = tablePosition{Version: from.Version + 1}
				}
				if !yield(streamed{files[i], after}, nil) {
					return
				}
			}
			from = tablePosition{Version: from.Version + 1}
		}
		if from.Version > until {
			return
		}
		for entry, err := range s.table.Log(ctx, from.Version, until) {
			if err != nil {
				yield(streamed{}, s.at(err))
				return
			}
			adds, err := s.appended(entry)
			if err != nil {
				yield(streamed{}, err)
				return
			}
			skip := 0
			if entry.Version == from.Version {
				skip = from.Index
			}
			for i := skip; i < len(adds); i++ {
				if !yield(streamed{adds[i], tablePosition{Version: entry.Version, Index: i + 1}}, nil) {
					return
				}
			}
		}
	}
}

func (s *deltaSource) snapshotFiles(ctx context.Context, version int64) ([]delta.AddFile, error) {
	snap, err := s.snapshot(ctx, version)
	if err != nil {
		return nil, err
	}
	files, err := snap.Files(ctx)
	if err != nil {
		return nil, s.at(err)
	}
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b delta.AddFile) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// appended gives the files a version adds to the stream. A version that took
// rows away cannot be told to a reader that only appends.
func (s *deltaSource) appended(entry *delta.Entry) ([]delta.AddFile, error) {
	var adds []delta.AddFile
	for _, a := range entry.Adds {
		if a.DataChange {
			adds = append(adds, a)
		}
	}
	if !slices.ContainsFunc(entry.Removes, func(r delta.RemoveFile) bool { return r.DataChange }) {
		return adds, nil
	}
	where := fault.Where{Dataset: s.name}
	if entry.CommitInfo != nil && entry.CommitInfo.OperationParameters[fullRefreshKey] == "true" {
		return nil, fault.New("DELTA_SOURCE_TABLE_REPLACED", "version %d is a full refresh: it replaced all rows", entry.Version).
			WithHint("Run a full refresh of the table that reads from it, too").At(where)
	}
	if s.opt.skipChangeCommits {
		return nil, nil
	}
	if len(adds) == 0 {
		if s.opt.ignoreDeletes {
			return nil, nil
		}
		return nil, fault.New("DELTA_SOURCE_IGNORE_DELETE", "version %d deletes rows, which a stream cannot follow", entry.Version).
			WithHint("Set skipChangeCommits to pass over such versions, or run a full refresh").At(where)
	}
	return nil, fault.New("DELTA_SOURCE_TABLE_IGNORE_CHANGES", "version %d changes rows, which a stream cannot follow", entry.Version).
		WithHint("Set skipChangeCommits to pass over such versions, or run a full refresh").At(where)
}

// schemaVersion is the table version whose columns a range is read with: the
// last one it holds files of.
func (o *tableOffset) schemaVersion() int64 {
	if o.End.Index == 0 && !o.End.Snapshot {
		return o.End.Version - 1
	}
	return o.End.Version
}

func (s *deltaSource) schema(ctx context.Context, _ *schemaVersions, _ int64, off *sourceOffset) (readSchema, error) {
	var snap *delta.Snapshot
	var err error
	if off == nil {
		if snap, err = s.table.Snapshot(ctx); err != nil {
			return readSchema{}, s.at(err)
		}
	} else if snap, err = s.snapshot(ctx, off.Table.schemaVersion()); err != nil {
		return readSchema{}, err
	}
	return readSchema{arrow: relation.SourceColumns(snap.Schema().Fields(), false)}, nil
}

func (s *deltaSource) split(ctx context.Context, off *sourceOffset, taskBytes int64) ([]Input, error) {
	t := off.Table
	if t.Start == t.End {
		return nil, nil
	}
	var adds []delta.AddFile
	at := t.Start
	for f, err := range s.walk(ctx, t.Start, t.End.Version) {
		if err != nil {
			return nil, err
		}
		adds = append(adds, f.add)
		if at = f.after; at == t.End {
			break
		}
	}
	if at != t.End {
		return nil, fault.New("DELTA_SOURCE_VERSION_MISSING", "version %d does not hold the files it held when the batch was planned", t.End.Version).
			WithHint("The table was changed behind its log. Run a full refresh of the table that reads from it").At(fault.Where{Dataset: s.name})
	}
	var out []Input
	for _, share := range splitBytes(len(adds), taskBytes, addBytes(adds)) {
		out = append(out, Input{Table: &TableInput{
			TableVersion: TableVersion{TableID: t.TableID, Version: t.schemaVersion()},
			Adds:         adds[share[0]:share[1]],
		}})
	}
	return out, nil
}

func (s *deltaSource) read(ctx context.Context, in Input, schema readSchema, with means) (sourceReader, error) {
	snap, err := s.snapshot(ctx, in.Table.Version)
	if err != nil {
		return nil, err
	}
	r, err := snap.Scan(ctx, delta.ScanOptions{Files: in.Table.Adds})
	if err != nil {
		return nil, s.at(err)
	}
	return newTableReader(r, fmt.Sprintf("%s@v%d", s.name, in.Table.Version), schema.arrow, with.mem), nil
}

// tableReader numbers the rows of a scan.
type tableReader struct {
	array.RecordReader
	from   string
	schema *arrow.Schema
	mem    memory.Allocator
	refs   atomic.Int64
	rows   int64
	cur    arrow.RecordBatch
}

func newTableReader(r array.RecordReader, from string, schema *arrow.Schema, mem memory.Allocator) *tableReader {
	t := &tableReader{RecordReader: r, from: from, schema: schema, mem: mem}
	t.refs.Store(1)
	return t
}

func (r *tableReader) Schema() *arrow.Schema { return r.schema }

func (r *tableReader) Next() bool {
	r.drop()
	if !r.RecordReader.Next() {
		return false
	}
	rec := r.RecordReader.RecordBatch()
	b := array.NewInt64Builder(r.mem)
	defer b.Release()
	b.Reserve(int(rec.NumRows()))
	for i := range rec.NumRows() {
		b.UnsafeAppend(r.rows + i)
	}
	ordinals := b.NewArray()
	defer ordinals.Release()
	r.rows += rec.NumRows()
	r.cur = array.NewRecordBatch(r.schema, append(slices.Clone(rec.Columns()), ordinals), rec.NumRows())
	return true
}

func (r *tableReader) RecordBatch() arrow.RecordBatch { return r.cur }
func (r *tableReader) Record() arrow.RecordBatch      { return r.cur }

func (r *tableReader) drop() {
	if r.cur != nil {
		r.cur.Release()
		r.cur = nil
	}
}

// Retain adds a holder.
func (r *tableReader) Retain() { r.refs.Add(1) }

// Release drops a holder; the last one ends the scan.
func (r *tableReader) Release() {
	if r.refs.Add(-1) == 0 {
		r.drop()
		r.RecordReader.Release()
	}
}

func (r *tableReader) counts() sourceCounts     { return sourceCounts{rows: r.rows} }
func (r *tableReader) place(int64) string       { return r.from }
func (r *tableReader) locate(int64) fault.Where { return fault.Where{File: r.from} }

var _ sourceReader = (*tableReader)(nil)
