package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path"
	"strconv"
	"strings"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// Records are the JSON objects of a checkpoint: written once, never changed.

func unavailable(err error) error {
	return fault.Wrap(err, "CHECKPOINT_UNAVAILABLE", "cannot reach the checkpoint")
}

func foreignFormat(name string, format int) error {
	return fault.New("CHECKPOINT_CORRUPT", "%s has format %d or another place than its name says", name, format).
		WithHint("It was not written there by this version of weir")
}

// putRecord writes a record unless there is one. One that is there with the
// same bytes is ours, from a put whose answer was lost.
func putRecord(ctx context.Context, store storage.Store, name string, record any) error {
	data, err := json.Marshal(record)
	if err != nil {
		return fault.Wrap(err, "INTERNAL_ERROR", "cannot encode %s", name)
	}
	data = append(data, '\n')
	err = store.PutIfAbsent(ctx, name, data)
	if err == nil {
		return nil
	}
	if !errors.Is(err, storage.ErrExist) {
		return unavailable(err)
	}
	have, err := store.Get(ctx, name)
	if err != nil {
		return unavailable(err)
	}
	if bytes.Equal(have, data) {
		return nil
	}
	return fault.New("CONCURRENT_UPDATE", "another run wrote %s first", name).
		WithHint("Let one update of a pipeline run at a time; then run again")
}

func getRecord(ctx context.Context, store storage.Store, name string, into any) error {
	data, err := store.Get(ctx, name)
	if err != nil {
		return unavailable(err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(into); err != nil {
		return fault.Wrap(err, "CHECKPOINT_CORRUPT", "%s is not a record of a checkpoint", name)
	}
	return nil
}

func entryPath(folder string, n int64) string { return fmt.Sprintf("%s/%020d.json", folder, n) }

// entryNumbers lists the numbers of a folder's entries, ascending.
func entryNumbers(ctx context.Context, store storage.Store, folder string, opt storage.ListOptions) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		for info, err := range store.List(ctx, folder, opt) {
			if err != nil {
				yield(0, unavailable(err))
				return
			}
			n, err := strconv.ParseInt(strings.TrimSuffix(path.Base(info.Name), ".json"), 10, 64)
			if err != nil || info.Name != entryPath(folder, n) {
				continue // not an entry: an editor's or a sync tool's file
			}
			if !yield(n, nil) {
				return
			}
		}
	}
}
