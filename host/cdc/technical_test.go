package cdc_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/cdc/cdctest"
	"github.com/weir-data/weir/host/delta"
)

// rowsByColumn gives the rows of the target as maps of texts.
func rowsByColumn(t *testing.T, x *cdctest.Target) (out []map[string]string) {
	t.Helper()
	err := x.EachRow(background, func(rec arrow.RecordBatch, i int) {
		row := map[string]string{}
		for c, f := range rec.Schema().Fields() {
			row[f.Name] = rec.Column(c).ValueStr(i)
		}
		out = append(out, row)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// covers A55 A89: the technical columns say what __START_AT and __END_AT say, whatever the order of
// arrival, and the hash tells versions apart by what is tracked.
func TestTechnicalColumnsSayTheSame(t *testing.T) {
	for name, def := range map[string]cdc.Definition{
		"all tracked":     {SCDType: 2},
		"city is not":     {SCDType: 2, Tracked: cdc.Choice{Except: []string{"city"}}},
		"nulls inherited": {SCDType: 2, IgnoreNulls: &cdc.Choice{}},
	} {
		def.Keys = []string{"userId"}
		hashes := map[string]string{} // by what the row says
		for cut, batches := range cuts(userChanges) {
			t.Run(name+"/"+cut, func(t *testing.T) {
				plain, technical := cdctest.New(t, def), def
				technical.Technical = true
				tech := cdctest.New(t, technical)
				apply(t, plain, users(), batches...)
				apply(t, tech, users(), batches...)
				apply(t, tech, users(), userChanges) // the same again
				var want, got []string
				for _, row := range rowsByColumn(t, plain) {
					want = append(want, strings.Join([]string{row["userId"], row["name"], row["city"], row["__START_AT"], row["__END_AT"]}, " "))
				}
				perKey := map[string][]string{}
				for _, row := range rowsByColumn(t, tech) {
					if names := slices.Sorted(maps.Keys(row)); !slices.Equal(names, []string{"_tech_hash", "_tech_is_current", "_tech_valid_from", "_tech_valid_to", "city", "name", "userId"}) {
						t.Fatalf("the columns are %v", names)
					}
					text := strings.Join([]string{row["userId"], row["name"], row["city"], row["_tech_valid_from"], row["_tech_valid_to"]}, " ")
					got = append(got, text)
					if current := row["_tech_valid_to"] == "(null)"; row["_tech_is_current"] != map[bool]string{true: "true", false: "false"}[current] {
						t.Errorf("%s: _tech_is_current is %s", text, row["_tech_is_current"])
					}
					if h := hashes[text]; len(row["_tech_hash"]) != 32 || h != "" && h != row["_tech_hash"] {
						t.Errorf("%s: the hash is %q, and was %q", text, row["_tech_hash"], h)
					}
					hashes[text] = row["_tech_hash"]
					perKey[row["userId"]] = append(perKey[row["userId"]], row["_tech_hash"])
				}
				slices.Sort(want)
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("the rows are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				for key, of := range perKey {
					slices.Sort(of)
					if len(slices.Compact(of)) != len(perKey[key]) {
						t.Errorf("versions of %s that differ have one hash", key)
					}
				}
			})
		}
	}
}

// A catalog has one contract; type 1 has no interval to say it with.
func TestCurrentRowsHaveNoTechnicalColumns(t *testing.T) {
	x := cdctest.New(t, cdc.Definition{Keys: []string{"userId"}, SCDType: 1, Technical: true})
	apply(t, x, users(), userChanges[:4], userChanges[4:])
	expect(t, x, "userId=124 name=Raul city=Oaxaca", "userId=125 name=Mercedes city=Guadalajara", "userId=126 name=Lily city=Cancun")
}

// covers A90
func TestTheColumnsOfIntervalsStayAsTheyAre(t *testing.T) {
	x := cdctest.New(t, cdc.Definition{Keys: []string{"userId"}, SCDType: 2})
	apply(t, x, users(), userChanges)
	x.Definition.Technical = true
	change := `{"userId":124,"name":"Raul","city":"Lima","__weir_cdc_sequence":9}`
	_, err := x.Apply(background, cdctest.Changes(t, users(), change))
	wantCode(t, err, "INTERVAL_COLUMNS_DRIFT", "full refresh")

	x = cdctest.New(t, cdc.Definition{Keys: []string{"userId"}, SCDType: 2, Technical: true})
	apply(t, x, users(), userChanges)
	x.Definition.Technical = false
	_, err = x.Apply(background, cdctest.Changes(t, users(), change))
	wantCode(t, err, "INTERVAL_COLUMNS_DRIFT", "full refresh")
}

// covers A94
func TestColumnsAddedByHandAreRefused(t *testing.T) {
	for _, column := range []string{"_tech_is_current", "_Tech_Hash", "_tech_valid_from"} {
		x := cdctest.New(t, cdc.Definition{Keys: []string{"userId"}, SCDType: 2})
		apply(t, x, users(), userChanges)
		snap, err := x.Snapshot(background)
		if err != nil {
			t.Fatal(err)
		}
		wider := arrow.NewSchema(append(snap.Schema().Fields(), field(column, stringType)), nil)
		if _, err := x.Table.Commit(background, delta.Commit{Read: snap, Schema: wider, Operation: "ADD COLUMNS"}); err != nil {
			t.Fatal(err)
		}
		_, err = x.Apply(background, cdctest.Changes(t, users(), `{"userId":124,"name":"Raul","city":"Lima","__weir_cdc_sequence":9}`))
		wantCode(t, err, "INTERVAL_COLUMN_BY_HAND", column, "weir.intervalView")
	}
}

// covers A94
func TestNobodyElseBringsTheColumnsOfIntervals(t *testing.T) {
	for _, c := range []struct {
		column    string
		technical bool
	}{{"__START_AT", false}, {"__end_at", true}, {"_tech_is_current", true}, {"_TECH_HASH", true}, {"_tech_valid_to", true}} {
		s := cdctest.Fields([]arrow.Field{field("id", int64Type), field(c.column, stringType)}, int64Type)
		x := cdctest.New(t, cdc.Definition{Keys: []string{"id"}, SCDType: 2, Technical: c.technical})
		_, err := x.Apply(background, cdctest.Changes(t, s, `{"id":1,"__weir_cdc_sequence":1}`))
		wantCode(t, err, "AUTOCDC_RESERVED_COLUMN", c.column)
	}
}
