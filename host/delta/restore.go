package delta

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// RestoreOptions says which version a table goes back to.
type RestoreOptions struct {
	// Version is the version to restore; with Time it is the one that was current then.
	Version int64
	Time    time.Time
	// EngineInfo and UserMetadata are kept in the commit.
	EngineInfo, UserMetadata string
}

// RestoreResult tells what Restore did.
type RestoreResult struct {
	Result
	// Restored is the version whose rows the table has again.
	Restored int64
	// AddedFiles of RestoredBytes came back, RemovedFiles of RemovedBytes went.
	AddedFiles, RestoredBytes, RemovedFiles, RemovedBytes int64
	// Unchanged says that the table is that version already; nothing was committed.
	Unchanged bool
}

// Restore commits a version with the files, schema, partitioning and
// properties of an older one. The protocol is not lowered, transactions are
// kept (a batch that is in the log is not taken again), and row ids stay. When
// a file of that version is gone nothing is changed.
func (t *Table) Restore(ctx context.Context, opt RestoreOptions) (RestoreResult, error) {
	now, err := t.Snapshot(ctx)
	if err != nil {
		return RestoreResult{}, err
	}
	old, err := t.restorePoint(ctx, opt)
	if err != nil {
		return RestoreResult{}, err
	}
	res := RestoreResult{Restored: old.version}
	commit := Commit{
		Read: now, Operation: "RESTORE", Parameters: opt.parameters(), EngineInfo: opt.EngineInfo, UserMetadata: opt.UserMetadata,
		Reads: Reads{Table: true}, exact: true,
	}
	commit.Add, commit.Remove = restoreFiles(now, old)
	if commit.restore, err = restoreMetadata(now, old); err != nil {
		return res, err
	}
	if commit.Domains = restoreDomains(now, old); len(commit.Add)+len(commit.Remove)+len(commit.Domains) == 0 && commit.restore == nil {
		res.Version, res.Unchanged = now.version, true
		return res, nil
	}
	if err := t.checkPresent(ctx, commit.Add, old.version); err != nil {
		return res, err
	}
	for i := range commit.Add {
		res.AddedFiles++
		res.RestoredBytes += commit.Add[i].Size
	}
	for i := range commit.Remove {
		res.RemovedFiles++
		res.RemovedBytes += commit.Remove[i].Size
	}
	if len(commit.Remove) > 0 && strings.EqualFold(now.metadata.Configuration["delta.appendOnly"], "true") {
		return res, fault.New("DELTA_CANNOT_MODIFY_APPEND_ONLY", "the table is append-only (property delta.appendOnly)")
	}
	size := int64(0)
	old.files.each(func(_ string, f *AddFile) { size += f.Size })
	commit.Metrics = map[string]any{
		"tableSizeAfterRestore": itoa(size), "numOfFilesAfterRestore": itoa(int64(old.files.n)),
		"numRestoredFiles": itoa(res.AddedFiles), "restoredFilesSize": itoa(res.RestoredBytes),
		"numRemovedFiles": itoa(res.RemovedFiles), "removedFilesSize": itoa(res.RemovedBytes),
	}
	res.Result, err = t.Commit(ctx, commit)
	return res, err
}

func (t *Table) restorePoint(ctx context.Context, opt RestoreOptions) (*Snapshot, error) {
	if !opt.Time.IsZero() {
		return t.SnapshotAsOf(ctx, opt.Time)
	}
	return t.SnapshotAt(ctx, opt.Version)
}

func (o *RestoreOptions) parameters() map[string]any {
	if !o.Time.IsZero() {
		return map[string]any{"timestamp": o.Time.UTC().Format(time.RFC3339Nano)}
	}
	return map[string]any{"version": o.Version}
}

// restoreFiles gives the logical files that only the old version has, and those that only the new one has.
func restoreFiles(now, old *Snapshot) (add, remove []AddFile) {
	old.files.each(func(key string, f *AddFile) {
		if _, ok := now.files.get(key); !ok {
			back := *f
			back.DataChange = true
			add = append(add, back)
		}
	})
	now.files.each(func(key string, f *AddFile) {
		if _, ok := old.files.get(key); !ok {
			remove = append(remove, *f)
		}
	})
	sortFiles(add)
	sortFiles(remove)
	return add, remove
}

