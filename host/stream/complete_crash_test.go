package stream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/fault"
)

// Whatever operation of a refresh goes wrong, in whatever way: readers see the
// rows of before or those of after, the next refresh ends with the latter and
// the one after that has nothing to do. A flow that runs once has its rows once.
func TestEveryStorageOperationOfARefreshMayFail(t *testing.T) {
	for _, once := range []bool{false, true} {
		for mode := crashBefore; mode <= failAfter; mode++ {
			t.Run(fmt.Sprintf("once %v, mode %d", once, mode), func(t *testing.T) {
				t.Parallel()
				for k := 1; ; k += stride(7) {
					if !refreshFails(t, k, mode, once) {
						if k < 15 {
							t.Fatalf("only %d operations", k)
						}
						return
					}
				}
			})
		}
	}
}

func refreshFails(t *testing.T, k int, mode faultMode, once bool) bool {
	t.Helper()
	l := newLake(t)
	defer func() {
		if !t.Failed() {
			_ = os.RemoveAll(l.dir)
		}
	}()
	view := func() *Refresh {
		q := l.view()
		q.Once = once
		return q
	}
	before, after := []string(nil), idRows(1, 2)
	quarantine := []string{`{"_row":"{\"id\":-1}"}`}
	l.write(t, bronzeName, 1, 2, -1)
	if !once {
		mustComplete(t, view())
		before, after = idRows(1, 2), idRows(1, 2, 3)
		l.write(t, bronzeName, 3, 13, -2)
		quarantine = append(quarantine, `{"_row":"{\"id\":-2}"}`)
	}
	f := &faulty{k: k, mode: mode}
	l.wrap = f.wrap
	_, err := Complete(context.Background(), view(), nil)
	l.wrap = nil
	if err != nil && (!f.hit || fault.CodeOf(err) == "") {
		t.Fatalf("operation %d: %v", k, err)
	}
	if now := l.mustRows(t, viewName); !slices.Equal(now, before) && !slices.Equal(now, after) {
		t.Fatalf("operation %d: the view is half of something: %v", k, now)
	}
	if !once && k%2 == 0 {
		// What the refresh was planned to read is not the newest any more.
		l.write(t, bronzeName, 4)
		after = idRows(1, 2, 3, 4)
	}
	if _, err := Complete(context.Background(), view(), nil); err != nil {
		t.Fatalf("operation %d, the run after: %v", k, err)
	}
	same(t, fmt.Sprintf("operation %d", k), l.mustRows(t, viewName), after)
	same(t, fmt.Sprintf("operation %d: quarantine", k), l.mustRows(t, viewName+"_quarantine", "_quarantined_at", "_batch_id", "_flow", "_rule"), quarantine)
	if res := mustComplete(t, view()); res.Decision.Technique != NoOp {
		t.Fatalf("operation %d: the third run did something: %+v", k, res)
	}
	return f.hit
}

// A random history of arrivals, crashes, other queries and full refreshes ends
// with what the query gives over everything. WEIR_SOAK=n runs n histories.
func TestRandomHistoriesOfAView(t *testing.T) {
	histories := 40 / stride(5)
	if n, err := strconv.Atoi(os.Getenv("WEIR_SOAK")); err == nil {
		histories = n
	}
	for seed := range histories {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(seed), 7))
			l := newLake(t)
			var ids []int
			next := 100
			arrive := func() {
				var some []int64
				for range 1 + r.IntN(5) {
					next++
					some = append(some, int64(next))
					ids = append(ids, next)
				}
				l.write(t, bronzeName, some...)
			}
			arrive()
			view := func(column string) *Refresh {
				q := l.view()
				q.Fingerprint = column
				q.Rules, q.Steps = nil, []Step{idsStep{table: bronzeName, column: column}}
				q.Parallel = 1 + r.IntN(3)
				return q
			}
			column := "id"
			for range 4 + r.IntN(8) {
				if r.IntN(2) == 0 {
					arrive()
				}
				if r.IntN(6) == 0 {
					column = []string{"id", "number"}[r.IntN(2)]
				}
				f := &faulty{k: r.IntN(60), mode: faultMode(r.IntN(4))}
				l.wrap = f.wrap
				q := view(column)
				q.FullRefresh = r.IntN(5) == 0
				_, err := Complete(context.Background(), q, nil)
				l.wrap = nil
				if err != nil && !f.hit {
					t.Fatal(err)
				}
			}
			mustComplete(t, view(column))
			var want []string
			for _, id := range ids {
				want = append(want, fmt.Sprintf(`{"%s":%d}`, column, id))
			}
			slices.Sort(want)
			same(t, "rows", l.mustRows(t, viewName), want)
			report, err := l.table(viewName).Check(context.Background(), delta.CheckOptions{})
			if err != nil || len(report.Problems) > 0 {
				t.Errorf("%+v, %v", report, err)
			}
		})
	}
}

// SIGKILL at every failpoint that a refresh passes.
func TestARefreshKilledAtEveryFailpoint(t *testing.T) {
	passed := 0
	for _, name := range failpoint.Names() {
		if !strings.HasPrefix(name, "stream.") && !strings.HasPrefix(name, "delta.") {
			continue
		}
		l := newLake(t)
		l.write(t, bronzeName, 1, -1)
		mustComplete(t, l.view())
		l.write(t, bronzeName, 2, -2)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+l.dir+"|view", failpoint.Env+"="+name)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			if ws, ok := exit.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
				t.Fatalf("%s: %v\n%s", name, err, out)
			}
			passed++
		} else if err != nil {
			t.Fatal(err)
		}
		if now := l.mustRows(t, viewName); !slices.Equal(now, idRows(1)) && !slices.Equal(now, idRows(1, 2)) {
			t.Fatalf("%s: the view is half of something: %v", name, now)
		}
		mustComplete(t, l.view())
		same(t, name, l.mustRows(t, viewName), idRows(1, 2))
		if res := mustComplete(t, l.view()); res.Decision.Technique != NoOp {
			t.Fatalf("%s: %+v", name, res)
		}
	}
	// Record, files, quarantine, before and after the commits and their puts, entry.
	if passed < 7 {
		t.Errorf("only %d failpoints were passed", passed)
	}
}
