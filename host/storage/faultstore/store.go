package faultstore

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/weir-data/weir/host/storage"
)

// Store is a store with faults.
type Store struct {
	inner storage.Store

	mu    sync.Mutex
	rules []*counted
	calls []CallRecord
}

// CallRecord is one call that was made.
type CallRecord struct {
	Op   Op
	Name string
}

type counted struct {
	Rule
	seen int
}

// New gives the twin of a store.
func New(inner storage.Store, rules ...Rule) *Store {
	s := &Store{inner: inner}
	s.Add(rules...)
	return s
}

// Add appends rules.
func (s *Store) Add(rules ...Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rules {
		s.rules = append(s.rules, &counted{Rule: r})
	}
}

// Heal removes all rules.
func (s *Store) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = nil
}

// Calls gives the calls made so far, in order.
func (s *Store) Calls() []CallRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]CallRecord{}, s.calls...)
}

// hit notes a call, waits if it is to be delayed, and tells what happens to it.
func (s *Store) hit(ctx context.Context, op Op, name string) (Effect, error) {
	e := s.effect(op, name)
	if e.call != nil {
		e.call()
	}
	if e.delay > 0 {
		select {
		case <-time.After(e.delay):
		case <-ctx.Done():
			return e, ctx.Err()
		}
	}
	return e, nil
}

func (s *Store) effect(op Op, name string) Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, CallRecord{op, name})
	for _, r := range s.rules {
		if !r.fits(op, name) {
			continue
		}
		r.seen++
		if r.seen > r.Skip && (r.Times == 0 || r.seen <= r.Skip+r.Times) {
			return r.Effect
		}
	}
	return Effect{keep: -1}
}

// do runs work unless the call is to fail before it.
func (s *Store) do(ctx context.Context, op Op, name string, work func() error) error {
	e, err := s.hit(ctx, op, name)
	if err != nil {
		return err
	}
	if e.err != nil && !e.answer {
		return e.err
	}
	if err := work(); err != nil {
		return err
	}
	return e.err
}

// write is do for calls that carry data: of a torn one a part arrives.
func (s *Store) write(ctx context.Context, op Op, name string, data []byte, work func([]byte) error) error {
	e, err := s.hit(ctx, op, name)
	switch {
	case err != nil:
		return err
	case e.err == nil:
		return work(data)
	case e.answer:
		return errors.Join(work(data), e.err)
	case e.keep >= 0:
		return errors.Join(work(data[:min(e.keep, len(data))]), e.err)
	}
	return e.err
}

// Get implements storage.Store. Torn, it gives the first bytes beside the error.
func (s *Store) Get(ctx context.Context, name string) (data []byte, err error) {
	e, err := s.hit(ctx, OpGet, name)
	if err != nil || e.err != nil && e.keep < 0 {
		return nil, errors.Join(err, e.err)
	}
	if data, err = s.inner.Get(ctx, name); err != nil {
		return nil, err
	}
	if e.keep >= 0 {
		return data[:min(e.keep, len(data))], e.err
	}
	return data, nil
}

// Open implements storage.Store.
func (s *Store) Open(ctx context.Context, name string) (o storage.Object, err error) {
	err = s.do(ctx, OpOpen, name, func() error {
		o, err = s.inner.Open(ctx, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &object{o, s, ctx, name}, nil
}

type object struct {
	storage.Object
	store *Store
	ctx   context.Context
	name  string
}

func (o *object) Read(p []byte) (int, error) {
	return o.read(p, o.Object.Read)
}

func (o *object) ReadAt(p []byte, off int64) (int, error) {
	return o.read(p, func(p []byte) (int, error) { return o.Object.ReadAt(p, off) })
}

func (o *object) read(p []byte, read func([]byte) (int, error)) (int, error) {
	e, err := o.store.hit(o.ctx, OpRead, o.name)
	switch {
	case err != nil:
		return 0, err
	case e.err == nil:
		return read(p)
	case e.keep > 0:
		n, err := read(p[:min(e.keep, len(p))])
		return n, errors.Join(err, e.err)
	}
	return 0, e.err
}

// Stat implements storage.Store.
func (s *Store) Stat(ctx context.Context, name string) (info storage.Info, err error) {
	err = s.do(ctx, OpStat, name, func() error {
		info, err = s.inner.Stat(ctx, name)
		return err
	})
	return info, err
}

// Put implements storage.Store.
func (s *Store) Put(ctx context.Context, name string, data []byte) error {
	return s.write(ctx, OpPut, name, data, func(p []byte) error { return s.inner.Put(ctx, name, p) })
}

// PutIfAbsent implements storage.Store.
func (s *Store) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	return s.write(ctx, OpPutIfAbsent, name, data, func(p []byte) error { return s.inner.PutIfAbsent(ctx, name, p) })
}

// Create implements storage.Store.
func (s *Store) Create(ctx context.Context, name string) (w storage.Writer, err error) {
	err = s.do(ctx, OpCreate, name, func() error {
		w, err = s.inner.Create(ctx, name)
		return err
	})
	if err != nil {
		if w != nil {
			err = errors.Join(err, w.Abort()) // the answer was lost, and with it the writer
		}
		return nil, err
	}
	return &writer{w, s, ctx, name}, nil
}

type writer struct {
	storage.Writer
	store *Store
	ctx   context.Context
	name  string
}

func (w *writer) Write(p []byte) (n int, err error) {
	err = w.store.write(w.ctx, OpWrite, w.name, p, func(p []byte) error {
		n, err = w.Writer.Write(p)
		return err
	})
	return n, err
}

func (w *writer) Commit() error {
	return w.store.do(w.ctx, OpCommit, w.name, w.Writer.Commit)
}

// Delete implements storage.Store.
func (s *Store) Delete(ctx context.Context, name string) error {
	return s.do(ctx, OpDelete, name, func() error { return s.inner.Delete(ctx, name) })
}

// List implements storage.Store. Torn, it gives the first n objects.
func (s *Store) List(ctx context.Context, prefix string, opt storage.ListOptions) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		e, err := s.hit(ctx, OpList, prefix)
		if err != nil || e.err != nil && e.keep < 0 {
			yield(storage.Info{}, errors.Join(err, e.err))
			return
		}
		n := 0
		for info, err := range s.inner.List(ctx, prefix, opt) {
			if e.err != nil && n == e.keep {
				yield(storage.Info{}, e.err)
				return
			}
			n++
			if !yield(info, err) {
				return
			}
		}
	}
}

// TryLock implements storage.Locker when the store below does.
func (s *Store) TryLock(ctx context.Context, name string) (unlock func() error, err error) {
	l, ok := s.inner.(storage.Locker)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	err = s.do(ctx, OpLock, name, func() error {
		unlock, err = l.TryLock(ctx, name)
		return err
	})
	if err != nil && unlock != nil {
		err = errors.Join(err, unlock())
		unlock = nil
	}
	return unlock, err
}

// Root gives the directory of the store below, "" when it has none.
func (s *Store) Root() string { return storage.Root(s.inner) }
