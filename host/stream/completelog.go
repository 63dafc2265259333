package stream

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// refreshEntry is record N of the refresh log: everything refresh N reads that
// could be otherwise another time, written before any work.
type refreshEntry struct {
	Format      int       `json:"format"`
	Refresh     int64     `json:"refresh"`
	Timestamp   time.Time `json:"timestamp"`
	UpdateID    string    `json:"update_id"`
	Reason      Reason    `json:"reason,omitempty"`
	Fingerprint string    `json:"fingerprint"`
	// Writers is how many files are encoded at once; the cut into files depends on it.
	Writers int `json:"writers"`
	refreshPins
	// Snapshot is of a flow of snapshots.
	Snapshot *snapshotPlan `json:"snapshot,omitempty"`
}

// refreshPins are the inputs of a refresh.
type refreshPins struct {
	Tables map[string]TableVersion `json:"tables,omitempty"`
	Files  map[string]filesPin     `json:"files,omitempty"`
}

// filesPin is the files of one input, and the schema they are read with as
// ingest.MarshalSchema gives it.
type filesPin struct {
	Schema json.RawMessage `json:"schema"`
	Files  []InputFile     `json:"files"`
}

func (p refreshPins) equal(q refreshPins) bool {
	return maps.Equal(p.Tables, q.Tables) &&
		maps.EqualFunc(p.Files, q.Files, func(a, b filesPin) bool {
			return slices.Equal(a.Files, b.Files) && string(a.Schema) == string(b.Schema)
		})
}

// keptRefreshes is how many refreshes leave their records behind, for people:
// only the last committed one is needed.
const keptRefreshes = 10

// refreshLog is the records of one generation of refreshes. Unlike a stream's,
// its commit log has gaps, where a planned refresh was given up for a later one.
type refreshLog struct {
	*checkpoint
	entries map[int64]*refreshEntry
	old     []int64 // numbers of records, ascending
}

func openRefreshLog(ctx context.Context, flow storage.Store, gen generation) (*refreshLog, error) {
	l := &refreshLog{
		checkpoint: &checkpoint{
			store: storage.Sub(flow, strconv.Itoa(gen.Generation)), gen: gen, planned: -1, committed: -1,
			offsets: map[int64]*offsetEntry{}, commits: map[int64]*commitEntry{},
		},
		entries: map[int64]*refreshEntry{},
	}
	planned, err := l.numbers(ctx, "refresh")
	if err != nil {
		return nil, err
	}
	committed, err := l.numbers(ctx, "commits")
	if err != nil {
		return nil, err
	}
	l.old = planned
	if n := len(planned); n > 0 {
		l.planned = planned[n-1]
	}
	if n := len(committed); n > 0 {
		l.committed = committed[n-1]
		if !slices.Contains(planned, l.committed) {
			return nil, brokenLog("refresh %d is committed, and its record is missing", l.committed)
		}
	}
	return l, nil
}

// numbers lists the records of a folder, ascending.
func (l *refreshLog) numbers(ctx context.Context, folder string) ([]int64, error) {
	var out []int64
	for n, err := range entryNumbers(ctx, l.store, folder, storage.ListOptions{NamesOnly: true}) {
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// entry gives record n.
func (l *refreshLog) entry(ctx context.Context, n int64) (*refreshEntry, error) {
	if e, ok := l.entries[n]; ok {
		return e, nil
	}
	var e refreshEntry
	name := entryPath("refresh", n)
	if err := getRecord(ctx, l.store, name, &e); err != nil {
		return nil, err
	}
	if e.Format != 1 || e.Refresh != n || e.Writers < 1 || e.Writers > maxWriters {
		return nil, foreignFormat(name, e.Format)
	}
	l.entries[n] = &e
	return &e, nil
}

// plan appends a record.
func (l *refreshLog) plan(ctx context.Context, e *refreshEntry) error {
	if err := putRecord(ctx, l.store, entryPath("refresh", e.Refresh), e); err != nil {
		return err
	}
	l.planned = e.Refresh
	l.entries[e.Refresh] = e
	l.old = append(l.old, e.Refresh)
	return nil
}

// withdraw takes back a record that nothing came of. What stays is run again as it is.
func (l *refreshLog) withdraw(ctx context.Context, n int64) {
	if len(l.old) == 0 || l.old[len(l.old)-1] != n || n <= l.committed || l.store.Delete(ctx, entryPath("refresh", n)) != nil {
		return
	}
	_ = l.store.Delete(ctx, entryPath("held", n)) // it means nothing alone
	delete(l.entries, n)
	l.old = l.old[:len(l.old)-1]
	l.planned = -1
	if len(l.old) > 0 {
		l.planned = l.old[len(l.old)-1]
	}
}

// hold notes that a record waits for somebody to let it pass.
func (l *refreshLog) hold(ctx context.Context, n int64) error {
	return putRecord(ctx, l.store, entryPath("held", n), struct {
		Format int `json:"format"`
	}{1})
}

func (l *refreshLog) isHeld(ctx context.Context, n int64) (bool, error) {
	_, err := l.store.Stat(ctx, entryPath("held", n))
	if errors.Is(err, storage.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, unavailable(err)
	}
	return true, nil
}

// sweep removes records that nothing needs any more, a few at a time. What
// stays behind costs space only.
func (l *refreshLog) sweep(ctx context.Context) {
	for len(l.old) > keptRefreshes && l.old[0] < l.committed {
		n := l.old[0]
		// The commit entry goes first: one without its record would be a broken log.
		if l.store.Delete(ctx, entryPath("commits", n)) != nil || l.store.Delete(ctx, entryPath("refresh", n)) != nil {
			return
		}
		l.old = l.old[1:]
	}
}

// generationKind says what kind of flow a generation belongs to.
type generationKind string

const (
	appendGeneration   generationKind = ""
	completeGeneration generationKind = "complete"
	onceGeneration     generationKind = "once"
	snapshotGeneration generationKind = "snapshots"
)

func (k generationKind) String() string {
	switch k {
	case completeGeneration:
		return "materialized view"
	case onceGeneration:
		return "flow that runs once"
	case snapshotGeneration:
		return "flow of snapshots"
	}
	return "stream"
}

// guardApplies refuses to append to rows that were merged, and the other way
// round: what an application has seen of them would be wrong.
func (f *Flow) guardApplies(g generation) error {
	if g.Applies == (f.Apply != nil) || f.FullRefresh {
		return nil
	}
	was, now := "appended", "merged by AUTO CDC"
	if g.Applies {
		was, now = now, was
	}
	return fault.New("CANNOT_CHANGE_DATASET_TYPE", "the rows of this flow were %s, and are now to be %s", was, now).
		WithHint("Run a full refresh of this table")
}

// otherKind refuses to go on with what another kind of flow left: a streaming
// table does not become a materialized view, nor the other way round.
func (g generation) otherKind(now generationKind) error {
	return fault.New("CANNOT_CHANGE_DATASET_TYPE", "the table was filled by a %s, and is now defined as that of a %s", g.Kind, now).
		WithHint("A dataset cannot change its kind in place, not even by a full refresh: give it another name, or remove the table and the folder of its checkpoint (%s) first", g.AppID)
}
