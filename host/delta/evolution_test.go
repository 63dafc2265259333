package delta

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// A history of schema changes is compared with a model that knows nothing of
// names: it keeps each value under the node of the schema that it was written for.

// node is a column, a field, an element, a key or a value.
type node struct {
	name   string
	typ    int     // of leaf types, -1 for nested ones
	kind   string  // "leaf", "struct", "list" or "map"
	below  []*node // fields; the element; key and value
	parent *node
}

// leafTypes are chains of types that widen, and one that does not.
var leafTypes = []struct {
	arrow arrow.DataType
	next  int // what it widens to, -1 for nothing
	json  func(n int) string
}{
	{arrow.PrimitiveTypes.Int8, 1, number}, {arrow.PrimitiveTypes.Int16, 2, number}, {arrow.PrimitiveTypes.Int32, 3, number}, {arrow.PrimitiveTypes.Int64, 9, number},
	{arrow.PrimitiveTypes.Float32, 5, half}, {arrow.PrimitiveTypes.Float64, -1, half},
	{decimal(5, 2), 7, cents}, {decimal(8, 4), -1, cents},
	{arrow.BinaryTypes.String, -1, func(n int) string { return fmt.Sprintf(`"text %d"`, n) }},
	{decimal(22, 1), -1, func(n int) string { return fmt.Sprintf(`"%d.0"`, n) }},
	{arrow.FixedWidthTypes.Date32, 11, func(n int) string { return `"` + formatDate(int64(n)*1000) + `"` }},
	{ntz, -1, func(n int) string { return `"` + formatDate(int64(n)*1000) + ` 00:00:00"` }},
}

func number(n int) string { return fmt.Sprint(n) }
func half(n int) string   { return fmt.Sprint(float64(n) / 2) }
func cents(n int) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf(`"%s%d.%02d"`, sign, n/100, n%100)
}

// datumOf is a value of the model: nil, an int, a record, or a list; a map is a list of pairs.
type (
	record map[*node]any
	values []any
	pairs  [][2]any
)

type schemaModel struct {
	rand   *rand.Rand
	root   *node
	part   *node // the partition column, if there is one
	id     *node // a column whose values are unique, which stays
	last   int   // the last of those values
	mapped bool
	rows   []record
}

func (n *node) field() arrow.Field {
	return arrow.Field{Name: n.name, Type: n.arrow(), Nullable: true}
}

func (n *node) arrow() arrow.DataType {
	switch n.kind {
	case "struct":
		fields := make([]arrow.Field, len(n.below))
		for i, b := range n.below {
			fields[i] = b.field()
		}
		return arrow.StructOf(fields...)
	case "list":
		return arrow.ListOf(n.below[0].arrow())
	case "map":
		return arrow.MapOf(n.below[0].arrow(), n.below[1].arrow())
	}
	return leafTypes[n.typ].arrow
}

func (m *schemaModel) schema() *arrow.Schema {
	return arrow.NewSchema(m.root.arrow().(*arrow.StructType).Fields(), nil)
}

// path names the way from the root to the node.
func (n *node) path() []string {
	if n.parent == nil {
		return nil
	}
	step := n.name
	switch n.parent.kind {
	case "list":
		step = "element"
	case "map":
		step = []string{"key", "value"}[slices.Index(n.parent.below, n)]
	}
	return append(n.parent.path(), step)
}

// walk visits all nodes below.
func (n *node) walk(visit func(*node)) {
	for _, b := range n.below {
		visit(b)
		b.walk(visit)
	}
}

func (m *schemaModel) pick(keep func(*node) bool) *node {
	var all []*node
	m.root.walk(func(n *node) {
		if keep(n) {
			all = append(all, n)
		}
	})
	if len(all) == 0 {
		return nil
	}
	return all[m.rand.IntN(len(all))]
}

// newNode makes a type of some depth.
func (m *schemaModel) newNode(parent *node, name string, depth int) *node {
	n := &node{name: name, kind: "leaf", parent: parent}
	if depth > 0 {
		n.kind = []string{"leaf", "leaf", "struct", "list", "map"}[m.rand.IntN(5)]
	}
	switch n.kind {
	case "leaf":
		n.typ = []int{0, 1, 2, 3, 4, 6, 8, 10}[m.rand.IntN(8)]
	case "struct":
		for range 1 + m.rand.IntN(3) {
			n.below = append(n.below, m.newNode(n, m.freeName(n), depth-1))
		}
	case "list":
		n.below = []*node{m.newNode(n, "", depth-1)}
	case "map":
		n.below = []*node{{kind: "leaf", typ: []int{0, 2, 8}[m.rand.IntN(3)], parent: n}, m.newNode(n, "", depth-1)}
	}
	return n
}

