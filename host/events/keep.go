package events

import (
	"context"
	"time"

	"github.com/weir-data/weir/host/delta"
)

// How the log is written in the background: what was emitted is written within
// flushEvery, within flushApart after Nudge. A flush is a commit, so they are
// kept some way apart.
const (
	flushEvery = 2 * time.Second
	flushApart = 250 * time.Millisecond
)

// Nudge asks for a flush soon. It does not wait for it.
func (l *Log) Nudge() {
	select {
	case l.nudge <- struct{}{}:
	default:
	}
}

// Keep writes the events in the background until stop is called, so that a
// process that is killed leaves its story behind. Failures are told to failed
// and tried again. stop waits for a flush that is under way; what is left then
// is for Flush.
func (l *Log) Keep(ctx context.Context, failed func(error)) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		every := time.NewTicker(flushEvery)
		defer every.Stop()
		for {
			select {
			case <-quit:
				return
			case <-l.nudge:
			case <-every.C:
			}
			if err := l.Flush(ctx); err != nil {
				failed(err)
			}
			select {
			case <-quit:
				return
			case <-time.After(flushApart):
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// packFrom is how many files the log may have before they are packed.
const packFrom = 64

// Pack rewrites the log's many small files, one a flush, as a few large ones,
// once there are enough of them to bother, and deletes those that no version
// of the last days needs.
func (l *Log) Pack(ctx context.Context) error {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	snap, err := snapshotOf(ctx, l.table)
	if err != nil || snap == nil || snap.NumFiles() < packFrom {
		return err
	}
	if _, err := l.table.Optimize(ctx, delta.OptimizeOptions{}); err != nil {
		return err
	}
	_, err = l.table.Vacuum(ctx, delta.VacuumOptions{})
	return err
}
