package delta

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

var prunedSchema = arrow.NewSchema([]arrow.Field{
	{Name: "part", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	{Name: "i", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "f", Type: arrow.PrimitiveTypes.Float32, Nullable: true},
	{Name: "d", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "n", Type: &arrow.Decimal128Type{Precision: 38, Scale: 20}, Nullable: true},
	{Name: "t", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "x", Type: arrow.BinaryTypes.Binary, Nullable: true},
	{Name: "day", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
	{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
	{Name: "wall", Type: &arrow.TimestampType{Unit: arrow.Microsecond}, Nullable: true},
	{Name: "s", Type: arrow.StructOf(
		arrow.Field{Name: "i", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		arrow.Field{Name: "t", Type: arrow.BinaryTypes.String, Nullable: true},
	), Nullable: true},
}, nil)

var prunedPaths = [][]string{{"part"}, {"b"}, {"i"}, {"f"}, {"d"}, {"n"}, {"t"}, {"x"}, {"day"}, {"at"}, {"wall"}, {"s", "i"}, {"s", "T"}}

// randomValue picks from few values, odd ones among them, so that bounds and literals often meet.
func randomValue(r *rand.Rand, t arrow.DataType) any {
	pick := func(values ...any) any { return values[r.IntN(len(values))] }
	long := strings.Repeat("a", 31)
	switch t.ID() {
	case arrow.BOOL:
		return r.IntN(2) == 0
	case arrow.INT64:
		return pick(int64(0), int64(1), int64(-1), int64(7), int64(math.MaxInt64), int64(math.MinInt64), int64(1)<<53+1)
	case arrow.FLOAT32:
		return pick(float32(0), float32(math.Copysign(0, -1)), float32(0.1), float32(-2.5), float32(math.NaN()), float32(math.Inf(1)), float32(1e30))
	case arrow.FLOAT64:
		return pick(0.0, math.Copysign(0, -1), 0.1, float64(float32(0.1)), -2.5, math.NaN(), math.Inf(-1), 5e-324)
	case arrow.DECIMAL128:
		n, err := decimal128.FromString(pick("0", "1", "-1.5", "1.12345678901234567890", "1.12345678901234567891", "123456789012345678.00000000000000000001").(string), 38, 20)
		if err != nil {
			panic(err)
		}
		return Decimal{n, 20}
	case arrow.STRING:
		return pick("", "a", "b", long+"a", long+"ab", long+"ac", long+"😀z", long+"\U0010FFFF\U0010FFFF", "ü", "\u007f", "\uFFFDx")
	case arrow.BINARY:
		return []byte(pick("", "a", "\xff\xfe").(string))
	case arrow.DATE32:
		return arrow.Date32(pick(int32(0), int32(-1), int32(19_000), int32(-800_000), int32(5_000_000)).(int32))
	case arrow.TIMESTAMP:
		return arrow.Timestamp(pick(int64(0), int64(-1), int64(1), int64(999), int64(-1500), int64(1_700_000_000_123_456), int64(253_402_300_799_999_999), int64(-1)<<60).(int64))
	}
	return nil
}

func appendRandom(r *rand.Rand, b array.Builder, t arrow.DataType) {
	if r.IntN(4) == 0 {
		b.AppendNull()
		return
	}
	if s, ok := b.(*array.StructBuilder); ok {
		s.Append(true)
		for i, f := range t.(*arrow.StructType).Fields() {
			appendRandom(r, s.FieldBuilder(i), f.Type)
		}
		return
	}
	switch v := randomValue(r, t).(type) {
	case bool:
		b.(*array.BooleanBuilder).Append(v)
	case int64:
		b.(*array.Int64Builder).Append(v)
	case float32:
		b.(*array.Float32Builder).Append(v)
	case float64:
		b.(*array.Float64Builder).Append(v)
	case Decimal:
		b.(*array.Decimal128Builder).Append(v.Value)
	case string:
		b.(*array.StringBuilder).Append(v)
	case []byte:
		b.(*array.BinaryBuilder).Append(v)
	case arrow.Date32:
		b.(*array.Date32Builder).Append(v)
	case arrow.Timestamp:
		b.(*array.TimestampBuilder).Append(v)
	}
}

func typeAt(path []string) arrow.DataType {
	f, _ := prunedSchema.FieldsByName(path[0])
	if len(path) == 1 {
		return f[0].Type
	}
	inner, _ := f[0].Type.(*arrow.StructType).FieldByName(strings.ToLower(path[1]))
	return inner.Type
}

func randomPredicate(r *rand.Rand, depth int) *Predicate {
	path := prunedPaths[r.IntN(len(prunedPaths))]
	value := func() any {
		if r.IntN(12) == 0 {
			return nil
		}
		return randomValue(r, typeAt(path))
	}
	switch n := r.IntN(12); {
	case n < 2 && depth > 0:
		return And(randomPredicate(r, depth-1), randomPredicate(r, depth-1))
	case n < 4 && depth > 0:
		return Or(randomPredicate(r, depth-1), randomPredicate(r, depth-1))
	case n < 5 && depth > 0:
		return Not(randomPredicate(r, depth-1))
	case n == 5:
		return IsNull(path)
	case n == 6:
		return In(path, value(), value())
	case n == 7 && depth > 0:
		return Unknown()
	}
	return Compare(path, CompareOp(r.IntN(6)), value())
}

// holds evaluates a predicate on a row as SQL does; Unknown is taken as true,
// and false under NOT, where it can do most harm.
func holds(p *Predicate, rec arrow.RecordBatch, row int, negated bool) outcomes {
	flip := map[outcomes]outcomes{maybeTrue: maybeFalse, maybeFalse: maybeTrue, maybeNull: maybeNull}
	truth := func(b bool) outcomes {
		if b {
			return maybeTrue
		}
		return maybeFalse
	}
	switch p.kind {
	case kindUnknown:
		return truth(!negated)
	case kindNot:
		return flip[holds(p.parts[0], rec, row, !negated)]
	case kindAnd, kindOr:
		zero, out := maybeFalse, maybeTrue
		if p.kind == kindOr {
			zero, out = maybeTrue, maybeFalse
		}
		for _, part := range p.parts {
			switch o := holds(part, rec, row, negated); {
			case o == zero:
				return zero
			case o == maybeNull:
				out = maybeNull
			}
		}
		return out
	}
	arr := rec.Column(rec.Schema().FieldIndices(p.column[0])[0])
	null := arr.IsNull(row)
	if len(p.column) > 1 {
		s := arr.(*array.Struct)
		i, _ := s.DataType().(*arrow.StructType).FieldIdx(strings.ToLower(p.column[1]))
		arr = s.Field(i)
		null = null || arr.IsNull(row)
	}
	if p.kind == kindNull {
		return truth(null)
	}
	out := maybeFalse
	for _, v := range p.values {
		if v == nil || null {
			out = maybeNull
			continue
		}
		c := datumAt(arr, row).compare(literal(v))
		ok := map[CompareOp]bool{Equal: c == 0, NotEqual: c != 0, Less: c < 0, LessOrEqual: c <= 0, Greater: c > 0, GreaterOrEqual: c >= 0}[p.op]
		if p.kind == kindIn {
			ok = c == 0
		}
		if ok {
			return maybeTrue
		}
	}
	return out
}

// foreign changes statistics the way other writers are known to write them, and in ways none should.
func foreign(r *rand.Rand, stats string) string {
	var tree map[string]any
	dec := json.NewDecoder(strings.NewReader(stats))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		panic(err)
	}
	var walk func(node map[string]any, change func(key string, v any) (any, bool))
	walk = func(node map[string]any, change func(string, any) (any, bool)) {
		for _, k := range slices.Sorted(maps.Keys(node)) { // the same for a seed each time
			v := node[k]
			if inner, ok := v.(map[string]any); ok {
				walk(inner, change)
			} else if nv, keep := change(k, v); keep {
				node[k] = nv
			} else {
				delete(node, k)
			}
		}
	}
	switch r.IntN(8) {
	case 0:
		walk(tree, func(_ string, v any) (any, bool) { return v, r.IntN(3) > 0 })
	case 1: // decimals as doubles
		walk(tree, func(k string, v any) (any, bool) {
			if n, ok := v.(json.Number); ok && k == "n" && strings.Contains(string(n), ".") {
				f, _ := n.Float64()
				return json.Number(strconv.FormatFloat(f, 'g', -1, 64)), true
			}
			return v, true
		})
	case 2: // times cut towards zero, texts cut without an end
		walk(tree, func(k string, v any) (any, bool) {
			if s, ok := v.(string); ok && k == "t" {
				if len(s) > 5 {
					return s[:5], true
				}
				return s, true
			}
			return v, true
		})
	case 3: // wrong types
		walk(tree, func(k string, v any) (any, bool) {
			if r.IntN(3) > 0 {
				return v, true
			}
			other := any("x")
			if _, ok := v.(string); ok && k != "d" && k != "f" { // where a text is an infinity and a number no wrong type
				other = json.Number("1.5")
			}
			return []any{other, nil, true, []any{}, map[string]any{"y": "z"}}[r.IntN(5)], true
		})
	case 4:
		tree["tightBounds"] = false
	case 5:
		return []string{"", "{}", "null", "[", `{"numRecords":"3"}`}[r.IntN(5)]
	case 6: // doubles of a column that was float
		walk(tree, func(k string, v any) (any, bool) {
			if n, ok := v.(json.Number); ok && k == "f" {
				f, _ := n.Float64()
				return json.Number(strconv.FormatFloat(f, 'g', -1, 32)), true
			}
			return v, true
		})
	default:
		return stats
	}
	out, err := json.Marshal(tree)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// Whatever the rows, the statistics and the condition: a file that is left out
// has no row for which the condition is true.
func TestPruningLosesNoRow(t *testing.T) {
	skipped, kept := 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 4))
		f := newFixture(t)
		opt := WriteOptions{Schema: prunedSchema, PartitionBy: []string{"part"}}
		var add []AddFile
		for i := range 4 {
			b := array.NewRecordBuilder(f.mem, prunedSchema)
			for range 1 + r.IntN(3) {
				for j, field := range prunedSchema.Fields() {
					appendRandom(r, b.Field(j), field.Type)
				}
			}
			rec := b.NewRecordBatch()
			b.Release()
			opt.Name = fmt.Sprint("file-", i)
			w, err := f.table.Write(background, opt)
			if err != nil {
				t.Fatal(err)
			}
			err = w.Write(background, rec)
			rec.Release()
			if err != nil {
				t.Fatal(err)
			}
			files, err := w.Close(background)
			if err != nil {
				t.Fatal(err)
			}
			add = append(add, files...)
		}
		for i := range add {
			add[i].Stats = foreign(r, add[i].Stats)
		}
		f.commit(Commit{Schema: prunedSchema, PartitionBy: opt.PartitionBy, Add: add})
		s := f.snapshot()
		for _, file := range add {
			rows, err := s.Scan(background, ScanOptions{Files: []AddFile{file}})
			if err != nil {
				t.Fatal(err)
			}
			if !rows.Next() {
				t.Fatal(rows.Err())
			}
			for range 80 {
				p := randomPredicate(r, 3)
				pr, err := s.prune(p)
				if err != nil {
					t.Fatal(err)
				}
				if pr.mayHold(&file) {
					kept++
					continue
				}
				skipped++
				for i := range int(rows.RecordBatch().NumRows()) {
					if holds(p, rows.RecordBatch(), i, false) == maybeTrue {
						t.Fatalf("seed %d: %s with %v leaves out %s\n%s\n%s", seed, p, p.values, file.Path, file.Stats, recordRows(rows.RecordBatch(), nil)[i])
					}
				}
			}
			rows.Release()
		}
	}
	if skipped*5 < kept {
		t.Errorf("%d files were left out and %d were not: nothing is proven", skipped, kept)
	}
}

// A condition leaves out what it can: one case a rule.
func TestFilesAreLeftOut(t *testing.T) {
	column := func(name string) []string { return strings.Split(name, ".") }
	at := time.Date(2024, 1, 1, 0, 0, 0, 999_999_000, time.UTC)
	const schema = `{"type":"struct","fields":[
		{"name":"i","type":"integer","nullable":true,"metadata":{}},{"name":"t","type":"string","nullable":true,"metadata":{}},
		{"name":"d","type":"double","nullable":true,"metadata":{}},{"name":"n","type":"decimal(10,2)","nullable":true,"metadata":{}},
		{"name":"at","type":"timestamp","nullable":true,"metadata":{}},{"name":"x","type":"binary","nullable":true,"metadata":{}},
		{"name":"s","type":{"type":"struct","fields":[{"name":"i","type":"long","nullable":true,"metadata":{}}]},"nullable":true,"metadata":{}},
		{"name":"p","type":"date","nullable":true,"metadata":{}}]}`
	parsed, err := parseSchema(schema)
	if err != nil {
		t.Fatal(err)
	}
	s := &Snapshot{schema: parsed, mapping: "none", metadata: &Metadata{PartitionColumns: []string{"p"}}}
	day := "2024-02-29"
	file := &AddFile{PartitionValues: map[string]*string{"p": &day}, Stats: `{"numRecords":10,
		"minValues":{"i":3,"t":"b","d":1.5,"n":1.00,"at":"2024-01-01T00:00:00.999Z","s":{"i":7}},
		"maxValues":{"i":9,"t":"cc","d":2.5,"n":2.50,"at":"2024-01-01T00:00:00.999Z","s":{"i":7}},
		"nullCount":{"i":0,"t":4,"d":0,"n":10,"at":0,"x":0,"s":{"i":0}}}`}
	for _, c := range []struct {
		p    *Predicate
		keep bool
	}{
		{nil, true}, {And(), true}, {Or(), false}, {Unknown(), true}, {And(Unknown(), Or()), false},
		{Compare(column("i"), Equal, 2), false}, {Compare(column("i"), Equal, 3), true}, {Compare(column("I"), Equal, int8(10)), false},
		{Compare(column("i"), Less, 3), false}, {Compare(column("i"), LessOrEqual, 3), true},
		{Compare(column("i"), Greater, 9), false}, {Compare(column("i"), GreaterOrEqual, 9), true},
		{Not(Compare(column("i"), GreaterOrEqual, 3)), false}, {Not(Compare(column("i"), Greater, 3)), true},
		{Compare(column("i"), Equal, nil), false}, {Not(Compare(column("i"), Equal, nil)), false}, {IsNull(column("i")), false},
		{In(column("i"), 1, 2, 10), false}, {In(column("i"), 1, 5), true}, {Not(In(column("i"), 1, nil)), false}, {Not(In(column("i"), 1)), true},
		{Compare(column("i"), Greater, Decimal{decimal128.FromI64(95), 1}), false}, {Compare(column("i"), Less, Decimal{decimal128.FromI64(35), 1}), true},
		{Compare(column("i"), Equal, "2"), true}, {Compare(column("i"), Equal, 2.0), true}, // an engine would cast, who knows which side
		{Compare(column("s.i"), NotEqual, 7), false}, {Compare(column("s.i"), Equal, 8), false}, {IsNull(column("s")), true},
		{Compare(column("t"), Greater, "cd"), false}, {Compare(column("t"), Greater, "cc"), true}, {Compare(column("t"), Equal, "cca"), true}, {Compare(column("t"), Less, "b"), false},
		{IsNull(column("t")), true}, {Compare(column("n"), Equal, 1), false}, {Not(IsNull(column("n"))), false}, {IsNull(column("n")), true},
		{Compare(column("d"), Greater, 100.0), true}, {Compare(column("d"), Equal, 100.0), false}, {Compare(column("d"), Less, 1.0), false}, {Compare(column("d"), Equal, math.NaN()), true},
		{Compare(column("at"), GreaterOrEqual, at), true}, {Compare(column("at"), Greater, at.Add(time.Second)), false}, {IsNull(column("x")), false},
		{Compare(column("x"), Equal, []byte("a")), true},
		{Compare(column("p"), Equal, arrow.Date32(19782)), true}, {Compare(column("p"), NotEqual, arrow.Date32(19782)), false}, {IsNull(column("p")), false},
		{Or(Compare(column("i"), Equal, 2), Compare(column("p"), Equal, arrow.Date32(1))), false},
		{And(Compare(column("i"), Equal, 5), Compare(column("p"), Equal, arrow.Date32(1))), false},
	} {
		pr, err := s.prune(c.p)
		if err != nil {
			t.Fatal(err)
		}
		if got := pr.mayHold(file); got != c.keep {
			t.Errorf("%s %v: kept is %v", c.p, c.p, got)
		}
	}
	if _, err := s.prune(Compare(column("s.nope"), Equal, 1)); err == nil || !strings.Contains(err.Error(), "DELTA_COLUMN_NOT_FOUND") {
		t.Errorf("unknown column: %v", err)
	}
}
