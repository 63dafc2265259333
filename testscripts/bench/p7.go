package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// runP7 measures a trigger that finds nothing new against listing the names
// only, and against listing them with lstat.
func runP7(ctx context.Context, dir string, s settings) ([]figure, error) {
	var out []figure
	for _, known := range []int{10_000, 100_000, 1_000_000} {
		files := s.scaled(known)
		label := fmt.Sprintf("%d known files", files)
		work := filepath.Join(dir, fmt.Sprint(known))
		landing := filepath.Join(work, "landing")
		if err := writeDocuments(landing, files, 100, true); err != nil {
			return nil, err
		}
		p, err := newProject(work, landing, "format => 'json', maxFilesPerTrigger => 10000, schema => 'order_id STRING, order_ts TIMESTAMP, pad STRING'")
		if err != nil {
			return nil, err
		}
		if err := p.run(ctx, int64(files)); err != nil {
			return nil, err
		}
		for _, peer := range []struct {
			name      string
			lstat     bool
			must, aim float64
		}{{"listing the names", false, 3, 1.6}, {"listing with lstat", true, 1.2, 1.2}} {
			ours, theirs, err := race(s.repeats, side{run: func() error { return p.run(ctx, 0) }},
				side{run: func() error { return list(landing, files, peer.lstat) }})
			if err != nil {
				return nil, err
			}
			out = append(out, figure{Case: label, Must: peer.must, Aim: peer.aim, Peer: peer.name}.slower(ours, theirs))
		}
		if err := os.RemoveAll(work); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func list(landing string, want int, lstat bool) error {
	got := 0
	err := filepath.WalkDir(landing, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if lstat {
			if _, err := d.Info(); err != nil {
				return err
			}
		}
		got++
		return nil
	})
	if err == nil && got != want {
		err = fmt.Errorf("listed %d files, not %d", got, want)
	}
	return err
}
