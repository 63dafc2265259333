package wire

import (
	"encoding/binary"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestWhatForeignWritersMayDo: liberties that abi/README.md leaves a guest.
func TestWhatForeignWritersMayDo(t *testing.T) {
	for name, c := range map[string]struct {
		typ   string
		rows  int
		nulls float64
		edit  func(b []byte)
		check func(t *testing.T, a *array.String)
	}{
		"offsets that start above 0": {"string", 9, 0, func(b []byte) {
			copy(bodyOf(b)[0:4], bodyOf(b)[8:12]) // skip what the first two rows hold; they become empty
			copy(bodyOf(b)[4:8], bodyOf(b)[8:12])
		}, func(t *testing.T, a *array.String) {
			if a.Value(0) != "" || a.Value(1) != "" {
				t.Errorf("rows 0 and 1 are %q, %q", a.Value(0), a.Value(1))
			}
		}},
		"no offsets for no rows":                 {"string", 0, 0, func(b []byte) { set64(b, place(b, 0, 4)+8, 0) }, nil},
		"garbage under a null":                   {"string", 40, 0.5, spoilUnderNull, nil},
		"any place for a buffer of no bytes":     {"string", 5, 0, func(b []byte) { set64(b, place(b, 0, 0, 0, 24), 1<<50) }, nil},
		"bits set behind the last value's":       {"boolean", 3, 0, func(b []byte) { bodyOf(b)[0] |= 0xf8 }, nil},
		"a decimal too wide, but under the null": {"decimal(18,2)", 1, 1, func(b []byte) { set64(bodyOf(b), 64+8, 1<<40) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			schema, batch := oneColumn(t, c.typ, c.rows, c.nulls)
			if c.edit != nil {
				c.edit(batch)
			}
			d := NewDecoder(mem, Limits{})
			if _, err := d.Next(schema); err != nil {
				t.Fatal(err)
			}
			m, err := d.Next(batch)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Batch.Release()
			walk(m.Batch.Column(0))
			if c.check != nil {
				c.check(t, m.Batch.Column(0).(*array.String))
			}
		})
	}
}

// spoilUnderNull gives the first null row of a text column a length, of bytes
// that are not UTF-8 on their own.
func spoilUnderNull(b []byte) {
	body := bodyOf(b)
	offsets := body[64:]
	for i := 1; i < 40; i++ {
		from, to := binary.LittleEndian.Uint32(offsets[4*i:]), binary.LittleEndian.Uint32(offsets[4*i+4:])
		isNull := body[i/8]>>(i%8)&1 == 0
		before := binary.LittleEndian.Uint32(offsets[4*i-4:])
		previousNull := body[(i-1)/8]>>((i-1)%8)&1 == 0
		// the row before is text of several bytes: hand its last byte to the null
		if isNull && !previousNull && from == to && from-before >= 2 {
			text := body[64+192:]
			text[before] = 'x'
			for j := before; j < from-1; j++ {
				text[j] = 'x'
			}
			text[from-1] = 0xff
			binary.LittleEndian.PutUint32(offsets[4*i:], from-1)
			return
		}
	}
	panic("the sample has no null after a text")
}
