package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/pipeline"
	"github.com/weir-data/weir/host/storage"
)

const changesSpec = "name: bench\ncatalog: dev\nschema: shop\nstorage: ./lake\nlibraries:\n  - file: {path: bench.sql}\n"

const changesSQL = `CREATE OR REFRESH STREAMING TABLE changes AS
SELECT id, name, city, amount, seq, op
FROM STREAM read_files('%s', format => 'json', schema => 'id BIGINT, name STRING, city STRING, amount DOUBLE, seq BIGINT, op STRING');

CREATE OR REFRESH STREAMING TABLE customers;
CREATE FLOW customers_changes AS AUTO CDC INTO customers
FROM STREAM(changes)
KEYS (id)
APPLY AS DELETE WHEN op = 'D'
SEQUENCE BY seq
COLUMNS * EXCEPT (op, seq)
STORED AS SCD TYPE %d;
`

// changed is a pipeline that keeps a table of customers by AUTO CDC, with the
// changes that it is given.
type changed struct {
	project
	landing string
	rng     *rand.Rand
	alive   []bool // by id
	live    int64
	seq     int64
	files   int
}

func newChanged(dir string, scd int) (*changed, error) {
	c := &changed{project: project{dir}, landing: filepath.Join(dir, "landing"), rng: rand.New(rand.NewPCG(1, 8))}
	if err := os.MkdirAll(c.landing, 0o755); err != nil {
		return nil, err
	}
	for name, text := range map[string]string{"weir.yaml": changesSpec, "bench.sql": fmt.Sprintf(changesSQL, c.landing, scd)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// file writes a file of n changes, of the keys that next gives: -1 is a new one.
func (c *changed) file(n int, next func(i int) (id int, op string)) error {
	f, err := os.Create(filepath.Join(c.landing, fmt.Sprintf("%05d.json", c.files)))
	if err != nil {
		return err
	}
	defer f.Close() // again, after an error
	c.files++
	w := bufio.NewWriterSize(f, 1<<20)
	var line []byte
	for i := range n {
		id, op := next(i)
		if id < 0 {
			id = len(c.alive)
			c.alive = append(c.alive, false)
		}
		if was, is := c.alive[id], op != "D"; was != is {
			c.alive[id] = is
			if is {
				c.live++
			} else {
				c.live--
			}
		}
		c.seq++
		line = fmt.Appendf(line[:0], `{"id":%d,"name":"customer %d of %d","city":"city %d","amount":%d.%02d,"seq":%d,"op":"%s"}`+"\n",
			id, id*7919%1_000_003, id%97, c.rng.IntN(500), c.rng.IntN(100_000), id%100, c.seq, op)
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// batch writes changes of random keys, each at most once: nine tenths update a
// row, one twentieth inserts and one deletes.
func (c *changed) batch(n int) error {
	seen := map[int]bool{}
	return c.file(n, func(i int) (int, string) {
		if i%20 == 0 {
			return -1, "U"
		}
		id := c.rng.IntN(len(c.alive))
		for seen[id] {
			id = c.rng.IntN(len(c.alive))
		}
		seen[id] = true
		if i%20 == 1 {
			return id, "D"
		}
		return id, "U"
	})
}

// refresh refreshes some datasets.
func (c *changed) refresh(ctx context.Context, opt pipeline.RunOptions) error {
	_, err := c.update(ctx, opt)
	return err
}

// load brings n customers into the target.
func (c *changed) load(ctx context.Context, n int) error {
	if err := c.file(n, func(int) (int, string) { return -1, "U" }); err != nil {
		return err
	}
	return c.refresh(ctx, pipeline.RunOptions{})
}

// apply times an update of the target alone by new changes: what is read, merged,
// written, and looked after, from opening the pipeline to closing it.
func (c *changed) apply(ctx context.Context, n int) (cost, error) {
	if err := c.batch(n); err != nil {
		return cost{}, err
	}
	if err := c.refresh(ctx, pipeline.RunOptions{Refresh: []string{"changes"}}); err != nil {
		return cost{}, err
	}
	got, err := side{run: func() error { return c.refresh(ctx, pipeline.RunOptions{Refresh: []string{"customers"}}) }}.measure()
	if err != nil {
		return cost{}, err
	}
	return got, c.check(ctx)
}

// check counts the rows of the target.
func (c *changed) check(ctx context.Context) error {
	s, err := c.snapshot(ctx, "customers")
	if err != nil {
		return err
	}
	rows, err := s.LiveRows()
	if err == nil && rows != c.live {
		err = fmt.Errorf("the target has %d rows, not %d", rows, c.live)
	}
	return err
}

func (c *changed) table(name string) string { return filepath.Join(c.dir, "lake", "dev", "shop", name) }

func (c *changed) snapshot(ctx context.Context, name string) (*delta.Snapshot, error) {
	store, err := storage.OpenDir(c.table(name))
	if err != nil {
		return nil, err
	}
	return delta.Open(store).Snapshot(ctx)
}

// batchChanges is how many changes P8 and P9 apply at a time.
const batchChanges = 10_000

// changesInto gives what a batch of changes costs at a target of n rows whose
// index is warm: the least of several.
func changesInto(ctx context.Context, dir string, n int, s settings) (cost, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return cost{}, err
	}
	c, err := newChanged(dir, 1)
	if err != nil {
		return cost{}, err
	}
	if err := c.load(ctx, n); err != nil {
		return cost{}, err
	}
	if _, err := c.apply(ctx, batchChanges); err != nil { // makes the index
		return cost{}, err
	}
	var least cost
	for i := range max(3, s.repeats) {
		got, err := c.apply(ctx, batchChanges)
		if err != nil {
			return cost{}, err
		}
		if i == 0 {
			least = got
		}
		least.wall, least.cpu = min(least.wall, got.wall), min(least.cpu, got.cpu)
	}
	if err := s.profiled(fmt.Sprintf("P8-%d", n), func() error {
		_, err := c.apply(ctx, batchChanges)
		return err
	}); err != nil {
		return cost{}, err
	}
	return least, os.RemoveAll(dir)
}

// targetSizes are the rows of the targets of P8 at a scale of 1.
var targetSizes = []int{100_000, 1_000_000, 10_000_000}

// runP8 measures how the cost of applying 10,000 changes grows with the target.
func runP8(ctx context.Context, dir string, s settings) ([]figure, error) {
	var out []figure
	var first cost
	for i, size := range targetSizes {
		n := max(batchChanges, s.scaled(size))
		got, err := changesInto(ctx, filepath.Join(dir, fmt.Sprint(n)), n, s)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			first = got
			continue
		}
		out = append(out, figure{
			Case: fmt.Sprintf("%d changes into %d rows", batchChanges, n), Must: 2, Aim: 1.3, Peer: fmt.Sprintf("the same into %d rows", max(batchChanges, s.scaled(targetSizes[0]))),
		}.slower(got, first))
	}
	return out, nil
}
