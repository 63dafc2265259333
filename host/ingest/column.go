package ingest

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/fault"
)

// kind is what a column can hold; it selects the decoding of a value.
type kind uint8

const (
	kindBool kind = iota
	kindInt8
	kindInt16
	kindInt32
	kindInt64
	kindFloat32
	kindFloat64
	kindDecimal
	kindDate
	kindTimestamp
	kindTimestampNTZ
	kindString
	kindBinary
	kindStruct
	kindList
	kindMap
)

// column builds one Arrow array, by row index instead of by append:
//
//   - A row that is never set is null. Nulls are written when a later row is set
//     or at the end, so a column that a record lacks costs nothing.
//   - Setting the last row again replaces it (a repeated JSON key: the last wins).
//   - truncate takes rows back (a record that turns out malformed).
//
// It has no arrow-go builder below because those can neither replace nor take back.
type column struct {
	name   string
	kind   kind
	dtype  arrow.DataType
	parent *column
	mem    memory.Allocator

	n     int // rows written
	nulls int
	valid []byte // bitmap; nil while there are no nulls

	width int    // bytes of a fixed value; 0 for the others
	data  []byte // fixed values, bits, or the bytes of strings
	used  int    // bytes of data in use, for strings

	offBuf []byte
	offs   []int32 // n+1 offsets of strings, lists, maps

	items int // elements of a list, entries of a map
	elem  *column
	key   *column
	obj   *object

	precision, scale int32

	dataHint, offHint int // sizes of the last batch, to allocate once
}

// object is the decoder's view of a struct or of the whole record.
type object struct {
	fields []*column
	// quoted are the names as they stand in JSON, for a compare without a lookup.
	quoted []string
	index  map[string]int32
	folded map[string]int32
	// follow[f+1] is the field that came after field f in the last record (follow[0]
	// the first one): the guess that makes most lookups one compare.
	follow []int32
	// frozen objects do not evolve: their type was declared or hinted.
	frozen bool
}

func newObject(fields []*column, frozen bool) *object {
	o := &object{
		fields: fields, frozen: frozen,
		quoted: make([]string, len(fields)), follow: make([]int32, len(fields)+1),
		index: make(map[string]int32, len(fields)), folded: make(map[string]int32, len(fields)),
	}
	for i, f := range fields {
		o.quoted[i] = `"` + f.name + `"`
		if strings.ContainsAny(f.name, "\"\\") {
			o.quoted[i] = "\x00" // stands in JSON with escapes: always looked up
		}
		o.index[f.name] = int32(i)
		if _, ok := o.folded[strings.ToLower(f.name)]; !ok {
			o.folded[strings.ToLower(f.name)] = int32(i)
		}
	}
	for i := range o.follow {
		if i < len(fields) {
			o.follow[i] = int32(i)
		}
	}
	return o
}

// newColumn makes the builder of a type. frozen tells for a nested path whether it may evolve.
func newColumn(mem memory.Allocator, parent *column, name string, dt arrow.DataType, frozen func(c *column) bool) (*column, error) {
	c := &column{name: name, dtype: dt, mem: mem, parent: parent}
	switch t := dt.(type) {
	case *arrow.BooleanType:
		c.kind = kindBool
	case *arrow.Int8Type:
		c.kind, c.width = kindInt8, 1
	case *arrow.Int16Type:
		c.kind, c.width = kindInt16, 2
	case *arrow.Int32Type:
		c.kind, c.width = kindInt32, 4
	case *arrow.Int64Type:
		c.kind, c.width = kindInt64, 8
	case *arrow.Float32Type:
		c.kind, c.width = kindFloat32, 4
	case *arrow.Float64Type:
		c.kind, c.width = kindFloat64, 8
	case *arrow.Decimal128Type:
		c.kind, c.width, c.precision, c.scale = kindDecimal, 16, t.Precision, t.Scale
	case *arrow.Date32Type:
		c.kind, c.width = kindDate, 4
	case *arrow.TimestampType:
		c.kind, c.width = kindTimestamp, 8
		if t.TimeZone == "" {
			c.kind = kindTimestampNTZ
		}
		if t.Unit != arrow.Microsecond {
			return nil, unreadable(name, dt)
		}
	case *arrow.StringType:
		c.kind = kindString
	case *arrow.BinaryType:
		c.kind = kindBinary
	case *arrow.StructType:
		c.kind = kindStruct
		var fields []*column
		for _, f := range t.Fields() {
			child, err := newColumn(mem, c, f.Name, f.Type, frozen)
			if err != nil {
				return nil, err
			}
			fields = append(fields, child)
		}
		c.obj = newObject(fields, frozen(c))
	case *arrow.ListType:
		c.kind = kindList
		var err error
		if c.elem, err = newColumn(mem, c, "element", t.Elem(), frozen); err != nil {
			return nil, err
		}
	case *arrow.MapType:
		c.kind = kindMap
		if t.KeyType().ID() != arrow.STRING {
			return nil, fault.New("NOT_SUPPORTED", "column %s: a map read from a file needs STRING keys, not %s", name, coltype.String(t.KeyType()))
		}
		var err error
		if c.key, err = newColumn(mem, c, "key", t.KeyType(), frozen); err != nil {
			return nil, err
		}
		if c.elem, err = newColumn(mem, c, "value", t.ItemType(), frozen); err != nil {
			return nil, err
		}
	default:
		return nil, unreadable(name, dt)
	}
	return c, nil
}

