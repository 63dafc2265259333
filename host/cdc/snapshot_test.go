package cdc_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/cdc/cdctest"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/stream"
)

// versioned gives the batches that a target applies their version, and rows that
// a rule refused.
type versioned struct {
	stream.SnapshotApplier
	version *abi.Version
	refused *arrow.RecordBatch
}

func (v versioned) Begin(ctx context.Context, b stream.ApplyBatch) (stream.Application, error) {
	b.Snapshot = v.version
	app, err := v.SnapshotApplier.Begin(ctx, b)
	if err == nil && *v.refused != nil {
		if err = app.(stream.SnapshotApplication).Keep(ctx, *v.refused); err != nil {
			_ = app.Release(ctx)
		}
	}
	return app, err
}

// extracts is a target of full snapshots.
type extracts struct {
	*cdctest.Target
	t       *testing.T
	columns *arrow.Schema
	version abi.Version
	refused arrow.RecordBatch
}

func newExtracts(t *testing.T, d cdc.Definition, version arrow.DataType, columns ...arrow.Field) *extracts {
	e := &extracts{Target: cdctest.New(t, d), t: t, columns: arrow.NewSchema(columns, nil)}
	e.Applier = func(d cdc.Definition) stream.Applier {
		return versioned{cdc.NewSnapshots(d, version), &e.version, &e.refused}
	}
	return e
}

func (e *extracts) try(typ, version string, rows ...string) (stream.Counts, error) {
	e.version = abi.Version{Type: typ, Value: version}
	return e.Apply(background, cdctest.Changes(e.t, e.columns, rows...))
}

func (e *extracts) take(typ, version string, rows ...string) stream.Counts {
	e.t.Helper()
	n, err := e.try(typ, version, rows...)
	if err != nil {
		e.t.Fatal(err)
	}
	return n
}

func (e *extracts) latest() *stream.LatestSnapshot {
	e.t.Helper()
	snap, err := e.Snapshot(background)
	if err != nil {
		e.t.Fatal(err)
	}
	l, err := cdc.NewSnapshots(e.Definition, nil).Latest(background, snap)
	if err != nil {
		e.t.Fatal(err)
	}
	return l
}

// both compares in memory, and in parts as what is too large for it.
func both(t *testing.T, do func(t *testing.T, memory int64)) {
	for name, memory := range map[string]int64{"in memory": 0, "in parts": 1} {
		t.Run(name, func(t *testing.T) { do(t, memory) })
	}
}

// covers B3: the vector of periodic snapshots.
func TestPeriodicSnapshots(t *testing.T) {
	both(t, func(t *testing.T, memory int64) {
		e := newExtracts(t, cdc.Definition{Keys: []string{"k"}, SCDType: 2, Memory: memory}, arrow.FixedWidthTypes.Date32, field("k", int64Type), field("v", stringType))
		e.take("date", "2026-07-01", `{"k":1,"v":"a1"}`, `{"k":2,"v":"a2"}`)
		n := e.take("date", "2026-07-02", `{"k":2,"v":"b2"}`, `{"k":3,"v":"a3"}`)
		want := []string{
			"k=1 v=a1 __START_AT=2026-07-01 __END_AT=2026-07-02", "k=2 v=a2 __START_AT=2026-07-01 __END_AT=2026-07-02",
			"k=2 v=b2 __START_AT=2026-07-02 __END_AT=null", "k=3 v=a3 __START_AT=2026-07-02 __END_AT=null",
		}
		expect(t, e.Target, want...)
		if n.Inserted != 2 || n.Closed != 2 || n.Unchanged != 0 {
			t.Errorf("%+v", n)
		}
		// covers A85, A206: the same extract again changes nothing.
		before, _ := e.Snapshot(background)
		n = e.take("date", "2026-07-03", `{"k":3,"v":"a3"}`, `{"k":2,"v":"b2"}`)
		expect(t, e.Target, want...)
		if n != (stream.Counts{Unchanged: 2}) {
			t.Errorf("%+v", n)
		}
		if l := e.latest(); l.Version.Value != "2026-07-03" || l.Rows != 2 {
			t.Errorf("%+v", l)
		}
		if after, _ := e.Snapshot(background); after.NumFiles() != before.NumFiles() {
			t.Error("files were written")
		}
		// A key that comes back begins again.
		e.take("date", "2026-07-04", `{"k":1,"v":"a1"}`, `{"k":3,"v":"a3"}`)
		expect(t, e.Target, want[0], "k=1 v=a1 __START_AT=2026-07-04 __END_AT=null", want[1],
			"k=2 v=b2 __START_AT=2026-07-02 __END_AT=2026-07-04", want[3])
	})
}

