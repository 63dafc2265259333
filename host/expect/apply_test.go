package expect

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// nested is a column of every layout a filter must get right.
var nested = arrow.StructOf(
	arrow.Field{Name: "tags", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
	arrow.Field{Name: "attrs", Type: arrow.MapOf(arrow.BinaryTypes.String, &arrow.Decimal128Type{Precision: 18, Scale: 2}), Nullable: true},
	arrow.Field{Name: "flag", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
)

// marked makes a batch whose rows have these masks, numbered from first.
func marked(mem memory.Allocator, first int, masks []int64) arrow.RecordBatch {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "more", Type: nested, Nullable: true},
		relation.RowField(), relation.MaskField(),
	}, nil)
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	for i, m := range masks {
		id := int64(first + i)
		b.Field(0).(*array.Int64Builder).Append(id)
		if id%5 == 0 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("name %d", id))
		}
		more := b.Field(2).(*array.StructBuilder)
		more.Append(id%7 != 0)
		if id%7 == 0 {
			for f := range more.NumField() {
				more.FieldBuilder(f).AppendNull()
			}
		} else {
			tags := more.FieldBuilder(0).(*array.ListBuilder)
			tags.Append(true)
			for k := range id % 4 {
				tags.ValueBuilder().(*array.StringBuilder).Append(fmt.Sprint("t", k))
			}
			attrs := more.FieldBuilder(1).(*array.MapBuilder)
			attrs.Append(true)
			attrs.KeyBuilder().(*array.StringBuilder).Append("k")
			_ = attrs.ItemBuilder().AppendValueFromString(fmt.Sprintf("%d.25", id))
			more.FieldBuilder(2).(*array.BooleanBuilder).Append(id%2 == 0)
		}
		b.Field(3).(*array.Int64Builder).Append(id)
		b.Field(4).(*array.Int64Builder).Append(m)
	}
	return b.NewRecordBatch()
}

// outcome is what a run gave, rows as JSON.
type outcome struct {
	Kept, Aside []string
	Rules       [][]string
	Counts      Counts
}

func apply(t *testing.T, mem memory.Allocator, rules []Rule, batches []arrow.RecordBatch) (outcome, error) {
	t.Helper()
	in, err := array.NewRecordReader(batches[0].Schema(), batches)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Release()
	var out outcome
	out.Counts, err = Apply(t.Context(), rules, in, Sink{
		Keep: func(_ context.Context, rec arrow.RecordBatch) error {
			for i := range int(rec.NumRows()) {
				out.Kept = append(out.Kept, string(relation.RowJSON(rec, i)))
			}
			return nil
		},
		Quarantine: func(_ context.Context, rec arrow.RecordBatch, names [][]string) error {
			for i := range int(rec.NumRows()) {
				out.Aside = append(out.Aside, string(relation.RowJSON(rec, i)))
			}
			out.Rules = append(out.Rules, names...)
			return nil
		},
		Locate: func(row int64) string { return fmt.Sprintf("file f, line %d", row+1) },
		Alloc:  mem,
	})
	return out, err
}

// model is Apply said slowly.
func model(rules []Rule, batches []arrow.RecordBatch) (out outcome, failed bool) {
	out.Counts.Rules = make([]RuleCounts, len(rules))
	for i, r := range rules {
		out.Counts.Rules[i].Name = r.Name
	}
	for _, rec := range batches {
		masks, _ := relation.Int64Column(rec, relation.MaskColumn)
		for row := range int(rec.NumRows()) {
			out.Counts.Rows++
			var leaves []string
			drop, aside := false, false
			for i, r := range rules {
				if masks.Value(row)>>i&1 == 0 {
					out.Counts.Rules[i].Passed++
					continue
				}
				out.Counts.Rules[i].Failed++
				switch r.Action {
				case Fail:
					failed = true
				case Drop:
					drop = true
					leaves = append(leaves, r.Name)
				case Quarantine:
					aside = true
					leaves = append(leaves, r.Name)
				}
			}
			text := string(relation.RowJSON(rec, row))
			switch {
			case aside:
				out.Counts.Quarantined++
				out.Aside = append(out.Aside, text)
				out.Rules = append(out.Rules, leaves)
			case drop:
				out.Counts.Dropped++
			default:
				out.Counts.Kept++
				out.Kept = append(out.Kept, text)
			}
		}
	}
	return out, failed
}

