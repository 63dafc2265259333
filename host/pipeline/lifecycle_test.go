package pipeline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/faultstore"
)

func twoTables(t *testing.T, lines ...string) *project {
	t.Helper()
	p := newProject(t, append([]string{landingConf}, lines...)...)
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("sql/silver.sql", silverOrders)
	p.write("landing/a.json", ordersLine(1, 2, ""))
	return p
}

// unanswered lets the first n tries to commit to bronze's table fail as a
// storage that does not answer.
func unanswered(p *project, n int) *faultstore.Store {
	p.t.Helper()
	s := faultstore.New(p.store())
	for range n {
		s.Add(faultstore.Rule{Op: faultstore.OpPutIfAbsent, Name: "dev/bronze/orders/_delta_log/*", Times: 1, Effect: faultstore.Fail(storage.Coded(errors.New("no answer"), "put", "x"))})
	}
	return s
}

// What may pass is tried again within the update, with what was skipped for
// it; what will not pass is not, and development tries nothing again.
//
// covers A179 A180 A219
func TestWhatMayPassIsTriedAgain(t *testing.T) {
	p := twoTables(t)
	p.completed(RunOptions{})
	p.write("landing/b.json", ordersLine(2, 4, ""))
	var told []string
	r := p.runOn(unanswered(p, 7), RunOptions{Observer: func(e Progress) {
		if e.Flow == "" {
			told = append(told, string(e.State)+" "+e.Message)
		}
	}})
	if r.State != Completed || r.Retries != 2 {
		for _, f := range r.Flows {
			t.Logf("%s %s %v", f.Dataset, f.State, f.Err)
		}
		t.Fatalf("%s after %d retries: %q", r.State, r.Retries, told)
	}
	for _, f := range r.Flows {
		if f.State != Completed || f.Err != nil || f.Error != nil || f.RowsWritten != 1 {
			t.Errorf("%+v", f)
		}
	}
	p.wantRows("SELECT order_id FROM silver.orders ORDER BY 1", `{"order_id":"o1"}`, `{"order_id":"o2"}`)
	if last := told[len(told)-1]; last != "COMPLETED " || !strings.Contains(strings.Join(told, "\n"), "retry 1 of 5") {
		t.Errorf("told %q", told)
	}

	p.write("landing/c.json", ordersLine(3, 4, ""))
	p.conf = map[string]string{keyNumUpdateRetryAttempts: "1", keyMaxFlowRetryAttempts: "0"}
	if r = p.runOn(unanswered(p, 9), RunOptions{}); r.State != Failed || r.Retries != 1 || r.flow(t, "silver.orders").State != Skipped {
		t.Errorf("%s after %d retries", r.State, r.Retries)
	}
	p.completed(RunOptions{RefreshFailed: true})
	p.wantRows("SELECT count(*) AS n FROM silver.orders", `{"n":3}`)

	p.write("landing/d.json", ordersLine(4, 4, ""))
	p.write("sql/silver.sql", strings.Replace(silverOrders, "qty * 2", "CAST(order_id AS INT)", 1))
	p.conf = nil
	if r = p.run(RunOptions{}); r.State != Failed || r.Retries != 0 {
		t.Errorf("a query that is wrong stays wrong: %s after %d retries", r.State, r.Retries)
	}

	dev := twoTables(t, "development: true")
	dev.write("lake/x", "")
	if r = dev.runOn(unanswered(dev, 1), RunOptions{}); r.State != Failed || r.Retries != 0 || r.flow(t, "bronze.orders").Retries != 0 {
		t.Errorf("development: %s after %d retries", r.State, r.Retries)
	}
}

