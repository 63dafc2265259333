package cdc_test

import (
	"os"
	"testing"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/cdc/cdctest"
)

// TestFailuresLeaveNothingBehind fails a batch in the middle: the target's checks
// of memory and goroutines hold when it ends, and the next try succeeds.
func TestFailuresLeaveNothingBehind(t *testing.T) {
	for _, scd := range []int{1, 2} {
		x := cdctest.New(t, cdc.Definition{Keys: []string{"id"}, SCDType: scd, ScanShare: 1e9})
		apply(t, x, items(), []string{change(1, 1, "a"), change(2, 1, "b"), change(3, 1, "c")})
		second := []string{change(1, 2, "x"), change(4, 1, "new"), removal(2, 3)}
		if err := os.RemoveAll(x.Definition.Cache); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(x.Definition.Cache, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		fails(t, x, cdctest.Changes(t, items(), second...), "CDC_INDEX_CACHE")
		if err := os.Remove(x.Definition.Cache); err != nil {
			t.Fatal(err)
		}
		apply(t, x, items(), second)
		left, err := os.ReadDir(x.Definition.TempDir)
		if err != nil || len(left) > 0 {
			t.Errorf("temporary files %v, %v", left, err)
		}
		temp := x.Definition.TempDir
		x.Definition.Memory, x.Definition.TempDir = 1, temp+"/none"
		fails(t, x, cdctest.Changes(t, items(), change(5, 1, "y")), "CDC_SPILL")
		x.Definition.TempDir = temp
		apply(t, x, items(), []string{change(5, 1, "y")})
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("temporary files %v, %v", left, err)
		}
	}
}

// TestAFullRefreshForgets holds that the first batch of a full refresh knows
// nothing of before: neither rows, nor tombstones, nor the definition.
func TestAFullRefreshForgets(t *testing.T) {
	x := cdctest.New(t, cdc.Definition{Keys: []string{"id"}, SCDType: 2})
	apply(t, x, items(), []string{change(1, 5, "a"), removal(2, 9), change(3, 1, "gone")})
	x.Definition.SCDType = 1
	if _, err := x.Refresh(background, cdctest.Changes(t, items(), change(1, 1, "b"), change(2, 1, "c"))); err != nil {
		t.Fatal(err)
	}
	expect(t, x, "id=1 v=b", "id=2 v=c")
	apply(t, x, items(), []string{change(2, 2, "d"), removal(1, 1000)})
	expect(t, x, "id=2 v=d")
	if _, err := x.Refresh(background); err != nil {
		t.Fatal(err)
	}
	expect(t, x)
	x.Definition.SCDType = 2
	if _, err := x.Refresh(background, cdctest.Changes(t, items(), change(1, 1, "z"))); err != nil {
		t.Fatal(err)
	}
	expect(t, x, "id=1 v=z __START_AT=1 __END_AT=null")
}
