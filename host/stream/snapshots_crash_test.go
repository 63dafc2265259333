package stream

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/fault"
)

// Whatever operation of a snapshot goes wrong, in whatever way: readers see the
// snapshot of before or the one of after, and the runs after that end with the
// newest one, and then have nothing to do.
func TestEveryStorageOperationOfASnapshotMayFail(t *testing.T) {
	for _, provider := range []bool{false, true} {
		for mode := crashBefore; mode <= failAfter; mode++ {
			t.Run(fmt.Sprintf("provider %v, mode %d", provider, mode), func(t *testing.T) {
				t.Parallel()
				for k := 1 + int(mode); ; k += 4 * stride(3) {
					if !snapshotFails(t, k, mode, provider) {
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

func snapshotFails(t *testing.T, k int, mode faultMode, provider bool) bool {
	t.Helper()
	l := newLake(t)
	defer func() {
		if !t.Failed() {
			_ = os.RemoveAll(l.dir)
		}
	}()
	flow := func() *Snapshots {
		s := l.shown(provider)
		s.Steps = append(s.Steps, maskStep{})
		s.Rules = []expect.Rule{{Name: "has_id", Condition: "id >= 0", Action: expect.Quarantine}, {Name: "no_13", Condition: "id <> 13", Action: expect.Drop}}
		s.MaxShrink = 1
		return s
	}
	// The ids that the table shows, without the versions, and how many snapshots it has had.
	shows := func() string {
		if snap, err := snapshot(context.Background(), l.table(shownName)); err != nil || snap == nil {
			return ""
		}
		var ids []string
		for _, id := range strings.Fields(l.ids(t)) {
			if at := strings.LastIndex(id, ":"); at >= 0 { // else it is the first half of a version
				ids = append(ids, id[at+1:])
			}
		}
		return strings.Join(ids, " ")
	}
	l.write(t, bronzeName, 101, 102, 13, -1)
	l.mustSnapshots(t, flow(), 1)
	before, after := "101 102 13k", "101 102 13k 201"
	if provider {
		before, after = "101 102", "201"
	}
	if got := shows(); got != before {
		t.Fatalf("it shows %q, want %q", got, before)
	}
	l.write(t, bronzeName, 201)
	f := &faulty{k: k, mode: mode}
	l.wrap = f.wrap
	_, err := RunSnapshots(context.Background(), flow(), nil)
	l.wrap = nil
	if err != nil && (!f.hit || fault.CodeOf(err) == "") {
		t.Fatalf("operation %d: %v", k, err)
	}
	if got := shows(); got != before && got != after {
		t.Fatalf("operation %d: it shows %q", k, got)
	}
	if k%2 == 0 {
		l.write(t, bronzeName, 301)
		if after += " 301"; provider {
			after = "301"
		}
	}
	for range 3 {
		res, err := RunSnapshots(context.Background(), flow(), nil)
		if err != nil {
			t.Fatalf("operation %d, a run after: %v", k, err)
		}
		if res.Batches == 0 {
			break
		}
	}
	if got := shows(); got != after {
		t.Fatalf("operation %d: it shows %q, want %q", k, got, after)
	}
	l.mustSnapshots(t, flow(), 0)
	if provider {
		l.eachVersionOnce(t, k)
	}
	return f.hit
}

// eachVersionOnce holds that no version of the table shows a snapshot again.
func (l *lake) eachVersionOnce(t testing.TB, k int) {
	t.Helper()
	table := l.table(shownName)
	var seen []string
	for v := range mustSnapshot(t, table).Version() + 1 {
		snap, err := table.SnapshotAt(context.Background(), v)
		if err != nil {
			t.Fatal(err)
		}
		latest, err := (newestSnapshot{}).Latest(context.Background(), snap)
		if err != nil || latest == nil {
			t.Fatal(latest, err)
		}
		if slices.Contains(seen, latest.Version.Value) {
			t.Errorf("operation %d: version %d takes snapshot %s again", k, v, latest.Version)
		}
		seen = append(seen, latest.Version.Value)
	}
}
