package pipeline

import (
	"context"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/stream"
)

// checkOptions refuses options where there is no stream of a table to take them.
func (in *input) checkOptions() error {
	if len(in.options) == 0 {
		return nil
	}
	switch {
	case !in.stream:
		return fault.New("INVALID_OPTION", "%s is read whole; options are for a stream", in.id()).WithHint("Write STREAM before it, or leave the options out")
	case in.dataset != nil && in.dataset.isView():
		return fault.New("INVALID_OPTION", "%s is a view, and its stream has no options", in.dataset.id).WithHint("Give them to the table that the view reads")
	}
	return stream.CheckDeltaOptions(in.id(), in.options)
}

// readsFeed tells whether the stream is of a table's change data feed.
func (in *input) readsFeed() bool {
	return in.files == nil && stream.ReadsChangeFeed(in.options)
}

// streamedColumns gives the columns of the stream of a table with those columns.
func (pl *planner) streamedColumns(ctx context.Context, in *input, table *arrow.Schema) (*arrow.Schema, error) {
	if !in.readsFeed() {
		return table, nil
	}
	if err := pl.p.checkFeed(ctx, in); err != nil {
		return nil, err
	}
	return stream.FeedColumns(table)
}

// checkFeed refuses to stream the changes of a table that does not record
// them, while nothing is written yet.
func (p *Pipeline) checkFeed(ctx context.Context, in *input) error {
	if in.dataset != nil {
		for key, value := range in.dataset.properties {
			if strings.EqualFold(key, "delta.enableChangeDataFeed") && strings.EqualFold(value, "true") {
				return nil
			}
		}
	}
	snapshot, err := snapshotOf(ctx, p.inputTable(in))
	if err != nil || snapshot != nil && snapshot.RecordsChanges() {
		return err
	}
	return fault.New("DELTA_MISSING_CHANGE_DATA", "%s has no change data feed to read", in.id()).
		WithHint("Set TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true') on it before its rows first change").At(in.place)
}
