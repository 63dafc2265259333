package delta

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// SnapshotAsOf gives the table as it was at a time: its newest version that was
// committed at or before it. The time of a version is its in-commit timestamp
// where the table has those, else the time of its file, raised where needed so
// that versions ascend in time. A time before the first version that can still
// be read, and one that is yet to come, are errors.
func (t *Table) SnapshotAsOf(ctx context.Context, at time.Time) (*Snapshot, error) {
	version, err := t.VersionAsOf(ctx, at)
	if err != nil {
		return nil, err
	}
	return t.SnapshotAt(ctx, version)
}

// VersionAsOf tells which version SnapshotAsOf gives.
func (t *Table) VersionAsOf(ctx context.Context, at time.Time) (int64, error) {
	c, err := t.clock(ctx)
	if err != nil {
		return 0, err
	}
	version, err := c.asOf(at)
	if err != nil {
		return 0, err
	}
	if version < c.first {
		when, err := c.timeOf(c.first)
		if err != nil {
			return 0, err
		}
		return 0, fault.New("DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION", "%s lies before version %d of %s, the first that the log still has",
			instant(at), c.first, instant(when)).WithHint("Name a later time or a version")
	}
	if version == c.last && at.After(t.now()) {
		when, err := c.timeOf(version)
		if err == nil && at.After(when) {
			err = c.future(at, when)
		}
		return version, err
	}
	return version, nil
}

