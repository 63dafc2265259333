package stream

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-data/weir/host/ingest"
)

// Every one of the real order documents is in the table, once for each file
// that brought it, whatever the order of the files' names.
func TestRealOrdersArriveWhole(t *testing.T) {
	shared := cmp.Or(os.Getenv("WEIR_SHARED"), "../../../shared")
	source := filepath.Join(shared, "data/orders_json/ecommerce_orders.ndjson.gz")
	data, err := os.ReadFile(source)
	if err != nil {
		t.Skipf("no real data at %s (set WEIR_SHARED): %v", source, err)
	}
	l := newLake(t)
	flow := func() *Flow {
		src, err := ingest.Parse(ingest.ReadFiles, filepath.Join(l.dir, "landing"), map[string]string{"format": "json"}, ingest.Env{})
		if err != nil {
			t.Fatal(err)
		}
		f := l.flow(bronzeName, NewFileSource(src))
		f.Steps, f.Rules = nil, nil
		return f
	}
	const documents = 4675
	for n := 1; n <= 3; n++ {
		if err := l.drop(string(rune('c'-n+1))+".json.gz", string(data), 0); err != nil {
			t.Fatal(err)
		}
		if res := mustRun(t, flow()); res.Metrics.InputRows != documents || res.Metrics.OutputRows != documents || res.Metrics.MalformedRows != 0 {
			t.Fatalf("%+v", res.Metrics)
		}
		snap, err := l.table(bronzeName).Snapshot(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if rows, err := snap.LiveRows(); err != nil || rows != int64(n*documents) {
			t.Fatal(rows, err)
		}
	}
	if res := mustRun(t, flow()); res.Batches != 0 {
		t.Fatalf("%+v", res)
	}
}
