package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

var fpUpdateRecorded = failpoint.New("pipeline.update_recorded")

// updatePath is where a pipeline keeps the record of its last update.
const updatePath = "update.json"

// updateRecord says who runs an update, what became of it, and how each flow
// ended when it was last selected. It is written
// when an update begins and when it ends: one that says RUNNING while nobody
// holds the lock is that of an update that was killed.
type updateRecord struct {
	Format   int          `json:"format"`
	UpdateID string       `json:"update_id"`
	State    State        `json:"state"`
	Host     string       `json:"host"`
	User     string       `json:"user"`
	PID      int          `json:"pid"`
	Started  time.Time    `json:"started"`
	Ended    time.Time    `json:"ended,omitzero"`
	Flows    []flowRecord `json:"flows"`
}

type flowRecord struct {
	Dataset string `json:"dataset"`
	Flow    string `json:"flow"`
	State   State  `json:"state"`
}

// over tells whether an update or a flow has ended in that state.
func (s State) over() bool {
	switch s {
	case Completed, Failed, Skipped, Excluded, Canceled:
		return true
	}
	return false
}

// running says in words who runs an update; nothing is known of it when r is nil.
func (r *updateRecord) running(pipeline string) string {
	if r == nil || r.State.over() {
		return fmt.Sprintf("another update of pipeline %s is running", pipeline)
	}
	return fmt.Sprintf("update %s of pipeline %s is running since %s (process %d of %s on %s)",
		r.UpdateID, pipeline, r.Started.Format(time.RFC3339), r.PID, r.User, r.Host)
}

// lastUpdate reads the record of the last update, nil before the first.
func (p *Pipeline) lastUpdate(ctx context.Context) (*updateRecord, error) {
	text, err := p.folder().Get(ctx, updatePath)
	if errors.Is(err, storage.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r updateRecord
	if err := json.Unmarshal(text, &r); err != nil || r.Format != 1 {
		return nil, fault.New("CHECKPOINT_CORRUPT", "the record %s of the last update is not readable", updatePath).
			WithHint("Remove it; it is needed for --refresh-failed only")
	}
	return &r, nil
}

// record writes the update down as it stands.
func (u *update) record(ctx context.Context) error {
	u.mu.Lock()
	r := updateRecord{
		Format: 1, UpdateID: u.result.UpdateID, State: u.result.State, PID: os.Getpid(),
		Started: u.result.Started, Ended: u.result.Ended, Flows: []flowRecord{},
	}
	for _, f := range u.result.Flows {
		if f.State != Excluded {
			r.Flows = append(r.Flows, flowRecord{f.Dataset, f.Flow, f.State})
		}
	}
	u.mu.Unlock()
	if !r.State.over() {
		r.State = Running
	}
	if u.previous != nil {
		// What failed before and was not selected now is still to do.
		r.Flows = append(r.Flows, u.previous.without(r.Flows)...)
	}
	var err error
	if r.Host, err = os.Hostname(); err != nil {
		r.Host = "unknown host"
	}
	r.User = cmp.Or(userName(), "an unknown user")
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	err = u.p.folder().Put(ctx, updatePath, append(text, '\n'))
	fpUpdateRecorded.Hit()
	return err
}

// without gives the flows of a record that others do not name.
func (r *updateRecord) without(others []flowRecord) []flowRecord {
	named := map[[2]string]bool{}
	for _, f := range others {
		named[[2]string{f.Dataset, f.Flow}] = true
	}
	var out []flowRecord
	for _, f := range r.Flows {
		if !named[[2]string{f.Dataset, f.Flow}] {
			out = append(out, f)
		}
	}
	return out
}

// enter moves the update to a state and tells about it.
func (u *update) enter(s State, message string) {
	u.mu.Lock()
	u.result.State = s
	u.mu.Unlock()
	if u.log != nil {
		u.logUpdate(s)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tell(Progress{State: s, Batch: -1, Message: message})
}

// close settles the update's end: the events and the record of it are written.
// The tables are committed by then, so what fails here is told, and does not
// make the update a failed one.
func (u *update) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	u.result.Ended = u.p.now()
	u.logUpdate(u.result.State)
	return errors.Join(u.log.Flush(ctx), u.record(ctx))
}
