package pipeline

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/stream"
)

// maxShrinkProperty is the share of its rows that a snapshot may have lost
// against the one before; 1 lets everything pass.
const maxShrinkProperty = "pipelines.cdc.maxShrink"

// defaultMaxShrink lets a day's deletes pass and holds a truncated extract.
const defaultMaxShrink = 0.05

// snapshotTarget checks a flow of snapshots against the columns of its snapshots
// and gives those of its target.
func (pl *planner) snapshotTarget(ctx context.Context, f *flow, rows *arrow.Schema) (*arrow.Schema, error) {
	c := f.cdc
	if err := c.checkNames(rows); err != nil {
		return nil, err
	}
	if c.scdType == 2 {
		if err := checkHandmade(f.target, columnNames(rows)); err != nil {
			return nil, err
		}
	}
	if _, err := f.target.maxShrink(); err != nil {
		return nil, err
	}
	version, err := pl.p.versionType(ctx, f)
	if err != nil {
		return nil, err
	}
	a := &snapshotApplier{cdc.NewSnapshots(pl.p.mergeDefinition(f), version), f.target}
	return a.Schema(rows)
}

// checkNames holds that the keys and the columns whose history is tracked are
// columns of the snapshots, each named once.
func (c *changes) checkNames(rows *arrow.Schema) error {
	for _, list := range []struct {
		what  string
		names []string
	}{{"keys", c.keys}, {"track_history_column_list", c.tracked.Only}, {"track_history_except_column_list", c.tracked.Except}} {
		seen := map[string]bool{}
		for _, name := range list.names {
			if _, ok := fieldFold(rows, name); !ok {
				e := fault.New("UNRESOLVED_COLUMN", "%s names %q, which is no column of the snapshots", list.what, name)
				return suggest(e, name, columnNames(rows), "")
			}
			if seen[strings.ToLower(name)] {
				return fault.New("COLUMN_ALREADY_EXISTS", "%s names %q twice", list.what, name)
			}
			seen[strings.ToLower(name)] = true
		}
	}
	return nil
}

// maxShrink reads the property of the count gate.
func (d *dataset) maxShrink() (float64, error) {
	for key, value := range d.properties {
		if !strings.EqualFold(key, maxShrinkProperty) {
			continue
		}
		share, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(share) || share < 0 || share > 1 {
			return 0, fault.New("INVALID_OPTION", "%s is %q", maxShrinkProperty, value).WithHint("It is a share from 0 to 1, such as 0.05; 1 lets everything pass")
		}
		return share, nil
	}
	return defaultMaxShrink, nil
}

// versionType gives the type of the versions of a flow's snapshots; nil when it
// is not known and need not be.
func (p *Pipeline) versionType(ctx context.Context, f *flow) (arrow.DataType, error) {
	fn := f.body.function
	if fn == nil {
		return arrow.FixedWidthTypes.Timestamp_us, nil // of the batch
	}
	if t, ok := abi.VersionType(fn.Version); ok {
		return t, nil
	}
	if f.cdc.scdType == 1 {
		return nil, nil
	}
	for _, c := range f.target.columns {
		if relation.IsIntervalColumn(c.Name) && c.Type != nil {
			return c.Type, nil
		}
	}
	snapshot, err := snapshotOf(ctx, p.tableOf(f.target))
	if err != nil {
		return nil, err
	}
	if snapshot != nil {
		if in, ok := relation.IntervalOf(snapshot.Schema()); ok {
			start, _ := fieldFold(snapshot.Schema(), in.Start)
			return start.Type, nil
		}
	}
	return nil, fault.New("SNAPSHOT_VERSION_TYPE_UNKNOWN", "nothing says of which type the versions of %s.%s are, and with them __START_AT and __END_AT", f.body.module.name, fn.Name).
		WithHint(`Declare it in the manifest: "version": "date" of the function (ProviderVersion in Go)`)
}

// compared is a flow of snapshots that can be run; release frees what it takes.
type compared struct {
	*stream.Snapshots
	missing string // a table of this pipeline that is not there yet
	release func() error
}

// compared makes the flow of snapshots.
func (u *update) compared(ctx context.Context, fl *flow) (*compared, error) {
	c := u.p.batchChainOf(fl, u.p.tableSchema, u.functionLine)
	s := &compared{Snapshots: &stream.Snapshots{Flow: *u.flow(fl, c), Provider: fl.body.function != nil}}
	var err error
	if s.MaxShrink, err = fl.target.maxShrink(); err != nil {
		return nil, err
	}
	if s.missing, err = u.p.wholeInputs(ctx, c, &s.Files, &s.Absent); err != nil {
		return nil, err
	}
	if s.Fingerprint, err = u.p.fingerprint(fl); err != nil {
		return nil, err
	}
	s.Accept = func(version string) bool { return u.accepts(fl.target, version) }
	s.Apply, s.release, err = u.snapshotApplier(ctx, fl)
	return s, err
}

// snapshots takes the snapshots that there are into the target.
func (u *update) snapshots(ctx context.Context, fl *flow, f *FlowResult) (_ stream.Result, err error) {
	none := stream.Result{TargetVersion: -1}
	s, err := u.compared(ctx, fl)
	if err != nil {
		return none, err
	}
	defer func() { err = errors.Join(err, s.release()) }()
	if s.missing != "" {
		u.warn(f, s.missing+" has not been made yet; there is no snapshot")
		return none, nil
	}
	u.warnOfFiles(f, s.Files)
	return stream.RunSnapshots(ctx, s.Snapshots, stream.ObserverFunc(func(p stream.Progress) { u.observe(ctx, fl, f, p) }))
}

// accepts tells whether one of the names, a version or dataset:version, means
// this version of this dataset. A version may hold colons itself.
func (u *update) accepts(d *dataset, version string) bool {
	for _, name := range u.opt.AcceptSnapshots {
		dataset, ok := strings.CutSuffix(name, ":"+version)
		if name != version && !(ok && (strings.EqualFold(dataset, d.id) || strings.HasSuffix(strings.ToLower(d.id), "."+strings.ToLower(dataset)))) {
			continue
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.accepted == nil {
			u.accepted = map[string]bool{}
		}
		u.accepted[name] = true
		return true
	}
	return false
}

// warnOfAccepted tells of snapshots that were to be let through and were not held.
func (u *update) warnOfAccepted() {
	for _, name := range u.opt.AcceptSnapshots {
		if !u.accepted[name] {
			u.result.Warnings = append(u.result.Warnings, "--accept-snapshot "+name+" let nothing pass: no snapshot of that version was held")
		}
	}
}

// missingSnapshots finds out which snapshots a full refresh would not get again.
func (u *update) missingSnapshots(ctx context.Context, fl *flow) (_ stream.Loss, err error) {
	s, err := u.compared(ctx, fl)
	if err != nil {
		return stream.Loss{}, err
	}
	defer func() { err = errors.Join(err, s.release()) }()
	if s.missing != "" {
		return stream.Loss{}, nil
	}
	return stream.MissingSnapshots(ctx, s.Snapshots, fl.cdc.scdType == 2)
}
