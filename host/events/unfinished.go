package events

import (
	"context"

	"github.com/weir-data/weir/host/delta"
)

// Unfinished is an update whose process ended without a last word.
type Unfinished struct {
	UpdateID string
	// Flows are those that had begun and not ended.
	Flows []Origin
}

// FindUnfinished looks whether the newest update in the pipeline's log has come
// to an end; nil says that it has. It is for the one that holds the pipeline's
// lock: an update that is still running looks unfinished, too.
func FindUnfinished(ctx context.Context, table *delta.Table, pipelineID string) (*Unfinished, error) {
	snap, err := snapshotOf(ctx, table)
	if err != nil || snap == nil {
		return nil, err
	}
	if err := checkSchema(snap.Schema()); err != nil {
		return nil, err
	}
	last, _ := snap.Txn((&Log{origin: Origin{PipelineID: pipelineID}}).app())
	if last == 0 {
		return nil, nil
	}
	// The last word of an update is the last event of the log.
	tail, err := readFrom(ctx, snap, Filter{After: last - 1, Limit: 1})
	if err != nil || len(tail) == 0 || tail[0].Origin.UpdateID == "" {
		return nil, err
	}
	if d, ok := DetailsOf[StateDetails](&tail[0]); ok && tail[0].Type == UpdateProgress && d.Ended() {
		return nil, nil
	}
	found := &Unfinished{UpdateID: tail[0].Origin.UpdateID}
	progress, err := readFrom(ctx, snap, Filter{UpdateID: found.UpdateID, Types: []string{FlowProgress}})
	if err != nil {
		return nil, err
	}
	type key struct{ dataset, flow string }
	at := map[key]Origin{}
	var order []key
	for i := range progress {
		e := &progress[i]
		d, _ := DetailsOf[FlowProgressDetails](e)
		k := key{e.Origin.DatasetName, e.Origin.FlowName}
		switch d.Status {
		case "STARTING", "RUNNING":
			if _, known := at[k]; !known {
				order = append(order, k)
			}
			e.Origin.BatchID = nil
			at[k] = e.Origin
		case "COMPLETED", "FAILED", "SKIPPED", "STOPPED", "IDLE", "EXCLUDED":
			delete(at, k)
		}
	}
	for _, k := range order {
		if o, open := at[k]; open {
			found.Flows = append(found.Flows, o)
			delete(at, k)
		}
	}
	return found, nil
}
