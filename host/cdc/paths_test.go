package cdc_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/cdc/cdctest"
	"github.com/weir-data/weir/host/delta"
)

// randomChanges makes changes of a few keys without ties. Each key and sequence
// has one content, so that repetitions are exact.
func randomChanges(rng *rand.Rand, n, keys int, truncates bool) []string {
	var out []string
	for range n {
		id, seq := rng.IntN(keys), rng.IntN(40)
		content := rand.New(rand.NewPCG(uint64(id), uint64(seq)))
		switch {
		case truncates && rng.IntN(60) == 0:
			out = append(out, fmt.Sprintf(`{"__weir_cdc_sequence":%d,"__weir_cdc_truncate":true}`, seq))
		case content.IntN(5) == 0:
			out = append(out, removal(id, seq))
		case content.IntN(4) == 0:
			out = append(out, fmt.Sprintf(`{"id":%d,"w":%d,"__weir_cdc_sequence":%d}`, id, content.IntN(3), seq))
		default:
			out = append(out, fmt.Sprintf(`{"id":%d,"v":"v%d","w":%d,"__weir_cdc_sequence":%d}`, id, content.IntN(3), content.IntN(3), seq))
		}
	}
	return out
}

// TestPathsAgree applies the same changes in many ways: looked up or merged from
// end to end, in memory or spilled, in one task or several, at once or in batches.
func TestPathsAgree(t *testing.T) {
	seeds := 2
	if os.Getenv("WEIR_SOAK") != "" {
		seeds = 1000
	}
	for seed := range seeds {
		for name, def := range map[string]cdc.Definition{
			"1":              {SCDType: 1},
			"1 ignore nulls": {SCDType: 1, IgnoreNulls: &cdc.Choice{}},
			"2":              {SCDType: 2},
			"2 tracking":     {SCDType: 2, Tracked: cdc.Choice{Only: []string{"w"}}},
			"2 ignore nulls": {SCDType: 2, IgnoreNulls: &cdc.Choice{Only: []string{"v"}}, Tracked: cdc.Choice{Only: []string{"v"}}},
		} {
			t.Run(fmt.Sprint(name, "/", seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(seed), uint64(len(name))))
				def.Keys = []string{"id"}
				s := cdctest.Fields([]arrow.Field{field("id", int64Type), field("v", stringType), field("w", int64Type)}, int64Type, "delete", "truncate")
				rows := randomChanges(rng, 150, 12, def.SCDType == 1)
				var want []string
				for _, way := range []struct {
					share   float64
					memory  int64
					batches int
				}{{0, 0, 1}, {0, 1, 1}, {1e9, 0, 6}, {1e-9, 0, 6}, {0, 1 << 14, 6}, {1e-9, 1 << 13, 3}} {
					def.ScanShare, def.Memory = way.share, way.memory
					x := cdctest.New(t, def)
					rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
					for batch := range slices.Chunk(rows, len(rows)/way.batches) {
						var recs []arrow.RecordBatch
						for task := range slices.Chunk(batch, 10+rng.IntN(30)) {
							recs = append(recs, cdctest.Changes(t, s, task...))
						}
						if _, err := x.Apply(background, recs...); err != nil {
							t.Fatalf("%+v: %v", way, err)
						}
					}
					if want == nil {
						var err error
						if want, err = x.Rows(background); err != nil {
							t.Fatal(err)
						}
						continue
					}
					expect(t, x, want...)
				}
			})
		}
	}
}

// covers A71
func TestReplaysCommitNoRows(t *testing.T) {
	for _, scd := range []int{1, 2} {
		x := cdctest.New(t, cdc.Definition{Keys: []string{"id"}, SCDType: scd})
		rows := []string{change(1, 1, "a"), change(2, 1, "b"), removal(1, 3), change(2, 4, "c")}
		apply(t, x, items(), rows)
		before, err := x.Snapshot(background)
		if err != nil {
			t.Fatal(err)
		}
		x.Now = x.Now.Add(time.Hour)
		counts, err := x.Apply(background, cdctest.Changes(t, items(), rows...))
		if err != nil {
			t.Fatal(err)
		}
		if counts.Unchanged != 4 || counts.Inserted+counts.Updated+counts.Removed+counts.Upserted+counts.Deleted != 0 {
			t.Errorf("a replay counts %+v", counts)
		}
		after, err := x.Snapshot(background)
		if err != nil {
			t.Fatal(err)
		}
		if after.Version() != before.Version()+1 {
			t.Errorf("version %d after %d", after.Version(), before.Version())
		}
		was, _ := before.Files(background)
		is, _ := after.Files(background)
		if len(was) != len(is) || was[0].Path != is[0].Path {
			t.Error("the files changed")
		}
		k, _ := before.Txn(x.Definition.StateID)
		if now, _ := after.Txn(x.Definition.StateID); now != k {
			t.Errorf("state %d after %d", now, k)
		}
		if v, _ := after.Txn(x.App); v != 1 {
			t.Errorf("the flow stands at %d", v)
		}
	}
}

