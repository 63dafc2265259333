package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// wideDatasets are those of the pipeline that must be planned within a second.
const wideDatasets = 200

// writeWide writes a project of n datasets, each in a file of its own: a tenth
// read files, half are streaming tables over tables, the rest are materialized
// views that join and aggregate.
func writeWide(dir string, n int) error {
	files := map[string]string{"weir.yaml": "name: wide\ncatalog: dev\nschema: bronze\nstorage: ./lake\nlibraries:\n  - glob: {include: sql/**}\n"}
	sources := max(n/10, 1)
	silver := func(i int) string { return fmt.Sprintf("silver.t%03d", i) }
	for i := range n {
		name := filepath.Join("sql", fmt.Sprintf("d%03d.sql", i))
		switch {
		case i < sources:
			folder := fmt.Sprintf("landing/s%03d", i)
			files[filepath.Join(folder, "1.json")] = fmt.Sprintf(`{"id":%d,"city":"Kiel","amount":12.5,"seen":"2026-01-02T03:04:05Z"}`+"\n", i)
			files[name] = fmt.Sprintf("CREATE OR REFRESH STREAMING TABLE bronze.s%03d AS SELECT *, _metadata.file_name AS _file FROM STREAM read_files('./%s', format => 'json', schemaHints => 'seen TIMESTAMP');\n", i, folder)
		case i < n*6/10:
			from := fmt.Sprintf("bronze.s%03d", i%sources)
			if i >= 2*sources {
				from = silver(i - sources)
			}
			files[name] = fmt.Sprintf("CREATE OR REFRESH STREAMING TABLE %s (CONSTRAINT has_id EXPECT (id IS NOT NULL) ON VIOLATION DROP ROW) AS\n"+
				"SELECT id, upper(city) AS city, amount, seen FROM STREAM(%s) WHERE amount >= 0;\n", silver(i), from)
		default:
			a, b := silver(sources+i%(n*6/10-sources)), silver(sources+(i*7)%(n*6/10-sources))
			files[name] = fmt.Sprintf("CREATE OR REFRESH MATERIALIZED VIEW gold.v%03d AS\n"+
				"SELECT a.city, count(*) AS orders, sum(a.amount) AS amount, max(b.seen) AS last_seen FROM %s AS a LEFT JOIN %s AS b ON a.id = b.id GROUP BY a.city;\n", i, a, b)
		}
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// weirIn runs the built program in a folder and gives its peak resident memory
// in bytes, native memory included.
func weirIn(ctx context.Context, dir string, args ...string) (peak int64, err error) {
	weir, err := filepath.Abs("build/weir")
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, weir, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "WEIR_CACHE_DIR="+filepath.Join(dir, "cache"))
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("weir %s: %w\n%s", strings.Join(args, " "), err, text.Bytes())
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		peak = usage.Maxrss * 1024 // kilobytes, on Linux
	}
	return peak, nil
}

// runWide measures how long the plan of a pipeline of 200 datasets takes, before
// and after its first update.
func runWide(ctx context.Context, dir string, s settings) ([]figure, error) {
	n := s.scaled(wideDatasets)
	line := figure{Case: fmt.Sprintf("plan of %d datasets", n), Better: "lower", Must: 1, Aim: 0.5, Unit: "s", Peer: "weir version"}
	if _, err := os.Stat("build/weir"); err != nil {
		line.Skipped = "build/weir is not built (make build)"
		return []figure{line}, nil
	}
	if err := writeWide(dir, n); err != nil {
		return nil, err
	}
	command := func(args ...string) side {
		return side{run: func() error { _, err := weirIn(ctx, dir, args...); return err }}
	}
	var out []figure
	measure := func(what string) error {
		a, b, err := race(s.repeats, command("dry-run"), command("version"))
		if err != nil {
			return err
		}
		f := line
		f.Case += what
		f.Ours, f.Theirs, f.Value = a.wall, b.wall, a.wall-b.wall
		out = append(out, f)
		return nil
	}
	if err := measure(", new"); err != nil {
		return nil, err
	}
	if _, err := weirIn(ctx, dir, "run"); err != nil {
		return nil, err
	}
	if err := measure(", with tables"); err != nil {
		return nil, err
	}
	return out, nil
}
