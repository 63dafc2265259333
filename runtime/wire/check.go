package wire

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

// span is a buffer's place in the body; spec what is known of one field's
// array once it passed the checks.
type span struct{ at, size int64 }

type spec struct {
	length, nulls int64
	spans         [3]span
	zeroOffsets   bool
}

// checker walks the fields of a batch and the nodes and buffers of its
// message in step, and checks each array against the rules of its type. It
// allocates nothing but its specs.
type checker struct {
	body     []byte
	nodes    []byte // FieldNodes not taken yet
	buffers  []byte // Buffers not taken yet
	end      int64  // of the last buffer in the body
	maxEmpty int64  // most elements that take no bytes, so that a few bytes cannot claim 2^40 rows
	empty    int64  // of them so far
	specs    []spec
	path     []string
}

func (c *checker) refuse(code, format string, args ...any) error {
	return errorf(code, c.path, format, args...)
}

// column checks one field and its children. length is what the parent
// prescribes, or -1. parent is the validity of the parent's rows, if the
// parent is a struct.
func (c *checker) column(f arrow.Field, length int64, parent []byte) error {
	c.path = append(c.path, f.Name)
	n, err := c.node(f.Type, length)
	if err != nil {
		return err
	}
	at := len(c.specs)
	c.specs = append(c.specs, spec{length: n.length, nulls: n.nulls})
	if f.Type.ID() == arrow.NULL {
		if err := c.countEmpty(n.length); err != nil {
			return err
		}
		c.path = c.path[:len(c.path)-1]
		return nil
	}
	valid, err := c.validity(at)
	if err != nil {
		return err
	}
	if !f.Nullable && n.nulls > 0 && !onlyNullUnder(valid, parent, n.length) {
		return c.refuse(CodeData, "a null in a column that has none")
	}
	if err := c.values(f.Type, at, valid); err != nil {
		return err
	}
	c.path = c.path[:len(c.path)-1]
	return nil
}

// onlyNullUnder reports whether every null lies under a null of the parent.
func onlyNullUnder(valid, parent []byte, n int64) bool {
	if parent == nil {
		return false
	}
	for i := range int(n) {
		if bitutil.BitIsSet(parent, i) && !bitutil.BitIsSet(valid, i) {
			return false
		}
	}
	return true
}

func (c *checker) node(dt arrow.DataType, length int64) (node, error) {
	if len(c.nodes) < 16 {
		return node{}, c.refuse(CodeMessage, "the message has no node for it")
	}
	n := node{int64(binary.LittleEndian.Uint64(c.nodes)), int64(binary.LittleEndian.Uint64(c.nodes[8:]))}
	c.nodes = c.nodes[16:]
	switch {
	case n.length < 0 || n.length > 1<<40:
		return n, c.refuse(CodeData, "a length of %d", n.length)
	case length >= 0 && n.length != length:
		return n, c.refuse(CodeData, "%d values where there should be %d", n.length, length)
	case n.nulls < 0 || n.nulls > n.length:
		return n, c.refuse(CodeData, "%d nulls among %d values", n.nulls, n.length)
	case dt.ID() == arrow.NULL && n.nulls != n.length:
		return n, c.refuse(CodeData, "%d nulls among %d values of type void", n.nulls, n.length)
	}
	return n, nil
}

func (c *checker) countEmpty(n int64) error {
	if n > c.maxEmpty-c.empty {
		return c.refuse(CodeLimit, "more than %d values that take no bytes", c.maxEmpty)
	}
	c.empty += n
	return nil
}

// buffer takes the next buffer. Buffers lie in order without overlap, so that
// no byte of the body can be claimed twice.
func (c *checker) buffer() (span, error) {
	if len(c.buffers) < 16 {
		return span{}, c.refuse(CodeMessage, "the message has no buffer for it")
	}
	s := span{int64(binary.LittleEndian.Uint64(c.buffers)), int64(binary.LittleEndian.Uint64(c.buffers[8:]))}
	c.buffers = c.buffers[16:]
	if s.size == 0 {
		return span{}, nil
	}
	total := int64(len(c.body))
	switch {
	case s.at < 0 || s.size < 0 || s.at > total || s.size > total-s.at:
		return s, c.refuse(CodeData, "a buffer of %d bytes at %d lies outside the body of %d", s.size, s.at, total)
	case s.at%guestAlign != 0:
		return s, c.refuse(CodeData, "a buffer at %d is not at a multiple of %d", s.at, guestAlign)
	case s.at < c.end:
		return s, c.refuse(CodeData, "a buffer at %d overlaps the one before it, which ends at %d", s.at, c.end)
	}
	c.end = s.at + s.size
	return s, nil
}

func (c *checker) bytes(s span) []byte { return c.body[s.at : s.at+s.size] }

