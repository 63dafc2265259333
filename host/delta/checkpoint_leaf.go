package delta

import (
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/weir-data/weir/host/fault"
)

// levelBatch is how many levels of a column are read at once.
const levelBatch = 8 << 10

// readBudget bounds what the content of one file may unfold to: runs and
// dictionaries can say in a few bytes what takes gigabytes in memory.
type readBudget struct{ left atomic.Int64 }

// newReadBudget gives the budget of a file: no honest checkpoint, whose paths
// all differ, comes near it.
func newReadBudget(size int64) *readBudget {
	b := &readBudget{}
	b.left.Store(64<<20 + 256*size)
	return b
}

func (b *readBudget) spend(bytes int) error {
	if b.left.Add(-int64(bytes)) < 0 {
		return fault.New("DELTA_INVALID_CHECKPOINT", "its content is out of proportion to the size of the file")
	}
	return nil
}

// leafColumn is one Parquet column of one row group. Its values come with the
// row they belong to, counted from the start of the group.
type leafColumn struct {
	chunk          file.ColumnChunkReader
	maxDef, maxRep int16
	optional       bool // the leaf itself may be null
	budget         *readBudget
}

// element is the definition level from which on the list or map that the leaf lies in has an element.
func (l *leafColumn) element() int16 {
	if l.optional {
		return l.maxDef - 1
	}
	return l.maxDef
}

// levels calls f for each level of the column. Values are read by the page,
// each time into one piece of memory of their own; v is set where def is maxDef.
func (l *leafColumn) levels(f func(row int32, def int16, v string) error) error {
	chunk, ok := l.chunk.(*file.ByteArrayColumnChunkReader)
	if !ok {
		return nil // a column of another type has no values for us
	}
	values := make([]parquet.ByteArray, levelBatch)
	return l.each(func(def, rep []int16) (int64, int, error) {
		return chunk.ReadBatchInPage(levelBatch, values, def, rep)
	}, func(read int) (func(row int32, def int16, at int) error, error) {
		size := 0
		for _, v := range values[:read] {
			size += len(v)
		}
		if err := l.budget.spend(size + 16*read); err != nil {
			return nil, err
		}
		text := make([]byte, 0, size)
		return func(row int32, def int16, at int) error {
			if at < 0 {
				return f(row, def, "")
			}
			from := len(text)
			text = append(text, values[at]...)
			return f(row, def, stringOf(text[from:]))
		}, nil
	})
}

// stringOf gives the bytes as a string without copying; they must not change any more.
func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// each runs through the levels of a column: read fetches some, take gives what is called for each of them.
func (l *leafColumn) each(read func(def, rep []int16) (levels int64, values int, err error), take func(values int) (func(row int32, def int16, at int) error, error)) error {
	def, rep := make([]int16, levelBatch), make([]int16, levelBatch)
	row := int32(-1)
	for {
		n, values, err := read(def, rep)
		if err != nil {
			return fault.Wrap(err, "DELTA_INVALID_CHECKPOINT", "column %s", l.chunk.Descriptor().Path())
		}
		if n == 0 {
			if err := l.chunk.Err(); err != nil {
				return fault.Wrap(err, "DELTA_INVALID_CHECKPOINT", "column %s", l.chunk.Descriptor().Path())
			}
			return nil
		}
		f, err := take(values)
		if err != nil {
			return err
		}
		at := 0
		for i := range int(n) {
			if l.maxRep == 0 || rep[i] == 0 {
				row++
			}
			d, v := l.maxDef, -1
			if l.maxDef > 0 {
				d = def[i]
			}
			if d == l.maxDef {
				v = at
				at++
			}
			if at > values {
				return fault.New("DELTA_INVALID_CHECKPOINT", "column %s has fewer values than its levels say", l.chunk.Descriptor().Path())
			}
			if err := f(row, d, v); err != nil {
				return err
			}
		}
	}
}

