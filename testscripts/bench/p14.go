package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// budget is the memory limit under which P14 runs, in bytes.
const budget = 512 << 20

// timesBudget is how much larger than the budget the input is at a scale of 1;
// a scale of 50 makes it 100 times as large, which takes most of an hour.
const timesBudget = 2

const boundedSQL = `CREATE OR REFRESH STREAMING TABLE bronze.orders AS SELECT * FROM STREAM read_files('./landing', format => 'json');
CREATE OR REFRESH STREAMING TABLE silver.orders (CONSTRAINT has_id EXPECT (order_id IS NOT NULL) ON VIOLATION DROP ROW) AS SELECT * FROM STREAM(bronze.orders);
CREATE OR REFRESH MATERIALIZED VIEW gold.orders AS SELECT order_id, count(*) AS n FROM silver.orders GROUP BY order_id;
`

// runP14 measures the peak resident memory of updates, native memory included,
// against their budget: of one with far more input than fits, and of one with
// very many datasets.
func runP14(ctx context.Context, dir string, s settings) ([]figure, error) {
	line := figure{Better: "lower", Must: 1.2, Aim: 1, Unit: "MB", Peer: "--memory-limit"}
	if _, err := os.Stat("build/weir"); err != nil {
		line.Case, line.Skipped = "peak memory of an update", "build/weir is not built (make build)"
		return []figure{line}, nil
	}
	large, wide := filepath.Join(dir, "large"), filepath.Join(dir, "wide")
	size, err := writeLarge(large, int64(float64(timesBudget*budget)*s.scale))
	if err != nil {
		return nil, err
	}
	if err := writeWide(wide, s.scaled(wideDatasets)); err != nil {
		return nil, err
	}
	var out []figure
	for _, c := range []struct{ name, dir string }{
		{fmt.Sprintf("%.1f × the budget of NDJSON, to gold", float64(size)/budget), large},
		{fmt.Sprintf("%d datasets", s.scaled(wideDatasets)), wide},
	} {
		peak, err := weirIn(ctx, c.dir, "run", "--memory-limit", fmt.Sprintf("%dMiB", budget>>20))
		if err != nil {
			return nil, err
		}
		f := line
		f.Case, f.Ours, f.Theirs, f.Value = c.name, float64(peak)/1e6, budget/1e6, float64(peak)/budget
		out = append(out, f)
	}
	return out, nil
}

// writeLarge writes a project with about that many bytes of orders, and gives how many there are.
func writeLarge(dir string, size int64) (int64, error) {
	if err := os.MkdirAll(filepath.Join(dir, "landing"), 0o755); err != nil {
		return 0, err
	}
	spec := "name: bounded\ncatalog: dev\nschema: bronze\nstorage: ./lake\nlibraries:\n  - glob: {include: bounded.sql}\n"
	for name, text := range map[string]string{"weir.yaml": spec, "bounded.sql": boundedSQL} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return 0, err
		}
	}
	const rows = 200_000
	var written int64
	for n := 0; written < size; n++ {
		file := filepath.Join(dir, "landing", fmt.Sprintf("%04d.json", n))
		if err := writeOrders(file, rows); err != nil {
			return 0, err
		}
		info, err := os.Stat(file)
		if err != nil {
			return 0, err
		}
		written += info.Size()
	}
	return written, nil
}