// sized takes the next buffer, which holds at least need bytes.
func (c *checker) sized(at, slot int, need int64) ([]byte, error) {
	s, err := c.buffer()
	if err != nil {
		return nil, err
	}
	if s.size < need {
		return nil, c.refuse(CodeData, "a buffer of %d bytes for %d values needs %d", s.size, c.specs[at].length, need)
	}
	c.specs[at].spans[slot] = s
	return c.bytes(s), nil
}

// validity takes the validity buffer; nil when nothing is null.
func (c *checker) validity(at int) ([]byte, error) {
	s, err := c.buffer()
	if err != nil {
		return nil, err
	}
	n, nulls := c.specs[at].length, c.specs[at].nulls
	if s.size == 0 {
		if nulls != 0 {
			return nil, c.refuse(CodeData, "%d nulls and no validity buffer", nulls)
		}
		return nil, nil
	}
	if s.size < (n+7)/8 {
		return nil, c.refuse(CodeData, "a validity buffer of %d bytes for %d values", s.size, n)
	}
	valid := c.bytes(s)
	if set := int64(bitutil.CountSetBits(valid, 0, int(n))); set != n-nulls {
		return nil, c.refuse(CodeData, "%d nulls in the validity buffer, %d in the message", n-set, nulls)
	}
	if nulls == 0 {
		return nil, nil
	}
	c.specs[at].spans[0] = s
	return valid, nil
}

func (c *checker) values(dt arrow.DataType, at int, valid []byte) error {
	n := c.specs[at].length
	switch t := dt.(type) {
	case *arrow.BooleanType:
		_, err := c.sized(at, 1, (n+7)/8)
		return err
	case *arrow.StringType:
		return c.text(at, 4, valid, true)
	case *arrow.LargeStringType:
		return c.text(at, 8, valid, true)
	case *arrow.BinaryType:
		return c.text(at, 4, valid, false)
	case *arrow.LargeBinaryType:
		return c.text(at, 8, valid, false)
	case *arrow.Decimal128Type:
		b, err := c.sized(at, 1, n*16)
		if err != nil {
			return err
		}
		return c.decimals(b[:n*16], 2, int(t.Precision), valid)
	case *arrow.Decimal256Type:
		b, err := c.sized(at, 1, n*32)
		if err != nil {
			return err
		}
		return c.decimals(b[:n*32], 4, int(t.Precision), valid)
	case *arrow.Time32Type:
		b, err := c.sized(at, 1, n*4)
		if err != nil {
			return err
		}
		day := int32(86_400)
		if t.Unit == arrow.Millisecond {
			day *= 1000
		}
		for i := range int(n) {
			if v := int32(binary.LittleEndian.Uint32(b[4*i:])); (v < 0 || v >= day) && isValid(valid, i) {
				return c.refuse(CodeData, "row %d: a time of %d %s is outside a day", i, v, t.Unit)
			}
		}
		return nil
	case *arrow.Time64Type:
		b, err := c.sized(at, 1, n*8)
		if err != nil {
			return err
		}
		day := int64(86_400_000_000)
		if t.Unit == arrow.Nanosecond {
			day *= 1000
		}
		for i := range int(n) {
			if v := int64(binary.LittleEndian.Uint64(b[8*i:])); (v < 0 || v >= day) && isValid(valid, i) {
				return c.refuse(CodeData, "row %d: a time of %d %s is outside a day", i, v, t.Unit)
			}
		}
		return nil
	case arrow.NestedType: // before the next: a list of fixed size is of fixed width as well
		return c.nested(dt, at, valid)
	case arrow.FixedWidthDataType:
		_, err := c.sized(at, 1, n*int64(t.Bytes()))
		return err
	}
	return c.refuse(CodeType, "Arrow type %s does not cross the boundary", dt)
}

func (c *checker) nested(dt arrow.DataType, at int, valid []byte) error {
	n := c.specs[at].length
	switch t := dt.(type) {
	case *arrow.StructType:
		if t.NumFields() == 0 {
			return c.countEmpty(n)
		}
		for _, f := range t.Fields() {
			if err := c.column(f, n, valid); err != nil {
				return err
			}
		}
		return nil
	case *arrow.FixedSizeListType:
		return c.column(element(t.ElemField()), n*int64(t.Len()), nil)
	case *arrow.ListType:
		last, err := c.offsets(at, 4)
		if err != nil {
			return err
		}
		return c.elements(element(t.ElemField()), last)
	case *arrow.LargeListType:
		last, err := c.offsets(at, 8)
		if err != nil {
			return err
		}
		return c.elements(element(t.ElemField()), last)
	case *arrow.MapType:
		last, err := c.offsets(at, 4)
		if err != nil {
			return err
		}
		return c.elements(t.ElemField(), last)
	}
	return c.refuse(CodeType, "Arrow type %s does not cross the boundary", dt)
}

