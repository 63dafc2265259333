package pipeline

import (
	"context"
	"fmt"
	"strings"
)

// lookAfter warns of what a person would find wrong at a first look at a table
// that the update wrote: that it is empty although its sources gave rows, and
// that its keys are NULL. It asks the statistics only and opens no data file.
func (u *update) lookAfter(ctx context.Context, d *dataset, results map[*flow]*FlowResult) {
	if !d.isTable() {
		return
	}
	var wrote *FlowResult
	u.mu.Lock()
	for _, f := range d.flows {
		if r := results[f]; r.State == Completed && r.Batches > 0 {
			wrote = r
		}
	}
	u.mu.Unlock()
	if wrote == nil {
		return
	}
	snapshot, err := snapshotOf(ctx, u.p.tableOf(d))
	if err != nil || snapshot == nil {
		return // a look is no reason to fail
	}
	counts, err := snapshot.NullCounts(ctx)
	if err != nil {
		return
	}
	if counts.Rows == 0 {
		if wrote.RowsRead > 0 {
			u.warn(wrote, fmt.Sprintf("the table is EMPTY, although its flow read rows: %d", wrote.RowsRead))
		}
		return
	}
	for _, key := range d.keyColumns() {
		for i, field := range snapshot.Schema().Fields() {
			if strings.EqualFold(field.Name, key) && counts.Nulls[i] > 0 {
				u.warn(wrote, fmt.Sprintf("the key %s is NULL in %d of %d rows", field.Name, counts.Nulls[i], counts.Rows))
			}
		}
	}
}
