package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	_ "github.com/duckdb/duckdb-go/v2" // the peer
)

// runP5 measures NDJSON to a committed Delta table, rescue on, against
// DuckDB's read_json to Parquet on the same file with the same codec, threads
// and schema.
func runP5(ctx context.Context, dir string, s settings) ([]figure, error) {
	rows := s.scaled(1_000_000)
	landing := filepath.Join(dir, "landing")
	file := filepath.Join(landing, "orders.ndjson")
	if err := writeOrders(file, rows); err != nil {
		return nil, err
	}
	const ddl = "order_id STRING, order_ts TIMESTAMP, status STRING, currency STRING, total_amount DECIMAL(18,2), " +
		"customer STRUCT<id: STRING, country: STRING>, items ARRAY<STRUCT<sku: STRING, quantity: BIGINT, unit_price: DECIMAL(18,2)>>"
	p, err := newProject(dir, landing, "format => 'json', schema => '"+ddl+"', rescuedDataColumn => '_rescued_data'")
	if err != nil {
		return nil, err
	}
	if err := s.profiled("P5", func() error { return errors.Join(p.forget(), p.run(ctx, int64(rows))) }); err != nil {
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
	copyTo := fmt.Sprintf(`COPY (SELECT * FROM read_json('%s', format = 'newline_delimited', columns = {
		order_id: 'VARCHAR', order_ts: 'TIMESTAMPTZ', status: 'VARCHAR', currency: 'VARCHAR', total_amount: 'DECIMAL(18,2)',
		customer: 'STRUCT(id VARCHAR, country VARCHAR)', items: 'STRUCT(sku VARCHAR, quantity BIGINT, unit_price DECIMAL(18,2))[]'}))
		TO '%s' (FORMAT parquet, COMPRESSION zstd)`, file, filepath.Join(dir, "peer.parquet"))
	ours, theirs, err := race(s.repeats, side{p.forget, func() error { return p.run(ctx, int64(rows)) }}, side{run: func() error {
		_, err := db.ExecContext(ctx, copyTo)
		return err
	}})
	if err != nil {
		return nil, err
	}
	return []figure{figure{
		Case: fmt.Sprintf("%d NDJSON documents", rows), Must: 1, Aim: 1.5, Peer: "DuckDB read_json to Parquet (its speed is 1)",
	}.faster(ours, theirs)}, nil
}

// writeOrders writes order documents with nested items, one a line.
func writeOrders(file string, rows int) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	var line []byte
	for n := range rows {
		line = append(appendOrder(line[:0], n), '\n')
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

func appendOrder(b []byte, n int) []byte {
	b = fmt.Appendf(b, `{"order_id":"W-%08d","order_ts":"2026-04-%02dT%02d:%02d:%02dZ","status":"paid","currency":"EUR","total_amount":%d.%02d,`+
		`"customer":{"id":"C-%05d","country":"DE"},"items":[`, n, n%28+1, n%24, n%60, n%59, n%5000, n%100, n%9973)
	for i := range 1 + n%4 {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"sku":"ZO%05d","quantity":%d,"unit_price":%d.%02d}`, (n*7+i)%50000, i+1, n%300, i*25)
	}
	return append(b, "]}"...)
}