// texts calls f for each value.
func (l *leafColumn) texts(f func(row int32, v string) error) error {
	return l.levels(func(row int32, def int16, v string) error {
		if def != l.maxDef {
			return nil
		}
		return f(row, v)
	})
}

// longs calls f for each value of an integer column.
func (l *leafColumn) longs(f func(row int32, v int64)) error {
	switch chunk := l.chunk.(type) {
	case *file.Int64ColumnChunkReader:
		values := make([]int64, levelBatch)
		return l.each(func(def, rep []int16) (int64, int, error) {
			return chunk.ReadBatchInPage(levelBatch, values, def, rep)
		}, valuesOf(values, func(row int32, v int64) { f(row, v) }))
	case *file.Int32ColumnChunkReader:
		values := make([]int32, levelBatch)
		return l.each(func(def, rep []int16) (int64, int, error) {
			return chunk.ReadBatchInPage(levelBatch, values, def, rep)
		}, valuesOf(values, func(row int32, v int32) { f(row, int64(v)) }))
	}
	return nil
}

// bools calls f for each value of a boolean column.
func (l *leafColumn) bools(f func(row int32, v bool)) error {
	chunk, ok := l.chunk.(*file.BooleanColumnChunkReader)
	if !ok {
		return nil
	}
	values := make([]bool, levelBatch)
	return l.each(func(def, rep []int16) (int64, int, error) {
		return chunk.ReadBatchInPage(levelBatch, values, def, rep)
	}, valuesOf(values, f))
}

func valuesOf[T any](values []T, f func(row int32, v T)) func(int) (func(row int32, def int16, at int) error, error) {
	take := func(row int32, _ int16, at int) error {
		if at >= 0 {
			f(row, values[at])
		}
		return nil
	}
	return func(int) (func(row int32, def int16, at int) error, error) { return take, nil }
}

// checkpointGroup is one row group of a checkpoint, whose columns are found by their paths.
type checkpointGroup struct {
	table   *Table
	pq      *file.Reader
	group   int
	columns map[string]int
	budget  *readBudget
}

// columnPaths maps the paths of the leaves to their numbers.
func columnPaths(pq *file.Reader) map[string]int {
	schema := pq.MetaData().Schema
	out := make(map[string]int, schema.NumColumns())
	for i := range schema.NumColumns() {
		out[schema.Column(i).Path()] = i
	}
	return out
}

// column opens a column by its path; nil when there is none.
func (g *checkpointGroup) column(path string) (*leafColumn, error) {
	i, ok := g.columns[path]
	if !ok {
		return nil, nil
	}
	chunk, err := g.pq.RowGroup(g.group).Column(i)
	if err != nil {
		return nil, fault.Wrap(err, "DELTA_INVALID_CHECKPOINT", "column %s", path)
	}
	d := chunk.Descriptor()
	return &leafColumn{
		chunk: chunk, maxDef: d.MaxDefinitionLevel(), maxRep: d.MaxRepetitionLevel(), budget: g.budget,
		optional: d.SchemaNode().RepetitionType() == parquet.Repetitions.Optional,
	}, nil
}

// values is column, but nil for one without values, too.
func (g *checkpointGroup) values(path string) (*leafColumn, error) {
	i, ok := g.columns[path]
	if !ok {
		return nil, nil
	}
	chunk, err := g.pq.MetaData().RowGroup(g.group).ColumnChunk(i)
	if err != nil {
		return nil, fault.Wrap(err, "DELTA_INVALID_CHECKPOINT", "column %s", path)
	}
	if st, err := chunk.Statistics(); err == nil && st != nil && st.HasNullCount() && st.NullCount() == chunk.NumValues() && chunk.NumValues() > 0 {
		return nil, nil
	}
	return g.column(path)
}

// below finds the path of a leaf that lies somewhere below a list or a map: writers name what lies between differently.
func (g *checkpointGroup) below(prefix, suffix string) string {
	for path := range g.columns {
		if strings.HasPrefix(path, prefix+".") && strings.HasSuffix(path, suffix) {
			return path
		}
	}
	return ""
}

// actionRows are the rows of a group that hold one kind of action, ascending.
type actionRows []int32

