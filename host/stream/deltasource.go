package stream

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// NewDeltaSource makes the source of a flow that reads a Delta table as a
// stream: first the rows it holds, by file path, then what each further
// version adds, or with readChangeFeed what it changed. startingVersion and
// startingTimestamp leave the rows of before out. name is how messages call the
// table.
func NewDeltaSource(name string, table *delta.Table, options map[string]string) (Source, error) {
	opt, err := parseDeltaOptions(name, options)
	if err != nil {
		return nil, err
	}
	return &deltaSource{name: name, table: table, opt: opt}, nil
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
	if s.opt.feed && !snap.RecordsChanges() {
		return nil, nil, s.notRecorded(snap.Version())
	}
	if ck.planned < 0 {
		off, err := s.begin(ctx, snap)
		return off, snap, err
	}
	e, err := ck.offset(ctx, ck.planned)
	if err != nil {
		return nil, nil, err
	}
	last := e.Source.Table
	if e.Source.Kind != deltaKind || last == nil {
		return nil, nil, sourceKindChanged(e.Source.Kind, deltaKind)
	}
	if last.Feed != s.opt.feed {
		return nil, nil, sourceKindChanged(feedOrRows(last.Feed), feedOrRows(s.opt.feed))
	}
	if id := snap.Metadata().ID; id != last.TableID {
		return nil, nil, fault.New("DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE", "the table was made again (id %s, was %s)", id, last.TableID).
			WithHint("Run a full refresh of the table that reads from it").At(fault.Where{Dataset: s.name})
	}
	if last.End.Version > snap.Version()+1 {
		return nil, nil, fault.New("DELTA_SOURCE_VERSION_MISSING", "version %d was read, but the table now ends with version %d", last.End.Version-1, snap.Version()).
			WithHint("The table was restored to an older state. Run a full refresh of the table that reads from it").At(fault.Where{Dataset: s.name})
	}
	next := &tableOffset{TableID: last.TableID, Feed: last.Feed, Start: last.End, End: last.End}
	if last.End.Snapshot {
		next.SnapshotTime = last.SnapshotTime
	}
	return next, snap, nil
}

// begin gives the position of a stream that has read nothing yet.
func (s *deltaSource) begin(ctx context.Context, snap *delta.Snapshot) (*tableOffset, error) {
	off := &tableOffset{TableID: snap.Metadata().ID, Feed: s.opt.feed}
	o := s.opt.start
	switch {
	case o.latest:
		off.Start = tablePosition{Version: snap.Version() + 1}
	case o.version != nil:
		if *o.version > snap.Version() {
			return nil, fault.New("DELTA_VERSION_NOT_FOUND", "startingVersion is %d, and the newest version is %d", *o.version, snap.Version()).
				WithHint("startingVersion latest begins behind the newest version").At(fault.Where{Dataset: s.name})
		}
		off.Start = tablePosition{Version: *o.version}
	case o.time != nil:
		version, err := s.table.VersionSince(ctx, *o.time)
		if err != nil {
			return nil, s.at(err)
		}
		off.Start = tablePosition{Version: version}
	default:
		off.Start = tablePosition{Version: snap.Version(), Snapshot: true}
		if s.opt.feed {
			at := snap.Timestamp().UTC()
			off.SnapshotTime = &at
		}
	}
	off.End = off.Start
	if s.opt.feed && !off.Start.Snapshot {
		return off, s.checkFeedAt(ctx, off.Start.Version, snap)
	}
	return off, nil
}

func feedOrRows(feed bool) string {
	if feed {
		return "change feed"
	}
	return deltaKind
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
	// "latest" means now, so the first run has to write down what it meant.
	return &tableBacklog{src: s, off: *at, until: snap.Version(), pin: ck.planned < 0 && s.opt.start.latest}, nil
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
	off   tableOffset // of the last batch
	until int64
	pin   bool // the next batch is made even when it reads nothing
}

func (b *tableBacklog) next(ctx context.Context) (*sourceOffset, error) {
	off := b.off
	if off.Start = off.End; !off.Start.Snapshot {
		off.SnapshotTime = nil
	}
	files, bytes := 0, int64(0)
	for f, err := range b.src.walk(ctx, off.Start, b.until) {
		if err != nil {
			if files > 0 {
				break // first what comes before it; then it is met again
			}
			return nil, err
		}
		if f.changes && off.Start.Snapshot {
			break // a flow with state takes a batch as one task
		}
		files += f.files
		bytes += f.bytes
		off.End = f.after
		if files >= b.src.opt.maxFiles || (b.src.opt.maxBytes > 0 && bytes >= b.src.opt.maxBytes) {
			break
		}
	}
	if files == 0 && !b.pin {
		return nil, nil
	}
	b.off, b.pin = off, false
	return &sourceOffset{Kind: deltaKind, Table: &off}, nil
}

// left does not look at the log for the sake of a figure.
func (b *tableBacklog) left() Backlog { return Backlog{Files: -1, Bytes: -1} }

// streamed is a step of the stream, which no batch cuts in two, and the
// position behind it: a file or, of a change feed, all changes of a version.
type streamed struct {
	add     delta.AddFile
	version int64 // that added the file, or whose changes these are
	changes bool
	files   int
	bytes   int64
	after   tablePosition
}

