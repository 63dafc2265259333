package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// corpus gives real streams, one a type and one of all: as the encoder writes
// them, as arrow-go does, and what guests of the Go SDK wrote.
func corpus(t testing.TB) [][]byte {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 6))
	mem := memory.DefaultAllocator
	var out [][]byte
	add := func(names ...string) {
		schema := subsetSchema(t, names...)
		a, b := sample(mem, schema, 9, 0.3, r), sample(mem, schema, 3, 0, r)
		defer a.Release()
		defer b.Release()
		enc, err := NewEncoder(schema, nil)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, encodeStream(t, enc, a, b))
		var w bytes.Buffer
		writer := ipc.NewWriter(&w, ipc.WithSchema(schema))
		for _, rec := range []arrow.RecordBatch{a, b} {
			if err := writer.Write(rec); err != nil {
				t.Fatal(err)
			}
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		out = append(out, w.Bytes())
	}
	for _, name := range subset {
		add(name)
	}
	add(subset...)
	files, err := filepath.Glob(filepath.Join(goldenDir, "go", "*.arrows"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no streams of the Go SDK: %v", err)
	}
	for _, f := range files {
		s, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

var interesting = []uint64{0, 1, 2, 3, 7, 8, 16, 63, 64, 127, 128, 255, 256, 1 << 15, 1<<16 - 1, 1 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 40, 1<<62 - 1, 1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 1, 1<<64 - 8}

// mutate changes a stream a little, the way a hostile or broken writer would.
func mutate(p []byte, others [][]byte, r *rand.Rand) []byte {
	p = bytes.Clone(p)
	for range 1 + r.IntN(3) {
		if len(p) < 16 {
			return p
		}
		i := r.IntN(len(p) - 8)
		if r.IntN(2) == 0 { // metadata is at the front, and there the structure is
			i = r.IntN(min(len(p)-8, 700))
		}
		switch r.IntN(10) {
		case 0, 1:
			p[i] ^= 1 << r.IntN(8)
		case 2:
			p[i] = byte(r.Uint32())
		case 3, 4:
			binary.LittleEndian.PutUint32(p[i&^3:], uint32(interesting[r.IntN(len(interesting))]))
		case 5:
			binary.LittleEndian.PutUint64(p[i&^7:], interesting[r.IntN(len(interesting))])
		case 6: // a number a little off
			at := i &^ 3
			binary.LittleEndian.PutUint32(p[at:], binary.LittleEndian.Uint32(p[at:])+uint32(r.IntN(17))-8)
		case 7:
			p = p[:i]
		case 8: // a piece moved
			j := r.IntN(len(p) - 8)
			copy(p[j:], p[i:min(len(p), i+r.IntN(64))])
		case 9: // a piece of another stream
			o := others[r.IntN(len(others))]
			copy(p[i:], o[r.IntN(len(o)):])
		}
	}
	return p
}

// survive decodes hostile bytes: a named error or arrays that can be walked
// and sent on; never a panic.
func survive(t testing.TB, mem memory.Allocator, p []byte) (accepted bool) {
	defer func() {
		if x := recover(); x != nil {
			t.Fatalf("panic: %v\n%x\n%s", x, p, debug.Stack())
		}
	}()
	d := NewDecoder(mem, Limits{BatchRows: 1 << 16})
	batches, err := decodeStream(d, p)
	defer release(batches)
	if err != nil {
		var e *Error
		if !errors.As(err, &e) || e.Code == "" || e.Message == "" {
			t.Fatalf("an error without a name: %v", err)
		}
	}
	for _, b := range batches {
		for i := range int(b.NumCols()) {
			walk(b.Column(i))
		}
		enc, err := NewEncoder(b.Schema(), nil)
		if err != nil {
			t.Fatalf("what was accepted cannot be sent on: %v", err)
		}
		again, err := decodeStream(NewDecoder(mem, Limits{}), encodeStream(t, enc, b))
		if err != nil {
			t.Fatalf("what was accepted is refused when sent on: %v\n%x", err, p)
		}
		release(again)
	}
	return err == nil
}

func TestMutantsAreNamedErrorsOrSoundArrays(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	streams := corpus(t)
	r := rand.New(rand.NewPCG(7, 8))
	const each = 130
	mutants, accepted := 0, 0
	for _, s := range streams {
		if !survive(t, mem, s) {
			t.Fatal("a stream of the corpus itself was refused")
		}
		for range each {
			mutants++
			if survive(t, mem, mutate(s, streams, r)) {
				accepted++
			}
		}
	}
	t.Logf("%d mutants, %d of them still sound", mutants, accepted)
	if mutants < 10_000 {
		t.Errorf("only %d mutants", mutants)
	}
	if accepted == 0 || accepted == mutants {
		t.Errorf("%d of %d accepted: the mutations do not bite", accepted, mutants)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range corpus(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p []byte) { survive(t, memory.DefaultAllocator, p) })
}

// reader of the first batch of one column, to be spoiled byte by byte.
func oneColumn(t testing.TB, name string, rows int, nulls float64) (schema, batch []byte) {
	t.Helper()
	s := subsetSchema(t, name)
	rec := sample(memory.DefaultAllocator, s, rows, nulls, rand.New(rand.NewPCG(9, 9)))
	defer rec.Release()
	enc, err := NewEncoder(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	size, err := enc.Layout(rec, 0, rec.NumRows())
	if err != nil {
		t.Fatal(err)
	}
	batch = make([]byte, size)
	enc.Put(batch)
	enc.Release()
	return enc.Schema(), batch
}

// spoiled is one column's batch with one thing wrong.
type spoiled struct {
	typ   string
	rows  int
	nulls float64
	spoil func(b []byte)
	code  string
	text  string
}

func bodyOf(b []byte) []byte { return b[8+binary.LittleEndian.Uint32(b[4:]):] }

// place finds where some int64 stand in the metadata, one after another.
func place(b []byte, words ...uint64) int {
	var want []byte
	for _, w := range words {
		want = binary.LittleEndian.AppendUint64(want, w)
	}
	i := bytes.Index(b[:len(b)-len(bodyOf(b))], want)
	if i < 0 {
		panic(fmt.Sprintf("no %v in the metadata", words))
	}
	return i
}

func set64(b []byte, at int, v uint64) { binary.LittleEndian.PutUint64(b[at:], v) }

var spoiledBatches = map[string]spoiled{
	"text that is not UTF-8":      {"string", 50, 0, func(b []byte) { bb := bodyOf(b); bb[len(bb)-9] = 0xff }, CodeData, "not UTF-8"},
	"an offset that falls":        {"string", 5, 0, func(b []byte) { binary.LittleEndian.PutUint32(bodyOf(b)[8:], 1<<30) }, CodeData, "offset 3 is"},
	"a negative offset":           {"string", 5, 0, func(b []byte) { binary.LittleEndian.PutUint32(bodyOf(b), 1<<31) }, CodeData, "offset 0 is -2147483648"},
	"offsets past the text":       {"string", 1, 0, func(b []byte) { binary.LittleEndian.PutUint32(bodyOf(b)[4:], 1000) }, CodeData, "needs 1000"},
	"offsets past the child":      {"array<bigint>", 1, 0, func(b []byte) { binary.LittleEndian.PutUint32(bodyOf(b)[4:], 1000) }, CodeData, "the last offset is 1000"},
	"a decimal too wide":          {"decimal(18,2)", 3, 0, func(b []byte) { set64(bodyOf(b), 8, 1) }, CodeData, "more than 18 digits"},
	"the smallest decimal":        {"decimal(38,0)", 3, 0, func(b []byte) { set64(bodyOf(b), 0, 0); set64(bodyOf(b), 8, 1<<63) }, CodeData, "more than 38 digits"},
	"a wide decimal256":           {"decimal256(50,10)", 3, 0, func(b []byte) { set64(bodyOf(b), 24, 1<<62) }, CodeData, "more than 50 digits"},
	"the smallest decimal256":     {"decimal256(50,10)", 3, 0, func(b []byte) { bb := bodyOf(b); clear(bb[:32]); set64(bb, 24, 1<<63) }, CodeData, "more than 50 digits"},
	"a time past the day":         {"time(s)", 3, 0, func(b []byte) { binary.LittleEndian.PutUint32(bodyOf(b)[4:], 86400) }, CodeData, "row 1: a time of 86400"},
	"a negative time":             {"time(ns)", 3, 0, func(b []byte) { set64(bodyOf(b), 8, 1<<63) }, CodeData, "row 1: a time of -"},
	"a wrong null count":          {"int", 8, 1, func(b []byte) { set64(b, place(b, 8, 8), 8); set64(b, place(b, 8, 8)+8, 7) }, CodeData, "8 nulls in the validity buffer, 7 in the message"},
	"nulls without validity":      {"int", 4, 0, func(b []byte) { set64(b, place(b, 4, 0)+8, 2) }, CodeData, "2 nulls and no validity"},
	"more nulls than rows":        {"int", 4, 0, func(b []byte) { set64(b, place(b, 4, 0)+8, 5) }, CodeData, "5 nulls among 4"},
	"a negative length":           {"int", 4, 0, func(b []byte) { set64(b, place(b, 4, 0), 1<<63) }, CodeData, "a length of -"},
	"a length that differs":       {"int", 4, 0, func(b []byte) { set64(b, place(b, 4, 0), 3) }, CodeData, "3 values where there should be 4"},
	"a buffer outside the body":   {"int", 4, 0, func(b []byte) { set64(b, place(b, 0, 16), 1<<40) }, CodeData, "lies outside the body"},
	"a buffer that wraps":         {"int", 4, 0, func(b []byte) { set64(b, place(b, 0, 16), 1<<63-8); set64(b, place(b, 1<<63-8, 16)+8, 1<<62) }, CodeData, "lies outside the body"},
	"a buffer too short":          {"int", 4, 0, func(b []byte) { set64(b, place(b, 0, 16)+8, 8) }, CodeData, "of 8 bytes for 4 values needs 16"},
	"a buffer of odd place":       {"int", 1, 0, func(b []byte) { set64(b, place(b, 0, 4), 4) }, CodeData, "not at a multiple of 8"},
	"buffers that overlap":        {"string", 60, 0, func(b []byte) { set64(b, place(b, 256), 0) }, CodeData, "overlaps the one before it"},
	"an impossible row count":     {"void", 4, 0, func(b []byte) { set64(b, place(b, 4, 4), 1<<41) }, CodeData, "a length of 2199023255552"},
	"a struct's child is shorter": {"struct<a:int,b:string>", 4, 0, func(b []byte) { set64(b, place(b, 4, 0, 4, 0)+16, 3) }, CodeData, "3 values where there should be 4"},
	"a fixed list's child":        {"fixed_size_array<int,3>", 4, 0, func(b []byte) { set64(b, place(b, 12, 0), 11) }, CodeData, "11 values where there should be 12"},
}

// TestEachRuleIsHeld spoils one thing at a time and wants its name.
func TestEachRuleIsHeld(t *testing.T) {
	for name, c := range spoiledBatches {
		t.Run(name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			schema, batch := oneColumn(t, c.typ, c.rows, c.nulls)
			d := NewDecoder(mem, Limits{})
			if _, err := d.Next(schema); err != nil {
				t.Fatal(err)
			}
			c.spoil(batch)
			_, err := d.Next(batch)
			wantRefusal(t, err, c.code, c.text)
		})
	}
}

func wantRefusal(t *testing.T, err error, code, text string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != code || !bytes.Contains([]byte(err.Error()), []byte(text)) {
		t.Fatalf("%v\nwant [%s] … %s", err, code, text)
	}
}

func TestNullsUnderANullParentAreNoFault(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	dt := arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32})
	for _, c := range []struct {
		parentNull bool
		ok         bool
	}{{true, true}, {false, false}} {
		b := array.NewStructBuilder(mem, dt)
		b.Append(!c.parentNull)
		b.FieldBuilder(0).AppendNull()
		a := b.NewArray()
		b.Release()
		schema := arrow.NewSchema([]arrow.Field{{Name: "s", Type: dt, Nullable: true}}, nil)
		rec := array.NewRecordBatch(schema, []arrow.Array{a}, 1)
		enc, err := NewEncoder(schema, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeStream(NewDecoder(mem, Limits{}), encodeStream(t, enc, rec))
		if (err == nil) != c.ok {
			t.Errorf("parent null %v: %v", c.parentNull, err)
		}
		release(got)
		rec.Release()
		a.Release()
	}
}

func TestTheStreamItselfIsChecked(t *testing.T) {
	schema, batch := oneColumn(t, "int", 4, 0)
	end := []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, c := range map[string]struct {
		stream []byte
		text   string
	}{
		"a batch first":           {batch, "a batch before the schema"},
		"two schemas":             {join(schema, schema), "a second schema"},
		"an end first":            {end, "ends before its schema"},
		"more after the end":      {join(schema, end, batch), "after the end"},
		"no continuation":         {join(schema, batch[4:]), "FF FF FF FF"},
		"cut in the prefix":       {join(schema, batch[:6]), "too short"},
		"cut in the metadata":     {join(schema, batch[:40]), "in a message of 40"},
		"cut in the body":         {join(schema, batch[:len(batch)-8]), "in a message with"},
		"odd size of metadata":    {join(schema, []byte{0xff, 0xff, 0xff, 0xff, 9, 0, 0, 0}, batch[8:]), "not a multiple of 8"},
		"negative size":           {join(schema, []byte{0xff, 0xff, 0xff, 0xff, 0xf8, 0xff, 0xff, 0xff}), "in a message of 8"},
		"metadata of nothing but": {join(schema, []byte{0xff, 0xff, 0xff, 0xff, 8, 0, 0, 0}, make([]byte, 8)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeStream(NewDecoder(memory.DefaultAllocator, Limits{}), c.stream)
			wantRefusal(t, err, CodeMessage, c.text)
		})
	}
}

func TestAFewBytesCannotClaimManyRows(t *testing.T) {
	for _, typ := range []string{"void", "array<void>", "struct<>"} {
		schema, batch := oneColumn(t, typ, 4, 0)
		d := NewDecoder(memory.DefaultAllocator, Limits{BatchRows: 2})
		if _, err := d.Next(schema); err != nil {
			t.Fatal(err)
		}
		_, err := d.Next(batch)
		wantRefusal(t, err, CodeLimit, "2")
	}
}

func TestSchemasAreCompared(t *testing.T) {
	want := subsetSchema(t, "int", "array<string>")
	for name, c := range map[string]struct {
		got  *arrow.Schema
		text string
	}{
		"a missing column": {arrow.NewSchema(want.Fields()[:1], nil), "is missing"},
		"one too many":     {subsetSchema(t, "int", "array<string>", "int"), "is not expected"},
		"another type":     {arrow.NewSchema([]arrow.Field{{Name: want.Field(0).Name, Type: arrow.PrimitiveTypes.Int64}, want.Field(1)}, nil), "has type bigint instead of int"},
		"another name":     {arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int32}, want.Field(1)}, nil), "should be"},
		"another element":  {arrow.NewSchema([]arrow.Field{want.Field(0), {Name: want.Field(1).Name, Type: arrow.ListOf(arrow.PrimitiveTypes.Int32)}}, nil), "has type array<int> instead of array<string>"},
	} {
		t.Run(name, func(t *testing.T) { wantRefusal(t, SameSchema(want, c.got), CodeWrongSchema, c.text) })
	}
	renamed := arrow.ListOfField(arrow.Field{Name: "element", Type: arrow.BinaryTypes.String})
	if err := SameSchema(want, arrow.NewSchema([]arrow.Field{want.Field(0), {Name: want.Field(1).Name, Type: renamed}}, nil)); err != nil {
		t.Errorf("the name of a list's element is no part of its type: %v", err)
	}
}
