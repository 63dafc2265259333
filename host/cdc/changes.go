package cdc

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/cdc/state"
)

// What feeds a target from elsewhere makes an apply with begin, adds entries to
// its changes, and ends with commit, which does the rest: it brings them together
// with the state, writes rows and state, and commits both. Entries come from
// coder.code for rows that have a sequence column, from coder.assemble for rows
// whose codes are known, and from removals for keys that are gone.

// removals makes the entries that delete the keys of some entries of the state at
// an order. The caller releases them.
func (a *apply) removals(ctx context.Context, from arrow.RecordBatch, rows []int32, order []byte) (arrow.RecordBatch, error) {
	codes := []arrow.Array{from.Column(state.Hash), from.Column(state.Key)}
	cols, err := takeColumns(ctx, codes, rows, a.mem)
	if err != nil {
		return nil, err
	}
	defer func() { releaseAll(cols) }()
	n := len(rows)
	orders := rowcode.Bytes{Offsets: make([]int32, n+1), Data: make([]byte, 0, n*len(order))}
	kinds := make([]byte, n)
	for i := range rows {
		orders.Data = append(orders.Data, order...)
		orders.Offsets[i+1] = int32(len(orders.Data)) //nolint:gosec // bounded by the state
		kinds[i] = state.Delete
	}
	none := hashColumn(make([]rowcode.Hash, n))
	defer none.Release()
	none.Retain()
	none.Retain()
	cols = append(cols, orders.Binary(), kindColumn(kinds), none, none, timeColumn(a.b.Timestamp.UnixMicro(), n))
	for _, f := range a.values.Fields() {
		cols = append(cols, array.MakeArrayOfNull(a.mem, f.Type, n))
	}
	return array.NewRecordBatch(a.entries(), cols, int64(n)), nil
}
