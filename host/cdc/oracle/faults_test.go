package oracle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/storage/faultstore"
)

var errFault = errors.New("injected fault")

// faultsOf are the ways in which the n-th operation of a store goes wrong: the
// process ends there, the operation fails, or it is done and the answer is lost
// or comes twice.
var faultsOf = map[string]func(n int) faultstore.Rule{
	"dies":        func(n int) faultstore.Rule { return faultstore.FromCall(n, faultstore.Fail(errFault)) },
	"fails":       func(n int) faultstore.Rule { return faultstore.AtCall(n, faultstore.Fail(errFault)) },
	"no answer":   func(n int) faultstore.Rule { return faultstore.AtCall(n, faultstore.LoseAnswer(errFault)) },
	"asked twice": func(n int) faultstore.Rule { return faultstore.AtCall(n, faultstore.Duplicate()) },
}

// Whatever operation of an application goes wrong, the same batch applied again
// gives the right table, and so do the batches after it. covers B2
func TestEveryStorageOperationOfABatchMayFail(t *testing.T) {
	list := shapes()
	for i, s := range []shape{list[0], list[1], list[len(list)-1]} {
		for name, rule := range faultsOf {
			t.Run(s.name+", "+name, func(t *testing.T) {
				t.Parallel()
				step := 8
				if os.Getenv("WEIR_SOAK") != "" {
					step = 1
				}
				for n := 1 + int(seedOf(t)%uint64(step)); ; n += step { //nolint:gosec // a small number
					if !s.survives(t, rand.New(rand.NewPCG(uint64(i), 1)), rule, n) || t.Failed() { //nolint:gosec // a small number
						break
					}
				}
			})
		}
	}
}

// survives applies three batches; operation n of the second goes wrong. It tells
// whether there was such an operation.
func (s *shape) survives(t *testing.T, r *rand.Rand, rule func(int) faultstore.Rule, n int) bool {
	x := newTarget(t, s.rules)
	x.define = func(d *cdc.Definition) { d.ScanShare = []float64{1e9, 1e-9}[n%2] }
	batches := packed([]arrival{batched(r, s.randomChanges(r), 3, 0.2), batched(r, s.randomChanges(r), 3, 0.2)})
	if err := x.apply(batches[0]); err != nil {
		t.Fatal(err)
	}
	before := len(x.lake.Calls())
	x.lake.Add(rule(before + n))
	err := x.apply(batches[1])
	passed := len(x.lake.Calls()) - before
	x.lake.Heal()
	x.told = nil // upkeep may have failed
	if err != nil {
		if !errors.Is(err, errFault) {
			t.Errorf("operation %d: an error of another kind: %v", n, err)
		}
		x.restart()
		if v, ok := x.snapshot().Txn(testApp); ok && v == x.batches {
			x.batches++ // it was committed, and the answer was lost
		} else if err := x.apply(batches[1]); err != nil {
			t.Fatalf("operation %d: %v", n, err)
		}
	}
	what := fmt.Sprintf("operation %d", n)
	if !same(t, what, x.read(), s.table(slices.Concat(batches[0], batches[1]))) {
		return true
	}
	if err := x.apply(batches[2]); err != nil {
		t.Fatalf("operation %d, the batch after: %v", n, err)
	}
	same(t, what+", the batch after", x.read(), s.table(batches.all()))
	return passed >= n
}

// A batch that is given up, at any time, leaves the table as it was. covers B2
func TestABatchThatIsCanceledChangesNothing(t *testing.T) {
	s := shapes()[1]
	r := rand.New(rand.NewPCG(7, 7))
	batches := packed([]arrival{batched(r, s.randomChanges(r), 2, 0)})
	x := newTarget(t, s.rules)
	if err := x.apply(batches[0]); err != nil {
		t.Fatal(err)
	}
	want := x.read()
	ctx, cancel := context.WithCancel(context.Background())
	app, c, err := x.begin(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.take(ctx, app, batches[1]); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, _, err := app.Commit(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("committed: %v", err)
	}
	if err := app.Release(context.Background()); err != nil {
		t.Error(err)
	}
	same(t, "rows", x.read(), want)
	if err := x.apply(batches[1]); err != nil {
		t.Fatal(err)
	}
	same(t, "rows then", x.read(), s.table(batches.all()))
}
