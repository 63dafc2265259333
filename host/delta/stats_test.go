package delta

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/storage"
)

// covers "strings truncated": bounds stay bounds when they are cut.
func TestLongStringsAreCutToBounds(t *testing.T) {
	a := strings.Repeat("a", 32)
	last := string(rune(utf8.MaxRune))
	for name, c := range map[string]struct {
		value, min, max string
		noMax           bool
	}{
		"short":                        {"abc", "abc", "abc", false},
		"exactly as long":              {a, a, a, false},
		"cut before ASCII":             {a + "bcd", a, a + "\x7f", false},
		"cut before other":             {a + "ü", a, a + last, false},
		"cut before DEL":               {a + "\x7f", a, a + last, false},
		"cut before the last char":     {a + last + "b", a, a + last + "\x7f", false},
		"nothing but the last chars":   {a + strings.Repeat(last, 40), a, "", true},
		"a pair of units is not split": {a[:31] + "😀x", a[:31], a[:31] + last, false},
		"pairs count as two":           {strings.Repeat("😀", 17), strings.Repeat("😀", 16), strings.Repeat("😀", 16) + last, false},
	} {
		t.Run(name, func(t *testing.T) {
			low := truncateMin(c.value, 32)
			high, ok := truncateMax(c.value, 32)
			if low != c.min || ok == c.noMax || ok && high != c.max {
				t.Errorf("%q, %q (%v), want %q, %q", low, high, ok, c.min, c.max)
			}
			if low > c.value || ok && high < c.value || !utf8.ValidString(low) || !utf8.ValidString(high) {
				t.Errorf("%q and %q do not bound %q", low, high, c.value)
			}
		})
	}
}

func FuzzCutStringsBoundTheValue(f *testing.F) {
	for _, s := range []string{"", "abc", strings.Repeat("ü", 40), strings.Repeat("\U0010FFFF", 40), strings.Repeat("a", 31) + "😀😀"} {
		f.Add(s, 32)
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		if !utf8.ValidString(s) || n < 1 || n > 100 {
			return
		}
		low := truncateMin(s, n)
		high, ok := truncateMax(s, n)
		if low > s || ok && high < s || utf16Len(low) > n || utf16Len(high) > 2*n+2 {
			t.Errorf("%q and %q for %q", low, high, s)
		}
	})
}

func TestNumbersThatCompareOddlyHaveSafeBounds(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, c := range map[string]struct {
		values    []float64
		low, high string
	}{
		"ordinary":      {[]float64{2.5, -1, 3}, "-1.0", "3.0"},
		"with NaN":      {[]float64{2.5, nan, 3}, "", ""},
		"infinite":      {[]float64{inf, 1, -inf}, `"-Infinity"`, `"Infinity"`},
		"zeros":         {[]float64{0, math.Copysign(0, -1)}, "-0.0", "0.0"},
		"negative zero": {[]float64{math.Copysign(0, -1)}, "-0.0", "0.0"},
		"large":         {[]float64{1e300}, "1.0E300", "1.0E300"},
		"tiny":          {[]float64{5e-324}, "5.0E-324", "5.0E-324"},
		"none":          {nil, "", ""},
	} {
		b := array.NewFloat64Builder(newFixture(t).mem)
		b.AppendValues(c.values, nil)
		b.AppendNull()
		arr := b.NewArray()
		b.Release()
		s := newBounds(arrow.PrimitiveTypes.Float64)
		s.observe(arr, arr.IsValid)
		arr.Release()
		if s.low(32) != c.low || s.high(32) != c.high {
			t.Errorf("%s: %s %s, want %s %s", name, s.low(32), s.high(32), c.low, c.high)
		}
	}
	// 3.14 as a float is a little more than 3.14: the bound says so.
	s := &floats[float32, *array.Float32]{some: true, min: 3.14, max: 3.14}
	if s.high(32) != "3.140000104904175" {
		t.Error(s.high(32))
	}
}