// covers B3, A84: the vector of historical snapshots, with a tracked column.
func TestHistoricalSnapshots(t *testing.T) {
	both(t, func(t *testing.T, memory int64) {
		e := newExtracts(t, cdc.Definition{Keys: []string{"k"}, SCDType: 2, Tracked: cdc.Choice{Only: []string{"a"}}, Memory: memory}, int64Type,
			field("k", int64Type), field("a", stringType), field("b", stringType))
		e.take("int", "1", `{"k":1,"a":"a1","b":"b1"}`, `{"k":2,"a":"a2","b":"b2"}`, `{"k":4,"a":"a4","b":"b4"}`)
		n := e.take("int", "2", `{"k":2,"a":"a2_new","b":"b2"}`, `{"k":3,"a":"a3","b":"b3"}`, `{"k":4,"a":"a4","b":"b4_new"}`)
		expect(t, e.Target, "k=1 a=a1 b=b1 __START_AT=1 __END_AT=2", "k=2 a=a2 b=b2 __START_AT=1 __END_AT=2", "k=2 a=a2_new b=b2 __START_AT=2 __END_AT=null",
			"k=3 a=a3 b=b3 __START_AT=2 __END_AT=null", "k=4 a=a4 b=b4_new __START_AT=1 __END_AT=null")
		if n.Inserted != 2 || n.Updated != 3 || n.Closed != 2 {
			t.Errorf("%+v", n)
		}
	})
}

// covers B3: SCD type 1 removes what is missing.
func TestSnapshotsOfType1(t *testing.T) {
	both(t, func(t *testing.T, memory int64) {
		e := newExtracts(t, cdc.Definition{Keys: []string{"k"}, SCDType: 1, Memory: memory}, nil, field("k", int64Type), field("v", stringType))
		e.take("decimal", "1.5", `{"k":1,"v":"a"}`, `{"k":2,"v":"b"}`)
		n := e.take("decimal", "1.6", `{"k":2,"v":"b"}`, `{"k":3,"v":null}`)
		expect(t, e.Target, "k=2 v=b", "k=3 v=null")
		if n.Inserted != 1 || n.Removed != 1 || n.Unchanged != 1 {
			t.Errorf("%+v", n)
		}
		e.take("decimal", "2", `{"k":1,"v":"c"}`)
		expect(t, e.Target, "k=1 v=c")
		e.take("decimal", "3")
		expect(t, e.Target)
		if l := e.latest(); l.Rows != 0 || l.Version.Value != "3" {
			t.Errorf("%+v", l)
		}
	})
}

// covers B3: keys that stand twice, and none.
func TestSnapshotsWithoutClearKeysAreRefused(t *testing.T) {
	both(t, func(t *testing.T, memory int64) {
		e := newExtracts(t, cdc.Definition{Keys: []string{"k"}, SCDType: 2, Memory: memory}, int64Type, field("k", int64Type), field("v", stringType))
		refused := func(code, says string, rows ...string) {
			t.Helper()
			_, err := e.try("int", "2", rows...)
			if !fault.Is(err, code) || !strings.Contains(err.Error(), says) {
				t.Fatalf("got %v, want [%s] %s", err, code, says)
			}
		}
		twice := func() {
			t.Helper()
			refused("DUPLICATE_KEY_VIOLATION", "snapshot 2 has 2 rows with a key that another row has: k=7; k=9",
				`{"k":7,"v":"a"}`, `{"k":8,"v":"b"}`, `{"k":7,"v":"a"}`, `{"k":9,"v":"x"}`, `{"k":9,"v":"y"}`)
			var many []string
			for i := range 20 {
				many = append(many, fmt.Sprintf(`{"k":%d}`, i/2))
			}
			refused("DUPLICATE_KEY_VIOLATION", "10 rows with a key that another row has: k=0; k=1; k=2; k=3; k=4", many...)
			refused("AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY", "2 rows have no value in a key", `{"v":"a"}`, `{"k":8,"v":"b"}`, `{"k":null,"v":"c"}`)
		}
		twice()
		e.take("int", "1", `{"k":7,"v":"a"}`, `{"k":9,"v":"b"}`, `{"k":1,"v":"b"}`)
		twice()
		if l := e.latest(); l.Version.Value != "1" {
			t.Errorf("%+v", l)
		}
	})
}