// walk gives the steps of the stream from a position up to a version.
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
				if !yield(oneFile(files[i], from.Version, after), nil) {
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
				yield(streamed{}, s.gone(ctx, err))
				return
			}
			steps, err := s.stepsOf(entry)
			if err != nil {
				yield(streamed{}, err)
				return
			}
			skip := 0
			if entry.Version == from.Version {
				skip = from.Index
			}
			for i := skip; i < len(steps); i++ {
				if !yield(steps[i], nil) {
					return
				}
			}
		}
	}
}

func oneFile(add delta.AddFile, version int64, after tablePosition) streamed {
	return streamed{add: add, version: version, files: 1, bytes: add.Size, after: after}
}

// stepsOf gives what a version adds to the stream.
func (s *deltaSource) stepsOf(entry *delta.Entry) ([]streamed, error) {
	if s.opt.feed {
		return s.changesOf(entry)
	}
	adds, err := s.appended(entry)
	if err != nil {
		return nil, err
	}
	steps := make([]streamed, len(adds))
	for i, add := range adds {
		steps[i] = oneFile(add, entry.Version, tablePosition{Version: entry.Version, Index: i + 1})
	}
	return steps, nil
}

// gone says what a stream loses with a log that was cleaned up before it came by.
func (s *deltaSource) gone(ctx context.Context, err error) error {
	if fault.CodeOf(err) != "DELTA_LOG_GAP" {
		return s.at(err)
	}
	oldest, oerr := s.table.OldestVersion(ctx)
	if oerr != nil {
		return s.at(err)
	}
	return fault.Wrap(err, "DELTA_MISSING_FILES_UNEXPECTED_VERSION", "what came before version %d, the oldest in the log, was not read and is lost to the stream", oldest).
		WithHint("Run a full refresh, which begins with the rows that the table has, and let the table keep its log longer (delta.logRetentionDuration)").
		At(fault.Where{Dataset: s.name})
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

const followHint = "Set skipChangeCommits to pass over such versions, read the changes with readChangeFeed, or run a full refresh"

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
			WithHint("%s", followHint).At(where)
	}
	return nil, fault.New("DELTA_SOURCE_TABLE_IGNORE_CHANGES", "version %d changes rows, which a stream cannot follow", entry.Version).
		WithHint("%s", followHint).At(where)
}

// schemaVersion is the table version whose columns a range is read with: the
// last one it holds files of.
func (o *tableOffset) schemaVersion() int64 {
	if o.End.Index == 0 && !o.End.Snapshot {
		return max(o.End.Version-1, 0)
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
	columns := snap.Schema()
	if s.opt.feed {
		if columns, err = snap.ChangesSchema(); err != nil {
			return readSchema{}, s.at(err)
		}
	}
	return readSchema{arrow: relation.SourceColumns(columns.Fields(), false)}, nil
}

func (s *deltaSource) split(ctx context.Context, off *sourceOffset, taskBytes int64) ([]Input, error) {
	t := off.Table
	if t.Start == t.End {
		return nil, nil
	}
	var files, versions []streamed
	at := t.Start
	for f, err := range s.walk(ctx, t.Start, t.End.Version) {
		if err != nil {
			return nil, err
		}
		if f.changes {
			versions = append(versions, f)
		} else {
			files = append(files, f)
		}
		if at = f.after; at == t.End {
			break
		}
	}
	if at != t.End {
		return nil, fault.New("DELTA_SOURCE_VERSION_MISSING", "version %d does not hold the files it held when the batch was planned", t.End.Version).
			WithHint("The table was changed behind its log. Run a full refresh of the table that reads from it").At(fault.Where{Dataset: s.name})
	}
	read := TableVersion{TableID: t.TableID, Version: t.schemaVersion()}
	var out []Input
	for _, share := range splitBytes(len(files), taskBytes, stepBytes(files)) {
		in := &TableInput{TableVersion: read}
		for _, f := range files[share[0]:share[1]] {
			in.Adds = append(in.Adds, f.add)
		}
		if t.Feed {
			in.Feed = &FeedInput{From: t.Start.Version, To: t.Start.Version, Time: t.SnapshotTime}
		}
		out = append(out, Input{Table: in})
	}
	for _, share := range splitBytes(len(versions), taskBytes, stepBytes(versions)) {
		in := &TableInput{TableVersion: read, Feed: &FeedInput{From: versions[share[0]].version, To: versions[share[1]-1].version}}
		for _, v := range versions[share[0]:share[1]] {
			in.Feed.Files += int64(v.files)
			in.Feed.Bytes += v.bytes
		}
		out = append(out, Input{Table: in})
	}
	return out, nil
}

func stepBytes(steps []streamed) func(int) int64 {
	return func(i int) int64 { return steps[i].bytes }
}

func (s *deltaSource) read(ctx context.Context, in Input, schema readSchema, with means) (sourceReader, error) {
	snap, err := s.snapshot(ctx, in.Table.Version)
	if err != nil {
		return nil, err
	}
	if in.Table.Feed != nil {
		return s.readFeed(ctx, snap, in.Table, schema.arrow, with)
	}
	r, err := snap.Scan(ctx, delta.ScanOptions{Files: in.Table.Adds})
	if err != nil {
		return nil, s.at(err)
	}
	return newTableReader(r, s.name, in.Table.Version, schema.arrow, with.mem), nil
}