func unreadable(name string, dt arrow.DataType) error {
	return fault.New("NOT_SUPPORTED", "column %s: type %s cannot be read from a file", name, coltype.String(dt))
}

// align makes row i the next one: pads with nulls up to it, or takes it back.
func (c *column) align(i int) {
	if c.n < i {
		c.pad(i)
	} else if c.n > i {
		c.truncate(i)
	}
}

// reserve gives row i room in the fixed-width values.
func (c *column) reserve(i int) {
	if need := (i + 1) * c.width; need > len(c.data) {
		c.growData(need)
	}
}

// growData grows data to at least need bytes.
func (c *column) growData(need int) {
	size := max(need, 2*len(c.data), 256)
	if c.data == nil {
		size = max(size, c.dataHint)
		c.data = c.mem.Allocate(size)
		return
	}
	c.data = c.mem.Reallocate(size, c.data)
}

func (c *column) growOffs(need int) {
	size := max(need*4, 2*len(c.offBuf), 256)
	if c.offBuf == nil {
		size = max(size, c.offHint)
		c.offBuf = c.mem.Allocate(size)
		c.offs = arrow.Int32Traits.CastFromBytes(c.offBuf)
		c.offs[0] = 0
		return
	}
	c.offBuf = c.mem.Reallocate(size, c.offBuf)
	c.offs = arrow.Int32Traits.CastFromBytes(c.offBuf)
}

// growValid gives the bitmap room for rows; the first call marks the rows so far valid.
func (c *column) growValid(rows int) {
	need := (rows + 7) / 8
	if need <= len(c.valid) && c.valid != nil {
		return
	}
	if c.valid == nil {
		c.valid = c.mem.Allocate(max(need, 128))
		full := (c.n + 7) / 8
		for i := range c.valid[:full] {
			c.valid[i] = 0xff
		}
		return
	}
	c.valid = c.mem.Reallocate(max(need, 2*len(c.valid)), c.valid)
}

// pad writes nulls up to row i.
func (c *column) pad(i int) {
	c.growValid(i)
	clearBits(c.valid, c.n, i)
	c.nulls += i - c.n
	switch {
	case c.width > 0:
		if need := i * c.width; need > len(c.data) {
			c.growData(need)
		}
		clear(c.data[c.n*c.width : i*c.width])
	case c.kind == kindBool:
		c.growBits(i)
		clearBits(c.data, c.n, i)
	case c.kind == kindString || c.kind == kindBinary:
		c.padOffs(i, int32(c.used))
	case c.kind == kindList || c.kind == kindMap:
		c.padOffs(i, int32(c.items))
	}
	c.n = i
}

func (c *column) padOffs(i int, v int32) {
	if i+1 > len(c.offs) {
		c.growOffs(i + 1)
	}
	for k := c.n + 1; k <= i; k++ {
		c.offs[k] = v
	}
}

// truncate takes back row i and those after it, half-written ones included: a
// struct, list or map may have children of a row that it never set.
func (c *column) truncate(i int) {
	switch c.kind {
	case kindStruct:
		for _, f := range c.obj.fields {
			f.truncate(i)
		}
	case kindList, kindMap:
		if c.offs != nil {
			c.items = int(c.offs[min(i, c.n)])
		}
		c.elem.truncate(c.items)
		if c.key != nil {
			c.key.truncate(c.items)
		}
	}
	if c.n <= i {
		return
	}
	if c.valid != nil {
		for k := i; k < c.n; k++ {
			if c.valid[k>>3]&(1<<(k&7)) == 0 {
				c.nulls--
			}
		}
	}
	if c.kind == kindString || c.kind == kindBinary {
		c.used = int(c.offs[i])
	}
	c.n = i
}

