package stream

import (
	"context"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// What must hold before a run may go on. Each guard turns a state that would
// lose or double rows in silence into a named error.

// mostGenerations bounds the search for a flow's transaction ids in a table.
const mostGenerations = 10_000

// newestInTable gives the highest generation of the flow that committed to the
// table, -1 for none.
func newestInTable(snap *delta.Snapshot, flowID string) int {
	newest := -1
	if snap == nil {
		return newest
	}
	for n := range mostGenerations {
		if _, ok := snap.Txn(appID(flowID, n)); ok {
			newest = n
		}
	}
	return newest
}

// guardMissingCheckpoint stops a flow without a checkpoint whose table has its
// rows: it would read everything again and append it a second time.
func guardMissingCheckpoint(f *Flow, snap *delta.Snapshot) error {
	if n := newestInTable(snap, f.flowID()); n >= 0 {
		return fault.New("CHECKPOINT_MISSING", "the table has rows of this flow, but the flow's checkpoint is gone").
			WithHint("Restore the checkpoint, or run a full refresh of this table to read everything again")
	}
	return nil
}

// guardTarget compares the target with the commit log. The target may be ahead
// by the one batch whose commit entry a crash prevented.
func guardTarget(ctx context.Context, flowID string, ck *checkpoint, snap *delta.Snapshot) error {
	has := int64(-1)
	if v, ok := txn(snap, ck.gen.AppID); ok {
		has = v
	}
	// A generation that a crash prevented from committing leaves a hole, so
	// more than the next one is looked for.
	for n := ck.gen.Generation + 1; n <= ck.gen.Generation+16; n++ {
		if _, ok := txn(snap, appID(flowID, n)); ok {
			return fault.New("CHECKPOINT_MISSING", "the table has rows of generation %d, but the newest one in the checkpoint is %d", n, ck.gen.Generation).
				WithHint("Restore the checkpoint, or run a full refresh of this table")
		}
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
	if has < ck.committed {
		return fault.New("TARGET_TABLE_BEHIND", "the checkpoint says that batch %d is in the table, but the table ends with batch %d", ck.committed, has).
			WithHint("The table was restored to an older version. Restore the checkpoint of that time too, or run a full refresh")
	}
	if has > ck.planned {
		return fault.New("CHECKPOINT_MISSING", "the table has batch %d, but the checkpoint ends with batch %d", has, ck.planned).
			WithHint("An older checkpoint was restored, or entries were removed. Restore the newest, or run a full refresh of this table")
	}
	return nil
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
