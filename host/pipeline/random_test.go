package pipeline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/relation"
)

// covers A114 A115 A118 A122 A217: for random pipelines and random arrival of
// files over several updates every table equals the batch computation over all
// input. WEIR_SOAK_PIPELINES=n runs n of them, WEIR_SEED=n one.
func TestRandomPipelinesEqualTheBatchComputation(t *testing.T) {
	first, last := 0, 20
	if n, err := strconv.Atoi(os.Getenv("WEIR_SOAK_PIPELINES")); err == nil {
		last = n
	}
	if n, err := strconv.Atoi(os.Getenv("WEIR_SEED")); err == nil {
		first, last = n, n+1
	}
	for seed := first; seed < last; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			w := newRandomPipeline(t, rand.New(rand.NewPCG(uint64(seed), 2026)))
			w.live()
		})
	}
}

// randomPipeline is a project and what each of its tables means.
type randomPipeline struct {
	*project
	r     *rand.Rand
	feeds []*feed
	nodes []*node
	sql   []string
	ids   int64
	files int
}

// feed is a landing folder and the rows that ever landed in it.
type feed struct {
	name, format string
	rows         []row
	taken        int // rows that a flow which runs once has read; -1 before it ran
}

// node is a table or view.
type node struct {
	name   string
	table  bool // it can be looked at
	stream bool // it can be read with STREAM
	batch  bool // it can be read without
	small  bool // a join of it stays small
	eval   func() []row
}

func newRandomPipeline(t *testing.T, r *rand.Rand) *randomPipeline {
	w := &randomPipeline{project: newProject(t, landingConf), r: r}
	for i := range 2 + r.IntN(2) {
		w.feeds = append(w.feeds, &feed{name: fmt.Sprintf("feed%d", i), format: []string{"json", "csv"}[r.IntN(2)], taken: -1})
	}
	w.bronze()
	w.dimension()
	for i := range 1 + r.IntN(4) {
		w.silver(i)
	}
	for i := range 2 + r.IntN(4) {
		w.gold(i)
	}
	// Nothing depends on the order in which datasets are defined.
	r.Shuffle(len(w.sql), func(i, j int) { w.sql[i], w.sql[j] = w.sql[j], w.sql[i] })
	w.write("sql/all.sql", strings.Join(w.sql, ";\n")+";\n")
	return w
}

func (w *randomPipeline) define(n *node, format string, args ...any) {
	w.sql = append(w.sql, fmt.Sprintf(format, args...))
	w.nodes = append(w.nodes, n)
}

// pick gives a node that is fit to read, the newer ones more often.
func (w *randomPipeline) pick(fit func(*node) bool) *node {
	var some []*node
	for _, n := range w.nodes {
		if fit(n) {
			some = append(some, n)
		}
	}
	return some[max(w.r.IntN(len(some)), w.r.IntN(len(some)))]
}

func (w *randomPipeline) read(f *feed) string {
	header := ""
	if f.format == "csv" {
		header = ", header => true"
	}
	return fmt.Sprintf("read_files('${landing}/%s', format => '%s', schema => 'id BIGINT, k BIGINT, g STRING, n BIGINT'%s)", f.name, f.format, header)
}

// bronze reads the feeds: each into a table of its own, or several into one.
func (w *randomPipeline) bronze() {
	for i := 0; i < len(w.feeds); {
		name := fmt.Sprintf("b%d", i)
		mine := w.feeds[i : i+1+w.r.IntN(len(w.feeds)-i)]
		i += len(mine)
		once := -1
		if len(mine) > 1 && w.r.IntN(2) == 0 {
			once = w.r.IntN(len(mine))
		}
		n := &node{name: name, table: true, stream: true, batch: true, small: true, eval: func() (out []row) {
			for i, f := range mine {
				if i == once {
					out = append(out, f.rows[:max(f.taken, 0)]...)
				} else {
					out = append(out, f.rows...)
				}
			}
			return out
		}}
		if len(mine) == 1 {
			w.define(n, "CREATE OR REFRESH STREAMING TABLE %s AS SELECT * FROM STREAM %s", name, w.read(mine[0]))
			continue
		}
		w.define(n, "CREATE OR REFRESH STREAMING TABLE %s", name)
		for i, f := range mine {
			how := [2]string{"INSERT INTO", "STREAM "}
			if i == once {
				how = [2]string{"INSERT INTO ONCE", ""}
			} else {
				f.taken = -2 // read as a stream
			}
			w.sql = append(w.sql, fmt.Sprintf("CREATE FLOW %s_%d AS %s %s BY NAME SELECT * FROM %s%s", name, i, how[0], name, how[1], w.read(f)))
		}
	}
}