// set ends the writing of row i.
func (c *column) set(i int) {
	if c.valid != nil {
		if i>>3 >= len(c.valid) {
			c.growValid(i + 1)
		}
		c.valid[i>>3] |= 1 << (i & 7)
	}
	c.n = i + 1
}

func (c *column) put64(i int, v uint64) {
	if c.n != i {
		c.align(i)
	}
	if (i+1)*8 > len(c.data) {
		c.growData((i + 1) * 8)
	}
	binary.LittleEndian.PutUint64(c.data[i*8:], v)
	c.set(i)
}

// putInt writes an integer of the column's width; false when it does not fit.
func (c *column) putInt(i int, v int64) bool {
	switch c.kind {
	case kindInt64, kindTimestamp, kindTimestampNTZ:
		c.put64(i, uint64(v))
		return true
	case kindInt32, kindDate:
		if v != int64(int32(v)) {
			return false
		}
		c.align(i)
		c.reserve(i)
		binary.LittleEndian.PutUint32(c.data[i*4:], uint32(v))
	case kindInt16:
		if v != int64(int16(v)) {
			return false
		}
		c.align(i)
		c.reserve(i)
		binary.LittleEndian.PutUint16(c.data[i*2:], uint16(v))
	case kindInt8:
		if v != int64(int8(v)) {
			return false
		}
		c.align(i)
		c.reserve(i)
		c.data[i] = byte(v)
	}
	c.set(i)
	return true
}

func (c *column) putFloat(i int, v float64) {
	if c.kind == kindFloat64 {
		c.put64(i, math.Float64bits(v))
		return
	}
	c.align(i)
	c.reserve(i)
	binary.LittleEndian.PutUint32(c.data[i*4:], math.Float32bits(float32(v)))
	c.set(i)
}

func (c *column) putDecimal(i int, v decimal) {
	c.align(i)
	c.reserve(i)
	binary.LittleEndian.PutUint64(c.data[i*16:], v.lo)
	binary.LittleEndian.PutUint64(c.data[i*16+8:], v.hi)
	c.set(i)
}

func (c *column) growBits(rows int) {
	if need := (rows + 7) / 8; need > len(c.data) {
		c.growData(need)
	}
}

func (c *column) putBool(i int, v bool) {
	c.align(i)
	c.growBits(i + 1)
	if v {
		c.data[i>>3] |= 1 << (i & 7)
	} else {
		c.data[i>>3] &^= 1 << (i & 7)
	}
	c.set(i)
}

// putBytes writes a string or binary value.
func (c *column) putBytes(i int, v []byte) {
	dst := c.room(i, len(v))
	copy(dst, v)
	c.putRoom(i, len(v))
}

// room gives space for row i of a string column, at least size bytes; putRoom takes it.
func (c *column) room(i, size int) []byte {
	if c.n != i {
		c.align(i)
	}
	if c.used+size > len(c.data) {
		c.growData(c.used + size)
	}
	return c.data[c.used:]
}

func (c *column) putRoom(i, size int) {
	if i+2 > len(c.offs) {
		c.growOffs(i + 2)
	}
	c.used += size
	c.offs[i+1] = int32(c.used)
	c.set(i)
}

// open starts row i of a list or map.
func (c *column) open(i int) {
	c.align(i)
	if i+2 > len(c.offs) {
		c.growOffs(i + 2)
	}
}

// shut ends row i of a list or map.
func (c *column) shut(i int) {
	c.offs[i+1] = int32(c.items)
	c.set(i)
}

// bytes is the memory in use, to cut batches of long records.
func (c *column) bytes() int {
	total := c.n*c.width + c.used + 4*len(c.offs)
	if c.obj != nil {
		for _, f := range c.obj.fields {
			total += f.bytes()
		}
	}
	if c.elem != nil {
		total += c.elem.bytes()
	}
	if c.key != nil {
		total += c.key.bytes()
	}
	return total
}

