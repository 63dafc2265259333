package foreign

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// State is what is known of the target from its state.
type State struct {
	// Dataset is the target's name.
	Dataset string
	// AppID is the application whose transaction version is the state's number.
	AppID string
	// Base is the version of the target that the state was computed on.
	Base int64
	// Live is how many rows the target has by it.
	Live int64
}

// Check looks at the commits between the state's base and a snapshot. The
// warning, an error with a code, says what could not be looked at; err stops the flow.
func Check(ctx context.Context, t *delta.Table, now *delta.Snapshot, s State) (warning, err error) {
	if _, ok := now.Txn(s.AppID); !ok {
		return nil, s.withoutState(ctx, now)
	}
	var foreign []*delta.Entry
	last := s.Base // the version that the state describes, as far as it has been found
	for e, err := range t.Log(ctx, s.Base+1, now.Version()) {
		if fault.Is(err, "DELTA_LOG_GAP") {
			return s.count(ctx, now, err)
		}
		if err != nil {
			return nil, err
		}
		ours := slices.ContainsFunc(e.Txns, func(txn delta.Txn) bool { return txn.AppID == s.AppID })
		if !ours && changesRows(e) {
			foreign = append(foreign, e)
		}
		if len(foreign) == 0 {
			last = e.Version
		}
	}
	if len(foreign) == 0 || s.sameFiles(ctx, t, last, now) {
		return nil, nil
	}
	return nil, s.changed(foreign)
}

// withoutState is for a target without any state: it must have no rows.
func (s State) withoutState(ctx context.Context, now *delta.Snapshot) error {
	counts, err := now.RowCounts(ctx)
	if err != nil || counts.Live() == 0 {
		return err
	}
	return s.stop("it has %d rows, and no state of AUTO CDC tells which events they come from", counts.Live())
}

// changesRows tells whether a version has other rows than the one before it.
func changesRows(e *delta.Entry) bool {
	return slices.ContainsFunc(e.Adds, func(f delta.AddFile) bool { return f.DataChange }) ||
		slices.ContainsFunc(e.Removes, func(f delta.RemoveFile) bool { return f.DataChange })
}

// sameFiles tells whether the table has the files of an earlier version, with
// the same rows deleted. What cannot be read tells nothing.
func (s State) sameFiles(ctx context.Context, t *delta.Table, version int64, now *delta.Snapshot) bool {
	then, err := t.SnapshotAt(ctx, version)
	if err != nil || then.NumFiles() != now.NumFiles() {
		return false
	}
	files := make(map[string]string, then.NumFiles())
	for f := range then.EachFile() {
		files[f.Path] = f.DeletionVector.UniqueID()
	}
	for f := range now.EachFile() {
		if id, ok := files[f.Path]; !ok || id != f.DeletionVector.UniqueID() {
			return false
		}
	}
	return true
}

// count compares live rows, for want of the log.
func (s State) count(ctx context.Context, now *delta.Snapshot, gap error) (warning, err error) {
	counts, err := now.RowCounts(ctx)
	if err != nil {
		return nil, err
	}
	if live := counts.Live(); live != s.Live {
		return nil, s.stop("it has %d rows, its state has %d, and the log does not tell who changed them (%v)", live, s.Live, gap)
	}
	return fault.Wrap(gap, "CDC_TARGET_LOG_GONE", "whether others changed %s since version %d cannot be told from its log; it has the %d rows that it should have", s.Dataset, s.Base, s.Live).
		WithHint("Set delta.logRetentionDuration longer than the time between updates"), nil
}

// changed is the failure that names what others did.
func (s State) changed(foreign []*delta.Entry) error {
	const most = 3
	var said []string
	for _, e := range foreign[:min(most, len(foreign))] {
		said = append(said, describe(e))
	}
	if more := len(foreign) - most; more > 0 {
		said = append(said, fmt.Sprintf("%d more", more))
	}
	return s.stop("others changed its rows: %s", strings.Join(said, "; "))
}

func (s State) stop(format string, args ...any) error {
	return fault.New("CDC_TARGET_CHANGED", "the rows of %s are not those that AUTO CDC left: %s", s.Dataset, fmt.Sprintf(format, args...)).
		At(fault.Where{Dataset: s.Dataset}).
		WithHint("Refresh the target in full (weir run --full-refresh %s), or take the change back with weir delta restore. To change what a target holds, send events", s.Dataset)
}

// describe says which version did what, by whom, and to how many rows.
func describe(e *delta.Entry) string {
	operation, engine := "an unnamed operation", ""
	if c := e.CommitInfo; c != nil {
		if c.Operation != "" {
			operation = c.Operation
		}
		if c.EngineInfo != "" {
			engine = " by " + c.EngineInfo
		}
	}
	return fmt.Sprintf("version %d (%s%s, %s)", e.Version, operation, engine, extent(e))
}

// rowMetrics are the counts of rows that engines leave, with what they count.
var rowMetrics = [][2]string{
	{"numTargetRowsInserted", "inserted"}, {"numTargetRowsUpdated", "updated"}, {"numTargetRowsDeleted", "deleted"},
	{"numInsertedRows", "inserted"}, {"numUpdatedRows", "updated"}, {"numDeletedRows", "deleted"},
	{"num_added_rows", "added"}, {"num_deleted_rows", "deleted"}, {"num_updated_rows", "updated"},
	{"num_target_rows_inserted", "inserted"}, {"num_target_rows_updated", "updated"}, {"num_target_rows_deleted", "deleted"},
	{"numOutputRows", "written"},
}

// extent says how many rows were changed, or else how many files.
func extent(e *delta.Entry) string {
	var said []string
	if e.CommitInfo != nil {
		for _, m := range rowMetrics {
			v, ok := e.CommitInfo.OperationMetrics[m[0]]
			if n := fmt.Sprint(v); ok && n != "0" && n != "" {
				said = append(said, n+" rows "+m[1])
			}
		}
	}
	if len(said) > 0 {
		return strings.Join(said, ", ")
	}
	return fmt.Sprintf("%d files added, %d removed", len(e.Adds), len(e.Removes))
}
