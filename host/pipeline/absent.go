package pipeline

import (
	"context"
	"errors"
	"iter"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// absentStore stands for a storage folder that no run has made yet, so that
// planning and querying need not make it.
type absentStore struct{}

var errAbsent = errors.New("the storage has not been made yet")

func absent(name string) error {
	return fault.Wrap(storage.ErrNotExist, "STORAGE_NOT_FOUND", "%s", name)
}

func (absentStore) Get(_ context.Context, name string) ([]byte, error) { return nil, absent(name) }
func (absentStore) Open(_ context.Context, name string) (storage.Object, error) {
	return nil, absent(name)
}
func (absentStore) Stat(_ context.Context, name string) (storage.Info, error) {
	return storage.Info{}, absent(name)
}
func (absentStore) Put(context.Context, string, []byte) error         { return errAbsent }
func (absentStore) PutIfAbsent(context.Context, string, []byte) error { return errAbsent }
func (absentStore) Create(context.Context, string) (storage.Writer, error) {
	return nil, errAbsent
}
func (absentStore) List(context.Context, string, storage.ListOptions) iter.Seq2[storage.Info, error] {
	return func(func(storage.Info, error) bool) {}
}
func (absentStore) Delete(context.Context, string) error { return nil }
