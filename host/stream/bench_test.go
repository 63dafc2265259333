package stream

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-data/weir/host/storage"
)

// BenchmarkNothingNew is P7: a trigger that finds nothing new, against the
// listing of the names alone. WEIR_P7 is the number of files (default 10,000).
func BenchmarkNothingNew(b *testing.B) {
	n := 10_000
	if v := os.Getenv("WEIR_P7"); v != "" {
		if _, err := fmt.Sscan(v, &n); err != nil {
			b.Fatal(err)
		}
	}
	ctx := context.Background()
	l := newLake(b)
	l.options["cloudFiles.schemaHints"] = "id BIGINT"
	landing := filepath.Join(l.dir, "landing")
	// The files and the state a thousand batches would have left, without
	// running them: one run for most, the offset log for the rest.
	var all []knownFile
	for i := range n {
		name := fmt.Sprintf("dt=2026-%02d-%02d/shop_order_2026-11-30T13-45-00_%08d.json", i%12+1, i%28+1, i)
		if i < 12*28 {
			if err := os.MkdirAll(filepath.Join(landing, filepath.Dir(name)), 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(landing, name), []byte(`{"id":1}`), 0o644); err != nil {
			b.Fatal(err)
		}
		all = append(all, knownFile{path: filepath.Join(landing, name), batch: int64(i % 20), size: 8, mtime: int64(i)})
	}
	f := l.mustBronze(b)
	gen := generation{Format: 1, AppID: f.appID(0)}
	if err := createGeneration(ctx, f.Checkpoint, gen); err != nil {
		b.Fatal(err)
	}
	ck, err := loadCheckpoint(ctx, f.Checkpoint, gen)
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now().UTC()
	for i := range int64(20) {
		if err := ck.plan(ctx, &offsetEntry{Format: 1, Batch: i, Timestamp: now, TaskBytes: 1, Source: sourceOffset{Kind: filesKind}}); err != nil {
			b.Fatal(err)
		}
		if err := ck.finish(ctx, &commitEntry{Format: 1, Batch: i, Timestamp: now}); err != nil {
			b.Fatal(err)
		}
	}
	times := make([]batchTimes, 20)
	if err := writeRun(ctx, ck.store, runID{0, 19}, times, int64(n), newMerged(all)); err != nil {
		b.Fatal(err)
	}
	if ck, err = loadCheckpoint(ctx, f.Checkpoint, gen); err != nil {
		b.Fatal(err)
	}

	names, trigger := time.Duration(0), time.Duration(0)
	store, err := storage.OpenDir(landing)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		start := time.Now()
		count := 0
		for _, err := range store.List(ctx, "", storage.ListOptions{NamesOnly: true}) {
			if err != nil {
				b.Fatal(err)
			}
			count++
		}
		names += time.Since(start)
		start = time.Now()
		left, err := f.Source.capture(ctx, ck)
		if err != nil {
			b.Fatal(err)
		}
		trigger += time.Since(start)
		if count != n || left.left().Files != 0 {
			b.Fatal(count, left.left())
		}
	}
	b.ReportMetric(float64(trigger)/float64(names), "x-names")
	b.ReportMetric(float64(trigger.Milliseconds())/float64(b.N), "ms/trigger")
}

func newMerged(files []knownFile) *merged { return mergeLists(newFileList(files)) }

// BenchmarkSmallFiles is P6: one document per file, against listing and
// reading the same files with a plain loop.
func BenchmarkSmallFiles(b *testing.B) {
	const n = 20_000
	ctx := context.Background()
	l := newLake(b)
	landing := filepath.Join(l.dir, "landing")
	doc := fmt.Sprintf(`{"id":%%d,"name":%q,"items":[{"sku":"a","qty":2},{"sku":"b","qty":1}]}`, strings.Repeat("x", 900))
	for i := range n {
		if err := os.WriteFile(filepath.Join(landing, fmt.Sprintf("%06d.json", i)), fmt.Appendf(nil, doc, i+100), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for _, limit := range []string{"1000", "10000"} {
		b.Run("maxFilesPerTrigger="+limit, func(b *testing.B) {
			l.options["cloudFiles.maxFilesPerTrigger"] = limit
			plain, flow := time.Duration(0), time.Duration(0)
			for range b.N {
				start := time.Now()
				entries, err := os.ReadDir(landing)
				if err != nil {
					b.Fatal(err)
				}
				for _, e := range entries {
					if _, err := os.ReadFile(filepath.Join(landing, e.Name())); err != nil {
						b.Fatal(err)
					}
				}
				plain += time.Since(start)
				f := l.mustBronze(b)
				f.FullRefresh, f.Steps, f.Rules = true, nil, nil
				start = time.Now()
				res, err := Run(ctx, f, nil)
				if err != nil || res.Metrics.OutputRows != n {
					b.Fatal(res, err)
				}
				flow += time.Since(start)
			}
			b.ReportMetric(float64(flow)/float64(plain), "x-plain")
		})
	}
}
