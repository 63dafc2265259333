package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/relation"
)

// project is a pipeline on disk, in a folder of its own.
type project struct {
	t    *testing.T
	dir  string
	conf map[string]string
	mem  *memory.CheckedAllocator

	threads   int
	taskBytes int64
}

// newProject makes a folder with a spec; lines are added to it.
func newProject(t *testing.T, lines ...string) *project {
	t.Helper()
	p := &project{t: t, dir: t.TempDir(), mem: checked(t)}
	spec := "name: test\ncatalog: dev\nschema: bronze\nstorage: lake\nlibraries:\n  - glob: {include: sql/**}\n"
	p.write("weir.yaml", spec+strings.Join(lines, "\n")+"\n")
	if err := os.MkdirAll(filepath.Join(p.dir, "sql"), 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

// write makes a file of the project.
func (p *project) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *project) tryOpen() (*Pipeline, error) {
	spec, err := LoadSpec(p.dir, p.conf)
	if err != nil {
		return nil, err
	}
	return Open(p.t.Context(), spec, Options{CacheDir: cacheDir(), Alloc: p.mem, Threads: p.threads, taskBytes: p.taskBytes, shortPauses: true})
}

// open opens the pipeline until the test ends.
func (p *project) open() *Pipeline {
	p.t.Helper()
	pl, err := p.tryOpen()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := pl.Close(context.Background()); err != nil {
			p.t.Error(err)
		}
	})
	return pl
}

// run opens the pipeline, runs an update and closes it again.
func (p *project) run(opt RunOptions) *Result {
	p.t.Helper()
	pl, err := p.tryOpen()
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() {
		if err := pl.Close(context.Background()); err != nil {
			p.t.Error(err)
		}
	}()
	r, err := pl.Run(p.t.Context(), opt)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// completed runs an update that must succeed.
func (p *project) completed(opt RunOptions) *Result {
	p.t.Helper()
	r := p.run(opt)
	if r.State != Completed {
		for _, f := range r.Flows {
			p.t.Logf("%s %s: %v", f.Dataset, f.State, f.Err)
		}
		p.t.Fatalf("the update is %s", r.State)
	}
	return r
}

// rows gives the rows of a query as JSON.
func (p *project) rows(query string) []string {
	p.t.Helper()
	pl, err := p.tryOpen()
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() {
		if err := pl.Close(context.Background()); err != nil {
			p.t.Error(err)
		}
	}()
	out, err := queryRows(p.t.Context(), pl, query)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

func queryRows(ctx context.Context, pl *Pipeline, query string) ([]string, error) {
	r, err := pl.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	out := []string{}
	for r.Next() {
		for i := range int(r.RecordBatch().NumRows()) {
			out = append(out, string(relation.RowJSON(r.RecordBatch(), i)))
		}
	}
	return out, r.Err()
}

func (p *project) wantRows(query string, want ...string) {
	p.t.Helper()
	if got := p.rows(query); !slices.Equal(got, want) {
		p.t.Errorf("%s\ngives\n%s\nwant\n%s", query, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// flow gives what became of a table's flow.
func (r *Result) flow(t *testing.T, table string) FlowResult {
	t.Helper()
	for _, f := range r.Flows {
		if f.Dataset == table || strings.HasSuffix(f.Dataset, "."+table) {
			return f
		}
	}
	t.Fatalf("no flow of %s in %+v", table, r.Flows)
	return FlowResult{}
}

// ordersLine is one order as the shop writes it.
func ordersLine(id int, qty any, more string) string {
	return fmt.Sprintf(`{"order_id":"o%d","qty":%v%s}`+"\n", id, qty, more)
}

const bronzeOrders = `CREATE OR REFRESH STREAMING TABLE orders
COMMENT 'One row an order document'
AS SELECT *, _metadata.file_name AS _tech_source_file
FROM STREAM read_files('${landing}', format => 'json');
`
