package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/weir-data/weir/host/pipeline"
)

// historyQuery gives SCD type 2 of changes that are all there: neighbours that
// are equal are one row, a delete ends the row before it.
const historyQuery = `COPY (
	WITH marked AS (
		SELECT *, lag(row(name, city, amount, op)) OVER (PARTITION BY id ORDER BY seq) IS DISTINCT FROM row(name, city, amount, op) AS fresh
		FROM read_parquet('%s')
	), heads AS (
		SELECT id, name, city, amount, op, seq AS __START_AT, lead(seq) OVER (PARTITION BY id ORDER BY seq) AS __END_AT FROM marked WHERE fresh
	)
	SELECT * EXCLUDE (op) FROM heads WHERE op <> 'D'
) TO '%s' (FORMAT parquet, COMPRESSION zstd)`

// runP10 measures the first load of SCD type 2 from a table of changes against a
// window query of DuckDB over the same files that writes the same rows.
func runP10(ctx context.Context, dir string, s settings) ([]figure, error) {
	n, keys := s.scaled(10_000_000), max(10, s.scaled(1_000_000))
	c, err := newChanged(dir, 2)
	if err != nil {
		return nil, err
	}
	c.alive = make([]bool, keys)
	// The keys come at random, and one change in fifty deletes.
	if err := c.file(n, func(int) (int, string) {
		if c.rng.IntN(50) == 0 {
			return c.rng.IntN(keys), "D"
		}
		return c.rng.IntN(keys), "U"
	}); err != nil {
		return nil, err
	}
	if err := c.refresh(ctx, pipeline.RunOptions{Refresh: []string{"changes"}}); err != nil {
		return nil, err
	}
	load := func() error {
		return c.refresh(ctx, pipeline.RunOptions{FullRefresh: []string{"customers"}, AcceptLoss: true})
	}
	if err := s.profiled("P10", load); err != nil {
		return nil, err
	}
	db, err := sql.Open("duckdb", "")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, fmt.Sprintf("SET threads = %d", runtime.GOMAXPROCS(0))); err != nil {
		return nil, err
	}
	peer := filepath.Join(dir, "peer.parquet")
	ours, theirs, err := race(s.repeats, side{run: load}, side{run: func() error {
		_, err := db.ExecContext(ctx, fmt.Sprintf(historyQuery, filepath.Join(c.table("changes"), "*.parquet"), peer))
		return err
	}})
	if err != nil {
		return nil, err
	}
	snap, err := c.snapshot(ctx, "customers")
	if err != nil {
		return nil, err
	}
	rows, err := snap.LiveRows()
	if err != nil {
		return nil, err
	}
	var want int64
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM read_parquet(?)", peer).Scan(&want); err != nil {
		return nil, err
	}
	if rows != want {
		return nil, fmt.Errorf("%d rows, DuckDB has %d", rows, want)
	}
	return []figure{figure{
		Case: fmt.Sprintf("%d changes of %d keys, SCD 2", n, keys), Must: 0.3, Aim: 1, Peer: "DuckDB window query to Parquet (its speed is 1)",
	}.faster(ours, theirs)}, nil
}
