package ingest

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi/coltype"
	"github.com/weir-data/weir/host/fault"
)

// decoder turns chunks into batches. One goroutine owns it. The formats embed
// it: it holds the columns, the row under way and what the rows had to say.
type decoder struct {
	src    *Source
	c      *config
	root   *object
	cols   []*column // data and partitions, in the order of the schema
	rescue *column   // nil without a rescue column
	broken *column   // the declared column for corrupt records, or nil
	res    rescue

	rows int // rows in the columns
	seg  *segment
	out  partial

	byName map[string]*column
	parts  []filled

	evolve bool
	// fresh says that a new column was found for sure: the output will be thrown away.
	fresh *atomic.Bool
	news  news
	taken int // how often news was handed over
}

// news is what a reader found that the schema lacks.
type news struct {
	top   *shape
	below map[string]*shape
	first firstSeen
}

func (n *news) merge(o news) {
	if n.top == nil {
		n.top, n.below = &shape{}, map[string]*shape{}
	}
	if o.top != nil {
		n.top.merge(o.top)
	}
	for path, sh := range o.below {
		if mine, ok := n.below[path]; ok {
			mine.merge(sh)
		} else {
			n.below[path] = sh
		}
	}
	if o.first.before(n.first) {
		n.first = o.first
	}
}

// partial is a batch on its way: the columns without _metadata and row number.
type partial struct {
	data      []arrow.ArrayData
	rows      int
	segments  []segment
	starts    []uint32
	rescued   int64
	malformed int64
	dropped   int64
	lost      int64
}

func (p *partial) release() {
	for _, d := range p.data {
		d.Release()
	}
	p.data = nil
}

// segment is the rows of a batch that come from one chunk.
type segment struct {
	file   int
	row    int // first row in the batch
	rows   int
	offset int64 // of the chunk in the file; partial.starts count from it
	lines  []lineRun
}

// lineRun says that n rows from row on are stride lines apart.
type lineRun struct {
	row, n int
	line   int64
	stride int64
}

// line notes the line of the next row.
func (sg *segment) line(row int, line int64) {
	if k := len(sg.lines); k > 0 {
		last := &sg.lines[k-1]
		if last.n == 1 {
			last.stride, last.n = line-last.line, 2
			return
		}
		if line == last.line+int64(last.n)*last.stride {
			last.n++
			return
		}
	}
	sg.lines = append(sg.lines, lineRun{row: row, n: 1, line: line})
}

// cut forgets the lines of the rows from row on.
func (sg *segment) cut(row int) {
	for k := len(sg.lines); k > 0; k-- {
		last := &sg.lines[k-1]
		if last.row < row {
			last.n = min(last.n, row-last.row)
			return
		}
		sg.lines = sg.lines[:k-1]
	}
}

func newDecoder(src *Source, schema *Schema, mem memory.Allocator, fresh *atomic.Bool) (*decoder, error) {
	d := &decoder{src: src, c: src.config, evolve: src.config.evolve == addNewColumns || src.config.evolve == failOnNewColumns, fresh: fresh}
	var data []*column
	for _, f := range schema.Fields {
		origin := f.Origin
		col, err := newColumn(mem, nil, f.Name, f.Type, func(c *column) bool { return src.pinned(c, origin) })
		if err != nil {
			d.release()
			return nil, err
		}
		d.cols = append(d.cols, col)
		if f.Origin != Partition {
			if f.Name == d.c.corrupt && coltype.String(f.Type) == "string" {
				d.broken = col
			}
			data = append(data, col)
		}
	}
	d.byName = map[string]*column{}
	for _, col := range d.cols {
		d.byName[strings.ToLower(col.name)] = col
	}
	d.root = newObject(data, false)
	if d.c.rescued != "" {
		d.rescue, _ = newColumn(mem, nil, d.c.rescued, arrow.BinaryTypes.String, nil)
	}
	d.news.below = map[string]*shape{}
	return d, nil
}

func (d *decoder) release() {
	for _, c := range d.cols {
		c.release()
	}
	if d.rescue != nil {
		d.rescue.release()
	}
	d.out.release()
}

// begin starts the records of a chunk.
func (d *decoder) begin(ch *chunk) {
	d.out.segments = append(d.out.segments, segment{file: ch.file.index, row: d.rows, offset: ch.offset})
	d.seg = &d.out.segments[len(d.out.segments)-1]
	d.res.file(ch.file.Path)
	d.partitions(ch.file)
}

