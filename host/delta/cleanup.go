package delta

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/weir-data/weir/host/storage"
)

const defaultLogRetention = 30 * 24 * time.Hour

// logRetention is how long versions can be travelled to.
func (s *Snapshot) logRetention() time.Duration {
	if d, ok := parseInterval(s.metadata.Configuration["delta.logRetentionDuration"]); ok {
		return d
	}
	return defaultLogRetention
}

// cleanUpAfter removes what is older than the log's retention after a checkpoint
// was written, unless delta.enableExpiredLogCleanup says no. What it removes
// follows from the day, so that one checkpoint a day pays for the listing.
func (t *Table) cleanUpAfter(ctx context.Context, s *Snapshot) error {
	if strings.EqualFold(s.metadata.Configuration["delta.enableExpiredLogCleanup"], "false") {
		return nil
	}
	cutoff := midnight(t.now().Add(-s.logRetention()))
	t.mu.Lock()
	done := t.cleaned.Equal(cutoff)
	t.mu.Unlock()
	if done {
		return nil
	}
	if _, err := t.cleanUpLog(ctx, cutoff); err != nil {
		return err
	}
	t.mu.Lock()
	t.cleaned = cutoff
	t.mu.Unlock()
	return nil
}

func midnight(at time.Time) time.Time { return at.UTC().Truncate(24 * time.Hour) }

// CleanUpLog removes the versions that are older than the property
// delta.logRetentionDuration and gives the names of the files it removed.
// Checkpoints do so by themselves. What stays is the newest checkpoint that is
// not newer than the first version to be kept, with its commit, and all that
// comes after it. Whoever still follows the log before that, such as a stream
// that was away for longer than the retention, finds a gap.
func (t *Table) CleanUpLog(ctx context.Context) ([]string, error) {
	s, err := t.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkWritable(s.protocol, s.metadata, s.schema); err != nil {
		return nil, err
	}
	return t.cleanUpLog(ctx, midnight(t.now().Add(-s.logRetention())))
}

func (t *Table) cleanUpLog(ctx context.Context, cutoff time.Time) (removed []string, err error) {
	seg, err := t.listFrom(ctx, storage.ListOptions{})
	if err != nil {
		return nil, err
	}
	keep, ok := t.cutoffCheckpoint(ctx, seg, cutoff)
	if !ok {
		return nil, ctx.Err()
	}
	for info, err := range t.store.List(ctx, logFolder, storage.ListOptions{NamesOnly: true}) {
		if err != nil {
			return removed, err
		}
		base := strings.TrimPrefix(info.Name, logFolder+"/")
		if base > "_" {
			break
		}
		if !expired(base, keep) {
			continue
		}
		if err := t.store.Delete(ctx, info.Name); err != nil {
			return removed, err
		}
		removed = append(removed, info.Name)
	}
	more, err := t.cleanUpSidecars(ctx)
	return append(removed, more...), err
}

// cutoffCheckpoint gives the version of the newest checkpoint that is not newer
// than the newest commit at or before the cutoff. What it stands for goes away,
// so that it must be readable.
func (t *Table) cutoffCheckpoint(ctx context.Context, seg *segment, cutoff time.Time) (int64, bool) {
	last, newest := int64(-1), int64(-1)<<62
	for i, version := range seg.commits {
		newest = max(newest+1, seg.times[i])
		if newest > cutoff.UnixMilli() {
			break
		}
		last = version
	}
	for _, cp := range seg.checkpoints { // newest first
		// Without the commits after it a checkpoint is no start for what follows.
		if cp.version > last || seg.after(cp.version, seg.latest()) != nil {
			continue
		}
		if t.readCheckpoint(ctx, newReplay(t, nil), cp) == nil {
			return cp.version, true
		}
	}
	return 0, false
}

// expired tells whether a file of the log is of no use to the versions from keep on.
func expired(base string, keep int64) bool {
	version, ok := versionOf(base)
	if !ok || version > keep {
		return false
	}
	words := strings.Split(base[21:], ".")
	switch {
	case words[len(words)-1] == "json" && slices.Contains(words, "compacted"):
		return true // starts at or before the checkpoint
	case version == keep:
		return false
	case words[0] == "json" && len(words) == 1, words[0] == "crc" && len(words) == 1, words[0] == "checkpoint":
		return true
	}
	return false
}

// cleanUpSidecars removes the sidecars that no checkpoint names and that no
// checkpoint in the making can: those of more than a day.
func (t *Table) cleanUpSidecars(ctx context.Context) (removed []string, err error) {
	old := midnight(t.now()).Add(-24 * time.Hour)
	var candidates []string
	for info, err := range t.store.List(ctx, strings.TrimSuffix(sidecarFolder, "/"), storage.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		if info.ModTime.Before(old) {
			candidates = append(candidates, info.Name)
		}
	}
	if len(candidates) == 0 {
		return nil, nil
	}
	named, err := t.namedSidecars(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range candidates {
		if named[name] {
			continue
		}
		if err := t.store.Delete(ctx, name); err != nil {
			return removed, err
		}
		removed = append(removed, name)
	}
	return removed, nil
}

// namedSidecars gives the sidecars that the checkpoints of the log name. All of
// them must be readable: a file that an unreadable one names must not go.
func (t *Table) namedSidecars(ctx context.Context) (map[string]bool, error) {
	seg, err := t.list(ctx, 0)
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for _, cp := range seg.checkpoints {
		if cp.rank == rankMultipart {
			continue
		}
		for _, name := range cp.names {
			sidecars, err := t.sidecarsIn(ctx, name)
			if errors.Is(err, storage.ErrNotExist) {
				continue // cleaned up by another writer since the listing
			}
			if err != nil {
				return nil, checkpointError(err, name)
			}
			for _, s := range sidecars {
				path, err := canonicalPath(s.uri())
				if err != nil {
					return nil, checkpointError(err, name)
				}
				named[strings.TrimPrefix(path, storage.Root(t.store)+"/")] = true
			}
		}
	}
	return named, nil
}
