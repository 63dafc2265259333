package storage

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// Sub narrows a store to the folder prefix of it. It makes nothing: a folder
// exists as soon as something is in it.
func Sub(s Store, prefix string) Store {
	prefix = strings.Trim(prefix, "/")
	if prefix == "" {
		return s
	}
	if inner, ok := s.(*sub); ok {
		return &sub{inner.store, inner.prefix + prefix + "/"}
	}
	return &sub{s, prefix + "/"}
}

type sub struct {
	store  Store
	prefix string
}

// full checks the name before the prefix could make a bad one look good.
func (s *sub) full(op, name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", Coded(err, op, name)
	}
	return s.prefix + name, nil
}

func (s *sub) Get(ctx context.Context, name string) ([]byte, error) {
	full, err := s.full("read", name)
	if err != nil {
		return nil, err
	}
	return s.store.Get(ctx, full)
}

func (s *sub) Open(ctx context.Context, name string) (Object, error) {
	full, err := s.full("open", name)
	if err != nil {
		return nil, err
	}
	return s.store.Open(ctx, full)
}

func (s *sub) Stat(ctx context.Context, name string) (Info, error) {
	full, err := s.full("stat", name)
	if err != nil {
		return Info{}, err
	}
	info, err := s.store.Stat(ctx, full)
	info.Name = name
	return info, err
}

func (s *sub) Put(ctx context.Context, name string, data []byte) error {
	full, err := s.full("write", name)
	if err != nil {
		return err
	}
	return s.store.Put(ctx, full, data)
}

func (s *sub) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	full, err := s.full("create", name)
	if err != nil {
		return err
	}
	return s.store.PutIfAbsent(ctx, full, data)
}

func (s *sub) Create(ctx context.Context, name string) (Writer, error) {
	full, err := s.full("create", name)
	if err != nil {
		return nil, err
	}
	return s.store.Create(ctx, full)
}

func (s *sub) Delete(ctx context.Context, name string) error {
	full, err := s.full("delete", name)
	if err != nil {
		return err
	}
	return s.store.Delete(ctx, full)
}

func (s *sub) List(ctx context.Context, prefix string, opt ListOptions) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		folder, err := CheckPrefix(prefix)
		if err != nil {
			yield(Info{}, Coded(err, "list", prefix))
			return
		}
		if opt.After != "" {
			opt.After = s.prefix + opt.After
		}
		for info, err := range s.store.List(ctx, s.prefix+folder, opt) {
			info.Name = strings.TrimPrefix(info.Name, s.prefix)
			if !yield(info, err) {
				return
			}
		}
	}
}

// TryLock implements Locker when the store below does.
func (s *sub) TryLock(ctx context.Context, name string) (func() error, error) {
	full, err := s.full("lock", name)
	if err != nil {
		return nil, err
	}
	l, ok := s.store.(Locker)
	if !ok {
		return nil, noLocks(full)
	}
	return l.TryLock(ctx, full)
}

// Root gives the absolute path of the folder, "" when the store below has none.
func (s *sub) Root() string {
	root := Root(s.store)
	if root == "" {
		return ""
	}
	return root + "/" + strings.TrimSuffix(s.prefix, "/")
}

// Root gives the absolute path of the directory behind a store, or "" when there is none.
func Root(s Store) string {
	if r, ok := s.(interface{ Root() string }); ok {
		return r.Root()
	}
	return ""
}

func noLocks(name string) error {
	return fault.Wrap(errors.ErrUnsupported, "STORAGE_NO_LOCKS", "the store cannot lock %s", name)
}