// endRow closes a row: its partition values, its rescued data, its place.
func (d *decoder) endRow(ch *chunk, at int, line int64) {
	i := d.rows
	for _, p := range d.parts {
		if p.col.n > i {
			continue // a declared column that the record has itself; the folder is in _metadata
		}
		if !d.c.putText(p.col, i, p.value) && d.keeps() {
			d.res.text(p.col.name, p.value)
		}
	}
	if d.res.any() {
		d.out.rescued++
		d.rescue.putBytes(i, d.res.take())
		d.res.reset()
	}
	d.seg.line(i, line)
	d.out.starts = append(d.out.starts, uint32(at))
	d.seg.rows++
	d.rows++
}

// rollback takes back the rows from row on and the one under way.
func (d *decoder) rollback(row int) {
	for _, c := range d.cols {
		c.truncate(row)
	}
	if d.rescue != nil {
		d.rescue.truncate(row)
	}
	d.res.reset()
	d.out.starts = d.out.starts[:row]
	d.seg.rows -= d.rows - row
	d.seg.cut(row)
	d.rows = row
}

// malformed keeps a record that could not be parsed: a row of nulls and its text.
// total is the length of the record when raw is only its beginning.
func (d *decoder) malformed(ch *chunk, raw []byte, at int, line int64, why string, total int64) error {
	switch d.c.mode {
	case failFast:
		return fault.New("MALFORMED_RECORD_IN_PARSING", "%s (byte %d)", why, ch.offset+int64(at)).
			WithHint("Mend the file, or set mode to PERMISSIVE to keep the text of such records").
			At(fault.Where{File: ch.file.Path, Line: line})
	case dropMalformed:
		d.out.dropped++
		return nil
	}
	d.out.malformed++
	switch {
	case d.broken != nil:
		d.broken.putBytes(d.rows, []byte(strings.ToValidUTF8(string(raw), "\uFFFD")))
	case d.rescue != nil:
		d.res.text(corruptKey, raw)
		if total > int64(len(raw)) {
			d.res.name("_corrupt_record_bytes")
			d.res.buf = strconv.AppendInt(d.res.buf, total, 10)
		}
	default:
		d.out.lost++
	}
	d.endRow(ch, at, line)
	return nil
}

// keeps reports whether what fits no column can be kept, and counts it as lost if not.
func (d *decoder) keeps() bool {
	if d.rescue == nil {
		d.out.lost++
		return false
	}
	return true
}

// newShape is where the fields that a struct (nil: the record) lacks are noted.
func (d *decoder) newShape(c *column) *shape {
	if c == nil {
		if d.news.top == nil {
			d.news.top = &shape{}
		}
		return d.news.top
	}
	path := c.schemaPath()
	sh, ok := d.news.below[path]
	if !ok {
		sh = &shape{}
		d.news.below[path] = sh
	}
	return sh
}

// takeNews hands over what was new.
func (d *decoder) takeNews() news {
	n := d.news
	d.news = news{below: map[string]*shape{}}
	d.taken++
	return n
}

// foundNew notes where a new column was.
func (d *decoder) foundNew(ch *chunk, line int64, sh *shape) {
	if at := (firstSeen{true, ch.file.index, line}); at.before(d.news.first) {
		d.news.first = at
	}
	if sh.certain(d.c) {
		d.fresh.Store(true)
	}
}

// schemaPath is the path of a column by the names of the schema, NUL between them.
func (c *column) schemaPath() string {
	var names []string
	for at := c; at != nil; at = at.parent {
		names = append(names, at.name)
	}
	slices.Reverse(names)
	return strings.Join(names, "\x00")
}

// filled is what a folder of the file gives to a column.
type filled struct {
	col   *column
	value []byte
}

// partitions finds the columns for the folders of a file. A folder that is no
// column is passed over, as in Spark: the path is in _metadata.
func (d *decoder) partitions(f *source) {
	d.parts = d.parts[:0]
	for _, p := range f.parts {
		if col := d.byName[strings.ToLower(p.key)]; col != nil && p.value != nullPartition {
			d.parts = append(d.parts, filled{col, []byte(p.value)})
		}
	}
}

// flush gives the rows so far as a partial batch.
func (d *decoder) flush() partial {
	out := d.out
	out.rows = d.rows
	for _, c := range d.cols {
		out.data = append(out.data, c.finish(d.rows))
	}
	if d.rescue != nil {
		out.data = append(out.data, d.rescue.finish(d.rows))
	}
	d.rows, d.out, d.seg = 0, partial{}, nil
	return out
}

// size is the memory of the rows so far.
func (d *decoder) size() int {
	total := 0
	for _, c := range d.cols {
		total += c.bytes()
	}
	if d.rescue != nil {
		total += d.rescue.bytes()
	}
	return total
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