// find calls f for values of the rows, in order, with the number of the action.
func (rows actionRows) find() func(row int32) int {
	at := 0
	return func(row int32) int {
		for at < len(rows) && rows[at] < row {
			at++
		}
		if at < len(rows) && rows[at] == row {
			return at
		}
		return -1
	}
}

// texts sets a field of each action from a column of strings.
func (g *checkpointGroup) texts(path string, rows actionRows, set func(i int, v string)) error {
	col, err := g.values(path)
	if err != nil || col == nil || len(rows) == 0 {
		return err
	}
	find := rows.find()
	return col.texts(func(row int32, v string) error {
		if i := find(row); i >= 0 {
			set(i, v)
		}
		return nil
	})
}

func (g *checkpointGroup) longs(path string, rows actionRows, set func(i int, v int64)) error {
	col, err := g.values(path)
	if err != nil || col == nil || len(rows) == 0 {
		return err
	}
	find := rows.find()
	return col.longs(func(row int32, v int64) {
		if i := find(row); i >= 0 {
			set(i, v)
		}
	})
}

func (g *checkpointGroup) bools(path string, rows actionRows, set func(i int, v bool)) error {
	col, err := g.values(path)
	if err != nil || col == nil || len(rows) == 0 {
		return err
	}
	find := rows.find()
	return col.bools(func(row int32, v bool) {
		if i := find(row); i >= 0 {
			set(i, v)
		}
	})
}

// lists sets a list of strings; a null one is not set, which differs from an empty one.
func (g *checkpointGroup) lists(path string, rows actionRows, set func(i int, v []string)) error {
	col, err := g.column(g.below(path, ""))
	if err != nil || col == nil || len(rows) == 0 {
		return err
	}
	find := rows.find()
	lists := make([][]string, len(rows))
	err = col.levels(func(row int32, def int16, v string) error {
		i := find(row)
		switch {
		case i < 0 || def < col.element()-1:
			return nil
		case lists[i] == nil:
			lists[i] = []string{}
		}
		if def >= col.element() {
			lists[i] = append(lists[i], v)
		}
		return nil
	})
	for i, l := range lists {
		if l != nil {
			set(i, l)
		}
	}
	return err
}

// mapEntry is one entry of a map.
type mapEntry struct {
	key   string
	value string
	null  bool
}

// maps sets a map of each action that has one with entries. Equal maps are given as the same
// entries again, so that set may keep what it made of them.
func (g *checkpointGroup) maps(path string, rows actionRows, set func(i int, entries []mapEntry)) error {
	keys, err := g.values(g.below(path, ".key"))
	if err != nil || keys == nil || len(rows) == 0 {
		return err
	}
	var entries []mapEntry
	var at []int32
	find := rows.find()
	err = keys.texts(func(row int32, v string) error {
		if i := find(row); i >= 0 {
			entries, at = append(entries, mapEntry{key: v, null: true}), append(at, int32(i))
		}
		return keys.budget.spend(48)
	})
	if err != nil {
		return err
	}
	values, err := g.values(g.below(path, ".value"))
	if err != nil {
		return err
	}
	if values != nil {
		next := 0
		find := rows.find()
		err = values.levels(func(row int32, def int16, v string) error {
			if def < values.element() || find(row) < 0 {
				return nil
			}
			if next >= len(entries) {
				return fault.New("DELTA_INVALID_CHECKPOINT", "a map of %s has more values than keys", path)
			}
			if def == values.maxDef {
				entries[next].value, entries[next].null = v, false
			}
			next++
			return nil
		})
		if err == nil && next != len(entries) {
			err = fault.New("DELTA_INVALID_CHECKPOINT", "a map of %s has fewer values than keys", path)
		}
		if err != nil {
			return err
		}
	}
	for from := 0; from < len(at); {
		to := from + 1
		for to < len(at) && at[to] == at[from] {
			to++
		}
		set(int(at[from]), entries[from:to:to])
		from = to
	}
	return nil
}
