package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-data/weir/host/delta"
)

// vacuum compacts the table and deletes what its newest version does not need.
func vacuum(ctx context.Context, t *delta.Table) error {
	if _, err := t.Optimize(ctx, delta.OptimizeOptions{}); err != nil {
		return err
	}
	// Files of the last moments count as those of writers at work.
	time.Sleep(10 * time.Millisecond)
	_, err := t.Vacuum(ctx, delta.VacuumOptions{AllowShort: true})
	return err
}

// check fails when the log and the files do not fit.
func check(ctx context.Context, t *delta.Table) error {
	r, err := t.Check(ctx, delta.CheckOptions{})
	if err != nil {
		return err
	}
	if !r.Clean() {
		return fmt.Errorf("version %d: %v", r.Version, r.Problems)
	}
	return nil
}