func TestVersionsThatDoNotFitTheirType(t *testing.T) {
	e := newExtracts(t, cdc.Definition{Keys: []string{"k"}, SCDType: 2}, &arrow.Decimal128Type{Precision: 4, Scale: 2}, field("k", int64Type))
	for _, v := range []abi.Version{{Type: "int", Value: "1"}, {Type: "decimal", Value: "123.45"}, {Type: "date", Value: "2026-01-01"}} {
		if _, err := e.try(v.Type, v.Value, `{"k":1}`); !fault.Is(err, "SNAPSHOT_VERSION_TYPE_CHANGED") {
			t.Errorf("%v gives %v", v, err)
		}
	}
	e.take("decimal", "12.3", `{"k":1}`)
	expect(t, e.Target, "k=1 __START_AT=12.3 __END_AT=null")
}

// covers A79: __START_AT has the type of the versions.
func TestVersionsOfAllTypes(t *testing.T) {
	for _, c := range []struct {
		typ         arrow.DataType
		name        string
		first, next string
	}{
		{int64Type, "int", "9", "10"}, {arrow.PrimitiveTypes.Float64, "float", "9.5", "10.25"}, {stringType, "string", "10", "9"},
		{arrow.BinaryTypes.Binary, "bytes", "AA==", "/w=="}, {arrow.FixedWidthTypes.Date32, "date", "2026-07-09", "2026-07-10"},
		{arrow.FixedWidthTypes.Timestamp_us, "timestamp", "2026-07-09T00:00:00.000001Z", "2026-07-09T00:00:00.000002Z"},
		{&arrow.Decimal128Type{Precision: 10, Scale: 2}, "decimal", "9.5", "10"},
	} {
		e := newExtracts(t, cdc.Definition{Keys: []string{"k"}, SCDType: 2}, c.typ, field("k", int64Type))
		e.take(c.name, c.first, `{"k":1}`)
		e.take(c.name, c.next)
		rows, err := e.Rows(background)
		if err != nil || len(rows) != 1 || strings.Contains(rows[0], "null") {
			t.Errorf("%s: %v %v", c.name, rows, err)
		}
		snap, err := e.Snapshot(background)
		if err != nil {
			t.Fatal(err)
		}
		if at, ok := snap.Schema().FieldsByName("__START_AT"); !ok || !arrow.TypeEqual(at[0].Type, c.typ) {
			t.Errorf("%s is stored as %v", c.name, at)
		}
	}
}

// A row that a rule refused is there: its key keeps what it had.
func TestRefusedRowsKeepTheirKeys(t *testing.T) {
	both(t, func(t *testing.T, memory int64) {
		e := newExtracts(t, cdc.Definition{Keys: []string{"k"}, SCDType: 2, Memory: memory}, int64Type, field("k", int64Type), field("v", stringType))
		e.take("int", "1", `{"k":1,"v":"a"}`, `{"k":2,"v":"b"}`, `{"k":3,"v":"c"}`)
		e.refused = cdctest.Changes(t, e.columns, `{"k":1,"v":"bad"}`, `{"k":9,"v":"bad"}`, `{"k":null,"v":"bad"}`, `{"k":2,"v":"bad"}`)
		e.take("int", "2", `{"k":2,"v":"b2"}`)
		expect(t, e.Target, "k=1 v=a __START_AT=1 __END_AT=null", "k=2 v=b __START_AT=1 __END_AT=2", "k=2 v=b2 __START_AT=2 __END_AT=null", "k=3 v=c __START_AT=1 __END_AT=2")
		if l := e.latest(); l.Rows != 5 {
			t.Errorf("%+v", l)
		}
	})
}

func TestSnapshotsDoNotFollowSingleChanges(t *testing.T) {
	x := cdctest.New(t, cdc.Definition{Keys: []string{"userId"}, SCDType: 1})
	apply(t, x, users(), userChanges)
	snap, err := x.Snapshot(background)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cdc.NewSnapshots(x.Definition, nil).Latest(background, snap); !fault.Is(err, "INCOMPATIBLE_FLOWS") {
		t.Error(err)
	}
}
