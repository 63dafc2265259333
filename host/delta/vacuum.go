package delta

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// VacuumOptions says what Vacuum deletes.
type VacuumOptions struct {
	// Retention is how old a file must be that no version needs; zero is the
	// table's delta.deletedFileRetentionDuration. One that is shorter than that is refused.
	Retention time.Duration
	// AllowShort takes Retention as it is, zero included. Readers of older
	// versions lose them, and a write that lasts longer than Retention loses its files.
	AllowShort bool
	// DryRun deletes nothing.
	DryRun bool
	// Each is told of every file before it is deleted; nil is nobody.
	Each func(storage.Info) error
}

// VacuumResult tells what Vacuum did, or would have done.
type VacuumResult struct {
	// Version is the newest version that was looked at.
	Version int64
	// Cutoff: versions that were current at this time or later can still be read.
	Cutoff time.Time
	// Listed counts the files found, of which Files, with Bytes, were deleted.
	Listed, Files, Bytes int64
}

const parallelDeletes = 8

// Vacuum deletes the files below the table's root that no version since the
// cutoff needs: data files, deletion vectors, change files, and what writers
// that died left unfinished. Names that begin with "_" or "." are hidden from it, but for change files, indexes and
// the directories of partitions. It writes nothing to the log.
func (t *Table) Vacuum(ctx context.Context, opt VacuumOptions) (VacuumResult, error) {
	s, err := t.Snapshot(ctx)
	if err != nil {
		return VacuumResult{}, err
	}
	if err := checkVacuum(s.protocol, s.metadata, s.schema); err != nil {
		return VacuumResult{}, err
	}
	retention, err := s.vacuumRetention(opt)
	if err != nil {
		return VacuumResult{}, err
	}
	res := VacuumResult{Cutoff: t.now().Add(-retention)}
	keep, err := t.neededFiles(ctx, s, res.Cutoff)
	if err != nil {
		return res, err
	}
	var doomed []storage.Info
	for info, err := range t.store.List(ctx, "", storage.ListOptions{}) {
		if err != nil {
			return res, err
		}
		res.Listed++
		if info.ModTime.Before(res.Cutoff) && !hiddenFromVacuum(info.Name, s.metadata.PartitionColumns) && !keep.has(info.Name) {
			doomed = append(doomed, info)
		}
	}
	// What was committed while the folder was read may name a file of that list.
	if s, err = t.Snapshot(ctx); err != nil {
		return res, err
	}
	if keep, err = t.neededFiles(ctx, s, res.Cutoff); err != nil {
		return res, err
	}
	res.Version = s.version
	doomed = slices.DeleteFunc(doomed, func(i storage.Info) bool { return keep.has(i.Name) })
	slices.SortFunc(doomed, func(a, b storage.Info) int { return strings.Compare(a.Name, b.Name) })
	doomed = slices.CompactFunc(doomed, func(a, b storage.Info) bool { return a.Name == b.Name })
	return res, errors.Join(t.deleteFiles(ctx, doomed, opt, &res), t.sweep(ctx, opt, &res))
}

// sweepAge is how old a file in the making must be, whatever the retention: a
// writer that is alive has written to it since.
const sweepAge = time.Hour

// sweep deletes what writers that died left unfinished.
func (t *Table) sweep(ctx context.Context, opt VacuumOptions, res *VacuumResult) error {
	before := res.Cutoff
	if oldest := t.now().Add(-sweepAge); oldest.Before(before) {
		before = oldest
	}
	return storage.Sweep(ctx, t.store, before, opt.DryRun, func(i storage.Info) error {
		res.Listed++
		res.Files++
		res.Bytes += i.Size
		if opt.Each != nil {
			return opt.Each(i)
		}
		return nil
	})
}

// checkVacuum refuses tables whose files we may not know: a writer feature can
// keep files of its own below the root. With vacuumProtocolCheck it must be one that we write.
func checkVacuum(p *Protocol, m *Metadata, schema *structType) error {
	if p.has("vacuumProtocolCheck") {
		return checkWritable(p, m, schema)
	}
	if p.MinWriterVersion > 7 {
		return unsupported("the table needs writer version %d", p.MinWriterVersion)
	}
	for _, name := range p.names() {
		if findFeature(name) == nil {
			return unsupported("the table needs the writer feature %q", name).
				WithHint("Vacuum it with an engine that knows which files the feature keeps")
		}
	}
	return nil
}

func (s *Snapshot) vacuumRetention(opt VacuumOptions) (time.Duration, error) {
	configured := s.tombstoneRetention()
	switch {
	case opt.Retention < 0:
		return 0, fault.New("INVALID_ARGUMENT", "a retention of %s is negative", opt.Retention)
	case opt.AllowShort:
		return opt.Retention, nil
	case opt.Retention == 0:
		return configured, nil
	case opt.Retention < configured:
		return 0, fault.New("DELTA_VACUUM_RETENTION_TOO_SHORT", "a retention of %s is shorter than the %s of the table", opt.Retention, configured).
			WithHint("Set delta.deletedFileRetentionDuration, or allow it when nobody reads or writes the table meanwhile")
	}
	return opt.Retention, nil
}

