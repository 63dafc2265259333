package storage

import (
	"context"
	"errors"
	"time"
)

// A waiting Lock tries again after pauses that grow from firstPoll to lastPoll:
// flock has no wait that a context could end, and asking a bucket costs.
const (
	firstPoll = 50 * time.Millisecond
	lastPoll  = time.Second
)

// Lock takes the lock called name. When it is held elsewhere Lock waits until
// it is free or ctx ends, or fails at once with ErrLocked if wait is false.
func Lock(ctx context.Context, s Store, name string, wait bool) (unlock func() error, err error) {
	l, ok := s.(Locker)
	if !ok {
		return nil, noLocks(name)
	}
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		unlock, err = l.TryLock(ctx, name)
		if err == nil || !wait || !errors.Is(err, ErrLocked) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, Coded(errors.Join(ctx.Err(), err), "lock", name)
		case <-time.After(pause):
		}
	}
}
