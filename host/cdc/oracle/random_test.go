package oracle

import (
	"math/rand/v2"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// shape is one way to declare a flow, with how its keys and sequences are made of numbers.
type shape struct {
	name string
	rules
	key func(n int64) []val
	seq func(n int64) val
}

func field(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

var (
	number    = arrow.PrimitiveTypes.Int64
	textType  = arrow.BinaryTypes.String
	timeType  = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	decimal   = &arrow.Decimal128Type{Precision: 20, Scale: 3}
	addressed = arrow.StructOf(field("street", textType), field("no", number))
	stamped   = arrow.StructOf(field("ts", timeType), field("n", number))

	columns = []arrow.Field{field("name", textType), field("city", textType), field("n", number), field("at", addressed), field("d", arrow.PrimitiveTypes.Float64)}
)

// numberKey and the others make keys and sequences that sort as their numbers do.
func numberKey(n int64) []val { return []val{n} }
func numberSeq(n int64) val   { return n }

// shapes are the flows that random streams go through.
func shapes() []shape {
	var out []shape
	add := func(name string, r rules, keys []arrow.Field, key func(int64) []val, seqType arrow.DataType, seq func(int64) val) {
		r.keys = append([]arrow.Field{field("stream", number)}, keys...)
		r.columns, r.sequence = columns, seqType
		for _, scd := range []int{1, 2} {
			r.scd = scd
			if scd == 1 && r.tracked != nil {
				continue
			}
			out = append(out, shape{name: name + []string{"", " scd 1", " scd 2"}[scd], rules: r, key: key, seq: seq})
		}
	}
	id := []arrow.Field{field("id", number)}
	add("plain", rules{}, id, numberKey, number, numberSeq)
	add("two keys and a struct sequence", rules{},
		[]arrow.Field{field("region", textType), field("id", arrow.PrimitiveTypes.Int32)},
		func(n int64) []val { return []val{[]string{"", "a", "a\x00", "b"}[n%4], n / 4} },
		stamped, func(n int64) val {
			if n < 4 {
				return []val{nil, n}
			}
			return []val{n / 4 * 1_000_000, n % 4}
		})
	add("decimal sequence, timestamp key", rules{}, []arrow.Field{field("at_time", timeType)},
		func(n int64) []val { return []val{n * 1000} }, decimal, func(n int64) val { return (n - 20) * 1001 })
	add("string sequence", rules{tracked: []string{"name", "at"}}, id, numberKey, textType,
		func(n int64) val { return string(rune('a'+n/20)) + string(rune('0'+n%20)) })
	add("tracked name", rules{tracked: []string{"name"}}, id, numberKey, timeType, func(n int64) val { return n * 1_000_000 })
	add("ignore nulls", rules{ignoreNull: []string{"name", "city", "n", "at", "d"}}, id, numberKey, number, numberSeq)
	add("ignore nulls of two", rules{ignoreNull: []string{"city", "at"}}, id, numberKey, number, numberSeq)
	add("ignore nulls, tracked", rules{ignoreNull: []string{"name", "n"}, tracked: []string{"name", "at"}}, id, numberKey, number, numberSeq)
	add("last by n", rules{last: []string{"n"}}, id, numberKey, number, numberSeq)
	add("last by n and city, tracked", rules{last: []string{"n", "city"}, tracked: []string{"name"}, ignoreNull: []string{"d"}}, id, numberKey, number, numberSeq)
	add("ignore nulls of a field", rules{ignoreNull: []string{"at.street", "d"}, tracked: []string{"city", "at"}}, id, numberKey, number, numberSeq)
	return out
}

// randomChanges makes the changes of up to ten keys, up to forty each, no two
// of one key with one sequence: removals, NULLs, and values that are often equal.
func (s *shape) randomChanges(r *rand.Rand) []change {
	var out []change
	for key := range int64(1 + r.IntN(10)) {
		most := []int{3, 8, 40}[r.IntN(3)]
		for _, n := range r.Perm(60)[:1+r.IntN(most)] {
			c := change{key: s.key(key), seq: s.seq(int64(n)), row: s.randomRow(r)}
			if s.last != nil {
				c.seq = s.seq(int64(n / 6))
				s.decide(c.row, n%6)
			}
			if r.IntN(5) == 0 {
				c.op = remove
			}
			out = append(out, c)
		}
	}
	return out
}

// decide gives the columns of last_by the values of the n-th of six changes of
// one sequence, in no order.
func (s *shape) decide(row []val, n int) {
	if len(s.last) == 1 {
		row[s.column("n")] = []val{nil, int64(-3), int64(7), int64(0), int64(70), int64(2)}[n]
		return
	}
	row[s.column("n")] = []val{nil, int64(-3), int64(7)}[n%3]
	row[s.column("city")] = []val{nil, "x"}[n/3]
}

func (s *shape) randomRow(r *rand.Rand) []val {
	row := make([]val, len(s.columns))
	for i, f := range s.columns {
		row[i] = randomVal(r, f.Type)
	}
	return row
}

func randomVal(r *rand.Rand, t arrow.DataType) val {
	if r.IntN(4) == 0 {
		return nil
	}
	switch t := t.(type) {
	case *arrow.StringType:
		return []string{"", "x", "y"}[r.IntN(3)]
	case *arrow.Int64Type:
		return r.Int64N(2)
	case *arrow.Float64Type:
		return float64(r.IntN(2)) / 2
	case *arrow.StructType:
		fields := make([]val, t.NumFields())
		for i := range fields {
			fields[i] = randomVal(r, t.Field(i).Type)
		}
		// A struct of nothing but NULLs says as much as none where NULLs say nothing.
		if !slices.ContainsFunc(fields, func(v val) bool { return v != nil }) {
			return nil
		}
		return fields
	}
	panic("no random value of " + t.String())
}

// randomTruncates makes a few of them, at sequences that changes have too.
func (s *shape) randomTruncates(r *rand.Rand) []change {
	var out []change
	for range r.IntN(3) {
		out = append(out, change{op: truncate, seq: s.seq(int64(r.IntN(60)))})
	}
	return out
}
