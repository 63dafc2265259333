package stream

import (
	"context"

	"github.com/weir-data/weir/host/fault"
)

// Run takes everything the source holds now through the flow, batch by batch,
// and returns when nothing of it is left. obs may be nil.
func Run(ctx context.Context, f *Flow, obs Observer) (Result, error) {
	return Result{}, fault.New("NOT_SUPPORTED", "being written")
}
