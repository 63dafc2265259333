package pipeline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/faultstore"
)

// An update that was asked for a full refresh of two tables and died between
// them is finished by the next one, whatever that one is asked for.
// covers A147
func TestAFullRefreshThatWasCutOffIsFinished(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("sql/silver.sql", silverOrders)
	p.write("landing/a.json", ordersLine(1, 2, ""))
	p.completed(RunOptions{})
	p.write("landing/a.json", ordersLine(7, 2, ""))
	p.completed(RunOptions{FullRefresh: []string{"orders"}})
	// What the killed update would have left: bronze is done, silver is not.
	record := filepath.Join("lake", "_weir", "test", intentPath)
	p.write(record, `{"format":1,"update_id":"u0","datasets":["dev.silver.orders"]}`)

	r := p.run(RunOptions{Refresh: []string{"orders"}})
	if f := r.flow(t, "silver.orders"); f.State != Excluded || r.State != Completed {
		t.Fatalf("a selection without it leaves it alone: %s %s", r.State, f.State)
	}
	r = p.completed(RunOptions{})
	if f := r.flow(t, "silver.orders"); !f.FullRefresh || f.RowsWritten != 1 {
		t.Errorf("silver %+v", f)
	}
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "dev.silver.orders") || !strings.Contains(r.Warnings[0], "u0") {
		t.Errorf("warnings %v", r.Warnings)
	}
	p.wantRows("SELECT order_id FROM silver.orders", `{"order_id":"o7"}`)
	if _, err := os.Stat(filepath.Join(p.dir, record)); !os.IsNotExist(err) {
		t.Error("the record is still there")
	}
	p.write(record, "{")
	_, err := p.open().Run(t.Context(), RunOptions{})
	wantFault(t, err, "CHECKPOINT_CORRUPT", intentPath)
}

// The record of a full refresh is there before its first generation is.
func TestAFullRefreshIsRecordedBeforeItBegins(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("sql/silver.sql", silverOrders)
	p.write("landing/a.json", ordersLine(1, 2, ""))
	p.completed(RunOptions{})
	broken := faultstore.New(p.store())
	broken.Add(faultstore.Rule{Op: faultstore.OpPutIfAbsent, Name: "_weir/test/checkpoints/dev.bronze.orders/orders/1/generation.json", Effect: faultstore.Fail(errors.New("no"))})
	r := p.runOn(broken, RunOptions{FullRefreshAll: true})
	if f := r.flow(t, "bronze.orders"); f.State != Failed {
		t.Fatalf("bronze is %s", f.State)
	}
	pl := p.open()
	pending, err := pl.pendingRefreshes(t.Context())
	if err != nil || !slices.Equal(pending.Datasets, []string{"dev.bronze.orders", "dev.silver.orders"}) {
		t.Fatalf("pending %+v %v", pending, err)
	}
	p.completed(RunOptions{})
	pending, err = pl.pendingRefreshes(t.Context())
	if err != nil || len(pending.Datasets) != 0 {
		t.Errorf("pending %+v %v", pending, err)
	}
	p.wantRows("SELECT order_id FROM silver.orders", `{"order_id":"o1"}`)
}

// A full disk fails the flow it meets, with its name; what was committed stays,
// and once there is room again nothing is lost or doubled.
func TestAFullDiskFailsAFlowAndLosesNothing(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/bronze.sql", bronzeOrders)
	p.write("sql/silver.sql", silverOrders)
	p.write("landing/a.json", ordersLine(1, 2, ""))
	p.completed(RunOptions{})
	p.write("landing/b.json", ordersLine(2, 2, ""))
	full := faultstore.New(p.store(), faultstore.Rule{Op: faultstore.OpCreate, Name: "dev/silver/orders/*", Effect: faultstore.Full()})
	r := p.runOn(full, RunOptions{})
	if f := r.flow(t, "silver.orders"); f.State != Failed || !strings.Contains(f.Error.Message, "no space left") {
		t.Errorf("silver is %s: %+v", f.State, f.Error)
	}
	if f := r.flow(t, "bronze.orders"); f.State != Completed || f.RowsWritten != 1 {
		t.Errorf("bronze %+v", f.Metrics)
	}
	p.wantRows("SELECT order_id FROM silver.orders", `{"order_id":"o1"}`)
	p.completed(RunOptions{})
	p.wantRows("SELECT order_id FROM silver.orders ORDER BY 1", `{"order_id":"o1"}`, `{"order_id":"o2"}`)
}

// store opens the project's storage.
func (p *project) store() storage.Store {
	p.t.Helper()
	dir, err := storage.OpenDir(filepath.Join(p.dir, "lake"))
	if err != nil {
		p.t.Fatal(err)
	}
	return dir
}

// runOn runs an update on another store.
func (p *project) runOn(s storage.Store, opt RunOptions) *Result {
	p.t.Helper()
	spec, err := LoadSpec(p.dir, p.conf)
	if err != nil {
		p.t.Fatal(err)
	}
	pl, err := Open(p.t.Context(), spec, Options{CacheDir: cacheDir(), Alloc: p.mem, Storage: s, shortPauses: true})
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() {
		if err := pl.Close(context.Background()); err != nil {
			p.t.Error(err)
		}
	}()
	r, err := pl.Run(p.t.Context(), opt)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}
