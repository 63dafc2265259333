package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"gocloud.dev/blob"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// leaseTime is how long a lock outlives a holder that no longer renews it.
const leaseTime = time.Minute

// holderKey and releasedKey are the metadata of a lock's object.
const (
	holderKey   = "weirholder"
	releasedKey = "weirreleased"
)

// TryLock implements storage.Locker by a lease: an object that its holder
// writes again every quarter of a minute, over just the version it wrote last.
// One that is a minute old by the store's own clock may be taken, and at once
// one whose holder ran on this machine and has died.
//
// A lease cannot stop a holder that slept through it; its unlock then fails
// with STORAGE_LOCK_LOST. So a lock keeps order among processes that mean well,
// and what must not happen twice is left to PutIfAbsent.
func (s *Store) TryLock(ctx context.Context, name string) (func() error, error) {
	key, err := s.key(ctx, name)
	if err == nil {
		err = s.probeReplacing(ctx)
	}
	if err != nil {
		return nil, s.fail(err, "lock", name)
	}
	l := &lease{store: s, name: name, key: key, holder: uuid.NewString()}
	if err := l.take(ctx); err != nil {
		return nil, s.fail(err, "lock", name)
	}
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	l.renewal.Go(func() { l.renew(renewing) })
	return l.release, nil
}

// lease is a lock that is held.
type lease struct {
	store   *Store
	name    string
	key     string
	holder  string
	stop    context.CancelFunc
	renewal sync.WaitGroup

	have    *blob.Attributes // the version that was written last
	renewed time.Time
	lost    error
}

// take makes the object, or takes over one that was released or has expired.
func (l *lease) take(ctx context.Context) error {
	old, err := l.store.attributes(ctx, l.key)
	if err != nil {
		if status, _ := l.store.service.status(err); status != http.StatusNotFound {
			return err
		}
		if old, err = nil, l.write(ctx, nil, false); !errors.Is(err, storage.ErrLocked) {
			return err
		}
		if old, err = l.store.attributes(ctx, l.key); err != nil {
			return err
		}
	}
	if old.Metadata[releasedKey] != "true" && !died(old.Metadata[processKey]) {
		now, err := l.store.now(ctx)
		if err != nil {
			return err
		}
		if now.Sub(old.ModTime) <= l.store.lease {
			return fmt.Errorf("%w: held by %s", storage.ErrLocked, old.Metadata[holderKey])
		}
	}
	return l.write(ctx, old, false)
}

// write writes the lease where nothing is (old is nil) or over just that version.
func (l *lease) write(ctx context.Context, old *blob.Attributes, released bool) error {
	host, _ := os.Hostname() // for the reader of the file only
	data, err := json.Marshal(map[string]any{"holder": l.holder, "host": host, "pid": os.Getpid(), "renewed": time.Now().UTC(), "released": released})
	if err != nil {
		return err
	}
	opts := blob.WriterOptions{IfNotExist: old == nil, Metadata: map[string]string{
		holderKey: l.holder, processKey: thisProcess(), releasedKey: fmt.Sprint(released), markKey: uuid.NewString(),
	}}
	if old != nil {
		opts.BeforeWrite = l.store.service.replaces(old)
	}
	began := time.Now()
	err = l.store.retry(ctx, func() error { return l.store.upload(ctx, l.key, data, &opts) })
	if err == nil && released || err != nil && !taken(l.store.service.status(err)) {
		return err // a released one may be another's the next instant
	}
	// The answer to a write that was repeated tells nothing, the mark does.
	now, statErr := l.store.attributes(ctx, l.key)
	switch {
	case statErr != nil:
		return errors.Join(err, statErr)
	case now.Metadata[markKey] != opts.Metadata[markKey]:
		return fmt.Errorf("%w: held by %s", storage.ErrLocked, now.Metadata[holderKey])
	}
	l.have, l.renewed = now, began
	return nil
}

// renew writes the lease again and again until it is released or lost.
func (l *lease) renew(ctx context.Context) {
	beat := time.NewTicker(l.store.lease / 4)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		}
		err := l.write(ctx, l.have, false)
		if errors.Is(err, storage.ErrLocked) || err != nil && time.Since(l.renewed) > l.store.lease {
			if ctx.Err() == nil {
				l.lost = err
			}
			return
		}
	}
}

// release says that the lock is free, in place of the holder's name.
func (l *lease) release() error {
	l.stop()
	l.renewal.Wait()
	err := l.lost
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), l.store.lease)
		defer cancel()
		if err = l.write(ctx, l.have, true); err == nil {
			return nil
		}
	}
	if errors.Is(err, storage.ErrLocked) {
		return fault.Wrap(err, "STORAGE_LOCK_LOST", "another process took the lock %s, which was not renewed for %v", l.name, l.store.lease).
			WithHint("Commits are made once all the same; look why this process or its connection stood still")
	}
	return l.store.fail(err, "unlock", l.name)
}

// now tells the time by the store's clock, which it measures once.
func (s *Store) now(ctx context.Context) (time.Time, error) {
	s.probing.Lock()
	defer s.probing.Unlock()
	if s.clock.IsZero() {
		name := "_weir_probe/" + uuid.NewString()
		key := s.where.prefix + name
		if err := s.retry(ctx, func() error { return s.upload(ctx, key, nil, &blob.WriterOptions{}) }); err != nil {
			return time.Time{}, err
		}
		a, err := s.attributes(ctx, key)
		if err = errors.Join(err, s.Delete(context.WithoutCancel(ctx), name)); err != nil {
			return time.Time{}, err
		}
		s.clock, s.measured = a.ModTime, time.Now()
	}
	return s.clock.Add(time.Since(s.measured)), nil
}

// probeReplacing tries, once, whether the store refuses to write over a version
// that is no more: locks need it beside put-if-absent.
func (s *Store) probeReplacing(ctx context.Context) error {
	if err := s.Probe(ctx); err != nil {
		return err
	}
	s.probing.Lock()
	defer s.probing.Unlock()
	if s.replacing {
		return nil
	}
	name := "_weir_probe/" + uuid.NewString()
	key := s.where.prefix + name
	write := func(data string, hook hook) error {
		return s.retry(ctx, func() error { return s.upload(ctx, key, []byte(data), &blob.WriterOptions{BeforeWrite: hook}) })
	}
	err := write("first", nil)
	if err != nil {
		return err
	}
	old, err := s.attributes(ctx, key)
	if err == nil {
		err = write("second", nil)
	}
	if err == nil {
		err = write("third", s.service.replaces(old))
		if taken(s.service.status(err)) {
			err, s.replacing = nil, true
		} else if status, _ := s.service.status(err); err == nil || status == http.StatusNotImplemented {
			err = fault.Wrap(err, "STORE_WITHOUT_CONDITIONAL_PUT", "%s writes over a version that is no more, so that it can hold no locks", s.where).
				WithHint("Use a store that honours If-Match")
		}
	}
	return errors.Join(err, s.Delete(context.WithoutCancel(ctx), name))
}
