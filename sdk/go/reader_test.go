//go:build !wasip1

package weir

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/weir-data/weir/sdk/go/internal/host"
)

// loop is a host whose output 0 is its input 0.
type loop struct {
	host.Absent
	messages [][]byte
	at       int
	failure  string
}

func (l *loop) OutputWrite(_ int, p []byte) int32 {
	for len(p) > 8 {
		n := 8 + int(p[4]) + int(p[5])<<8 + int(p[6])<<16
		m, err := readMessage(append(p[:n:n], make([]byte, 1<<16)...))
		if err != nil {
			return -1
		}
		body := 0
		if m.kind == headerRecordBatch {
			v := m.table.Vector(2)
			for i := range v.Len() {
				off, size := v.Pair(i)
				body = max(body, int(off+size+63)&^63)
			}
		}
		l.messages = append(l.messages, append([]byte(nil), p[:n+body]...))
		p = p[n+body:]
	}
	return 0
}

func (l *loop) InputNext(int) int64 {
	if l.at == len(l.messages) {
		return 0
	}
	l.at++
	return int64(len(l.messages[l.at-1]))
}

func (l *loop) InputRead(_ int, p []byte) int32 { return int32(copy(p, l.messages[l.at-1])) }
func (l *loop) Fail(text string)                { l.failure = text }

// sample writes one batch with every layout.
func sample(t testing.TB) *loop {
	l := &loop{}
	defer host.Use(host.Use(l))
	c := newCall(&function{})
	out := c.Output()
	for i := range 3 {
		out.Column("n").Int64().Append(int64(i))
		out.Column("s").String().Append(strings.Repeat("x", i))
		out.Column("b").Bool().Append(i == 1)
		list := out.Column("l").List()
		list.Append()
		for j := range i {
			e := list.Elem().Struct()
			e.Append()
			e.Column("d").Decimal128(18, 2).Append(DecimalFromInt64(int64(j)))
		}
	}
	out.Column("n").Int64().SetNull(1)
	if err := c.finish(nil); err != nil {
		t.Fatal(err)
	}
	return l
}

// touch reads every value that it can find.
func touch(b *Batch) (n int) {
	for _, f := range b.Fields() {
		c := b.Column(f.Name)
		for i := range c.Len() {
			switch f.Type.Kind {
			case KindInt64:
				n += int(c.Int64().At(i) & 1)
			case KindString:
				n += len(c.String().At(i))
			case KindBool:
				if c.Bool().At(i) {
					n++
				}
			case KindList:
				start, end := c.List().At(i)
				d := c.List().Elem().Struct().Column("d").Decimal128()
				for ; start < end; start++ {
					n += int(d.At(start).Lo)
				}
			}
		}
	}
	return n
}

// A host that sends nonsense must not make the guest read outside its buffers: Go's bounds checks, and
// those of the decoder before it sees bytes as values, end the call instead.
func FuzzMalformedInput(f *testing.F) {
	for i := range 400 {
		f.Add(i*7, byte(1<<(i%8)), i%2)
	}
	f.Fuzz(func(t *testing.T, at int, flip byte, which int) {
		l := sample(t)
		m := l.messages[(which&1)%len(l.messages)]
		m[uint(at)%uint(len(m))] ^= flip
		defer host.Use(host.Use(l))
		saved := registered
		registered = registry{module: "m", resolved: true, functions: []*function{{name: "f", inputs: []Source{{}}, run: func(c *Call) error {
			in := c.Input(0)
			for in.Next() {
				touch(in.Batch())
			}
			return in.Err()
		}}}}
		defer func() { registered = saved }()
		if status := call(0); status != 0 && l.failure == "" {
			t.Error("a failure without a text")
		}
	})
}

func TestBuffersAreSeenAtAnyAddress(t *testing.T) {
	words := make([]uint64, 4)
	all := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 32)
	for shift := range 8 {
		b := all[shift : shift+16]
		for i := range b {
			b[i] = byte(i)
		}
		got := viewOf[uint64](aligned(b, 8), 2)
		if got[0] != 0x0706050403020100 || got[1] != 0x0f0e0d0c0b0a0908 {
			t.Errorf("shifted by %d: %x", shift, got)
		}
	}
}

func TestAskingForWhatIsNotThereFailsTheCall(t *testing.T) {
	for want, use := range map[string]func(b *Batch, out *Writer){
		"[COLUMN_NOT_FOUND] input 0 has no column x; it has n, s, b, l": func(b *Batch, _ *Writer) { b.Column("x").Int64().At(0) },
		"[COLUMN_TYPE] column n: is bigint, not int":                    func(b *Batch, _ *Writer) { b.Column("n").Int32().At(2) },
		"[COLUMN_TYPE] column n: is bigint, not string":                 func(b *Batch, _ *Writer) { b.Column("n").String().At(2) },
		"[COLUMN_TYPE] column s: is string, not an array":               func(b *Batch, _ *Writer) { b.Column("s").List().Elem().Struct().Column("q").Map().Keys() },
		"[COLUMN_TYPE] column l: is array<struct<d:decimal(18,2)>>, not a number or text": func(b *Batch, _ *Writer) {
			v := b.Column("l").Numeric()
			v.At(0)
		},
		"[COLUMN_TYPE] column l[]: the struct has no field e": func(b *Batch, _ *Writer) { b.Column("l").List().Elem().Struct().Column("e").Date() },
		"[COLUMN_TYPE] output column o: is bigint, not string": func(_ *Batch, out *Writer) {
			out.Column("o").Int64().Append(1)
			out.Column("o").String().Append("x")
		},
		"[OUTPUT_INVALID] output column p has 0 rows, not 1": func(_ *Batch, out *Writer) {
			out.Column("o").Int64().Append(1)
			out.Column("p").Int64()
		},
		"[OUTPUT_INVALID] column q: elements were added before the first list": func(_ *Batch, out *Writer) {
			out.Column("q").List().Elem().Int64().Append(1)
			out.Column("q").List().Append()
		},
		"[NO_SUCH_INPUT] function f has no input 7": func(b *Batch, _ *Writer) { b.in.errs.set(nil) },
	} {
		l := sample(t)
		restore := host.Use(l)
		c := newCall(&function{name: "f", inputs: []Source{{}}})
		in := c.Input(0)
		if !in.Next() {
			t.Fatal(in.Err())
		}
		if strings.HasPrefix(want, "[NO_SUCH_INPUT]") {
			c.Input(7).Next()
		} else {
			use(in.Batch(), c.Output())
		}
		_ = c.Output().Flush()
		if err := c.finish(errorf("what follows from it")); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		host.Use(restore)
	}
}

func TestReadAllKeepsItsBatches(t *testing.T) {
	l := sample(t)
	l.messages = append(l.messages, l.messages[1], l.messages[1])
	defer host.Use(host.Use(l))
	c := newCall(&function{inputs: []Source{{}}})
	all, err := c.Input(0).ReadAll()
	if err != nil || len(all) != 3 || all[2].Start() != 6 {
		t.Fatal(len(all), err)
	}
	for _, b := range all {
		if got := touch(b); got != 6 {
			t.Errorf("values add up to %d", got)
		}
	}
}

func TestColumnsAreFoundInAnyCase(t *testing.T) {
	l := sample(t)
	defer host.Use(host.Use(l))
	in := newCall(&function{inputs: []Source{{}}}).Input(0)
	in.Next()
	if b := in.Batch(); !b.Has("N") || b.Has("nn") || b.Column("S").String().At(2) != "xx" {
		t.Error("columns are not found")
	}
}