func TestTimesOutsideFourDigitYearsHaveNoBounds(t *testing.T) {
	for micros, want := range map[int64]string{0: `"1970-01-01T00:00:00.000Z"`, -1: `"1969-12-31T23:59:59.999Z"`, 1999: `"1970-01-01T00:00:00.001Z"`,
		math.MaxInt64: "", math.MinInt64: "", 253402300799999999: `"9999-12-31T23:59:59.999Z"`, 253402300800000000: ""} {
		if got := timestampStat(micros, "Z"); got != want {
			t.Errorf("%d: %s, want %s", micros, got, want)
		}
	}
	for days, want := range map[int64]string{-719162: `"0001-01-01"`, -719163: "", 2932896: `"9999-12-31"`, 2932897: ""} {
		if got := dateStat(days); got != want {
			t.Errorf("%d: %s, want %s", days, got, want)
		}
	}
}

func TestOnlyTheChosenColumnsGetStatistics(t *testing.T) {
	col := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	long := arrow.PrimitiveTypes.Int64
	schema := arrow.NewSchema([]arrow.Field{col("a", long), col("st", arrow.StructOf(col("x", long), col("y", long))), col("b", long)}, nil)
	tree, err := fromArrow(schema.Fields(), "")
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLayout(tree, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		properties map[string]string
		always     [][]string
		want       string
	}{
		"all":         {nil, nil, `{"a":0,"st":{"x":0,"y":0},"b":0}`},
		"the first 2": {map[string]string{"delta.dataSkippingNumIndexedCols": "2"}, nil, `{"a":0,"st":{"x":0}}`},
		"none":        {map[string]string{"delta.dataSkippingNumIndexedCols": "0"}, nil, `{}`},
		"unlimited":   {map[string]string{"delta.dataSkippingNumIndexedCols": "-1"}, nil, `{"a":0,"st":{"x":0,"y":0},"b":0}`},
		"named":       {map[string]string{"delta.dataSkippingStatsColumns": "st.y, `b`", "delta.dataSkippingNumIndexedCols": "1"}, nil, `{"st":{"y":0},"b":0}`},
		"a struct":    {map[string]string{"delta.dataSkippingStatsColumns": "st"}, nil, `{"st":{"x":0,"y":0}}`},
		"clustered":   {map[string]string{"delta.dataSkippingNumIndexedCols": "1"}, [][]string{{"b"}}, `{"a":0,"b":0}`},
	} {
		s := newFileStats(l, c.properties, c.always)
		if got := s.json(); got != `{"numRecords":0,"minValues":{},"maxValues":{},"nullCount":`+c.want+`}` {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestStatisticsEqualThoseOfSpark writes the rows of a table of Spark's and
// compares the statistics.
func TestStatisticsEqualThoseOfSpark(t *testing.T) {
	dir := t.TempDir()
	unpack(t, filepath.Join(shared(t, "delta-conformance"), "tables", "kernel-rs-data", "stats-writing-all-types.tar.gz"), dir)
	root := ""
	for _, sub := range []string{"stats-writing-all-types", "stats-writing-all-types/delta"} {
		if _, err := os.Stat(filepath.Join(dir, sub, logFolder)); err == nil {
			root = filepath.Join(dir, sub)
		}
	}
	store, err := storage.OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	spark, err := Open(store, WithAllocator(f.mem)).Snapshot(background)
	if err != nil {
		t.Fatal(err)
	}
	r, err := spark.Scan(background, ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	w, err := f.table.Write(background, WriteOptions{Schema: spark.Schema(), Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	for r.Next() {
		if err := w.Write(background, r.RecordBatch()); err != nil {
			t.Fatal(err)
		}
	}
	ours, err := w.Close(background)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := spark.Files(background)
	if err != nil {
		t.Fatal(err)
	}
	want := theirs[0].Stats
	rename(spark.schema, func(physical, name string) { want = strings.ReplaceAll(want, `"`+physical+`"`, `"`+name+`"`) })
	// A float's bound is written with all its digits, so that readers of doubles do not skip its row.
	want = strings.ReplaceAll(want, `"float_col":3.14`, `"float_col":3.140000104904175`)
	var a, b any
	if err := json.Unmarshal([]byte(ours[0].Stats), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("ours   %s\nSpark's %s", ours[0].Stats, want)
	}
}

func rename(t dataType, f func(physical, name string)) {
	if s, ok := t.(*structType); ok {
		for _, c := range s.fields {
			f(c.physicalName(), c.name)
			rename(c.typ, f)
		}
	}
}
