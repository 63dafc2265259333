package catalog

import (
	"fmt"
	"sync"
	"testing"

	"github.com/weir-data/weir/host/fault"
)

// covers A90
func TestOfSeveralContractsOneHolds(t *testing.T) {
	for range 20 {
		store := dir(t)
		var wg sync.WaitGroup
		errs := make([]error, 8)
		wants := func(i int) string { return []string{"auto_cdc", "tech"}[i%2] }
		for i := range errs {
			wg.Go(func() {
				errs[i] = Open(store).Agree(t.Context(), Name{"dev", "silver", fmt.Sprint("t", i)}, fmt.Sprint("p", i), wants(i))
			})
		}
		wg.Wait()
		held, found, err := Open(store).Contract(t.Context(), "dev")
		if err != nil || !found {
			t.Fatalf("the contract: %v, %v", found, err)
		}
		for i, err := range errs {
			if wants(i) == held.Columns && err != nil || wants(i) != held.Columns && fault.CodeOf(err) != "INTERVAL_CONTRACT_CONFLICT" {
				t.Errorf("%s under %s: %v", wants(i), held.Columns, err)
			}
		}
		// Another catalog makes its own.
		if err := Open(store).Agree(t.Context(), Name{"prod", "silver", "t"}, "p", "tech"); err != nil {
			t.Error(err)
		}
	}
}

func TestASpoiltContractIsNamed(t *testing.T) {
	store := dir(t)
	if err := store.Put(t.Context(), contractPath("dev"), []byte("{")); err != nil {
		t.Fatal(err)
	}
	if err := Open(store).Agree(t.Context(), Name{"dev", "silver", "t"}, "p", "tech"); fault.CodeOf(err) != "CATALOG_CORRUPT" {
		t.Error(err)
	}
}
