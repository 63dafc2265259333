package cdc_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/cdc/cdctest"
)

func items(more ...arrow.Field) *arrow.Schema {
	columns := append([]arrow.Field{field("id", int64Type), field("v", stringType)}, more...)
	return cdctest.Fields(columns, int64Type, "delete")
}

func change(id, seq int, v string) string {
	return fmt.Sprintf(`{"id":%d,"v":"%s","__weir_cdc_sequence":%d}`, id, v, seq)
}

func removal(id, seq int) string {
	return fmt.Sprintf(`{"id":%d,"__weir_cdc_sequence":%d,"__weir_cdc_delete":true}`, id, seq)
}

// fails applies a batch that must fail and change nothing.
func fails(t *testing.T, x *cdctest.Target, rec arrow.RecordBatch, code string, says ...string) {
	t.Helper()
	before, err := x.Rows(background)
	if err != nil {
		t.Fatal(err)
	}
	_, err = x.Apply(background, rec)
	wantCode(t, err, code, says...)
	expect(t, x, before...)
}

// covers A61
func TestTwoChangesOfOneSequenceAreAnError(t *testing.T) {
	for _, scd := range []int{1, 2} {
		for name, v := range map[string]struct{ first, second []string }{
			"in one batch":                 {nil, []string{change(1, 5, "a"), change(1, 5, "b")}},
			"in two batches":               {[]string{change(1, 5, "a")}, []string{change(1, 5, "b")}},
			"a delete and an upsert":       {nil, []string{change(1, 5, "a"), removal(1, 5)}},
			"a delete in a later batch":    {[]string{change(1, 5, "a")}, []string{removal(1, 5)}},
			"an upsert beside a tombstone": {[]string{removal(1, 5)}, []string{change(1, 5, "a")}},
		} {
			t.Run(fmt.Sprint(scd, "/", name), func(t *testing.T) {
				x := cdctest.New(t, cdc.Definition{Keys: []string{"id"}, SCDType: scd})
				apply(t, x, items(), append(v.first, change(2, 1, "other")))
				fails(t, x, cdctest.Changes(t, items(), v.second...), "CDC_SEQUENCE_TIE", "1 change", "id=1 at 5")
			})
		}
	}
}

// covers A61 A71
func TestEqualChangesAreNoTie(t *testing.T) {
	for _, scd := range []int{1, 2} {
		x := cdctest.New(t, cdc.Definition{Keys: []string{"id"}, SCDType: scd})
		s := items(field("_tech_loaded_at", int64Type))
		loaded := func(id, seq int, v string, at int) string {
			return fmt.Sprintf(`{"id":%d,"v":"%s","_tech_loaded_at":%d,"__weir_cdc_sequence":%d}`, id, v, at, seq)
		}
		apply(t, x, s, []string{loaded(1, 5, "a", 9), loaded(1, 5, "a", 7), removal(2, 5), removal(2, 5)})
		before, err := x.Rows(background)
		if err != nil {
			t.Fatal(err)
		}
		apply(t, x, s, []string{loaded(1, 5, "a", 10), removal(2, 5)})
		expect(t, x, before...)
	}
}

// covers A61
func TestColumnsDecideBetweenEqualSequences(t *testing.T) {
	for scd, want := range map[int][]string{
		1: {"id=1 v=c"},
		2: {"id=1 v=c __START_AT=5 __END_AT=null", "id=1 v=z __START_AT=1 __END_AT=5"},
	} {
		rows := []string{
			`{"id":1,"v":"z","__weir_cdc_tie_0":1,"__weir_cdc_sequence":1}`,
			`{"id":1,"v":"b","__weir_cdc_tie_0":2,"__weir_cdc_sequence":5}`,
			`{"id":1,"v":"c","__weir_cdc_tie_0":3,"__weir_cdc_sequence":5}`,
			`{"id":1,"v":"a","__weir_cdc_sequence":5}`,
		}
		for cut, batches := range cuts(rows) {
			t.Run(fmt.Sprint(scd, "/", cut), func(t *testing.T) {
				x := cdctest.New(t, cdc.Definition{Keys: []string{"id"}, SCDType: scd, LastBy: []string{"n"}})
				apply(t, x, items(field("__weir_cdc_tie_0", int64Type)), batches...)
				expect(t, x, want...)
				fails(t, x, cdctest.Changes(t, items(field("__weir_cdc_tie_0", int64Type)), `{"id":1,"v":"d","__weir_cdc_tie_0":3,"__weir_cdc_sequence":5}`), "CDC_SEQUENCE_TIE")
			})
		}
	}
}