// dimension is a table that never changes: what a stream is joined with when it
// arrives is then the same as what it would be joined with later.
func (w *randomPipeline) dimension() {
	var rows []row
	text := "id,k,g,n\n"
	for k := range 4 {
		x := row{number(int64(k)), number(int64(k)), word(string(rune('p' + k))), number(int64(k * 100))}
		rows = append(rows, x)
		text += fmt.Sprintf("%d,%d,%s,%d\n", x.id.i, x.k.i, x.g.s, x.n.i)
	}
	f := &feed{name: "dim", format: "csv", rows: rows}
	w.write("landing/dim/all.csv", text)
	w.define(&node{name: "dim", table: true, batch: true, small: true, eval: func() []row { return rows }},
		"CREATE OR REFRESH MATERIALIZED VIEW dim AS SELECT * FROM %s", w.read(f))
}

// rules gives a column list with an expectation that drops rows, or nothing.
func (w *randomPipeline) rules() (string, func([]row) []row) {
	if w.r.IntN(3) > 0 {
		return "", func(in []row) []row { return in }
	}
	c, pass := randomCondition(w.r, 1), w.r.IntN(2) == 0
	policy := ""
	if pass {
		policy = " NULL PASS"
	}
	return fmt.Sprintf(" (CONSTRAINT c EXPECT (%s) ON VIOLATION DROP ROW%s)", c.sql, policy), func(in []row) []row {
		return slices.DeleteFunc(slices.Clone(in), func(x row) bool {
			holds := c.eval(x)
			return holds == no || holds == unknown && !pass
		})
	}
}

func (w *randomPipeline) silver(i int) {
	up := w.pick(func(n *node) bool { return n.stream })
	where, p := randomCondition(w.r, 2), randomProjection(w.r)
	if w.r.IntN(4) == 0 {
		name := fmt.Sprintf("sv%d", i)
		w.define(&node{name: name, stream: true, eval: func() []row { return filtered(up.eval(), where, p) }},
			"CREATE TEMPORARY VIEW %s AS SELECT %s FROM STREAM(%s) WHERE %s", name, p.sql, up.name, where.sql)
		return
	}
	name := fmt.Sprintf("silver.s%d", i)
	columns, keep := w.rules()
	if w.r.IntN(3) == 0 {
		left := w.r.IntN(2) == 0
		w.define(&node{name: name, table: true, stream: true, batch: true, small: true, eval: func() []row {
			return keep(joined(up.eval(), w.node("dim").eval(), left))
		}}, "CREATE OR REFRESH STREAMING TABLE %s%s AS SELECT %s FROM STREAM(%s) AS a %s JOIN dim AS b ON a.k = b.k", name, columns, joinedColumns, up.name, map[bool]string{true: "LEFT"}[left])
		return
	}
	w.define(&node{name: name, table: true, stream: true, batch: true, small: true, eval: func() []row {
		return keep(filtered(up.eval(), where, p))
	}}, "CREATE OR REFRESH STREAMING TABLE %s%s AS SELECT %s FROM STREAM(%s) WHERE %s", name, columns, p.sql, up.name, where.sql)
}

func (w *randomPipeline) node(name string) *node {
	return w.nodes[slices.IndexFunc(w.nodes, func(n *node) bool { return n.name == name })]
}

func (w *randomPipeline) gold(i int) {
	small := func(n *node) bool { return n.batch && n.small }
	up := w.pick(func(n *node) bool { return n.batch })
	n := &node{table: true, batch: true, small: up.small}
	var query string
	switch w.r.IntN(5) {
	case 0:
		where, p := randomCondition(w.r, 2), randomProjection(w.r)
		n.eval, query = func() []row { return filtered(up.eval(), where, p) }, fmt.Sprintf("SELECT %s FROM %s WHERE %s", p.sql, up.name, where.sql)
	case 1:
		n.small = true
		n.eval, query = func() []row { return grouped(up.eval()) }, fmt.Sprintf("SELECT %s FROM %s GROUP BY k", groupedColumns, up.name)
	case 2:
		a, b, left := w.pick(small), w.pick(small), w.r.IntN(2) == 0
		n.small = false
		n.eval, query = func() []row { return joined(a.eval(), b.eval(), left) },
			fmt.Sprintf("SELECT %s FROM %s AS a %s JOIN %s AS b ON a.k = b.k", joinedColumns, a.name, map[bool]string{true: "LEFT"}[left], b.name)
	case 3:
		n.eval, query = func() []row { return distinct(up.eval()) }, "SELECT DISTINCT id, k, g, n FROM "+up.name
	case 4:
		other := w.pick(small)
		n.eval, query = func() []row { return append(slices.Clone(up.eval()), other.eval()...) },
			fmt.Sprintf("SELECT id, k, g, n FROM %s UNION ALL SELECT id, k, g, n FROM %s", up.name, other.name)
	}
	if w.r.IntN(4) == 0 {
		n.name, n.table = fmt.Sprintf("gv%d", i), false
		w.define(n, "CREATE TEMPORARY VIEW %s AS %s", n.name, query)
		return
	}
	n.name = fmt.Sprintf("gold.m%d", i)
	columns, keep := w.rules()
	eval := n.eval
	n.eval = func() []row { return keep(eval()) }
	w.define(n, "CREATE OR REFRESH MATERIALIZED VIEW %s%s AS %s", n.name, columns, query)
}