// covers A96, A98, A104, A106, B4
func TestApplyIsTheSlowModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		rules := randomRules(rnd, rnd.IntN(6))
		var batches []arrow.RecordBatch
		first := 0
		for range 1 + rnd.IntN(4) {
			masks := make([]int64, rnd.IntN(40))
			for i := range masks {
				if rnd.IntN(3) == 0 && len(rules) > 0 {
					masks[i] = rnd.Int64N(int64(1) << len(rules))
				}
			}
			whole := marked(mem, first, masks)
			cut := rnd.Int64N(whole.NumRows() + 1)
			batches = append(batches, whole.NewSlice(0, cut), whole.NewSlice(cut, whole.NumRows()))
			whole.Release()
			first += len(masks)
		}
		want, failed := model(rules, batches)
		got, err := apply(t, mem, rules, batches)
		if failed {
			if fault.CodeOf(err) != "EXPECTATION_VIOLATED" {
				t.Fatalf("got %v", err)
			}
			if got.Counts.Rows != want.Counts.Rows || !reflect.DeepEqual(got.Counts.Rules, want.Counts.Rules) {
				t.Fatalf("counts of a failure\ngot  %+v\nwant %+v", got.Counts, want.Counts)
			}
		} else if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v\ngot  %+v\nwant %+v", err, got, want)
		}
		for _, b := range batches {
			b.Release()
		}
		mem.AssertSize(t, 0)
	}
}

// covers A102
func TestFailNamesRuleCountAndFirstPositions(t *testing.T) {
	rules := []Rule{{Name: "has_id", Condition: "id IS NOT NULL", Action: Fail}, {Name: "w", Action: Warn}}
	masks := make([]int64, 20)
	for i := 4; i < 14; i++ {
		masks[i] = 1
	}
	_, err := apply(t, memory.DefaultAllocator, rules, []arrow.RecordBatch{marked(memory.DefaultAllocator, 0, masks)})
	want := "[EXPECTATION_VIOLATED] violated: has_id (id IS NOT NULL) by 10 of 20 rows; first at file f, line 5, file f, line 6, file f, line 7, file f, line 8, file f, line 9."
	if !strings.HasPrefix(fmt.Sprint(err), want) {
		t.Errorf("got %v", err)
	}
}

func TestNothingIsHandedOverAfterAFailure(t *testing.T) {
	rules := []Rule{{Name: "f", Action: Fail}}
	mem := memory.DefaultAllocator
	got, err := apply(t, mem, rules, []arrow.RecordBatch{marked(mem, 0, []int64{0}), marked(mem, 1, []int64{1, 0}), marked(mem, 3, []int64{0})})
	if err == nil || len(got.Kept) != 1 || got.Counts.Rows != 4 {
		t.Errorf("%v %+v", err, got)
	}
}

func TestErrorsOfTheInputAndTheSinkComeThrough(t *testing.T) {
	mem := memory.DefaultAllocator
	rec := marked(mem, 0, []int64{0})
	broken := errors.New("broken")
	for name, keep := range map[string]error{"sink": broken, "input": nil} {
		in, _ := array.NewRecordReader(rec.Schema(), []arrow.RecordBatch{rec})
		var r array.RecordReader = in
		if name == "input" {
			r = brokenReader{in, broken}
		}
		_, err := Apply(t.Context(), nil, r, Sink{Keep: func(context.Context, arrow.RecordBatch) error { return keep }})
		if !errors.Is(err, broken) {
			t.Errorf("%s: got %v", name, err)
		}
		in.Release()
	}
}

type brokenReader struct {
	array.RecordReader
	err error
}

func (b brokenReader) Err() error { return b.err }