// finish gives the first rows rows as an array and starts anew.
func (c *column) finish(rows int) arrow.ArrayData {
	if c.n < rows {
		c.pad(rows)
	}
	var bufs []*memory.Buffer
	var children []arrow.ArrayData
	valid := c.takeValid()
	switch c.kind {
	case kindString, kindBinary:
		if c.offs == nil {
			c.growOffs(1)
		}
		bufs = []*memory.Buffer{valid, c.takeOffs(), c.takeData(c.used)}
	case kindList, kindMap:
		if c.offs == nil {
			c.growOffs(1)
		}
		bufs = []*memory.Buffer{valid, c.takeOffs()}
		if c.kind == kindList {
			children = []arrow.ArrayData{c.elem.finish(c.items)}
			break
		}
		entries := c.dtype.(*arrow.MapType).Elem()
		key, value := c.key.finish(c.items), c.elem.finish(c.items)
		children = []arrow.ArrayData{array.NewData(entries, c.items, []*memory.Buffer{nil}, []arrow.ArrayData{key, value}, 0, 0)}
		key.Release()
		value.Release()
	case kindStruct:
		bufs = []*memory.Buffer{valid}
		for _, f := range c.obj.fields {
			children = append(children, f.finish(rows))
		}
	case kindBool:
		if c.data != nil {
			clearTail(c.data, rows)
		}
		bufs = []*memory.Buffer{valid, c.takeData((rows + 7) / 8)}
	default:
		bufs = []*memory.Buffer{valid, c.takeData(rows * c.width)}
	}
	out := array.NewData(c.dtype, rows, bufs, children, c.nulls, 0)
	for _, b := range bufs {
		if b != nil {
			b.Release()
		}
	}
	for _, d := range children {
		d.Release()
	}
	c.n, c.nulls, c.used, c.items = 0, 0, 0, 0
	return out
}

func (c *column) takeValid() *memory.Buffer {
	if c.valid == nil {
		return nil
	}
	if c.nulls == 0 {
		c.mem.Free(c.valid)
		c.valid = nil
		return nil
	}
	clearTail(c.valid, c.n)
	b := memory.NewBufferWithAllocator(c.valid, c.mem)
	b.ResizeNoShrink((c.n + 7) / 8)
	c.valid = nil
	return b
}

func (c *column) takeData(size int) *memory.Buffer {
	c.dataHint = size + size/8
	if c.data == nil {
		return memory.NewBufferBytes(nil)
	}
	b := memory.NewBufferWithAllocator(c.data, c.mem)
	b.ResizeNoShrink(size)
	c.data = nil
	return b
}

func (c *column) takeOffs() *memory.Buffer {
	c.offHint = 4*(c.n+1) + c.n/2
	b := memory.NewBufferWithAllocator(c.offBuf, c.mem)
	b.ResizeNoShrink(4 * (c.n + 1))
	c.offBuf, c.offs = nil, nil
	return b
}

// release frees what was not finished.
func (c *column) release() {
	for _, b := range [][]byte{c.valid, c.data, c.offBuf} {
		if b != nil {
			c.mem.Free(b)
		}
	}
	c.valid, c.data, c.offBuf, c.offs = nil, nil, nil, nil
	if c.obj != nil {
		for _, f := range c.obj.fields {
			f.release()
		}
	}
	if c.elem != nil {
		c.elem.release()
	}
	if c.key != nil {
		c.key.release()
	}
}

// clearBits clears bits from up to to.
func clearBits(b []byte, from, to int) {
	for ; from < to && from&7 != 0; from++ {
		b[from>>3] &^= 1 << (from & 7)
	}
	for ; from+8 <= to; from += 8 {
		b[from>>3] = 0
	}
	for ; from < to; from++ {
		b[from>>3] &^= 1 << (from & 7)
	}
}

// clearTail clears the bits of the last byte beyond n, so that equal rows give equal bytes.
func clearTail(b []byte, n int) {
	if n&7 != 0 {
		b[n>>3] &= 1<<(n&7) - 1
	}
}

// path names the column for rescued data: top-level names as they are, below
// them dots and the index of a list's element.
func (c *column) path() string {
	if c.parent == nil {
		return c.name
	}
	switch c.parent.kind {
	case kindList:
		p := c.parent
		return p.path() + "[" + strconv.Itoa(p.items-int(p.offs[p.n])) + "]"
	case kindMap:
		p := c.parent
		return joinPath(p.path(), string(p.lastKey()))
	default:
		return joinPath(c.parent.path(), c.name)
	}
}

// lastKey is the key of the map entry being read.
func (c *column) lastKey() []byte {
	k := c.key
	if k.n == 0 {
		return nil
	}
	return k.data[k.offs[k.n-1]:k.offs[k.n]]
}

// joinPath appends a field to a path; a name that would read as several is put in backticks.
func joinPath(path, name string) string {
	if name == "" || strings.ContainsAny(name, ".[`") {
		name = "`" + strings.ReplaceAll(name, "`", "``") + "`"
	}
	return path + "." + name
}

// decimal is a 128-bit two's complement integer, the unscaled value.
type decimal struct{ hi, lo uint64 }

func (d decimal) neg() decimal {
	lo, borrow := bits.Sub64(0, d.lo, 0)
	hi, _ := bits.Sub64(0, d.hi, borrow)
	return decimal{hi, lo}
}
