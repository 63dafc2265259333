package main

import (
	"context"
	"fmt"
	"slices"
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
	snapshot, err := t.Snapshot(ctx)
	if err != nil {
		return err
	}
	live, err := snapshot.Files(ctx)
	if err != nil {
		return err
	}
	for _, p := range r.Problems {
		// The engines vacuum without a retention, which takes change files that the table promises to keep.
		if p.Code != "DELTA_FILE_NOT_FOUND" || slices.ContainsFunc(live, func(f delta.AddFile) bool { return f.Path == p.File }) {
			return fmt.Errorf("version %d: %+v", r.Version, p)
		}
	}
	return nil
}
