package pipeline

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/stream"
)

// snapshotApplier is the applier of a flow of snapshots, which knows the columns
// that the dataset declares.
type snapshotApplier struct {
	stream.SnapshotApplier
	dataset *dataset
}

// Schema gives the target's columns, in the order that the dataset declares.
func (a *snapshotApplier) Schema(rows *arrow.Schema) (*arrow.Schema, error) {
	out, err := a.SnapshotApplier.Schema(rows)
	if err != nil {
		return nil, err
	}
	return declared(a.dataset, out)
}

// snapshotApplier makes the applier of a flow. The function it gives frees what
// that takes.
func (u *update) snapshotApplier(ctx context.Context, f *flow) (stream.SnapshotApplier, func() error, error) {
	version, err := u.p.versionType(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	def, err := u.stored(f)
	if err != nil {
		return nil, nil, err
	}
	return &snapshotApplier{cdc.NewSnapshots(def, version), f.target}, def.State.Close, nil
}

// Keep looks after the target between snapshots.
func (a *snapshotApplier) Keep(ctx context.Context, table *delta.Table, tell func(stream.Notice)) error {
	keeper, ok := a.SnapshotApplier.(stream.Keeper)
	if !ok {
		return nil
	}
	return keeper.Keep(ctx, table, tell)
}
