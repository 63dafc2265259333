package stream

import (
	"context"
	"strconv"
	"strings"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// What must hold before a run may go on. Each guard turns a state that would
// lose or double rows in silence into a named error.

// trace is a transaction id of a flow that a table's log carries.
type trace struct {
	pipeline, flow string // flow is dataset/name
	generation     int
}

// tracesIn gives the flows that ever committed to a table.
func tracesIn(ctx context.Context, table *delta.Table, snap *delta.Snapshot) ([]trace, error) {
	if snap == nil {
		return nil, nil
	}
	d, err := table.Describe(ctx)
	if err != nil {
		return nil, err
	}
	var out []trace
	for id := range d.Txns {
		pipeline, rest, ok1 := strings.Cut(id, "/")
		last := strings.LastIndexByte(rest, '/')
		if !ok1 || last < 0 {
			continue // another writer's
		}
		if n, err := strconv.Atoi(rest[last+1:]); err == nil && n >= 0 {
			out = append(out, trace{pipeline, rest[:last], n})
		}
	}
	return out, nil
}

// newestTrace gives the highest generation of the flow that committed, -1 for none.
func newestTrace(traces []trace, f *Flow) int {
	newest := -1
	for _, t := range traces {
		if t.pipeline+"/"+t.flow == f.flowID() {
			newest = max(newest, t.generation)
		}
	}
	return newest
}

// guardMissingCheckpoint stops a flow without a checkpoint whose table has its
// rows: it would read everything again and append it a second time. They may
// be of another pipeline id, when its record was removed with the checkpoints.
func guardMissingCheckpoint(f *Flow, traces []trace) error {
	for _, t := range traces {
		if t.flow != f.Dataset+"/"+f.Name {
			continue
		}
		e := fault.New("CHECKPOINT_MISSING", "the table has rows of this flow, but the flow's checkpoint is gone")
		if t.pipeline != f.Pipeline {
			e = fault.New("CHECKPOINT_MISSING", "the table has rows of this flow from pipeline %s, but the records of that pipeline are gone", t.pipeline)
		}
		return e.WithHint("Restore the checkpoint, or run a full refresh of this table to read everything again")
	}
	return nil
}

// guardOwner stops a flow whose checkpoint is another's.
func (f *Flow) guardOwner(gen generation) error {
	if gen.AppID == f.appID(gen.Generation) {
		return nil
	}
	return fault.New("CHECKPOINT_SHARED", "the checkpoint belongs to %s", gen.AppID).
		WithHint("A checkpoint serves one flow: give this one another place, or run a full refresh after moving it")
}

// guardTarget compares the target with the commit log. The target may be ahead
// by the one batch whose commit entry a crash prevented.
func guardTarget(ctx context.Context, flowID string, ck *checkpoint, snap *delta.Snapshot) error {
	if err := guardOutput(ctx, flowID, ck, snap); err != nil {
		return err
	}
	if ck.committed >= 0 {
		if snap == nil {
			return fault.New("TARGET_TABLE_MISSING", "the checkpoint says that batch %d is in the table, but there is no table", ck.committed).
				WithHint("Restore the table, or run a full refresh to make it again")
		}
		last, err := ck.commit(ctx, ck.committed)
		if err != nil {
			return err
		}
		if id := snap.Metadata().ID; id != last.TableID {
			return fault.New("TARGET_TABLE_CHANGED", "the table was made again since batch %d (id %s, was %s)", ck.committed, id, last.TableID).
				WithHint("Run a full refresh to fill it from the start")
		}
	}
	if has := newestBatch(ck, snap); has < ck.committed {
		return fault.New("TARGET_TABLE_BEHIND", "the checkpoint says that batch %d is in the table, but the table ends with batch %d", ck.committed, has).
			WithHint("The table was restored to an older version. Restore the checkpoint of that time too, or run a full refresh")
	}
	return nil
}

// guardOutput finds that the checkpoint is older than a table. The other way
// round is no mistake for an output of a handler: it has the batches that wrote
// to it, and is not the flow's own.
func guardOutput(_ context.Context, flowID string, ck *checkpoint, snap *delta.Snapshot) error {
	// A generation that a crash prevented from committing leaves a hole, so
	// more than the next one is looked for.
	for n := ck.gen.Generation + 1; n <= ck.gen.Generation+16; n++ {
		if _, ok := txn(snap, appID(flowID, n)); ok {
			return fault.New("CHECKPOINT_MISSING", "the table has rows of generation %d, but the newest one in the checkpoint is %d", n, ck.gen.Generation).
				WithHint("Restore the checkpoint, or run a full refresh of this table")
		}
	}
	if has := newestBatch(ck, snap); has > ck.planned {
		return fault.New("CHECKPOINT_MISSING", "the table has batch %d, but the checkpoint ends with batch %d", has, ck.planned).
			WithHint("An older checkpoint was restored, or entries were removed. Restore the newest, or run a full refresh of this table")
	}
	return nil
}

// newestBatch gives the last batch of the generation that a table has, -1 for none.
func newestBatch(ck *checkpoint, snap *delta.Snapshot) int64 {
	if v, ok := txn(snap, ck.gen.AppID); ok {
		return v
	}
	return -1
}

// guardSchemas stops a flow whose schema versions vanished: types would be
// guessed anew from other files.
func guardSchemas(ctx context.Context, ck *checkpoint, versions *schemaVersions) error {
	if versions == nil || ck.committed < 0 {
		return nil
	}
	last, err := ck.commit(ctx, ck.committed)
	if err != nil {
		return err
	}
	if last.SchemaVersion != nil && *last.SchemaVersion >= len(versions.versions) {
		return fault.New("SCHEMA_LOCATION_MISSING", "batch %d was read with schema version %d, which is gone", ck.committed, *last.SchemaVersion).
			WithHint("Restore the schema location, or run a full refresh of this table")
	}
	return nil
}