// element is a list's element field; whether elements may be null is not part
// of a type's name, so it is not held against the guest.
func element(f arrow.Field) arrow.Field {
	f.Nullable = true
	return f
}

// elements checks the child of a list, which is at least as long as the last
// offset says.
func (c *checker) elements(f arrow.Field, last int64) error {
	child := len(c.specs)
	if err := c.column(f, -1, nil); err != nil {
		return err
	}
	if have := c.specs[child].length; last > have {
		return c.refuse(CodeData, "the last offset is %d, the child has %d values", last, have)
	}
	return nil
}

// offsets takes the offsets buffer of width w and gives the last offset; they
// start at 0 or above and never fall.
func (c *checker) offsets(at int, w int64) (int64, error) {
	n := c.specs[at].length
	if n == 0 {
		_, err := c.buffer()
		c.specs[at].zeroOffsets = true
		return 0, err
	}
	b, err := c.sized(at, 1, (n+1)*w)
	if err != nil {
		return 0, err
	}
	prev := int64(0)
	if w == 4 {
		for i := 0; i <= int(n); i++ {
			v := int64(int32(binary.LittleEndian.Uint32(b[4*i:])))
			if v < prev {
				return 0, c.refuse(CodeData, "offset %d is %d, below %d", i, v, prev)
			}
			prev = v
		}
		return prev, nil
	}
	for i := 0; i <= int(n); i++ {
		v := int64(binary.LittleEndian.Uint64(b[8*i:]))
		if v < prev {
			return 0, c.refuse(CodeData, "offset %d is %d, below %d", i, v, prev)
		}
		prev = v
	}
	return prev, nil
}

func (c *checker) text(at int, w int64, valid []byte, isUTF8 bool) error {
	last, err := c.offsets(at, w)
	if err != nil {
		return err
	}
	b, err := c.sized(at, 2, last)
	if err != nil {
		return err
	}
	n := c.specs[at].length
	if n == 0 || !isUTF8 {
		return nil
	}
	offsets := c.bytes(c.specs[at].spans[1])
	get := func(i int) int64 {
		if w == 4 {
			return int64(binary.LittleEndian.Uint32(offsets[4*i:]))
		}
		return int64(binary.LittleEndian.Uint64(offsets[8*i:]))
	}
	all := b[get(0):last]
	if ascii(all) {
		return nil
	}
	for i := range int(n) {
		if from, to := get(i), get(i+1); from < to && isValid(valid, i) && !utf8.Valid(b[from:to]) {
			return c.refuse(CodeData, "row %d: the text is not UTF-8", i)
		}
	}
	return nil
}

func ascii(b []byte) bool {
	for len(b) >= 32 {
		a := binary.LittleEndian.Uint64(b) | binary.LittleEndian.Uint64(b[8:]) | binary.LittleEndian.Uint64(b[16:]) | binary.LittleEndian.Uint64(b[24:])
		if a&0x8080808080808080 != 0 {
			return false
		}
		b = b[32:]
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func isValid(valid []byte, i int) bool { return valid == nil || bitutil.BitIsSet(valid, i) }

// decimals checks that values of so many 64-bit words stay below 10^precision.
func (c *checker) decimals(b []byte, words, precision int, valid []byte) error {
	bound := powers[precision]
	small := int64(math.MaxInt64) // below it, in one word, a value fits for sure
	if precision < 19 {
		small = int64(bound[0])
	}
	for i := 0; len(b) > 0; i++ {
		if words == 2 {
			lo, hi := int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))
			if hi == lo>>63 && lo < small && lo > -small {
				b = b[16:]
				continue
			}
		}
		var v [4]uint64
		for j := range words {
			v[j] = binary.LittleEndian.Uint64(b[8*j:])
		}
		b = b[8*words:]
		if int64(v[words-1]) < 0 {
			carry := uint64(1)
			for j := range words {
				v[j], carry = bits.Add64(^v[j], 0, carry)
			}
		}
		if !less(v, bound) && isValid(valid, i) {
			return c.refuse(CodeData, "row %d: the value has more than %d digits", i, precision)
		}
	}
	return nil
}

func less(a, b [4]uint64) bool {
	for j := 3; j > 0; j-- {
		if a[j] != b[j] {
			return a[j] < b[j]
		}
	}
	return a[0] < b[0]
}

// powers holds 10^n as four words; 10^76 is below 2^255.
var powers = func() (p [77][4]uint64) {
	p[0] = [4]uint64{1}
	for i := 1; i < len(p); i++ {
		carry := uint64(0)
		for j := range 4 {
			hi, lo := bits.Mul64(p[i-1][j], 10)
			var c uint64
			p[i][j], c = bits.Add64(lo, carry, 0)
			carry = hi + c
		}
	}
	return p
}()
