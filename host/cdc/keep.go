package cdc

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/cdc/keyindex"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/stream"
)

// What a batch leaves is a small file and longer deletion vectors. Both cost
// readers and lookups, so they are cleaned up in pieces that are small beside
// the batches that made them necessary.
const (
	// autoCompact is the property of the target that turns it off when it is false.
	autoCompact = "delta.autoOptimize.autoCompact"
	// smallFiles is how many files below a quarter of the target's file size are packed.
	smallFiles, smallRatio = 17, 0.25
	// purgeRatio is the share of deleted rows from which on a larger file is written anew.
	purgeRatio = 0.3
	// keepBytes bounds what is rewritten after one batch.
	keepBytes = 256 << 20
)

// Keep packs the files of the target when that is due. Rows only move: the state
// knows keys and not places, and the index of new files is made here, so that
// the next batch need not.
func (a *applier) Keep(ctx context.Context, table *delta.Table, _ func(stream.Notice)) error {
	return a.def.keep(ctx, table, packOptions())
}

// Keep packs the files of the target as that of AUTO CDC does.
func (s *snapshots) Keep(ctx context.Context, table *delta.Table, _ func(stream.Notice)) error {
	return s.def.keep(ctx, table, packOptions())
}

func packOptions() delta.OptimizeOptions {
	return delta.OptimizeOptions{
		PurgeRatio: purgeRatio, Auto: &delta.AutoCompact{SmallRatio: smallRatio, Least: smallFiles, Bytes: keepBytes},
	}
}

func (d *Definition) keep(ctx context.Context, table *delta.Table, opt delta.OptimizeOptions) error {
	snap, err := table.Snapshot(ctx)
	if err != nil {
		return err
	}
	if strings.EqualFold(snap.Metadata().Configuration[autoCompact], "false") {
		return nil
	}
	opt.EngineInfo, opt.TempDir = "weir", d.TempDir
	res, err := table.Optimize(ctx, opt)
	if err != nil || res.Commits == 0 {
		return err
	}
	if snap, err = table.Snapshot(ctx); err != nil {
		return err
	}
	index := d.openIndex(snap, memory.DefaultAllocator)
	return errors.Join(index.Build(ctx, snap), index.Close())
}

// openIndex gives the index of the target's rows.
func (d *Definition) openIndex(s *delta.Snapshot, mem memory.Allocator) *keyindex.Index {
	opt := keyindex.Options{Cache: d.Cache, Table: s.Metadata().ID, Memory: mem}
	for _, key := range d.Keys {
		opt.Keys = append(opt.Keys, tableName(s, key))
	}
	// As layout has them: an identity hashes the keys in this order.
	slices.SortFunc(opt.Keys, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	if d.SCDType == 2 {
		opt.Start = tableName(s, d.interval().Start)
	}
	return keyindex.Open(opt)
}
