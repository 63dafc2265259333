package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/sql"
	"github.com/weir-data/weir/host/storage"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: tables write|dump|changes|vacuum|check PATH")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, verb, path string) error {
	if verb == "write" {
		return writeAll(ctx, path)
	}
	t, done, err := open(ctx, path)
	if err != nil {
		return err
	}
	defer done()
	switch verb {
	case "dump":
		return dump(ctx, t)
	case "changes":
		return changes(ctx, t)
	case "vacuum":
		return vacuum(ctx, t)
	case "check":
		return check(ctx, t)
	}
	return fmt.Errorf("there is no verb %q", verb)
}

// open gives the table of a folder, with DuckDB for its constraints and conditions.
func open(ctx context.Context, path string) (*delta.Table, func(), error) {
	store, err := storage.OpenDir(path)
	if err != nil {
		return nil, nil, err
	}
	engine, err := sql.Open(ctx, sql.Options{})
	if err != nil {
		return nil, nil, err
	}
	evaluator := sql.NewEvaluator(func(context.Context) (*sql.Engine, error) { return engine, nil }, time.Now)
	return delta.Open(store, delta.WithEngine(evaluator)), func() { _ = engine.Close() }, nil
}

func dump(ctx context.Context, t *delta.Table) error {
	s, err := t.Snapshot(ctx)
	if err != nil {
		return err
	}
	r, err := s.Scan(ctx, delta.ScanOptions{})
	if err != nil {
		return err
	}
	return printRows(os.Stdout, r)
}

func changes(ctx context.Context, t *delta.Table) error {
	s, err := t.Snapshot(ctx)
	if err != nil {
		return err
	}
	r, err := t.Changes(ctx, delta.ChangesOptions{From: 0, To: s.Version()})
	if err != nil {
		return err
	}
	return printRows(os.Stdout, r)
}

// printRows prints and releases what a reader gives.
func printRows(w io.Writer, r array.RecordReader) error {
	defer r.Release()
	for r.Next() {
		if err := array.RecordToJSON(r.RecordBatch(), w); err != nil {
			return err
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	return printTypes(w, r.Schema())
}

// printTypes ends the rows with one line that tells the columns' types.
func printTypes(w io.Writer, schema *arrow.Schema) error {
	names := map[string]string{}
	for _, f := range schema.Fields() {
		name, err := coltype.Name(f.Type)
		if err != nil {
			return err
		}
		names[f.Name] = name
	}
	return json.NewEncoder(w).Encode(map[string]any{"__types": names})
}
