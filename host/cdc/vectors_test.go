package cdc_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"go.uber.org/goleak"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/cdc/cdctest"
	"github.com/weir-data/weir/host/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var background = context.Background()

var (
	int64Type  = arrow.PrimitiveTypes.Int64
	stringType = arrow.BinaryTypes.String
)

func field(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

func users() *arrow.Schema {
	return cdctest.Fields([]arrow.Field{field("userId", int64Type), field("name", stringType), field("city", stringType)}, int64Type, "delete", "truncate")
}

var userChanges = []string{
	`{"userId":124,"name":"Raul","city":"Oaxaca","__weir_cdc_sequence":1}`,
	`{"userId":123,"name":"Isabel","city":"Monterrey","__weir_cdc_sequence":1}`,
	`{"userId":125,"name":"Mercedes","city":"Tijuana","__weir_cdc_sequence":2}`,
	`{"userId":126,"name":"Lily","city":"Cancun","__weir_cdc_sequence":2}`,
	`{"userId":123,"__weir_cdc_sequence":6,"__weir_cdc_delete":true}`,
	`{"userId":125,"name":"Mercedes","city":"Guadalajara","__weir_cdc_sequence":6}`,
	`{"userId":125,"name":"Mercedes","city":"Mexicali","__weir_cdc_sequence":5}`,
	`{"userId":123,"name":"Isabel","city":"Chihuahua","__weir_cdc_sequence":5}`,
}

const truncateAt3 = `{"__weir_cdc_sequence":3,"__weir_cdc_truncate":true}`

// apply applies batches of changes.
func apply(t *testing.T, x *cdctest.Target, s *arrow.Schema, batches ...[]string) {
	t.Helper()
	for _, rows := range batches {
		if _, err := x.Apply(background, cdctest.Changes(t, s, rows...)); err != nil {
			t.Fatal(err)
		}
	}
}

func expect(t *testing.T, x *cdctest.Target, want ...string) {
	t.Helper()
	got, err := x.Rows(background)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows are\n  %s\nnot\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// cuts gives the changes in some batches: at once, one by one, and backwards.
func cuts(rows []string) map[string][][]string {
	single := [][]string{}
	for _, r := range rows {
		single = append(single, []string{r})
	}
	back := slices.Clone(single)
	slices.Reverse(back)
	half := len(rows) / 2
	return map[string][][]string{"at once": {rows}, "one by one": single, "backwards": back, "in halves": {rows[:half], rows[half:]}, "halves swapped": {rows[half:], rows[:half]}}
}

// covers B2
func TestUsersOfTheDocumentation(t *testing.T) {
	for name, v := range map[string]struct {
		def  cdc.Definition
		rows []string
		want []string
	}{
		"type 1": {cdc.Definition{SCDType: 1}, userChanges, []string{
			"userId=124 name=Raul city=Oaxaca", "userId=125 name=Mercedes city=Guadalajara", "userId=126 name=Lily city=Cancun"}},
		"type 1 with a truncate": {cdc.Definition{SCDType: 1}, append(slices.Clone(userChanges), truncateAt3), []string{
			"userId=125 name=Mercedes city=Guadalajara"}},
		"type 2": {cdc.Definition{SCDType: 2}, userChanges, []string{
			"userId=123 name=Isabel city=Chihuahua __START_AT=5 __END_AT=6", "userId=123 name=Isabel city=Monterrey __START_AT=1 __END_AT=5",
			"userId=124 name=Raul city=Oaxaca __START_AT=1 __END_AT=null",
			"userId=125 name=Mercedes city=Guadalajara __START_AT=6 __END_AT=null", "userId=125 name=Mercedes city=Mexicali __START_AT=5 __END_AT=6",
			"userId=125 name=Mercedes city=Tijuana __START_AT=2 __END_AT=5", "userId=126 name=Lily city=Cancun __START_AT=2 __END_AT=null"}},
		"type 2 tracking all but the city": {cdc.Definition{SCDType: 2, Tracked: cdc.Choice{Except: []string{"city"}}}, userChanges, []string{
			"userId=123 name=Isabel city=Chihuahua __START_AT=1 __END_AT=6", "userId=124 name=Raul city=Oaxaca __START_AT=1 __END_AT=null",
			"userId=125 name=Mercedes city=Guadalajara __START_AT=2 __END_AT=null", "userId=126 name=Lily city=Cancun __START_AT=2 __END_AT=null"}},
	} {
		for cut, batches := range cuts(v.rows) {
			t.Run(name+"/"+cut, func(t *testing.T) {
				v.def.Keys = []string{"USERID"}
				x := cdctest.New(t, v.def)
				apply(t, x, users(), batches...)
				expect(t, x, v.want...)
				apply(t, x, users(), v.rows) // the same again
				expect(t, x, v.want...)
			})
		}
	}
}

func wantCode(t *testing.T, err error, code string, says ...string) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Fatalf("error %v, not %s", err, code)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("error %v does not say %q", err, s)
		}
	}
}