func TestTiesCanBeSettledLater(t *testing.T) {
	x := cdctest.New(t, cdc.Definition{Keys: []string{"id"}, SCDType: 2})
	apply(t, x, items(), []string{change(1, 5, "a")})
	fails(t, x, cdctest.Changes(t, items(), change(1, 5, "b")), "CDC_SEQUENCE_TIE", "pipelines.cdc.ties")
	x.Definition.LastBy = []string{"v"}
	s := items(field("__weir_cdc_tie_0", stringType))
	// Whether "a" would come last is not known of a change that came before.
	fails(t, x, cdctest.Changes(t, s, `{"id":1,"v":"b","__weir_cdc_tie_0":"b","__weir_cdc_sequence":5}`), "CDC_SEQUENCE_TIE", "full refresh")
	apply(t, x, s, []string{`{"id":1,"v":"a","__weir_cdc_tie_0":"a","__weir_cdc_sequence":5}`, `{"id":1,"v":"c","__weir_cdc_tie_0":"c","__weir_cdc_sequence":6}`, `{"id":1,"v":"d","__weir_cdc_tie_0":"d","__weir_cdc_sequence":6}`})
	expect(t, x, "id=1 v=a __START_AT=5 __END_AT=6", "id=1 v=d __START_AT=6 __END_AT=null")
	x.Definition.LastBy = nil
	fails(t, x, cdctest.Changes(t, items(), change(1, 7, "b")), "CDC_TIES_DRIFT")
}

