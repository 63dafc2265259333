package cloud

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

// The services' own clients try requests again that were not answered, or
// answered with "later"; they are set to these. Above them, retry does so for
// what they let through: conflicts, and bodies that break off.
const (
	attempts   = 8
	firstPause = 50 * time.Millisecond
	lastPause  = 4 * time.Second
)

// pause is how long to wait after the n-th failure, from 1. Writers that met
// once should not meet again, so half of it is chance.
func pause(n int) time.Duration {
	d := lastPause
	if n < 8 {
		d = min(firstPause<<(n-1), lastPause)
	}
	return d/2 + rand.N(d/2+1)
}

// brokenError is a body that did not come to its end.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return "the answer broke off: " + e.err.Error() }
func (e *brokenError) Unwrap() error { return e.err }

// retry makes a call again as long as its failure is of those that pass. It is
// for calls that may be made twice.
func (s *Store) retry(ctx context.Context, call func() error) error {
	for n := 1; ; n++ {
		err := call()
		if err == nil || n == attempts || ctx.Err() != nil || !s.passes(err) {
			return err
		}
		t := time.NewTimer(pause(n))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
	}
}

// passes tells whether a failure that the client has given up on can be another in a moment.
func (s *Store) passes(err error) bool {
	if broken := (*brokenError)(nil); errors.As(err, &broken) {
		return true
	}
	status, code := s.service.status(err)
	return status == http.StatusConflict && !taken(status, code)
}
