package faultstore

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
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
	late  []lateCall
}

// lateCall is a request that arrives once more when the store has seen so many calls.
type lateCall struct {
	due  int
	work func()
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
	e, late := s.effect(op, name)
	for _, l := range late {
		l.work()
	}
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

func (s *Store) effect(op Op, name string) (Effect, []lateCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, CallRecord{op, name})
	var due []lateCall
	s.late = slices.DeleteFunc(s.late, func(l lateCall) bool {
		if l.due > len(s.calls) {
			return false
		}
		due = append(due, l)
		return true
	})
	for _, r := range s.rules {
		if !r.fits(op, name, len(s.calls)) {
			continue
		}
		r.seen++
		if r.seen > r.Skip && (r.Times == 0 || r.seen <= r.Skip+r.Times) {
			return r.Effect, due
		}
	}
	return Effect{keep: -1}, due
}

// done is what happens when the call has been made.
func (e *Effect) done() {
	if e.after != nil {
		e.after()
	}
}

// again makes a call the second time that the effect asks for, now or later.
func (s *Store) again(ctx context.Context, e *Effect, work func(context.Context) error, err error) error {
	if e.twice {
		err = work(ctx)
	}
	if e.later > 0 {
		ctx = context.WithoutCancel(ctx)
		s.mu.Lock()
		s.late = append(s.late, lateCall{len(s.calls) + e.later, func() {
			_ = work(ctx) // nobody waits for the answer
		}})
		s.mu.Unlock()
	}
	return err
}

// do runs work unless the call is to fail before it.
func (s *Store) do(ctx context.Context, op Op, name string, work func() error) error {
	e, err := s.hit(ctx, op, name)
	if err != nil {
		return err
	}
	defer e.done()
	return e.around(work)
}

func (e *Effect) around(work func() error) error {
	if e.err != nil && !e.answer {
		return e.err
	}
	if err := work(); err != nil {
		return err
	}
	return e.err
}

// write is do for calls that carry data: of a torn one a part arrives.
func (s *Store) write(ctx context.Context, op Op, name string, data []byte, work func(context.Context, []byte) error) error {
	e, err := s.hit(ctx, op, name)
	if err != nil {
		return err
	}
	defer e.done()
	switch {
	case e.err == nil:
		return s.again(ctx, &e, func(ctx context.Context) error { return work(ctx, data) }, work(ctx, data))
	case e.answer:
		return errors.Join(work(ctx, data), e.err)
	case e.keep >= 0:
		return errors.Join(work(ctx, data[:min(e.keep, len(data))]), e.err)
	}
	return e.err
}

// Get implements storage.Store. Torn, it gives the first bytes beside the error.
func (s *Store) Get(ctx context.Context, name string) (data []byte, err error) {
	e, err := s.hit(ctx, OpGet, name)
	if err != nil {
		return nil, err
	}
	defer e.done()
	if e.err != nil && e.keep < 0 {
		return nil, e.err
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
	if err != nil {
		return 0, err
	}
	defer e.done()
	switch {
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
	return s.write(ctx, OpPut, name, data, func(ctx context.Context, p []byte) error { return s.inner.Put(ctx, name, p) })
}

// PutIfAbsent implements storage.Store.
func (s *Store) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	return s.write(ctx, OpPutIfAbsent, name, data, func(ctx context.Context, p []byte) error { return s.inner.PutIfAbsent(ctx, name, p) })
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
	e, err := w.store.hit(w.ctx, OpWrite, w.name)
	if err != nil {
		return 0, err
	}
	defer e.done()
	switch {
	case e.err == nil:
		return w.Writer.Write(p)
	case e.answer:
		n, err = w.Writer.Write(p)
	case e.keep >= 0:
		n, err = w.Writer.Write(p[:min(e.keep, len(p))])
	}
	return n, errors.Join(err, e.err)
}

func (w *writer) Commit() error {
	return w.store.do(w.ctx, OpCommit, w.name, w.Writer.Commit)
}

func (w *writer) Abort() error {
	return w.store.do(w.ctx, OpAbort, w.name, w.Writer.Abort)
}

// Delete implements storage.Store.
func (s *Store) Delete(ctx context.Context, name string) error {
	e, err := s.hit(ctx, OpDelete, name)
	if err != nil {
		return err
	}
	defer e.done()
	remove := func(ctx context.Context) error { return s.inner.Delete(ctx, name) }
	return e.around(func() error { return s.again(ctx, &e, remove, remove(ctx)) })
}

// List implements storage.Store. Torn, it gives the first n objects.
func (s *Store) List(ctx context.Context, prefix string, opt storage.ListOptions) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		e, err := s.hit(ctx, OpList, prefix)
		if err != nil {
			yield(storage.Info{}, err)
			return
		}
		defer e.done()
		if e.err != nil && e.keep < 0 {
			yield(storage.Info{}, e.err)
			return
		}
		n := 0
		for info, err := range e.listing(s.inner.List(ctx, prefix, opt)) {
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

// listing doubles and mixes a listing as the effect says; an error stays the last.
func (e *Effect) listing(objects iter.Seq2[storage.Info, error]) iter.Seq2[storage.Info, error] {
	if !e.twice && !e.mixed {
		return objects
	}
	return func(yield func(storage.Info, error) bool) {
		var all []storage.Info
		var failed error
		for info, err := range objects {
			if err != nil {
				failed = err
				break
			}
			all = append(all, info)
			if e.twice {
				all = append(all, info)
			}
		}
		if e.mixed {
			r := rand.New(rand.NewPCG(e.seed, 0))
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}
		for _, info := range all {
			if !yield(info, nil) {
				return
			}
		}
		if failed != nil {
			yield(storage.Info{}, failed)
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

// Sweep implements storage.Sweeper when the store below does.
func (s *Store) Sweep(ctx context.Context, before time.Time, dry bool, each func(storage.Info) error) error {
	return s.do(ctx, OpSweep, "", func() error { return storage.Sweep(ctx, s.inner, before, dry, each) })
}

// Root gives the directory of the store below, "" when it has none.
func (s *Store) Root() string { return storage.Root(s.inner) }
