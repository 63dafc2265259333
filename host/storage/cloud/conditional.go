package cloud

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"
	"gocloud.dev/blob"

	"github.com/weir-data/weir/host/fault"
)

// markKey is the metadata that tells one writer's attempts from another's.
// Azure takes only letters, digits and underscores.
const markKey = "weirput"

// PutIfAbsent implements storage.Store by one conditional request. A client
// repeats a request whose answer was lost, and then the name is taken by its own
// first attempt: the mark tells.
func (s *Store) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	key, err := s.key(ctx, name)
	if err == nil {
		err = s.Probe(ctx)
	}
	if err == nil {
		err = s.putIfAbsent(ctx, key, data)
	}
	return s.fail(err, "create", name)
}

func (s *Store) putIfAbsent(ctx context.Context, key string, data []byte) error {
	mark := uuid.NewString()
	err := s.retry(ctx, func() error {
		return s.upload(ctx, key, data, &blob.WriterOptions{IfNotExist: true, Metadata: map[string]string{markKey: mark}})
	})
	if err == nil || !taken(s.service.status(err)) {
		return err
	}
	a, statErr := s.attributes(ctx, key)
	if statErr != nil {
		if status, _ := s.service.status(statErr); status == http.StatusNotFound {
			return err // deleted since
		}
		// Whose object it is stays open, and "taken" would say that it is another's.
		return fault.Wrap(statErr, "STORAGE_IO_ERROR", "create %s: the name is taken, and whether by this write cannot be told", key).Retryable()
	}
	if a.Metadata[markKey] == mark {
		return nil
	}
	return err
}

// Probe tries whether the store honours conditional writes, once: it writes an
// object twice under a name of its own and expects the second to be refused.
// PutIfAbsent calls it; a program that would rather fail at its start does, too.
func (s *Store) Probe(ctx context.Context) error {
	s.probing.Lock()
	defer s.probing.Unlock()
	if s.probed {
		return nil
	}
	name := "_weir_probe/" + uuid.NewString()
	key := s.where.prefix + name
	err := s.putIfAbsent(ctx, key, []byte("first"))
	if err == nil {
		err = s.refusesSecond(ctx, key)
		if gone := s.Delete(context.WithoutCancel(ctx), name); err == nil && gone != nil {
			err = gone
		}
	} else if status, _ := s.service.status(err); status == http.StatusNotImplemented || taken(s.service.status(err)) {
		err = unconditional(s.where, err)
	}
	if err != nil {
		return s.fail(err, "probe", name)
	}
	s.probed = true
	return nil
}

func (s *Store) refusesSecond(ctx context.Context, key string) error {
	err := s.putIfAbsent(ctx, key, []byte("second"))
	if err == nil {
		return unconditional(s.where, errors.New("a second write under the same name was not refused"))
	}
	if !taken(s.service.status(err)) {
		return err
	}
	return nil
}

func unconditional(where location, err error) error {
	return fault.Wrap(err, "STORE_WITHOUT_CONDITIONAL_PUT", "%s does not honour conditional writes, so that two writers would overwrite each other's commits", where).
		WithHint("Use a store that honours If-None-Match: * (AWS S3, R2, MinIO, Azure, GCS), or turn it on there")
}