// hiddenFromVacuum tells whether the file belongs to somebody else: the log,
// or what engines keep beside the data. A folder called metadata is Iceberg's.
func hiddenFromVacuum(name string, partitionColumns []string) bool {
	for i, element := range strings.Split(name, "/") {
		if element == "metadata" && i == 0 && len(element) < len(name) {
			return true
		}
		if element[0] != '_' && element[0] != '.' {
			continue
		}
		if strings.HasPrefix(element, "_change_data") || strings.HasPrefix(element, "_delta_index") {
			continue
		}
		if !slices.ContainsFunc(partitionColumns, func(c string) bool { return strings.HasPrefix(element, hiveEscape(c)+"=") }) {
			return true
		}
	}
	return false
}

// fileNames is a set of names below the table's root.
type fileNames struct {
	root  string
	names map[string]struct{}
}

func (n *fileNames) has(name string) bool {
	_, ok := n.names[name]
	return ok
}

// add takes in the file of a path of the log and the file of its deletion vector.
func (n *fileNames) add(path string, dv *DeletionVector) error {
	name, err := canonicalPath(path)
	if err != nil {
		return err
	}
	n.put(name)
	if dv == nil || dv.StorageType == "i" {
		return nil
	}
	switch dv.StorageType {
	case "u":
		name, err = relativeDV(dv.PathOrInlineDv)
	case "p":
		name, err = canonicalPath(dv.PathOrInlineDv)
	default:
		err = unsupported("deletion vectors of storage type %q", dv.StorageType)
	}
	if err != nil {
		return err
	}
	n.put(name)
	return nil
}

func (n *fileNames) put(canonical string) {
	if isAbsolute(canonical) {
		inside, ok := strings.CutPrefix(canonical, n.root+"/")
		if n.root == "" || !ok {
			return // of somebody else's folder
		}
		canonical = inside
	}
	n.names[canonical] = struct{}{}
}

// neededFiles names what the versions that were current at the cutoff or later
// are made of: live files, files removed since, change files written since,
// and the deletion vectors of all.
func (t *Table) neededFiles(ctx context.Context, s *Snapshot, cutoff time.Time) (*fileNames, error) {
	keep := &fileNames{root: storage.Root(t.store), names: make(map[string]struct{}, s.files.n)}
	var errs []error
	s.files.each(func(_ string, f *AddFile) { errs = appendError(errs, keep.add(f.Path, f.DeletionVector)) })
	s.tombs.each(func(_ string, f *RemoveFile) {
		if f.DeletionTimestamp != nil && *f.DeletionTimestamp >= cutoff.UnixMilli() {
			errs = appendError(errs, keep.add(f.Path, f.DeletionVector))
		}
	})
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return keep, t.recentFiles(ctx, s.version, cutoff, keep)
}

func appendError(errs []error, err error) []error {
	if err != nil {
		errs = append(errs, err)
	}
	return errs
}

// recentFiles adds what commits since the cutoff removed or tell of changes.
// Checkpoints hold neither change files nor removes that are older than the
// table's own retention, and a remove need not say when it was made.
func (t *Table) recentFiles(ctx context.Context, newest int64, cutoff time.Time, keep *fileNames) error {
	for version := newest; version >= 0; version-- {
		c, err := t.readCommit(ctx, version)
		if errors.Is(err, storage.ErrNotExist) {
			return nil // cleaned up
		}
		if err != nil {
			return err
		}
		if c.modified.Before(cutoff) && c.time().Before(cutoff) {
			return nil
		}
		for i := range c.removes {
			if err := keep.add(c.removes[i].Path, c.removes[i].DeletionVector); err != nil {
				return err
			}
		}
		for i := range c.cdc {
			if err := keep.add(c.cdc[i].Path, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteFiles deletes several files at a time and counts them.
func (t *Table) deleteFiles(ctx context.Context, doomed []storage.Info, opt VacuumOptions, res *VacuumResult) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelDeletes)
	var mu sync.Mutex
	for _, info := range doomed {
		if opt.Each != nil {
			if err := opt.Each(info); err != nil {
				return errors.Join(err, g.Wait())
			}
		}
		g.Go(func() error {
			if !opt.DryRun {
				if err := t.store.Delete(ctx, info.Name); err != nil {
					return err
				}
			}
			mu.Lock()
			defer mu.Unlock()
			res.Files++
			res.Bytes += info.Size
			return nil
		})
	}
	return g.Wait()
}
