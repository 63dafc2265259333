package testscripts

import (
	"context"
	"iter"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/stream"
)

// tableRows reads a Delta table and gives each row as JSON, some columns left out.
func tableRows(t testing.TB, dir string, without ...string) iter.Seq[string] {
	t.Helper()
	return func(yield func(string) bool) {
		store, err := storage.OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		snapshot, err := delta.Open(store).Snapshot(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		rows, err := snapshot.Scan(t.Context(), delta.ScanOptions{})
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		defer rows.Release()
		for rows.Next() {
			rec := withoutColumns(rows.RecordBatch(), without)
			for i := range int(rec.NumRows()) {
				if !yield(string(relation.RowJSON(rec, i))) {
					return
				}
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
	}
}

// withoutColumns borrows the batch's columns: what it gives lives as long as rec.
func withoutColumns(rec arrow.RecordBatch, without []string) arrow.RecordBatch {
	var fields []arrow.Field
	var columns []arrow.Array
	for i, f := range rec.Schema().Fields() {
		if !slices.Contains(without, f.Name) {
			fields = append(fields, f)
			columns = append(columns, rec.Column(i))
		}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, rec.NumRows())
}

// fileStates gives, for each flow below a lake's checkpoints, "path state" of every file.
func fileStates(ctx context.Context, t testing.TB, lake string) map[string][]string {
	t.Helper()
	flows, err := filepath.Glob(filepath.Join(lake, "_weir", "*", "checkpoints", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, flow := range flows {
		store, err := storage.OpenDir(flow)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(lake, flow)
		if err != nil {
			t.Fatal(err)
		}
		for f, err := range stream.FileStates(ctx, store) {
			if err != nil {
				t.Fatalf("%s: %v", flow, err)
			}
			out[name] = append(out[name], f.Path+" "+string(f.State))
		}
	}
	return out
}
