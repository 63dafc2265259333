package cdc

import (
	"context"

	"github.com/weir-data/weir/host/delta"
)

// KeepWith is Keep of an applier that packs sooner.
func KeepWith(ctx context.Context, d Definition, table *delta.Table, auto delta.AutoCompact) error {
	return d.keep(ctx, table, delta.OptimizeOptions{PurgeRatio: 0.01, Auto: &auto})
}
