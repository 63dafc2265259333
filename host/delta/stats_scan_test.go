package delta

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

var scanLeaves = []statsLeaf{
	{stored: []string{"i"}, names: []string{"i"}, typ: arrow.PrimitiveTypes.Int32, bounded: true},
	{stored: []string{"s"}, names: []string{"s"}, typ: arrow.BinaryTypes.String, bounded: true},
	{stored: []string{"n", "f"}, names: []string{"n", "f"}, typ: arrow.PrimitiveTypes.Float64, bounded: true},
	{stored: []string{"d"}, names: []string{"d"}, typ: arrow.FixedWidthTypes.Date32, bounded: true},
	{stored: []string{"dec"}, names: []string{"dec"}, typ: &arrow.Decimal128Type{Precision: 20, Scale: 2}, bounded: true},
	{stored: []string{"t"}, names: []string{"t"}, typ: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, bounded: true},
	{stored: []string{"b"}, names: []string{"b"}, typ: arrow.PrimitiveTypes.Int64},
}

// scanAll decodes rows and gives each as the values that are not null.
func scanAll(t *testing.T, rows []string) []map[string]string {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	s := newStatsScanner(mem, scanLeaves)
	defer s.release()
	for _, r := range rows {
		s.scan(r)
	}
	arrays := s.arrays()
	defer releaseArrays(arrays)
	out := make([]map[string]string, len(rows))
	for i := range rows {
		out[i] = map[string]string{}
		for target, sink := range s.targets {
			if arrays[sink].Len() != len(rows) {
				t.Fatalf("%d values of %d rows for %q", arrays[sink].Len(), len(rows), target)
			}
			if arrays[sink].IsValid(i) {
				out[i][strings.TrimPrefix(strings.ReplaceAll(target, "\x00", "."), ".")] = arrays[sink].ValueStr(i)
			}
		}
	}
	return out
}

