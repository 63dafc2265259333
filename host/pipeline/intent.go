package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

var fpIntentWritten = failpoint.New("pipeline.full_refresh_recorded")

// intentPath is where a pipeline keeps the full refreshes that an update was
// asked for and has not begun.
const intentPath = "full_refresh.json"

// refreshIntent is that record. Without it, an update killed between the full
// refresh of a table and that of a table which reads from it would leave the
// second one unable to follow, although its refresh had been asked for.
type refreshIntent struct {
	Format   int      `json:"format"`
	UpdateID string   `json:"update_id"`
	Datasets []string `json:"datasets"` // by id, in the order of the graph
}

// pendingRefreshes gives the full refreshes that an earlier update left undone.
func (p *Pipeline) pendingRefreshes(ctx context.Context) (*refreshIntent, error) {
	text, err := p.folder().Get(ctx, intentPath)
	if errors.Is(err, storage.ErrNotExist) {
		return &refreshIntent{}, nil
	}
	if err != nil {
		return nil, err
	}
	var in refreshIntent
	if err := json.Unmarshal(text, &in); err != nil || in.Format != 1 {
		return nil, fault.New("CHECKPOINT_CORRUPT", "the record %s of unfinished full refreshes is not readable", intentPath).
			WithHint("Remove it and run the full refresh again")
	}
	return &in, nil
}

// intend records the full refreshes of the update before the first begins, and
// takes over those that an earlier update left undone and this one selects.
func (u *update) intend(ctx context.Context) error {
	pending, err := u.p.pendingRefreshes(ctx)
	if err != nil {
		return err
	}
	left := map[string]bool{}
	for _, id := range pending.Datasets {
		left[id] = true
	}
	asked := false
	for _, d := range u.p.graph.order {
		switch {
		case u.chosen.full[d]:
			left[d.id], asked = true, true
		case u.chosen.run[d] && left[d.id]:
			u.chosen.full[d] = true
			u.result.Warnings = append(u.result.Warnings, "the full refresh of "+d.id+" that update "+pending.UpdateID+" did not begin is done now")
		}
	}
	u.intent = &refreshIntent{Format: 1, UpdateID: pending.UpdateID}
	for _, d := range u.p.graph.order {
		if left[d.id] {
			u.intent.Datasets = append(u.intent.Datasets, d.id)
		}
	}
	if !asked {
		return nil // what is pending is on record already
	}
	u.intent.UpdateID = u.result.UpdateID
	if err := u.writeIntent(ctx); err != nil {
		return err
	}
	fpIntentWritten.Hit()
	return nil
}

// begun takes the full refresh of a dataset off the record once the new
// generations of all its flows exist: any later run goes on with them. u.mu is held.
func (u *update) begun(ctx context.Context, f *flow) error {
	d := f.target
	u.began[f] = true
	if slices.ContainsFunc(d.flows, func(f *flow) bool { return !u.began[f] }) {
		return nil
	}
	for i, id := range u.intent.Datasets {
		if id == d.id && u.chosen.full[d] {
			u.intent.Datasets = append(u.intent.Datasets[:i:i], u.intent.Datasets[i+1:]...)
			return u.writeIntent(ctx)
		}
	}
	return nil
}

// hasBegun tells whether the flow's new generation exists: a retry goes on with it.
func (u *update) hasBegun(f *flow) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.began[f]
}

func (u *update) writeIntent(ctx context.Context) error {
	if len(u.intent.Datasets) == 0 {
		return u.p.folder().Delete(ctx, intentPath)
	}
	text, err := json.Marshal(u.intent)
	if err != nil {
		return err
	}
	return u.p.folder().Put(ctx, intentPath, append(text, '\n'))
}