// freeName gives one of few names, so that those of dropped columns come back.
func (m *schemaModel) freeName(in *node) string {
	for {
		name := []string{"a", "b", "C d", "e.f", "g", "H", "ö", "k`"}[m.rand.IntN(8)]
		if m.rand.IntN(4) == 0 {
			name += fmt.Sprint(m.rand.IntN(5))
		}
		if !slices.ContainsFunc(in.below, func(n *node) bool { return strings.EqualFold(n.name, name) }) {
			return name
		}
	}
}

func (m *schemaModel) value(n *node) any {
	if m.rand.IntN(5) == 0 {
		return nil
	}
	switch n.kind {
	case "struct":
		r := record{}
		for _, b := range n.below {
			r[b] = m.value(b)
		}
		return r
	case "list":
		v := values{}
		for range m.rand.IntN(3) {
			v = append(v, m.value(n.below[0]))
		}
		return v
	case "map":
		v := pairs{}
		for i := range m.rand.IntN(3) {
			v = append(v, [2]any{i*10 + m.rand.IntN(10), m.value(n.below[1])})
		}
		return v
	}
	return m.rand.IntN(200) - 100
}

// json writes a value under the names and types that the schema has now.
func (n *node) json(v any) string {
	if v == nil {
		return "null"
	}
	switch n.kind {
	case "struct":
		parts := make([]string, len(n.below))
		for i, b := range n.below {
			parts[i] = fmt.Sprintf("%q:%s", b.name, b.json(v.(record)[b]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case "list":
		parts := []string{}
		for _, e := range v.(values) {
			parts = append(parts, n.below[0].json(e))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case "map":
		parts := []string{}
		for _, e := range v.(pairs) {
			parts = append(parts, fmt.Sprintf(`{"key":%s,"value":%s}`, n.below[0].json(e[0]), n.below[1].json(e[1])))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return leafTypes[n.typ].json(v.(int))
}

func (m *schemaModel) jsonOf(rows []record) string {
	parts := make([]string, len(rows))
	for i, r := range rows {
		parts[i] = m.root.json(r)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// expected gives the rows as scanning them prints them.
func (m *schemaModel) expected(f *fixture) []string {
	if len(m.rows) == 0 {
		return []string{}
	}
	rec := f.batch(m.schema(), m.jsonOf(m.rows))
	defer rec.Release()
	out := recordRows(rec, nil)
	slices.Sort(out)
	return out
}

func (m *schemaModel) newRows() []record {
	out := make([]record, m.rand.IntN(4))
	for i := range out {
		m.last++
		out[i] = m.newRow(m.last)
	}
	return out
}

func (m *schemaModel) newRow(id int) record {
	r := record{}
	for _, b := range m.root.below {
		r[b] = m.value(b)
	}
	r[m.id] = id
	return r
}

// write makes files of new rows, in the schema as it is in the model.
func (m *schemaModel) write(f *fixture, s *Snapshot, name string, rows []record, properties map[string]string) []AddFile {
	if len(rows) == 0 {
		return nil
	}
	return f.write(WriteOptions{Snapshot: s, Schema: m.schema(), PartitionBy: m.partitionBy(), Name: name, Properties: properties}, m.jsonOf(rows))
}

func (m *schemaModel) partitionBy() []string {
	if m.part == nil {
		return nil
	}
	return []string{m.part.name}
}

// step commits one change of the table and does the same to the model.
func (m *schemaModel) step(f *fixture, name string) string {
	s := f.snapshot()
	switch op := m.rand.IntN(14); {
	case op == 10:
		if _, err := f.table.Optimize(background, OptimizeOptions{}); err != nil {
			f.t.Fatal(err)
		}
		return "optimize"
	case op > 10:
		return m.mutate(f, s, name)
	case op < 3:
		rows := m.newRows()
		f.commit(Commit{Read: s, Add: m.write(f, s, name, rows, nil)})
		m.rows = append(m.rows, rows...)
		return "append"
	case op < 5:
		at := m.root
		if inner := m.pick(func(n *node) bool { return n.kind == "struct" }); inner != nil && m.rand.IntN(2) == 0 {
			at = inner
		}
		at.below = append(at.below, m.newNode(at, m.freeName(at), 2))
		rows := m.newRows()
		f.commit(Commit{Read: s, Schema: m.schema(), Add: m.write(f, s, name, rows, nil)})
		m.rows = append(m.rows, rows...)
		return "add"
	case op == 5:
		rows := m.newRows()
		f.commit(Commit{Read: s, ReplaceAll: true, Add: m.write(f, s, name, rows, nil)})
		m.rows = rows
		return "replace"
	case op == 6 && !m.mapped:
		f.commit(Commit{Read: s, Properties: map[string]string{"delta.columnMapping.mode": "name"}})
		m.mapped = true
		return "upgrade"
	}
	return m.change(f, s)
}

// mutate deletes and updates rows of the table by where they lie.
func (m *schemaModel) mutate(f *fixture, s *Snapshot, name string) string {
	files, err := s.Files(background)
	if err != nil {
		f.t.Fatal(err)
	}
	mut, err := s.Mutate(background, MutateOptions{Name: name})
	if err != nil {
		f.t.Fatal(err)
	}
	byID := map[int]int{}
	for i, r := range m.rows {
		byID[r[m.id].(int)] = i
	}
	gone := map[int]bool{}
	for _, file := range files {
		located, err := scanRows(background, s, ScanOptions{Columns: []string{m.id.name}, Files: []AddFile{file}, RowIndex: true}, nil)
		if err != nil {
			f.t.Fatal(err)
		}
		var deleted, updated []int64
		var post []record
		for _, text := range located {
			var id, at int
			if _, err := fmt.Sscanf(text[strings.Index(text, "=text "):], "=text %d|"+RowIndexColumn+"=%d|", &id, &at); err != nil {
				f.t.Fatal(text, err)
			}
			switch m.rand.IntN(4) {
			case 0:
				deleted, gone[id] = append(deleted, int64(at)), true
			case 1:
				updated, post = append(updated, int64(at)), append(post, m.newRow(id))
			}
		}
		if len(deleted) > 0 {
			err = mut.Delete(background, file, NewRowSet(deleted...))
		}
		if err == nil && len(updated) > 0 {
			rec := f.batch(m.schema(), m.jsonOf(post))
			err = mut.Update(background, file, NewRowSet(updated...), rec)
			rec.Release()
		}
		if err != nil {
			f.t.Fatal(err)
		}
		for _, r := range post {
			m.rows[byID[r[m.id].(int)]] = r
		}
	}
	if _, err := mut.Commit(background, Commit{}); err != nil {
		f.t.Fatal(err)
	}
	m.rows = slices.DeleteFunc(m.rows, func(r record) bool { return gone[r[m.id].(int)] })
	return "mutate"
}

// change commits several changes of columns at once.
func (m *schemaModel) change(f *fixture, s *Snapshot) string {
	var c SchemaChange
	var after []func()
	isField := func(n *node) bool { return n.parent.kind == "struct" }
	touched := map[*node]bool{}
	for range 1 + m.rand.IntN(3) {
		switch m.rand.IntN(3) {
		case 0:
			n := m.pick(func(n *node) bool { return isField(n) && !touched[n] && !touched[n.parent] })
			if n == nil || !m.mapped {
				continue
			}
			touched[n] = true
			to := m.freeName(n.parent)
			if slices.ContainsFunc(c.Rename, func(r Rename) bool { return strings.EqualFold(r.To, to) }) {
				continue
			}
			c.Rename = append(c.Rename, Rename{n.path(), to})
			after = append(after, func() { n.name = to })
		case 1:
			// What lies in a dropped column must not be changed besides.
			n := m.pick(func(n *node) bool {
				free := isField(n) && n != m.part && n != m.id && len(n.parent.below) > 2 && !touched[n]
				n.walk(func(b *node) { free = free && !touched[b] })
				return free
			})
			if n == nil || !m.mapped || touched[n.parent] {
				continue
			}
			touched[n], touched[n.parent] = true, true
			n.walk(func(b *node) { touched[b] = true })
			c.Drop = append(c.Drop, n.path())
			after = append(after, func() { n.parent.below = slices.DeleteFunc(n.parent.below, func(b *node) bool { return b == n }) })
		case 2:
			n := m.pick(func(n *node) bool { return n.kind == "leaf" && leafTypes[n.typ].next >= 0 && !touched[n] })
			if n == nil {
				continue
			}
			touched[n] = true
			to := leafTypes[n.typ].next
			c.Widen = append(c.Widen, Widening{n.path(), leafTypes[to].arrow})
			after = append(after, func() { n.typ = to })
		}
	}
	f.commit(Commit{Read: s, Change: c})
	for _, do := range after {
		do()
	}
	return fmt.Sprintf("change %+v", c)
}

// TestRandomHistoriesOfSchemasKeepEveryValue changes schemas of random nested
// tables: columns are added, renamed, dropped, widened, and come back under old
// names; the table gets column mapping on the way, rows are deleted, updated and
// moved. Every version reads as the
// model has it, from the log and from checkpoints. WEIR_SOAK=n runs n histories.
func TestRandomHistoriesOfSchemasKeepEveryValue(t *testing.T) {
	histories := 20
	if n, err := strconv.Atoi(os.Getenv("WEIR_SOAK")); err == nil {
		histories = n
	}
	for seed := range uint64(histories) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := newFixture(t)
			m := &schemaModel{rand: rand.New(rand.NewPCG(seed, 7))}
			m.root = &node{kind: "struct"}
			for range 2 + m.rand.IntN(3) {
				m.root.below = append(m.root.below, m.newNode(m.root, m.freeName(m.root), 3))
			}
			m.id = &node{name: m.freeName(m.root), kind: "leaf", typ: 8, parent: m.root}
			m.root.below = append(m.root.below, m.id)
			if m.rand.IntN(3) == 0 {
				m.part = &node{name: m.freeName(m.root), kind: "leaf", typ: []int{0, 2, 4, 6, 10}[m.rand.IntN(5)], parent: m.root}
				m.root.below = append(m.root.below, m.part)
			}
			properties := map[string]string{"delta.enableTypeWidening": "true", "delta.checkpointInterval": "5"}
			for _, name := range []string{"delta.enableDeletionVectors", "delta.enableChangeDataFeed", "delta.enableRowTracking"} {
				properties[name] = fmt.Sprint(m.rand.IntN(2) == 0)
			}
			if mode := []string{"none", "name", "id"}[m.rand.IntN(3)]; mode != "none" {
				properties["delta.columnMapping.mode"], m.mapped = mode, true
			}
			m.rows = m.newRows()
			f.commit(Commit{Schema: m.schema(), PartitionBy: m.partitionBy(), Properties: properties, Add: m.write(f, nil, "first", m.rows, properties)})
			history := map[int64][]string{0: m.expected(f)}
			for i := range 14 {
				op := m.step(f, fmt.Sprint("n", i))
				want := m.expected(f)
				if got := f.rows(); !slices.Equal(got, want) {
					t.Fatalf("step %d, %s:\n%s", i, op, firstDifference(got, want))
				}
				history[f.snapshot().Version()] = want // some steps are several versions, or none
			}
			for version, want := range history {
				s, err := f.reopen().SnapshotAt(background, version)
				if err != nil {
					t.Fatal(err)
				}
				got, err := scanRows(background, s, ScanOptions{BatchRows: 2}, nil)
				slices.Sort(got)
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("version %d: %v\n%s", version, err, firstDifference(got, want))
				}
			}
			checkIDs(t, f.snapshot())
			if properties["delta.enableChangeDataFeed"] == "true" {
				f.checkSumOfChanges(t)
			}
		})
	}
}

// checkSumOfChanges adds up the change data feed: what was inserted and not
// deleted since, in the columns of the last version, is what the table holds.
func (f *fixture) checkSumOfChanges(t *testing.T) {
	t.Helper()
	r, err := f.reopen().Changes(background, ChangesOptions{From: 0, To: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	sum := map[string]int{}
	for r.Next() {
		rec := r.RecordBatch()
		kinds := rec.Column(int(rec.NumCols()) - 3).(*array.String)
		for i, row := range recordRows(rec, map[string]bool{"_change_type": true, "_commit_version": true, "_commit_timestamp": true}) {
			switch kinds.Value(i) {
			case "insert", "update_postimage":
				sum[row]++
			default:
				sum[row]--
			}
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	for _, row := range f.rows() {
		sum[row]--
	}
	for row, n := range sum {
		if n != 0 {
			t.Errorf("%+d of %s", n, row)
		}
	}
}

// checkIDs looks at the ids and physical names of a mapped table.
func checkIDs(t *testing.T, s *Snapshot) {
	t.Helper()
	if s.mapping == "none" {
		return
	}
	ids, names := map[int]bool{}, map[string]bool{}
	most := 0
	eachField(s.schema, nil, func(f *field, path []string) {
		if !f.named() || ids[f.fieldID()] {
			t.Errorf("field %v has id %d and name %q", path, f.fieldID(), f.physicalName())
		}
		ids[f.fieldID()], names[f.physicalName()] = true, true
		most = max(most, f.fieldID())
	})
	var last int
	if _, err := fmt.Sscan(s.Properties()[maxColumnIDKey], &last); err != nil || last < most {
		t.Errorf("the highest id is %d, the table says %d", most, last)
	}
}
