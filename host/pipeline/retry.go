package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-data/weir/host/events"
	"github.com/weir-data/weir/host/fault"
)

// The pauses before retries, doubled each time: short ones for a batch, whose
// failures are mostly lost races; longer ones for an update, which has to wait
// until a storage or a network is back.
const (
	firstFlowPause, lastFlowPause     = 500 * time.Millisecond, 30 * time.Second
	firstUpdatePause, lastUpdatePause = 2 * time.Second, time.Minute
)

func doubled(first, last time.Duration, retry int) time.Duration {
	if retry > 20 {
		return last
	}
	return min(first<<retry, last)
}

func (p *Pipeline) flowPause(retry int) time.Duration {
	return p.opts.shorten(doubled(firstFlowPause, lastFlowPause, retry))
}

func (p *Pipeline) updatePause(retry int) time.Duration {
	return p.opts.shorten(doubled(firstUpdatePause, lastUpdatePause, retry))
}

// shorten makes the pauses of a test short.
func (o *Options) shorten(d time.Duration) time.Duration {
	if o.shortPauses {
		return time.Millisecond
	}
	return d
}

// passing tells whether a failure may go away by itself: a storage that did
// not answer, a race that was lost. What a query, a file or a setting did
// wrong it does wrong again.
func passing(err error) bool {
	for err != nil {
		var e *fault.Error
		if !errors.As(err, &e) {
			return false
		}
		if e.Retry || e.Code == "STORAGE_IO_ERROR" {
			return true
		}
		err = e.Err
	}
	return false
}

// retry runs the flows again whose failure may have passed, and those that
// were skipped for it, until all is well or the attempts are used up.
func (u *update) retry(ctx context.Context) {
	results := u.results
	for n := range u.p.spec.settings.maxUpdateRetries {
		var again []*flow
		for _, f := range u.order {
			r := results[f]
			if r.State == Failed && passing(r.Err) {
				again = append(again, f)
			}
		}
		if len(again) == 0 || ctx.Err() != nil {
			return
		}
		pause := u.p.updatePause(n)
		u.mu.Lock()
		u.result.Retries++
		message := fmt.Sprintf("flows that failed and may succeed now: %d; they are run again in %s (retry %d of %d)", len(again), pause, n+1, u.p.spec.settings.maxUpdateRetries)
		u.log.Emit(events.Event{Type: events.UpdateProgress, Level: events.Warn, Message: message, Details: events.StateDetails{State: string(Running)}})
		u.tell(Progress{State: Running, Batch: -1, Message: message})
		u.mu.Unlock()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		// Those that were skipped wait for their turn again; if what they read
		// fails once more, or failed for good, they are skipped once more.
		for _, f := range u.order {
			if results[f].State == Skipped {
				again = append(again, f)
			}
		}
		for _, f := range again {
			u.change(results[f], Queued, "queued for another try", nil)
		}
		u.pass(ctx)
	}
}
