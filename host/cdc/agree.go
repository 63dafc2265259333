package cdc

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// Agrees tells before there is a batch what applying one would refuse: a
// definition that is not the one whose changes the target shows. columns are the
// target's by the definition; target is nil when there is none.
func (d *Definition) Agrees(ctx context.Context, target *delta.Snapshot, columns *arrow.Schema, sequence arrow.DataType) error {
	if target == nil {
		return nil
	}
	k, ok := target.Txn(d.StateID)
	if !ok {
		return nil
	}
	was, err := d.State.Manifest(ctx, k)
	if err != nil {
		return fault.Place(err, "CDC_STATE_CORRUPT", fault.Where{Dataset: d.Dataset, Flow: d.Flow})
	}
	l, err := newLayout(d, columns, sequence)
	if err != nil || len(was.Definition) == 0 {
		return err
	}
	_, err = d.drift(was.Definition, l.record())
	return err
}
