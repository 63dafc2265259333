package cdc

import (
	"fmt"

	"github.com/weir-data/weir/host/cdc/state"
	"github.com/weir-data/weir/host/stream"
)

// manyTombstones is from when on the number of kept deletes is worth a word, if
// they are half of all that is kept.
const manyTombstones = 1_000_000

// tombstones warns of deletes that are kept for good and grow.
func (a *apply) tombstones(n int64, runs []state.RunInfo) {
	all := int64(0)
	for _, r := range runs {
		all += r.Entries
	}
	if a.def.Tombstones > 0 || n < manyTombstones || 2*n < all {
		return
	}
	a.tell(stream.Notice{
		Code: "CDC_TOMBSTONES",
		Text: fmt.Sprintf("the state keeps more than %d million deletes, which are at least half of it", n/1_000_000),
		Hint: "Set the table property pipelines.cdc.tombstoneGCThresholdInSeconds to longer than a change can be late; older deletes are then forgotten",
	})
}