// Rule: statistics may be missing, cut, foreign-shaped or wrong in type; what can be decoded is, the rest is null.
func TestStatisticsAreDecodedAsFarAsTheyCanBe(t *testing.T) {
	type row = map[string]string
	rows := []struct {
		stats string
		want  row
	}{
		{`{"numRecords":3,"minValues":{"i":-1,"s":"a"},"maxValues":{"i":2147483647,"s":"é\"\\"},"nullCount":{"i":0,"s":1,"b":2}}`,
			row{"numRecords": "3", "minValues.i": "-1", "minValues.s": "a", "maxValues.i": "2147483647", "maxValues.s": `é"\`, "nullCount.i": "0", "nullCount.s": "1", "nullCount.b": "2"}},
		{`{"numRecords":4,"minValues":{"i":5,"s":"b"},"maxValues":{"i":2147483648,"s":"c"},"nullCount":{"i":0,"s":1,"b":-2}}`,
			row{"numRecords": "4", "minValues.i": "5", "minValues.s": "b", "maxValues.s": "c", "nullCount.i": "0", "nullCount.s": "1", "nullCount.b": "-2"}},
		{``, row{}}, {`{}`, row{}}, {`null`, row{}}, {`[]`, row{}}, {`{"numRecords":3`, row{}}, {`{"numRecords":3}x`, row{}}, {`{"numRecords":3,"minValues":{"s":"abc`, row{}},
		{`{"numRecords":"3","minValues":{"i":1.5,"s":7,"n":8}}`, row{}},
		{` { "numRecords" : 7 , "tightBounds":false, "other":{"i":[1,{"i":2}]}, "minValues":{"n":{"f":1.5}, "d":"2024-02-29"} } `,
			row{"numRecords": "7", "tightBounds": "false", "minValues.n.f": "1.5", "minValues.d": "2024-02-29"}},
		{`{"minValues":{"n":{"f":"NaN"},"d":"2023-02-29","dec":12.3,"t":"2024-01-01T00:00:00.123Z"},"maxValues":{"n":{"f":"-Infinity"},"d":"10000-01-01","dec":-123456789012345678.99,"t":"2024-01-01T01:00:00+01:00"}}`,
			row{"minValues.n.f": "NaN", "minValues.dec": "12.3", "minValues.t": "2024-01-01T00:00:00.123Z", "maxValues.n.f": "-Inf", "maxValues.dec": "-123456789012345678.99", "maxValues.t": "2024-01-01T00:00:00Z"}},
		{`{"numRecords":1,"numRecords":2}`, row{"numRecords": "1"}},
		{`{"num\u0052ecords":9}`, row{"numRecords": "9"}},
		{`{"numRecords":1,"nullCount":{}}`, row{"numRecords": "1"}},
		{`{"numRecords":nope,"minValues":{"dec":1.234,"i":null}}`, row{}},
		{strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), row{}},
	}
	var texts []string
	for _, r := range rows {
		texts = append(texts, r.stats, r.stats) // the second time by the learned shape
	}
	for i, got := range scanAll(t, texts) {
		if want := rows[i/2].want; !reflect.DeepEqual(got, want) {
			t.Errorf("%s (%d):\n%v\nwant\n%v", texts[i], i%2, got, want)
		}
	}
}

// Rule: decoding by a learned shape gives what decoding by itself gives.
func TestALearnedShapeChangesNothing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	value := func(leaf statsLeaf) any {
		switch rnd.IntN(12) {
		case 0:
			return nil
		case 1:
			return "x\"y" + fmt.Sprint(rnd.IntN(100))
		case 2:
			return []any{1, map[string]any{"i": 2}}
		}
		switch leaf.typ.ID() {
		case arrow.STRING:
			return strings.Repeat("ä", rnd.IntN(4))
		case arrow.DATE32:
			return fmt.Sprintf("20%02d-%02d-%02d", rnd.IntN(30), 1+rnd.IntN(13), 1+rnd.IntN(31))
		case arrow.TIMESTAMP:
			return fmt.Sprintf("2024-01-%02dT10:00:00.%03dZ", 1+rnd.IntN(28), rnd.IntN(1000))
		}
		return json.Number(fmt.Sprintf("%d.%d", rnd.IntN(2000)-1000, rnd.IntN(3)*5))
	}
	var texts []string
	for range 400 {
		whole := map[string]any{"numRecords": rnd.IntN(1000)}
		for _, part := range []string{"minValues", "maxValues", "nullCount"} {
			if rnd.IntN(8) == 0 {
				continue
			}
			values := map[string]any{}
			for _, l := range scanLeaves {
				at := values
				if len(l.stored) > 1 {
					at = map[string]any{}
					values[l.stored[0]] = at
				}
				if rnd.IntN(20) > 0 {
					at[l.stored[len(l.stored)-1]] = value(l)
				}
			}
			whole[part] = values
		}
		data, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		if rnd.IntN(20) == 0 {
			text = text[:rnd.IntN(len(text))]
		}
		texts = append(texts, text)
		for rnd.IntN(3) > 0 {
			texts = append(texts, text)
		}
	}
	together := scanAll(t, texts)
	for i, text := range texts {
		if alone := scanAll(t, []string{text})[0]; !reflect.DeepEqual(alone, together[i]) {
			t.Fatalf("%s:\n%v\nalone\n%v", text, together[i], alone)
		}
	}
}

// Rule: with the properties that say so a checkpoint holds statistics and
// partition values as structs, and statistics of that form alone are enough.
func TestStatisticsAsStructsHoldWhatTheStringsHold(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: allTypes(true), PartitionBy: []string{"d", "i16"}, Add: f.write(WriteOptions{Schema: allTypes(true), PartitionBy: []string{"d", "i16"}, Name: "n"}, allTypesRows),
		Properties: map[string]string{"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"}})
	before, err := f.snapshot().Files(background)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.table.Checkpoint(background, CheckpointByPolicy); err != nil {
		t.Fatal(err)
	}
	s, err := f.reopen().Snapshot(background)
	if err != nil {
		t.Fatal(err)
	}
	after, err := s.Files(background)
	if err != nil || len(after) != len(before) {
		t.Fatalf("%d files, %v", len(after), err)
	}
	decode := func(stats string) (v map[string]any) {
		dec := json.NewDecoder(strings.NewReader(stats))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("%q: %v", stats, err)
		}
		return v
	}
	for i := range after {
		got, want := decode(after[i].Stats), decode(before[i].Stats)
		for _, part := range []string{"minValues", "maxValues", "nullCount", "numRecords"} {
			if !reflect.DeepEqual(got[part], want[part]) {
				t.Errorf("%s:\n%v\nwant\n%v", part, got[part], want[part])
			}
		}
	}
}