// TestManyChangesWriteTheTableAnew holds that a batch that replaces most rows
// takes whole files out, unless the change feed has to tell what became of each row.
func TestManyChangesWriteTheTableAnew(t *testing.T) {
	for feed, files := range map[string]int{"false": 1, "true": 2} {
		x := cdctest.New(t, cdc.Definition{Keys: []string{"id"}, SCDType: 2})
		x.Properties = map[string]string{"delta.enableChangeDataFeed": feed}
		first, want := []string{change(10, 1, "stays")}, []string{"id=10 v=stays __START_AT=1 __END_AT=null"}
		var second []string
		for id := range 10 {
			first = append(first, change(id, 1, "a"))
			second = append(second, change(id, 2, "b"), change(id, 3, "b"))
			want = append(want, fmt.Sprintf("id=%d v=a __START_AT=1 __END_AT=2", id), fmt.Sprintf("id=%d v=b __START_AT=2 __END_AT=null", id))
		}
		slices.Sort(want)
		apply(t, x, items(), first, second)
		expect(t, x, want...)
		snap, err := x.Snapshot(background)
		if err != nil {
			t.Fatal(err)
		}
		was, err := snap.Files(background)
		if err != nil || len(was) != files {
			t.Fatalf("files %+v, %v", was, err)
		}
		apply(t, x, items(), append(first, second...)) // nothing new, so nothing is written
		again, err := x.Snapshot(background)
		if err != nil {
			t.Fatal(err)
		}
		if is, _ := again.Files(background); is[0].Path != was[0].Path {
			t.Error("a replay wrote the table anew")
		}
	}
}

func TestRowsThatAllGoLeaveNoFile(t *testing.T) {
	x := cdctest.New(t, cdc.Definition{Keys: []string{"id"}, SCDType: 1, IgnoreNulls: &cdc.Choice{}})
	apply(t, x, items(), []string{change(1, 1, "a"), change(2, 1, "b")}, []string{removal(1, 2), removal(2, 2)})
	expect(t, x)
	snap, err := x.Snapshot(background)
	if err != nil || snap.NumFiles() != 0 {
		t.Fatalf("%d files, %v", snap.NumFiles(), err)
	}
}

// TestTheChangeFeedTellsPreAndPostImages holds what becomes of a row whose
// interval is closed, and of one whose start moves.
func TestTheChangeFeedTellsPreAndPostImages(t *testing.T) {
	x := cdctest.New(t, cdc.Definition{Keys: []string{"id"}, SCDType: 2, ScanShare: 1e9})
	x.Properties = map[string]string{"delta.enableChangeDataFeed": "true"}
	apply(t, x, items(), []string{change(1, 5, "a"), change(2, 5, "x")}, []string{change(1, 7, "b"), change(2, 3, "x")})
	expect(t, x, "id=1 v=a __START_AT=5 __END_AT=7", "id=1 v=b __START_AT=7 __END_AT=null", "id=2 v=x __START_AT=3 __END_AT=null")
	r, err := x.Table.Changes(background, delta.ChangesOptions{From: 1, To: 1, Columns: []string{"id", "__START_AT", "__END_AT"}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	var got []string
	for r.Next() {
		for i := range int(r.RecordBatch().NumRows()) {
			text := ""
			for _, c := range r.RecordBatch().Columns()[:4] {
				text += " " + c.ValueStr(i)
			}
			got = append(got, text[1:])
		}
	}
	slices.Sort(got)
	want := []string{"1 5 (null) update_preimage", "1 5 7 update_postimage", "1 7 (null) insert", "2 3 (null) insert", "2 5 (null) delete"}
	if r.Err() != nil || !slices.Equal(got, want) {
		t.Errorf("the feed has %q, %v", got, r.Err())
	}
}
