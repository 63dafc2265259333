package stream

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/weir-data/weir/host/storage"
)

// faulty is a store whose operation number k goes wrong. It counts the
// operations of all stores that share it.
type faulty struct {
	mu   sync.Mutex
	n, k int
	mode faultMode
	dead bool
	hit  bool
}

// faultMode is how the operation goes wrong.
type faultMode int

const (
	// crashBefore and crashAfter end the process, so to say: nothing works from then on.
	crashBefore faultMode = iota
	crashAfter
	// failBefore and failAfter are one error each; after it did what was asked, the answer is lost.
	failBefore
	failAfter
)

var errFault = errors.New("injected fault")

// step counts one operation; do says whether to do it, and err what to answer.
func (f *faulty) step() (do bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	if f.dead {
		return false, errFault
	}
	if f.n != f.k {
		return true, nil
	}
	f.hit = true
	f.dead = f.mode == crashBefore || f.mode == crashAfter
	return f.mode == crashAfter || f.mode == failAfter, errFault
}

func (f *faulty) wrap(s storage.Store) storage.Store { return &faultyStore{s, f} }

type faultyStore struct {
	s storage.Store
	f *faulty
}

func (s *faultyStore) Get(ctx context.Context, name string) (data []byte, err error) {
	do, fault := s.f.step()
	if do {
		data, err = s.s.Get(ctx, name)
	}
	return data, errors.Join(fault, err)
}

func (s *faultyStore) Open(ctx context.Context, name string) (storage.Object, error) {
	if _, fault := s.f.step(); fault != nil {
		return nil, fault
	}
	return s.s.Open(ctx, name)
}

func (s *faultyStore) Stat(ctx context.Context, name string) (storage.Info, error) {
	if _, fault := s.f.step(); fault != nil {
		return storage.Info{}, fault
	}
	return s.s.Stat(ctx, name)
}

// change is an operation that changes something.
func (s *faultyStore) change(op func() error) error {
	do, fault := s.f.step()
	if !do {
		return fault
	}
	if err := op(); err != nil {
		return err
	}
	return fault
}

func (s *faultyStore) Put(ctx context.Context, name string, data []byte) error {
	return s.change(func() error { return s.s.Put(ctx, name, data) })
}

func (s *faultyStore) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	return s.change(func() error { return s.s.PutIfAbsent(ctx, name, data) })
}

func (s *faultyStore) Delete(ctx context.Context, name string) error {
	return s.change(func() error { return s.s.Delete(ctx, name) })
}

func (s *faultyStore) Create(ctx context.Context, name string) (storage.Writer, error) {
	if _, fault := s.f.step(); fault != nil {
		return nil, fault
	}
	w, err := s.s.Create(ctx, name)
	if err != nil {
		return nil, err
	}
	return &faultyWriter{w, s}, nil
}

type faultyWriter struct {
	storage.Writer
	s *faultyStore
}

func (w *faultyWriter) Commit() error { return w.s.change(w.Writer.Commit) }

func (s *faultyStore) List(ctx context.Context, prefix string, opt storage.ListOptions) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		if _, fault := s.f.step(); fault != nil {
			yield(storage.Info{}, fault)
			return
		}
		for info, err := range s.s.List(ctx, prefix, opt) {
			if !yield(info, err) {
				return
			}
		}
	}
}
