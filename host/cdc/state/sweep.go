package state

import (
	"context"
	"errors"

	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/storage"
)

var fpSwept = failpoint.New("cdc.swept")

// Sweep removes what version keep, which has to be the one that the target's
// newest commit names, made superfluous: older manifests, and runs that neither
// it nor a younger manifest names. What may be in the making stays: runs whose
// writer had seen version keep or a later one (their stamps say so). A writer
// that fell asleep and sweeps for an older version therefore removes nothing that
// a newer one needs, and Put refuses what was stamped before the version it follows.
func (s *Store) Sweep(ctx context.Context, keep int64) error {
	var manifests []int64
	var runs []string
	for info, err := range s.files.List(ctx, "", storage.ListOptions{NamesOnly: true}) {
		if err != nil {
			return err
		}
		if k, ok := parseManifestName(info.Name); ok {
			manifests = append(manifests, k)
		} else if stamp, ok := runStamp(info.Name); ok && stamp < keep {
			runs = append(runs, info.Name)
		}
	}
	named := map[string]struct{}{}
	kept := map[string]struct{}{}
	for _, k := range manifests {
		if k < keep {
			continue
		}
		data, err := s.files.Get(ctx, manifestName(k))
		if err != nil {
			return err
		}
		m, err := decodeManifest(data, k)
		if err != nil {
			return err
		}
		for _, r := range m.Runs {
			named[r.Name] = struct{}{}
			if k == keep {
				kept[r.Name] = struct{}{}
			}
		}
	}
	for _, k := range manifests {
		if k >= keep {
			continue
		}
		if err := s.files.Delete(ctx, manifestName(k)); err != nil {
			return err
		}
		fpSwept.Hit()
	}
	for _, name := range runs {
		if _, ok := named[name]; ok {
			continue
		}
		if err := s.files.Delete(ctx, name); err != nil {
			return err
		}
		s.forget(name)
		fpSwept.Hit()
	}
	if err := s.letGo(kept); err != nil {
		return err
	}
	return s.evict(ctx, func(name string) bool {
		stamp, _ := runStamp(name)
		_, ok := named[name]
		return ok || stamp >= keep
	})
}

// forget notes that a run is gone.
func (s *Store) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.fresh, name)
}

// letGo closes open runs that are no part of the state any more.
func (s *Store) letGo(kept map[string]struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for name, r := range s.runs {
		if _, ok := kept[name]; !ok {
			errs = append(errs, r.release())
			delete(s.runs, name)
		}
	}
	for name := range kept {
		delete(s.fresh, name) // every later version can be asked
	}
	return errors.Join(errs...)
}
