package pipeline

import (
	"context"
	"errors"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/stream"
)

// checkLosses refuses a full refresh that could not bring back what the tables
// hold: files that were ingested and are gone, rows that have left the table
// they were read from. All datasets are told of at once.
func (u *update) checkLosses(ctx context.Context) error {
	if u.opt.AcceptLoss {
		return nil
	}
	var refused []error
	for _, d := range u.chosen.tables(u.p.graph) {
		if !u.chosen.full[d] {
			continue
		}
		for _, f := range d.flows {
			if err := u.checkLoss(ctx, f); err != nil {
				refused = append(refused, err)
			}
		}
	}
	return errors.Join(refused...)
}

func (u *update) checkLoss(ctx context.Context, f *flow) error {
	p := u.p
	if f.kind != appendFlow && (!f.merges() || f.runsOnce()) {
		return nil
	}
	refuse := func(e *fault.Error) error {
		return e.At(fault.Where{Dataset: f.target.id, Flow: f.name}).
			WithHint("Put back what is missing, leave the dataset out, or accept the loss with --accept-loss")
	}
	if f.kind == snapshotFlow {
		loss, err := u.missingSnapshots(ctx, f)
		switch {
		case err != nil:
			return refuse(fault.Wrap(err, "FULL_REFRESH_LOSES_DATA", "a full refresh cannot read the snapshots again"))
		case loss.Any():
			return refuse(fault.New("FULL_REFRESH_LOSES_DATA", "a full refresh would lose snapshots for good: %s", loss))
		}
		return nil
	}
	in := p.chainOf(f, nil, nil).source
	var source stream.Source
	if src := p.sources[in]; src != nil {
		source = stream.NewFileSource(src)
	} else {
		table := p.inputTable(in)
		snapshot, err := snapshotOf(ctx, table)
		if err != nil {
			return err
		}
		if snapshot == nil {
			return nil // made by this update, or told by checkDependencies
		}
		if source, err = p.tableSource(in, table); err != nil {
			return err
		}
	}
	loss, err := stream.Missing(ctx, p.checkpoint(f), source)
	switch {
	case err != nil:
		return refuse(fault.Wrap(err, "FULL_REFRESH_LOSES_DATA", "a full refresh cannot read %s from its beginning", in.id()))
	case loss.Any():
		return refuse(fault.New("FULL_REFRESH_LOSES_DATA", "a full refresh would lose rows for good: %s", loss))
	}
	return nil
}
