package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// runP6 measures one document a file against a plain Go loop that lists and
// reads the same files.
func runP6(ctx context.Context, dir string, s settings) ([]figure, error) {
	files := s.scaled(100_000)
	landing := filepath.Join(dir, "landing")
	if err := writeDocuments(landing, files, 1000, false); err != nil {
		return nil, err
	}
	var out []figure
	for _, perTrigger := range []int{10_000, 1000} {
		p, err := newProject(dir, landing, fmt.Sprintf("format => 'json', maxFilesPerTrigger => %d, schema => 'order_id STRING, order_ts TIMESTAMP, pad STRING'", perTrigger))
		if err != nil {
			return nil, err
		}
		ours, theirs, err := race(s.repeats, side{p.forget, func() error { return p.run(ctx, int64(files)) }},
			side{run: func() error { return readAll(landing, files) }})
		if err != nil {
			return nil, err
		}
		if err := s.profiled(fmt.Sprint("P6-", perTrigger), func() error { return errors.Join(p.forget(), p.run(ctx, int64(files))) }); err != nil {
			return nil, err
		}
		out = append(out, figure{
			Case: fmt.Sprintf("%d files, %d a trigger", files, perTrigger), Must: 2, Aim: 1.3, Peer: "a Go loop that lists and reads them",
		}.slower(ours, theirs))
	}
	return out, nil
}

// writeDocuments writes files of one document each, a thousand a folder. Linked
// ones are names of one file a folder, which is how a million are made in a
// minute: whoever only lists them cannot tell.
func writeDocuments(landing string, files, size int, linked bool) error {
	first := ""
	for n := range files {
		folder := filepath.Join(landing, fmt.Sprintf("part_%04d", n/1000))
		if n%1000 == 0 {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return err
			}
		}
		name := filepath.Join(folder, fmt.Sprintf("order_%08d.json", n))
		if linked && n%1000 != 0 {
			if err := os.Link(first, name); err != nil {
				return err
			}
			continue
		}
		first = name
		head := fmt.Appendf(nil, `{"order_id":"W-%08d","order_ts":"2026-04-%02dT00:00:00Z","pad":"`, n, n%28+1)
		text := append(head, bytes.Repeat([]byte("x"), max(0, size-len(head)-3))...)
		text = append(text, "\"}\n"...)
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func readAll(landing string, want int) error {
	got := 0
	err := filepath.WalkDir(landing, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if _, err := os.ReadFile(path); err != nil {
			return err
		}
		got++
		return nil
	})
	if err == nil && got != want {
		err = fmt.Errorf("read %d files, not %d", got, want)
	}
	return err
}
