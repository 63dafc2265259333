package delta

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// Tables of other engines keep their rows through an optimize, a vacuum of what
// it replaced and a restore, or are refused by name and stay as they are.
func TestTablesOfOtherEnginesKeepTheirRowsThroughCare(t *testing.T) {
	pack := shared(t, "delta-conformance")
	raw, err := os.ReadFile(filepath.Join(pack, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var tables []conformanceTable
	if err := json.Unmarshal(raw, &tables); err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]int{}
	for _, c := range tables {
		if c.Expect == "refuse" || c.LogOnly || c.LiveRows == nil || *c.LiveRows > 200_000 {
			continue
		}
		t.Run(c.Corpus+"/"+c.Table, func(t *testing.T) {
			dir := t.TempDir()
			unpack(t, filepath.Join(pack, c.Archive), dir)
			root := filepath.Join(dir, c.PathInArchive)
			prepare(t, &c, root)
			outcomes[careOf(t, root)]++
		})
	}
	for _, k := range slices.Sorted(maps.Keys(outcomes)) {
		t.Logf("%-60s %d", k, outcomes[k])
	}
}

func careOf(t *testing.T, root string) string {
	store, err := storage.OpenDir(root, storage.NoSync)
	if err != nil {
		t.Fatal(err)
	}
	table := Open(store, WithAllocator(memory.NewGoAllocator()), WithOutside(outsideFiles))
	rows := func() string {
		s, err := table.Snapshot(background)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := scanRows(background, s, ScanOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(rows)
		return strings.Join(rows, "\n")
	}
	before, err := table.Snapshot(background)
	if err != nil {
		t.Fatal(err)
	}
	want := rows()
	res, err := table.Optimize(background, OptimizeOptions{PurgeRatio: 1e-9, Full: true})
	if fault.Is(err, "DELTA_UNSUPPORTED_FEATURE") {
		if got := rows(); got != want {
			t.Error("a refused optimize changed the rows")
		}
		return "refused: " + strings.SplitN(err.Error(), "(", 2)[0]
	}
	if err != nil {
		t.Fatalf("optimize: %v", err)
	}
	if got := rows(); got != want {
		t.Errorf("optimize changed the rows: %s", firstDifference(strings.Split(got, "\n"), strings.Split(want, "\n")))
	}
	if again, err := table.Optimize(background, OptimizeOptions{PurgeRatio: 1e-9}); err != nil || again.Commits > 0 {
		t.Errorf("a second run: %+v, %v", again, err)
	}
	if res.Commits == 0 {
		return "nothing to do"
	}
	back, err := table.Restore(background, RestoreOptions{Version: before.Version()})
	if err != nil || back.AddedFiles != res.RemovedFiles && res.Commits == 1 {
		t.Errorf("restore: %+v, %v", back, err)
	}
	if got := rows(); got != want {
		t.Error("restore changed the rows")
	}
	if _, err := table.Vacuum(background, VacuumOptions{AllowShort: true}); err != nil {
		t.Errorf("vacuum: %v", err)
	}
	if got := rows(); got != want {
		t.Error("vacuum changed the rows")
	}
	return "optimized, restored and vacuumed"
}
