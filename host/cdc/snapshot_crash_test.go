package cdc_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/cdc/cdctest"
	"github.com/weir-data/weir/host/cdc/state"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/faultstore"
	"github.com/weir-data/weir/host/stream"
)

// days provides three extracts.
type days struct{}

var dayColumns = arrow.NewSchema([]arrow.Field{field("k", int64Type), field("v", stringType)}, nil)

func (days) Schema(context.Context, *arrow.Schema) (*arrow.Schema, error) { return dayColumns, nil }

func (days) Run(_ context.Context, t *stream.Task, _ array.RecordReader) (array.RecordReader, error) {
	extracts := [][]string{{`{"k":1,"v":"a"}`, `{"k":2,"v":"b"}`}, {`{"k":1,"v":"a2"}`, `{"k":3,"v":"c"}`}, {`{"k":1,"v":"a2"}`, `{"k":2,"v":"b"}`, `{"k":3,"v":"c"}`}}
	next := 0
	if v := t.LatestSnapshot(); v != nil {
		next = int(v.Value[0] - '0')
	}
	if next == len(extracts) {
		if err := t.Snapshot(abi.SnapshotResult{}); err != nil {
			return nil, err
		}
		return array.NewRecordReader(dayColumns, nil)
	}
	if err := t.Snapshot(abi.SnapshotResult{Version: &abi.Version{Type: "int", Value: fmt.Sprint(next + 1)}}); err != nil {
		return nil, err
	}
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, dayColumns, strings.NewReader("["+strings.Join(extracts[next], ",")+"]"))
	if err != nil {
		return nil, err
	}
	defer rec.Release()
	return array.NewRecordReader(dayColumns, []arrow.RecordBatch{rec})
}

// runDays takes the extracts that are not taken yet.
func runDays(dir string, lake storage.Store, scd int) (err error) {
	st := state.Open(storage.Sub(lake, "state"), filepath.Join(dir, "cache"), memory.DefaultAllocator)
	defer func() { err = errors.Join(err, st.Close()) }()
	const name = "c.s.target"
	_, err = stream.RunSnapshots(background, &stream.Snapshots{
		Flow: stream.Flow{
			Dataset: name, Name: "days", Pipeline: "pipeline", UpdateID: "update", Steps: []stream.Step{days{}}, Checkpoint: storage.Sub(lake, "checkpoint"),
			Target: stream.Target{Table: delta.Open(storage.Sub(lake, "target")), Name: name, Properties: map[string]string{"delta.enableDeletionVectors": "true"}},
			Apply: cdc.NewSnapshots(cdc.Definition{Dataset: name, Flow: "days", StateID: "pipeline/" + name + "/cdc-state", Keys: []string{"k"}, SCDType: scd,
				State: st, Cache: filepath.Join(dir, "cache")}, int64Type),
		},
		Fingerprint: "1", Provider: true, MaxShrink: 1,
	}, nil)
	return err
}

// covers B3: whatever operation goes wrong, the table is that of some snapshot, and
// the next run ends with that of the last one.
func TestEveryStorageOperationOfAComparisonMayFail(t *testing.T) {
	want := map[int][]string{
		1: {"k=1 v=a2", "k=2 v=b", "k=3 v=c"},
		2: {"k=1 v=a __START_AT=1 __END_AT=2", "k=1 v=a2 __START_AT=2 __END_AT=null", "k=2 v=b __START_AT=1 __END_AT=2", "k=2 v=b __START_AT=3 __END_AT=null",
			"k=3 v=c __START_AT=2 __END_AT=null"},
	}
	broken := errors.New("broken")
	step := 5
	if testing.Short() {
		step = 13
	}
	for i, effect := range []func(n int) faultstore.Rule{
		func(n int) faultstore.Rule { return faultstore.FromCall(n, faultstore.Fail(broken)) },
		func(n int) faultstore.Rule { return faultstore.AtCall(n, faultstore.Fail(broken)) },
		func(n int) faultstore.Rule { return faultstore.AtCall(n, faultstore.LoseAnswer(broken)) },
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			for n := 1 + i; ; n += step {
				scd, dir := 1+n%2, t.TempDir()
				lake, err := storage.OpenDir(filepath.Join(dir, "lake"), storage.NoSync)
				if err != nil {
					t.Fatal(err)
				}
				faulty := faultstore.New(lake, effect(n))
				failed := runDays(dir, faulty, scd)
				if err := runDays(dir, lake, scd); err != nil {
					t.Fatalf("call %d, the run after: %v", n, err)
				}
				got, err := (&cdctest.Target{Table: delta.Open(storage.Sub(lake, "target"))}).Rows(background)
				if err != nil || !slices.Equal(got, want[scd]) {
					t.Fatalf("call %d: %v %v", n, got, err)
				}
				if failed == nil && n > len(faulty.Calls()) {
					if n < 50 {
						t.Fatalf("only %d calls", len(faulty.Calls()))
					}
					return
				}
			}
		})
	}
}