func TestRowsWithoutKeyOrSequenceFail(t *testing.T) {
	x := cdctest.New(t, cdc.Definition{Keys: []string{"id", "v"}, SCDType: 1})
	rows := []string{change(1, 1, "a")}
	for i := range 7 {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"__weir_cdc_sequence":%d}`, i, i))
	}
	fails(t, x, cdctest.Changes(t, items(), rows...), "AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY", "7 rows have no value in a key", "id=0, v=NULL, sequence 0")
	fails(t, x, cdctest.Changes(t, items(), `{"id":3,"v":"a"}`), "AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE", "1 row has no sequence: id=3, v=a")
}

func TestDrift(t *testing.T) {
	two := func() cdc.Definition { return cdc.Definition{Keys: []string{"id", "k"}, SCDType: 2} }
	s := items(field("k", int64Type))
	for name, v := range map[string]struct {
		change func(d *cdc.Definition)
		schema *arrow.Schema
		code   string
	}{
		"keys in another order and case": {func(d *cdc.Definition) { d.Keys = []string{"K", "ID"} }, s, ""},
		"fewer keys":                     {func(d *cdc.Definition) { d.Keys = []string{"id"} }, s, "KEY_SCHEMA_DRIFT"},
		"SCD type":                       {func(d *cdc.Definition) { d.SCDType = 1 }, s, "SCD_TYPE_DRIFT"},
		"tracking the same by name":      {func(d *cdc.Definition) { d.Tracked.Only = []string{"V"} }, s, ""},
		"tracking nothing":               {func(d *cdc.Definition) { d.Tracked.Except = []string{"v"} }, s, "TRACK_HISTORY_DRIFT"},
		"a new column":                   {func(*cdc.Definition) {}, items(field("k", int64Type), field("w", int64Type)), "TRACK_HISTORY_DRIFT"},
		"a new column that is not tracked": {func(d *cdc.Definition) { d.Tracked.Except = []string{"w"} },
			items(field("k", int64Type), field("w", int64Type)), ""},
		"ignoring nulls": {func(d *cdc.Definition) { d.IgnoreNulls = &cdc.Choice{} }, s, "IGNORE_NULL_UPDATES_DRIFT"},
		"sequence": {func(*cdc.Definition) {}, cdctest.Fields([]arrow.Field{field("id", int64Type), field("v", stringType), field("k", int64Type)},
			arrow.PrimitiveTypes.Int32, "delete"), "SEQUENCING_TYPE_DRIFT"},
	} {
		t.Run(name, func(t *testing.T) {
			x := cdctest.New(t, two())
			apply(t, x, s, []string{`{"id":1,"k":1,"v":"a","__weir_cdc_sequence":1}`})
			v.change(&x.Definition)
			rec := cdctest.Changes(t, v.schema, `{"id":1,"k":1,"v":"b","__weir_cdc_sequence":2}`)
			if v.code != "" {
				fails(t, x, rec, v.code, "full refresh")
				return
			}
			if _, err := x.Apply(background, rec); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestNewColumns(t *testing.T) {
	for scd, want := range map[int][]string{
		1: {"id=1 v=b w=7", "id=2 v=x w=null"},
		2: {"id=1 v=a __START_AT=1 __END_AT=2 w=null", "id=1 v=b __START_AT=2 __END_AT=null w=7", "id=2 v=x __START_AT=1 __END_AT=null w=null"},
	} {
		x := cdctest.New(t, cdc.Definition{Keys: []string{"id"}, SCDType: scd, Tracked: cdc.Choice{Only: []string{"v"}}})
		apply(t, x, items(), []string{change(1, 1, "a"), change(2, 1, "x")})
		wide := items(field("w", int64Type))
		apply(t, x, wide, []string{`{"id":1,"v":"b","w":7,"__weir_cdc_sequence":2}`}, []string{change(1, 1, "a")})
		expect(t, x, want...)
		apply(t, x, items(), []string{change(2, 1, "x")}) // the column is gone from the source
		expect(t, x, want...)
	}
}

// covers A62 A210
func TestDeletesThatComeFirstLeaveNoGhost(t *testing.T) {
	for _, scd := range []int{1, 2} {
		x := cdctest.New(t, cdc.Definition{Keys: []string{"id"}, SCDType: scd})
		apply(t, x, items(), []string{removal(1, 5), change(2, 1, "b")}, []string{change(1, 4, "a")})
		if scd == 1 {
			expect(t, x, "id=2 v=b")
		} else {
			expect(t, x, "id=1 v=a __START_AT=4 __END_AT=5", "id=2 v=b __START_AT=1 __END_AT=null")
		}
	}
}

func TestTombstonesAreForgottenWhenToldTo(t *testing.T) {
	for _, keep := range []time.Duration{0, time.Hour} {
		x := cdctest.New(t, cdc.Definition{Keys: []string{"id"}, SCDType: 1, Tombstones: keep})
		apply(t, x, items(), []string{removal(1, 5), change(2, 1, "b")})
		x.Now = x.Now.Add(50 * time.Minute)
		apply(t, x, items(), []string{change(1, 3, "late")})
		expect(t, x, "id=2 v=b")
		x.Now = x.Now.Add(50 * time.Minute)
		apply(t, x, items(), []string{change(1, 4, "later")})
		if keep == 0 {
			expect(t, x, "id=2 v=b")
		} else {
			expect(t, x, "id=1 v=later", "id=2 v=b")
		}
	}
}

func TestForgottenDeletesStayForgotten(t *testing.T) {
	for _, share := range []float64{0, 1e9} {
		x := cdctest.New(t, cdc.Definition{Keys: []string{"id"}, SCDType: 2, Tombstones: time.Hour, ScanShare: share})
		apply(t, x, items(), []string{removal(1, 5), removal(1, 6), change(2, 1, "b"), removal(2, 2)})
		x.Now = x.Now.Add(2 * time.Hour)
		apply(t, x, items(), []string{change(1, 3, "late")})
		want := []string{"id=1 v=late __START_AT=3 __END_AT=null", "id=2 v=b __START_AT=1 __END_AT=2"}
		expect(t, x, want...)
		apply(t, x, items(), []string{change(3, 1, "x")}, []string{change(1, 3, "late")})
		apply(t, x, items(), []string{change(1, 7, "later"), change(2, 1, "b")})
		expect(t, x, "id=1 v=late __START_AT=3 __END_AT=7", "id=1 v=later __START_AT=7 __END_AT=null", want[1], "id=3 v=x __START_AT=1 __END_AT=null")
	}
}

// covers A68
func TestNullsInherit(t *testing.T) {
	address := arrow.StructOf(field("city", stringType), field("zip", int64Type))
	s := items(field("a", address))
	rows := []string{
		`{"id":1,"v":"first","a":{"city":"Ulm","zip":1},"__weir_cdc_sequence":1}`,
		`{"id":1,"a":{"city":"Bonn"},"__weir_cdc_sequence":3}`,
		`{"id":1,"__weir_cdc_sequence":5}`,
		`{"id":1,"v":"second","__weir_cdc_sequence":2}`,
		`{"id":2,"v":"x","a":{"zip":3},"__weir_cdc_sequence":1}`,
		removal(2, 2),
		`{"id":2,"__weir_cdc_sequence":3}`,
	}
	for name, v := range map[string]struct {
		choice cdc.Choice
		one    []string
		two    []string
	}{
		"all": {cdc.Choice{}, []string{`id=1 v=second a={"city":"Bonn","zip":1}`, `id=2 v=null a=null`}, []string{
			`id=1 v=first a={"city":"Ulm","zip":1} __START_AT=1 __END_AT=2`, `id=1 v=second a={"city":"Bonn","zip":1} __START_AT=3 __END_AT=null`,
			`id=1 v=second a={"city":"Ulm","zip":1} __START_AT=2 __END_AT=3`,
			`id=2 v=null a=null __START_AT=3 __END_AT=null`, `id=2 v=x a={"city":null,"zip":3} __START_AT=1 __END_AT=2`}},
		"a field": {cdc.Choice{Only: []string{"A.zip"}}, []string{`id=1 v=null a={"city":null,"zip":1}`, `id=2 v=null a=null`}, []string{
			`id=1 v=first a={"city":"Ulm","zip":1} __START_AT=1 __END_AT=2`, `id=1 v=null a={"city":"Bonn","zip":1} __START_AT=3 __END_AT=5`,
			`id=1 v=null a={"city":null,"zip":1} __START_AT=5 __END_AT=null`, `id=1 v=second a={"city":null,"zip":1} __START_AT=2 __END_AT=3`,
			`id=2 v=null a=null __START_AT=3 __END_AT=null`, `id=2 v=x a={"city":null,"zip":3} __START_AT=1 __END_AT=2`}},
		"all but a column": {cdc.Choice{Except: []string{"a"}}, []string{`id=1 v=second a=null`, `id=2 v=null a=null`}, nil},
	} {
		for scd, want := range map[int][]string{1: v.one, 2: v.two} {
			if want == nil {
				continue
			}
			for cut, batches := range cuts(rows) {
				t.Run(fmt.Sprint(name, "/", scd, "/", cut), func(t *testing.T) {
					x := cdctest.New(t, cdc.Definition{Keys: []string{"id"}, SCDType: scd, IgnoreNulls: &v.choice})
					apply(t, x, s, batches...)
					expect(t, x, want...)
				})
			}
		}
	}
}