func TestFilesAreListedWithTheirStatistics(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: plain, PartitionBy: []string{"s"}})
	f.commit(Commit{Read: f.snapshot(), Add: f.write(WriteOptions{Snapshot: f.snapshot(), Name: "a"}, `[{"id":1,"s":"x"},{"id":5,"s":"x"},{"id":null,"s":null}]`)})
	r, err := f.snapshot().FileStats(background)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	got := map[string]string{}
	for r.Next() {
		rec := r.RecordBatch()
		part := rec.Column(rec.Schema().FieldIndices("partition.s")[0])
		for i := range int(rec.NumRows()) {
			var row []string
			for _, name := range []string{"num_records", "null_count.id", "min.id", "max.id", "deleted_records"} {
				row = append(row, rec.Column(rec.Schema().FieldIndices(name)[0]).ValueStr(i))
			}
			got[part.ValueStr(i)] = strings.Join(row, " ")
			if rec.Column(0).(*array.String).Value(i) == "" || rec.Column(1).(*array.Int64).Value(i) == 0 {
				t.Error("no path or size")
			}
		}
	}
	if want := map[string]string{"x": "2 0 1 5 0", array.NullValueStr: "1 1 " + array.NullValueStr + " " + array.NullValueStr + " 0"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Rule: the fast ways to read dates, timestamps and decimals give what the plain ones give.
func TestFastSpellingsAreReadLikeTheOthers(t *testing.T) {
	dec := &arrow.Decimal128Type{Precision: 20, Scale: 3}
	for y := 0; y < 10000; y += 7 {
		for _, md := range []string{"01-01", "02-28", "02-29", "03-01", "12-31", "06-31", "13-01", "00-10"} {
			text := fmt.Sprintf("%04d-%s", y, md)
			days, ok := statsToken{text: text, quoted: true}.days()
			at, err := time.Parse("2006-01-02", text)
			if ok != (err == nil) || ok && int64(days)*86400 != at.Unix() {
				t.Fatalf("%s: %d, %v; %v, %v", text, days, ok, at, err)
			}
			for _, clock := range []string{"T00:00:00.000Z", "T23:59:59.999Z", "T12:34:56.789", "T24:00:00.000Z", "T12:34:56Z", "T12:34:56.789+01:00"} {
				micros, ok := statsToken{text: text + clock, quoted: true}.micros()
				at, err := parseTimestamp(text + clock)
				if ok != (err == nil) || ok && int64(micros) != at.UnixMicro() {
					t.Fatalf("%s: %d, %v; %v, %v", text+clock, micros, ok, at, err)
				}
			}
		}
	}
	for _, text := range []string{"0", "-0.001", "1.5", "123456789012345.678", "1234567890123456.789", "-99999999999999999", "12345678901234567", "1.2345", "1e3", "", "-", ".", "1.", ".5", "--1", "1.2.3", "99999999999999999999"} {
		v, ok := statsToken{text: text}.decimal(dec)
		want, err := parseDecimal(text, dec)
		if ok != (err == nil) || ok && v != want {
			t.Errorf("%q: %v, %v; %v, %v", text, v, ok, want, err)
		}
	}
}
