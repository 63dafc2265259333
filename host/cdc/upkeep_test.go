package cdc_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/cdc/cdctest"
)

// TestTheStateStaysTidy holds that many batches leave few files of the state, and
// that the table is right without any cache.
func TestTheStateStaysTidy(t *testing.T) {
	x := cdctest.New(t, cdc.Definition{Keys: []string{"id"}, SCDType: 2, ScanShare: 1e9})
	for i := range 40 {
		apply(t, x, items(), []string{change(i%7, i, "a"), change(1000+i, 1, "b")})
	}
	runs, err := os.ReadDir(filepath.Join(x.StateDir(), "runs"))
	if err != nil || len(runs) > 16 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	manifests, err := filepath.Glob(filepath.Join(x.StateDir(), "*.json"))
	if err != nil || len(manifests) != 1 {
		t.Errorf("manifests %v, %v", manifests, err)
	}
	before, err := x.Rows(background)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.LoseCaches(); err != nil {
		t.Fatal(err)
	}
	apply(t, x, items(), []string{change(1000, 1, "b")}, []string{change(2000, 1, "new")})
	want := append(before, "id=2000 v=new __START_AT=1 __END_AT=null")
	slices.Sort(want)
	expect(t, x, want...)
}
