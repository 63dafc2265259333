package stream

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/weir-data/weir/host/delta"
)

// covers A73: whatever a table goes through, its change feed as a stream adds
// up to its rows, from its first version as from the rows it has by now, with
// crashes in between. WEIR_SOAK=n runs n lives.
func TestAStreamedChangeFeedAddsUpToTheTable(t *testing.T) {
	for seed := 0; seed < lives(); seed += stride(5) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(seed), 73))
			l := newLake(t)
			f := newLife(t, l, r, map[string]string{
				"delta.enableChangeDataFeed":     "true",
				"delta.enableDeletionVectors":    strconv.FormatBool(r.IntN(2) == 0),
				"delta.enableInCommitTimestamps": strconv.FormatBool(r.IntN(2) == 0),
			})
			for range r.IntN(4) {
				f.step()
			}
			options := map[string]string{"readChangeFeed": "true", "maxFilesPerTrigger": strconv.Itoa(1 + r.IntN(4))}
			if r.IntN(2) == 0 {
				options["startingVersion"] = "0"
			}
			taskBytes := int64(r.IntN(2) * 1000)
			for range 3 + r.IntN(5) {
				for range r.IntN(4) {
					f.step()
				}
				fault := &faulty{k: 1 + r.IntN(80), mode: faultMode(r.IntN(4))}
				if r.IntN(3) == 0 {
					fault.k = 0
				}
				l.wrap = fault.wrap
				flow := l.changes(t, options)
				flow.TaskBytes, flow.Parallel = taskBytes, 1+r.IntN(2)
				if _, err := Run(context.Background(), flow, nil); err != nil && !fault.hit {
					t.Fatal(err)
				}
				l.wrap = nil
			}
			mustRun(t, l.changes(t, options))
			same(t, "rows", l.folded(t), f.rows())
			if res := mustRun(t, l.changes(t, options)); res.Batches != 0 {
				t.Fatalf("%+v", res)
			}
		})
	}
}

// covers A75: with skipChangeCommits a stream has the rows of all versions that
// only added, whatever happened to them later.
func TestASkippingStreamHasEveryAppendedRow(t *testing.T) {
	for seed := 0; seed < lives(); seed += stride(5) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(seed), 75))
			l := newLake(t)
			f := newLife(t, l, r, map[string]string{"delta.enableDeletionVectors": strconv.FormatBool(r.IntN(2) == 0)})
			options := map[string]string{"skipChangeCommits": "true", "startingVersion": "0", "maxFilesPerTrigger": strconv.Itoa(1 + r.IntN(4))}
			for range 3 + r.IntN(4) {
				for range r.IntN(5) {
					f.step()
				}
				mustRun(t, l.changes(t, options))
			}
			var got []string
			snap, err := l.table(silverName).Snapshot(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			f.table = l.table(silverName)
			for _, row := range f.scan(snap, delta.ScanOptions{}) {
				got = append(got, row.text())
			}
			slices.Sort(got)
			slices.Sort(f.appended)
			same(t, "rows", got, f.appended)
		})
	}
}

func lives() int {
	if n, err := strconv.Atoi(os.Getenv("WEIR_SOAK")); err == nil {
		return n
	}
	return 30
}