// live lets files arrive and updates run, and looks at every table after each.
func (w *randomPipeline) live() {
	for _, f := range w.feeds {
		w.arrive(f)
	}
	for step := range 3 + w.r.IntN(2) {
		opt := RunOptions{FullRefreshAll: step > 0 && w.r.IntN(6) == 0}
		for _, f := range w.feeds {
			if f.taken == -1 || f.taken >= 0 && opt.FullRefreshAll {
				f.taken = len(f.rows)
			}
		}
		w.completed(opt)
		w.check(step)
		for range w.r.IntN(4) {
			w.arrive(w.feeds[w.r.IntN(len(w.feeds))])
		}
	}
	w.completed(RunOptions{})
	w.check(-1)
	for _, f := range w.completed(RunOptions{}).Flows {
		if f.Batches != 0 {
			w.t.Errorf("%s did something in an update without news: %+v", f.Dataset, f.Refresh)
		}
	}
}

// arrive lands a file of a few rows, under a name that says nothing of its time.
func (w *randomPipeline) arrive(f *feed) {
	w.files++
	var b strings.Builder
	if f.format == "csv" {
		b.WriteString("id,k,g,n\n")
	}
	maybe := func(v value) value {
		if w.r.IntN(6) == 0 {
			return null
		}
		return v
	}
	for range 1 + w.r.IntN(6) {
		w.ids++
		x := row{number(w.ids), maybe(number(int64(w.r.IntN(7)))), maybe(word(string(rune('a' + w.r.IntN(4))))), maybe(number(int64(w.r.IntN(12) - 3)))}
		f.rows = append(f.rows, x)
		if f.format == "json" {
			b.WriteString(x.String() + "\n")
			continue
		}
		cell := func(v value, text string) string {
			if v.null {
				return ""
			}
			return text
		}
		fmt.Fprintf(&b, "%d,%s,%s,%s\n", x.id.i, cell(x.k, fmt.Sprint(x.k.i)), x.g.s, cell(x.n, fmt.Sprint(x.n.i)))
	}
	w.write(fmt.Sprintf("landing/%s/%c%d.%s", f.name, 'a'+rune(w.r.IntN(26)), w.files, f.format), b.String())
}

// check compares every table with the model.
func (w *randomPipeline) check(step int) {
	pl, err := w.tryOpen()
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() {
		if err := pl.Close(context.Background()); err != nil {
			w.t.Error(err)
		}
	}()
	for _, n := range w.nodes {
		if !n.table {
			continue
		}
		got, err := tableRows(w.t.Context(), pl, n.name)
		if err != nil {
			w.t.Fatalf("%s: %v", n.name, err)
		}
		var want []string
		for _, x := range n.eval() {
			want = append(want, x.String())
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			w.t.Fatalf("after update %d %s has\n%s\nwant\n%s\nof\n%s", step, n.name, strings.Join(got, "\n"), strings.Join(want, "\n"), strings.Join(w.sql, ";\n"))
		}
	}
}

// tableRows gives the rows of a table, sorted, without SQL.
func tableRows(ctx context.Context, pl *Pipeline, name string) ([]string, error) {
	snapshot, err := pl.snapshot(ctx, name)
	if err != nil || snapshot == nil {
		return nil, err
	}
	r, err := snapshot.Scan(ctx, delta.ScanOptions{Columns: []string{"id", "k", "g", "n"}})
	if err != nil {
		return nil, err
	}
	defer r.Release()
	var out []string
	for r.Next() {
		for i := range int(r.RecordBatch().NumRows()) {
			out = append(out, string(relation.RowJSON(r.RecordBatch(), i)))
		}
	}
	slices.Sort(out)
	return out, r.Err()
}