func TestMistakesOfTheCallerAreNamed(t *testing.T) {
	mem := memory.DefaultAllocator
	plain := relation.Data(marked(mem, 0, []int64{0}))
	for _, c := range []struct {
		name  string
		rules []Rule
		rec   arrow.RecordBatch
		code  string
	}{
		{"no mask", []Rule{{Name: "a"}}, plain, "INTERNAL_ERROR"},
		{"no quarantine", []Rule{{Name: "a", Action: Quarantine}}, plain, "INTERNAL_ERROR"},
		{"too many", make([]Rule, 63), plain, "TOO_MANY_EXPECTATIONS"},
		{"unknown action", []Rule{{Action: 9}}, plain, "INVALID_EXPECTATION"},
	} {
		in, _ := array.NewRecordReader(c.rec.Schema(), []arrow.RecordBatch{c.rec})
		_, err := Apply(t.Context(), c.rules, in, Sink{Keep: func(context.Context, arrow.RecordBatch) error { return nil }})
		if fault.CodeOf(err) != c.code {
			t.Errorf("%s: got %v", c.name, err)
		}
		in.Release()
	}
}

func TestActionsHaveTheManifestsWords(t *testing.T) {
	for _, a := range []Action{Warn, Drop, Fail, Quarantine} {
		if got, err := ParseAction(a.String()); err != nil || got != a {
			t.Errorf("%s: %v %v", a, got, err)
		}
	}
	if a, err := ParseAction(""); err != nil || a != Warn {
		t.Error(a, err)
	}
	if _, err := ParseAction("ignore"); fault.CodeOf(err) != "INVALID_EXPECTATION" {
		t.Error(err)
	}
}

// randomRules makes n rules, now and then one that fails.
func randomRules(rnd *rand.Rand, n int) []Rule {
	rules := make([]Rule, n)
	for i := range rules {
		rules[i] = Rule{Name: fmt.Sprint("r", i), Action: []Action{Warn, Drop, Quarantine}[rnd.IntN(3)]}
		if rnd.IntN(12) == 0 {
			rules[i].Action = Fail
		}
	}
	return rules
}

// Filter sorts rows as Apply does, whoever reads them, and gives back all memory,
// also of a reader that is left half-way.
func TestFilterIsApply(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		rules := randomRules(rnd, 1+rnd.IntN(4))
		var batches []arrow.RecordBatch
		first := 0
		for range 1 + rnd.IntN(4) {
			masks := make([]int64, rnd.IntN(30))
			for i := range masks {
				if rnd.IntN(3) == 0 {
					masks[i] = rnd.Int64N(int64(1) << len(rules))
				}
			}
			batches = append(batches, marked(mem, first, masks))
			first += len(masks)
		}
		want, failed := model(rules, batches)
		in, err := array.NewRecordReader(batches[0].Schema(), batches)
		if err != nil {
			t.Fatal(err)
		}
		var got outcome
		r, err := Filter(t.Context(), rules, in, Sink{
			Quarantine: func(_ context.Context, rec arrow.RecordBatch, names [][]string) error {
				for i := range int(rec.NumRows()) {
					got.Aside = append(got.Aside, string(relation.RowJSON(rec, i)))
				}
				got.Rules = append(got.Rules, names...)
				return nil
			},
			Alloc: mem,
		}, func(c Counts) { got.Counts = c })
		if err != nil {
			t.Fatal(err)
		}
		leave := rnd.IntN(8) == 0
		for !leave && r.Next() {
			if _, marked := relation.Int64Column(r.RecordBatch(), relation.MaskColumn); marked {
				t.Fatal("the mask is still there")
			}
			for i := range int(r.RecordBatch().NumRows()) {
				got.Kept = append(got.Kept, string(relation.RowJSON(r.RecordBatch(), i)))
			}
		}
		switch {
		case leave:
		case failed:
			if fault.CodeOf(r.Err()) != "EXPECTATION_VIOLATED" || got.Counts.Rows != 0 {
				t.Fatalf("%v %+v", r.Err(), got.Counts)
			}
		case r.Err() != nil || !reflect.DeepEqual(got, want):
			t.Fatalf("%v\ngot  %+v\nwant %+v", r.Err(), got, want)
		}
		r.Release()
		in.Release()
		for _, b := range batches {
			b.Release()
		}
		mem.AssertSize(t, 0)
	}
}