// restoreMetadata gives the old version's metadata, nil when it is the one there is.
func restoreMetadata(now, old *Snapshot) (*Metadata, error) {
	if now.metadata.ID != old.metadata.ID {
		return nil, fault.New("DELTA_TABLE_REPLACED", "version %d is of the table %s, which was replaced by %s", old.version, old.metadata.ID, now.metadata.ID)
	}
	m := *old.metadata
	m.Configuration = restoredProperties(now.metadata.Configuration, old.metadata.Configuration)
	current := *now.metadata
	current.Configuration = restoredProperties(current.Configuration, current.Configuration)
	a, errA := json.Marshal(&current)
	b, errB := json.Marshal(&m)
	if err := errors.Join(errA, errB); err != nil {
		return nil, fault.Wrap(err, "DELTA_COMMIT_FAILED", "metadata")
	}
	if string(a) == string(b) {
		return nil, nil
	}
	return &m, nil
}

// keptProperties are those that do not go back: time must not run backwards in
// the log, whatever the table's rows are.
var keptProperties = []string{
	"delta.enableInCommitTimestamps", enablementVersionKey, enablementTimeKey,
}

const maxColumnID = "delta.columnMapping.maxColumnId"

// restoredProperties gives the properties of the old version, less those that only move forward.
func restoredProperties(now, old map[string]string) map[string]string {
	out := maps.Clone(old)
	if out == nil {
		out = map[string]string{}
	}
	for _, k := range keptProperties {
		delete(out, k)
		if v, ok := now[k]; ok {
			out[k] = v
		}
	}
	// An id is never given to a second column, though the first one is gone again.
	if a, err := strconv.ParseInt(now[maxColumnID], 10, 64); err == nil && out[maxColumnID] != "" {
		if b, err := strconv.ParseInt(out[maxColumnID], 10, 64); err != nil || a > b {
			out[maxColumnID] = now[maxColumnID]
		}
	}
	return out
}

// planRestored plans the metadata of a restored version. The protocol only rises.
func planRestored(c *Commit, base *Snapshot, out *commitActions) error {
	schema, err := parseSchema(c.restore.SchemaString)
	if err != nil {
		return err
	}
	if err := checkWritable(base.protocol, c.restore, schema); err != nil {
		return err
	}
	p, err := base.protocol.forTable(schema, c.restore.Configuration, false)
	if err != nil {
		return err
	}
	if !slices.Equal(p.names(), base.protocol.names()) {
		out.protocol = &p
	}
	restored := *c.restore
	restored.Configuration = keepMaxColumnID(restored.Configuration, base.metadata.Configuration)
	out.metadata = &restored
	return nil
}

// restoreDomains brings back the domains of the old version and takes out those
// it did not have. Of the protocol's own only the clustering columns go back:
// row ids count upwards, whatever rows a version has.
func restoreDomains(now, old *Snapshot) []DomainMetadata {
	var out []DomainMetadata
	for name, d := range old.domains {
		if !strings.HasPrefix(name, "delta.") && now.domains[name] != d {
			out = append(out, d)
		}
	}
	for name, d := range now.domains {
		if _, ok := old.domains[name]; !ok && !strings.HasPrefix(name, "delta.") {
			d.Removed = true
			out = append(out, d)
		}
	}
	if !slices.EqualFunc(now.clusterPaths(), old.clusterPaths(), slices.Equal) {
		d := old.domains["delta.clustering"]
		if d.Domain == "" {
			d = DomainMetadata{Domain: "delta.clustering", Configuration: `{"clusteringColumns":[]}`}
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b DomainMetadata) int { return strings.Compare(a.Domain, b.Domain) })
	return out
}

const parallelStats = 16

// checkPresent looks for the files and their deletion vectors.
func (t *Table) checkPresent(ctx context.Context, files []AddFile, version int64) error {
	want := &fileNames{root: storage.Root(t.store), names: map[string]struct{}{}}
	for i := range files {
		if err := want.add(files[i].Path, files[i].DeletionVector); err != nil {
			return err
		}
	}
	var mu sync.Mutex
	missing, first := 0, ""
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelStats)
	for name := range want.names {
		g.Go(func() error {
			_, err := t.store.Stat(ctx, name)
			if !errors.Is(err, storage.ErrNotExist) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if missing++; first == "" || name < first {
				first = name
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if missing > 0 {
		return fault.New("DELTA_RESTORE_FILES_MISSING", "%d files of version %d are gone, such as %s", missing, version, first).
			WithHint("Restore a later version: VACUUM keeps files for delta.deletedFileRetentionDuration only")
	}
	return nil
}
