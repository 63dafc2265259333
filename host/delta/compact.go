package delta

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// compactedFile stands for the commits of a range.
type compactedFile struct {
	from, to int64
	name     string
}

func compactedName(from, to int64) string {
	return fmt.Sprintf("%s/%020d.%020d.compacted.json", logFolder, from, to)
}

// CompactLog writes one file that stands for the commits from..to, both
// included: readers that come without a checkpoint behind them read it instead.
// The commits stay: history, time travel and change feeds are read from them.
func (t *Table) CompactLog(ctx context.Context, from, to int64) error {
	if from < 0 || to <= from {
		return fault.New("INVALID_ARGUMENT", "the log cannot be compacted from version %d to %d", from, to).
			WithHint("Name a range of at least two versions")
	}
	s, err := t.Snapshot(ctx)
	if err != nil {
		return err
	}
	if to > s.version {
		return fault.New("DELTA_VERSION_NOT_FOUND", "version %d: the newest is %d", to, s.version)
	}
	if err := checkWritable(s.protocol, s.metadata, s.schema); err != nil {
		return err
	}
	r := newReplay(t, nil)
	domains := map[string]DomainMetadata{}
	if err := t.eachCommit(ctx, from, to, func(c *commitActions, version int64) error {
		for _, d := range c.domains {
			domains[d.Domain] = d // those that are removed, too
		}
		return r.apply(c, version)
	}); err != nil {
		return err
	}
	r.s.domains = domains
	data, err := encodeActions(r.s.reconciled())
	if err != nil {
		return err
	}
	err = t.store.PutIfAbsent(ctx, compactedName(from, to), data)
	if errors.Is(err, storage.ErrExist) {
		return nil // the range says what it holds
	}
	return err
}

// reconciled gives what commits come to, as actions: the last word on each file, and no word on who wrote.
func (s *Snapshot) reconciled() []any {
	var out []any
	add := func(key string, v any) { out = append(out, map[string]any{key: v}) }
	if s.protocol != nil {
		add("protocol", s.protocol)
	}
	if s.metadata != nil {
		add("metaData", s.metadata)
	}
	for _, app := range slices.Sorted(maps.Keys(s.txns)) {
		add("txn", s.txns[app])
	}
	for _, d := range s.sortedDomains() {
		add("domainMetadata", d)
	}
	var removes []*RemoveFile
	s.tombs.each(func(_ string, f *RemoveFile) { removes = append(removes, f) })
	sortTombstones(removes)
	for _, f := range removes {
		gone := *f
		gone.DataChange = false
		add("remove", &gone)
	}
	for _, f := range s.sortedFiles() {
		live := *f
		live.DataChange = false
		add("add", &live)
	}
	return out
}

// compactedFrom gives the compacted file that stands for most of the commits
// from..to. It must end before to: who wrote that version, and when, is only in its commit.
func (s *segment) compactedFrom(from, to int64) (compactedFile, bool) {
	best, ok := compactedFile{}, false
	i, _ := slices.BinarySearchFunc(s.compacted, from, func(c compactedFile, from int64) int { return int(c.from - from) })
	for ; i < len(s.compacted) && s.compacted[i].from == from; i++ {
		if c := s.compacted[i]; c.to < to && (!ok || c.to > best.to) {
			best, ok = c, true
		}
	}
	return best, ok
}