// VersionSince gives the first version that was committed at or after a time,
// as a change feed that starts at a time needs it. A time after the newest
// version is an error.
func (t *Table) VersionSince(ctx context.Context, at time.Time) (int64, error) {
	c, err := t.clock(ctx)
	if err != nil {
		return 0, err
	}
	version, err := c.asOf(at.Add(-1)) // times have whole milliseconds
	if err != nil {
		return 0, err
	}
	if version < c.last {
		return max(version+1, c.first), nil
	}
	when, err := c.timeOf(c.last)
	if err == nil {
		err = c.future(at, when)
	}
	return 0, err
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// commitClock knows when the versions of the log were committed.
type commitClock struct {
	ctx   context.Context
	table *Table
	// first and last bound the versions that can be reconstructed.
	first, last int64
	// own is the first version whose time stands in the commit itself, from then
	// on all of them; last+1 when there is none.
	own     int64
	enabled int64           // the time of own, in milliseconds, as the table's properties have it
	files   map[int64]int64 // times of the commits' files, ascending by version, before own
	known   map[int64]int64 // in-commit timestamps that were read
}

// clock lists the log.
func (t *Table) clock(ctx context.Context) (*commitClock, error) {
	s, err := t.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	seg, err := t.listTimes(ctx)
	if err != nil {
		return nil, err
	}
	c := &commitClock{ctx: ctx, table: t, last: s.version, files: map[int64]int64{}, known: map[int64]int64{}}
	if c.first, err = seg.firstReadable(s.version); err != nil {
		return nil, err
	}
	c.own = c.last + 1
	if own, ok := s.timedSince(); ok {
		c.own = own
		if when, err := strconv.ParseInt(s.metadata.Configuration[enablementTimeKey], 10, 64); err == nil && own > 0 {
			c.enabled = when
		}
	}
	before := int64(-1) << 62
	for i, version := range seg.commits {
		if version >= c.own || version > c.last {
			break
		}
		before = max(before+1, seg.times[i])
		c.files[version] = before
	}
	return c, nil
}

// timedSince gives the first of the versions that carry their time, false when
// the newest does not.
func (s *Snapshot) timedSince() (int64, bool) {
	if !s.inCommitTimestamps() {
		return 0, false
	}
	version, err1 := strconv.ParseInt(s.metadata.Configuration[enablementVersionKey], 10, 64)
	_, err2 := strconv.ParseInt(s.metadata.Configuration[enablementTimeKey], 10, 64)
	if err1 != nil || err2 != nil || version < 0 || version > s.version {
		version = 0
	}
	return version, true
}

// inCommitTimestamps tells whether the versions from some one on carry their time.
func (s *Snapshot) inCommitTimestamps() bool {
	return s.protocol.has("inCommitTimestamp") && strings.EqualFold(s.metadata.Configuration["delta.enableInCommitTimestamps"], "true")
}

// asOf gives the newest version that is not after a time, which may lie before c.first.
func (c *commitClock) asOf(at time.Time) (int64, error) {
	ms := at.UnixMilli()
	if at.Before(time.UnixMilli(ms)) {
		ms--
	}
	from, to := c.first, c.last+1
	if c.own <= c.last {
		// The two kinds of time do not compare: each holds on its side of the enablement.
		if c.own > c.first && ms < c.enabled {
			to = c.own
		} else {
			from = max(from, c.own)
		}
	}
	var failed error
	n := sort.Search(int(to-from), func(i int) bool {
		when, err := c.timeOf(from + int64(i))
		if err != nil {
			failed = errors.Join(failed, err)
			return true
		}
		return when.UnixMilli() > ms
	})
	return from + int64(n) - 1, failed
}

// timeOf gives the time of a version.
func (c *commitClock) timeOf(version int64) (time.Time, error) {
	if ms, ok := c.files[version]; ok {
		return time.UnixMilli(ms), nil
	}
	ms, ok := c.known[version]
	if !ok {
		when, err := c.table.commitTime(c.ctx, version)
		if err != nil {
			return time.Time{}, err
		}
		ms = when.UnixMilli()
		c.known[version] = ms
	}
	return time.UnixMilli(ms), nil
}

func (c *commitClock) future(at, newest time.Time) error {
	return fault.New("DELTA_TIMESTAMP_GREATER_THAN_COMMIT", "%s lies after version %d of %s, the newest", instant(at), c.last, instant(newest)).
		WithHint("Leave the time out to read the newest version")
}

// commitTime reads the time of one commit. Where it stands in the commit it is
// in the first action, so that the rest of a large one is not read.
func (t *Table) commitTime(ctx context.Context, version int64) (when time.Time, err error) {
	name := commitName(version)
	o, err := t.store.Open(ctx, name)
	if err != nil {
		return time.Time{}, err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	var first struct {
		CommitInfo json.RawMessage `json:"commitInfo"`
	}
	head := io.LimitReader(o, 1<<20) // an action that is longer is no commitInfo of any use
	if json.NewDecoder(head).Decode(&first) == nil && !bytes.Equal(first.CommitInfo, nil) {
		c := commitActions{info: decodeCommitInfo(first.CommitInfo), modified: o.ModTime()}
		if c.info.InCommitTimestamp != nil {
			return c.time(), nil
		}
	}
	c, err := t.readCommit(ctx, version)
	if err != nil {
		return time.Time{}, err
	}
	return c.time(), nil
}

// listTimes reads the names of the log with the times of the commits.
func (t *Table) listTimes(ctx context.Context) (*segment, error) {
	return t.listFrom(ctx, storage.ListOptions{})
}

// firstReadable gives the oldest version that can be reconstructed: the oldest
// from which on no commit is missing up to the newest, if it is 0 or a
// checkpoint has the state.
func (s *segment) firstReadable(newest int64) (int64, error) {
	start := newest + 1 // commits are whole from here on
	for i := len(s.commits) - 1; i >= 0; i-- {
		if s.commits[i] > newest {
			continue
		}
		if s.commits[i] != start-1 {
			break
		}
		start--
	}
	if start == 0 {
		return 0, nil
	}
	first := int64(-1)
	for _, cp := range s.checkpoints { // descending
		if cp.version >= start-1 && cp.version <= newest {
			first = max(cp.version, start)
		}
	}
	if first < 0 || first > newest {
		return 0, fault.New("DELTA_LOG_GAP", "no version of the log has a known time: its commits start at %d, and no checkpoint holds the state before", start)
	}
	return first, nil
}