// covers A146
func TestOnlyWhatFailedIsRefreshed(t *testing.T) {
	p := twoTables(t)
	p.write("sql/other.sql", "CREATE OR REFRESH STREAMING TABLE other AS SELECT order_id FROM STREAM(orders);\n")
	p.completed(RunOptions{})
	if r := p.completed(RunOptions{RefreshFailed: true}); r.flow(t, "bronze.orders").State != Excluded {
		t.Errorf("nothing failed, and bronze is %s", r.flow(t, "bronze.orders").State)
	}
	p.write("landing/b.json", ordersLine(2, 4, ""))
	full := faultstore.New(p.store(), faultstore.Rule{Op: faultstore.OpCreate, Name: "dev/silver/orders/*", Effect: faultstore.Full()})
	if r := p.runOn(full, RunOptions{}); r.flow(t, "silver.orders").State != Failed || r.flow(t, "other").State != Completed {
		t.Fatalf("%+v", r.Flows)
	}
	p.completed(RunOptions{Refresh: []string{"other"}}) // says nothing of what failed before
	r := p.completed(RunOptions{RefreshFailed: true})
	for table, want := range map[string]State{"silver.orders": Completed, "bronze.orders": Excluded, "other": Excluded} {
		if got := r.flow(t, table).State; got != want {
			t.Errorf("%s is %s, not %s", table, got, want)
		}
	}
	p.wantRows("SELECT count(*) AS n FROM silver.orders", `{"n":2}`)

	// A killed update has left everything that it was asked for.
	pl := p.open()
	record, err := pl.lastUpdate(t.Context())
	if err != nil || record.State != Completed {
		t.Fatalf("%+v, %v", record, err)
	}
	p.write(filepath.Join("lake", "_weir", "test", updatePath), fmt.Sprintf(`{"format":1,"update_id":"u","state":"RUNNING","flows":[{"dataset":%q,"flow":"other","state":"QUEUED"}]}`, "dev.bronze.other"))
	r = p.completed(RunOptions{RefreshFailed: true})
	if r.flow(t, "other").State != Completed || r.flow(t, "silver.orders").State != Excluded {
		t.Errorf("%+v", r.Flows)
	}
	for _, opt := range []RunOptions{{RefreshFailed: true, Refresh: []string{"other"}}, {RefreshFailed: true, FullRefreshAll: true}} {
		_, err := pl.Run(t.Context(), opt)
		wantFault(t, err, "INVALID_SELECTION", "another selection")
	}
}

// covers A153 A154 A191
func TestWhoHoldsTheLockIsTold(t *testing.T) {
	p := twoTables(t)
	p.completed(RunOptions{})
	pl := p.open()
	unlock, err := storage.Lock(t.Context(), pl.folder(), "update.lock", false)
	if err != nil {
		t.Fatal(err)
	}
	// The one before has ended: of the holder nothing is known yet.
	_, err = pl.Run(t.Context(), RunOptions{})
	wantFault(t, err, "UPDATE_ALREADY_RUNNING", "another update of pipeline test is running", "--wait")
	p.write(filepath.Join("lake", "_weir", "test", updatePath), `{"format":1,"update_id":"0f0e","state":"RUNNING","host":"etl-1","user":"etl","pid":4711,"started":"2026-11-30T13:45:00Z","flows":[]}`)
	_, err = pl.Run(t.Context(), RunOptions{})
	wantFault(t, err, "UPDATE_ALREADY_RUNNING", "update 0f0e of pipeline test is running since 2026-11-30T13:45:00Z (process 4711 of etl on etl-1)")

	queued := make(chan string, 100)
	var waiting sync.WaitGroup
	var states []State
	waiting.Go(func() {
		r, err := pl.Run(t.Context(), RunOptions{Wait: true, Observer: func(e Progress) {
			if e.Flow == "" {
				states = append(states, e.State)
				queued <- e.Message
			}
		}})
		if err != nil || r.State != Completed {
			t.Errorf("after waiting: %+v %v", r, err)
		}
	})
	if got := <-queued; !strings.Contains(got, "waiting: update 0f0e") {
		t.Errorf("told %q", got)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	waiting.Wait()
	want := []State{Queued, Created, Initializing, SettingUpTables, Running, Completed}
	if fmt.Sprint(states) != fmt.Sprint(want) {
		t.Errorf("states %v, want %v", states, want)
	}
	record, err := pl.lastUpdate(t.Context())
	if err != nil || record.State != Completed || record.PID != os.Getpid() || record.Host == "" || record.User == "" || record.Ended.IsZero() || len(record.Flows) != 2 {
		t.Errorf("%+v, %v", record, err)
	}
	p.write(filepath.Join("lake", "_weir", "test", updatePath), "{")
	_, err = pl.Run(t.Context(), RunOptions{})
	wantFault(t, err, "CHECKPOINT_CORRUPT", updatePath)
}

func TestPausesDoubleUpToABound(t *testing.T) {
	p := &Pipeline{}
	for retry, want := range map[int]string{0: "500ms", 1: "1s", 5: "16s", 6: "30s", 99: "30s"} {
		if got := p.flowPause(retry); got.String() != want {
			t.Errorf("flow, retry %d: %s", retry, got)
		}
	}
	for retry, want := range map[int]string{0: "2s", 4: "32s", 5: "1m0s", 64: "1m0s"} {
		if got := p.updatePause(retry); got.String() != want {
			t.Errorf("update, retry %d: %s", retry, got)
		}
	}
	for err, want := range map[error]bool{
		fault.New("A", "x").Retryable():                                        true,
		fault.Wrap(fault.New("A", "x").Retryable(), "B", "y"):                  true,
		fault.Wrap(storage.Coded(errors.New("eof"), "put", "x"), "B", "y"):     true,
		fault.Wrap(storage.Coded(storage.ErrPermission, "put", "x"), "B", "y"): false,
		fault.New("A", "x"): false,
		errors.New("x"):     false,
	} {
		if passing(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}
