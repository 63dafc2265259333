package storage

import (
	"context"
	"errors"
	"time"
)

// lockPoll is how often a waiting Lock tries again: flock has no wait that a context could end.
const lockPoll = 50 * time.Millisecond

// Lock takes the lock called name. When it is held elsewhere Lock waits until
// it is free or ctx ends, or fails at once with ErrLocked if wait is false.
func Lock(ctx context.Context, s Store, name string, wait bool) (unlock func() error, err error) {
	l, ok := s.(Locker)
	if !ok {
		return nil, noLocks(name)
	}
	for {
		unlock, err = l.TryLock(ctx, name)
		if err == nil || !wait || !errors.Is(err, ErrLocked) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, Coded(errors.Join(ctx.Err(), err), "lock", name)
		case <-time.After(lockPoll):
		}
	}
}
