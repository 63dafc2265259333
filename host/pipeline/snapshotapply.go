package pipeline

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/cdc/state"
	"github.com/weir-data/weir/host/fault"
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

// snapshotDefinition is what a flow declares.
func (p *Pipeline) snapshotDefinition(f *flow) cdc.Definition {
	return cdc.Definition{
		Dataset: f.target.id, Flow: f.name, Keys: f.cdc.keys, SCDType: f.cdc.scdType,
		Tracked: f.cdc.tracked, Technical: p.spec.IntervalColumns == intervalsTech,
	}
}

// snapshotApplier makes the applier of a flow. The function it gives frees what
// that takes.
func (u *update) snapshotApplier(ctx context.Context, f *flow) (stream.SnapshotApplier, func() error, error) {
	version, err := u.p.versionType(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	d := f.target
	cache := filepath.Join(cmp.Or(u.p.opts.CacheDir, os.TempDir()), "cdc")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return nil, nil, fault.Wrap(err, "CACHE_UNAVAILABLE", "AUTO CDC FROM SNAPSHOT has no place for its index")
	}
	def := u.p.snapshotDefinition(f)
	def.StateID = u.result.PipelineID + "/" + d.id + "/cdc-state"
	def.State = state.Open(u.p.folder("checkpoints", d.id, "_state"), filepath.Join(cache, "state"), u.p.opts.Alloc)
	def.Cache = filepath.Join(cache, "keys")
	return &snapshotApplier{cdc.NewSnapshots(def, version), d}, def.State.Close, nil
}
