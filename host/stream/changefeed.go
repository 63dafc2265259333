package stream

import (
	"context"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// A change feed is cut between versions only: who reads it sees all that a
// version did to a row in one batch. The rows that it begins with are cut
// between files.

// ReadsChangeFeed tells whether the options of a stream of a table ask for its
// change data feed.
func ReadsChangeFeed(options map[string]string) bool {
	o, err := parseDeltaOptions("", options)
	return err == nil && o.feed
}

// FeedColumns gives the columns of the change data feed of a table.
func FeedColumns(table *arrow.Schema) (*arrow.Schema, error) { return delta.WithChangeColumns(table) }

// changesOf gives the step that a version is.
func (s *deltaSource) changesOf(entry *delta.Entry) ([]streamed, error) {
	if m := entry.Metadata; m != nil && !strings.EqualFold(m.Configuration["delta.enableChangeDataFeed"], "true") {
		return nil, s.notRecorded(entry.Version)
	}
	step := streamed{version: entry.Version, changes: true, after: tablePosition{Version: entry.Version + 1}}
	for _, f := range entry.ChangeData {
		step.files++
		step.bytes += f.Size
	}
	if step.files == 0 {
		for _, f := range entry.Adds {
			if f.DataChange {
				step.files++
				step.bytes += f.Size
			}
		}
		for _, f := range entry.Removes {
			if f.DataChange {
				step.files++
				if f.Size != nil {
					step.bytes += *f.Size
				}
			}
		}
	}
	if step.files == 0 {
		return nil, nil
	}
	return []streamed{step}, nil
}

// checkFeedAt tells whether the feed is on in the version that a stream starts
// with. What becomes of it later stands in the log that the stream walks.
func (s *deltaSource) checkFeedAt(ctx context.Context, version int64, newest *delta.Snapshot) error {
	if version > newest.Version() {
		return nil
	}
	snap, err := s.snapshot(ctx, version)
	if err != nil {
		return s.gone(ctx, err)
	}
	if !snap.RecordsChanges() {
		return s.notRecorded(version)
	}
	return nil
}

func (s *deltaSource) notRecorded(version int64) error {
	return fault.New("DELTA_MISSING_CHANGE_DATA", "the change data feed is off in version %d; what it changes is not recorded and cannot be streamed", version).
		WithHint("Set delta.enableChangeDataFeed on the table before its rows first change, and begin with a version that has it").
		At(fault.Where{Dataset: s.name})
}

// readFeed reads one share of a change feed.
func (s *deltaSource) readFeed(ctx context.Context, snap *delta.Snapshot, in *TableInput, schema *arrow.Schema, with means) (sourceReader, error) {
	var r array.RecordReader
	var err error
	if len(in.Adds) > 0 {
		if r, err = snap.Scan(ctx, delta.ScanOptions{Files: in.Adds}); err == nil {
			r = newInserted(r, schema, in.Feed, with.mem)
		}
	} else {
		r, err = snap.Changes(ctx, delta.ChangesOptions{From: in.Feed.From, To: in.Feed.To})
	}
	if err != nil {
		return nil, s.at(err)
	}
	t := newTableReader(r, s.name, in.Version, schema, with.mem)
	t.feed = in.Feed
	return t, nil
}

// inserted gives rows of a table as a change feed would: inserted by a version.
type inserted struct {
	array.RecordReader
	schema *arrow.Schema
	feed   *FeedInput
	mem    memory.Allocator
	cur    arrow.RecordBatch
}

// newInserted takes the reader over. schema is that of a source, which has one
// more column than the feed.
func newInserted(r array.RecordReader, schema *arrow.Schema, feed *FeedInput, mem memory.Allocator) *inserted {
	fields := schema.Fields()
	return &inserted{RecordReader: r, schema: arrow.NewSchema(fields[:len(fields)-1], nil), feed: feed, mem: mem}
}

func (r *inserted) Schema() *arrow.Schema          { return r.schema }
func (r *inserted) RecordBatch() arrow.RecordBatch { return r.cur }
func (r *inserted) Record() arrow.RecordBatch      { return r.cur }

func (r *inserted) Next() bool {
	r.drop()
	if !r.RecordReader.Next() {
		return false
	}
	rec := r.RecordReader.RecordBatch()
	n := int(rec.NumRows())
	types := array.NewStringBuilder(r.mem)
	defer types.Release()
	versions := array.NewInt64Builder(r.mem)
	defer versions.Release()
	times := array.NewTimestampBuilder(r.mem, &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"})
	defer times.Release()
	at := arrow.Timestamp(0)
	if r.feed.Time != nil {
		at = arrow.Timestamp(r.feed.Time.UnixMicro())
	}
	for range n {
		types.Append("insert")
		versions.Append(r.feed.From)
		times.Append(at)
	}
	added := []arrow.Array{types.NewArray(), versions.NewArray(), times.NewArray()}
	r.cur = array.NewRecordBatch(r.schema, append(append([]arrow.Array{}, rec.Columns()...), added...), rec.NumRows())
	for _, a := range added {
		a.Release()
	}
	return true
}

func (r *inserted) drop() {
	if r.cur != nil {
		r.cur.Release()
		r.cur = nil
	}
}

// Release ends the scan; the reader has one holder.
func (r *inserted) Release() {
	r.drop()
	r.RecordReader.Release()
}

var _ array.RecordReader = (*inserted)(nil)
