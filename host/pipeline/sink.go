package pipeline

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/catalog"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/cloud"
	"github.com/weir-data/weir/host/stream"
)

// A sink is a table that is not the pipeline's: its flows append to it, and
// nothing else of it is the pipeline's business. A handler of micro-batches
// writes to such tables as well.

// sinkTable is where the flows of a delta sink write.
type sinkTable struct {
	place       string       // a folder or bucket; "" when it has a name
	name        catalog.Name // in the catalog
	mergeSchema bool
}

func (s *sinkTable) String() string {
	if s.place != "" {
		return s.place
	}
	return s.name.String()
}

// openSinks checks what sinks and handlers write to; nothing is made.
func (p *Pipeline) openSinks(ctx context.Context) {
	wrong := map[*dataset]bool{}
	for _, d := range p.graph.order {
		if d.kind == sink && p.flaws.add(located(p.openTargets(ctx, d), "INVALID_SINK", fault.Where{Dataset: d.id, File: d.place.File, Line: d.place.Line})) {
			wrong[d] = true
		}
	}
	p.graph.without(wrong)
}

// openTargets finds out where a sink writes.
func (p *Pipeline) openTargets(ctx context.Context, d *dataset) (err error) {
	if d.function == nil {
		if d.sink, err = p.sinkTable(d); err != nil || d.sink.place != "" {
			return err
		}
		return p.checkForeign(ctx, d.sink.name)
	}
	for _, o := range d.function.Outputs {
		name, err := catalog.ParseName(o.Dataset, p.graph.defaults)
		if err != nil {
			return err
		}
		if err := p.checkForeign(ctx, name); err != nil {
			return err
		}
		d.outputs = append(d.outputs, name)
	}
	return nil
}

// sinkTable reads the format and the options of a sink.
func (p *Pipeline) sinkTable(d *dataset) (*sinkTable, error) {
	if !strings.EqualFold(d.format, "delta") {
		return nil, fault.New("NOT_SUPPORTED", "sinks of format %q", d.format).
			WithHint("Use delta, or write to tables from a function of kind foreach_batch")
	}
	s := &sinkTable{}
	for _, key := range slices.Sorted(maps.Keys(d.options)) {
		value, err := substitute(d.options[key], p.spec.Configuration)
		if err != nil {
			return nil, err
		}
		switch strings.ToLower(key) {
		case "path":
			if hasSecret(value) {
				return nil, fault.New("SECRET_NOT_ALLOWED", "a path must not hold a secret: it is shown and recorded").
					WithHint("Credentials of a bucket come from the environment")
			}
			if s.place, err = p.spec.locate(value); err != nil {
				return nil, err
			}
			if !cloud.IsURL(s.place) {
				s.place = p.spec.abs(strings.TrimPrefix(s.place, "file://"))
			}
		case "tablename":
			if s.name, err = catalog.ParseName(value, p.graph.defaults); err != nil {
				return nil, err
			}
		case "mergeschema":
			if s.mergeSchema, err = strconv.ParseBool(value); err != nil {
				return nil, fault.Wrap(err, "INVALID_OPTION", "option %s=%q", key, value)
			}
		default:
			return nil, fault.New("UNKNOWN_OPTION", "a delta sink has no option %q", key).WithHint("It has path, tableName and mergeSchema")
		}
	}
	if (s.place == "") == (s.name == catalog.Name{}) {
		return nil, fault.New("INVALID_SINK", "a delta sink has either a path or a tableName").WithHint("Set one of them in its options")
	}
	if s.place != "" && p.insideStorage(s.place) {
		return nil, fault.New("INVALID_SINK", "the path %s lies in the storage of the pipeline", s.place).WithHint("Name the table by tableName")
	}
	return s, nil
}

// insideStorage tells whether a folder is one of the pipeline's storage.
func (p *Pipeline) insideStorage(place string) bool {
	if cloud.IsURL(place) || cloud.IsURL(p.spec.Storage) {
		root, _, _ := strings.Cut(p.spec.Storage, "?")
		place, _, _ = strings.Cut(place, "?")
		return strings.HasPrefix(strings.TrimSuffix(place, "/")+"/", strings.TrimSuffix(root, "/")+"/")
	}
	rel, err := filepath.Rel(p.spec.Storage, place)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// checkForeign refuses to write beside the flows of a pipeline: its checkpoints
// would not know of the rows, and a refresh would lose them.
func (p *Pipeline) checkForeign(ctx context.Context, name catalog.Name) error {
	if d := p.graph.tables[name]; d != nil {
		return fault.New("INVALID_SINK", "%s is a dataset of this pipeline", name).WithHint("Fill it with a flow of its own, or write to a table that is none")
	}
	owner, owned, err := p.catalog().Owner(ctx, name)
	if err != nil {
		return err
	}
	if owned {
		return fault.New("TABLE_OWNED_BY_ANOTHER_PIPELINE", "%s belongs to pipeline %s", name, owner.PipelineID).
			WithHint("Write to a table that no pipeline owns")
	}
	return nil
}

// openSink gives the table of a delta sink; its folder is made only when asked for.
func (p *Pipeline) openSink(ctx context.Context, s *sinkTable, makeFolder bool) (*delta.Table, error) {
	if s.place == "" {
		return p.openTable(p.catalog().Table(s.name)), nil
	}
	if cloud.IsURL(s.place) {
		b, err := p.openBucket(context.WithoutCancel(ctx), s.place)
		if err != nil {
			return nil, err
		}
		return p.openTable(b), nil
	}
	if _, err := os.Stat(s.place); errors.Is(err, os.ErrNotExist) && !makeFolder {
		return p.openTable(absentStore{}), nil
	}
	dir, err := storage.OpenDir(s.place)
	if err != nil {
		return nil, err
	}
	return p.openTable(dir), nil
}

// planSink checks that the rows of a sink's flows fit its tables.
func (pl *planner) planSink(ctx context.Context, d *dataset, rows *arrow.Schema) error {
	if d.function != nil {
		return pl.planHandler(ctx, d)
	}
	table, err := pl.p.openSink(ctx, d.sink, false)
	if err != nil {
		return err
	}
	snapshot, err := snapshotOf(ctx, table)
	if err != nil {
		return err
	}
	if err := checkColumns(d, rows); err != nil {
		return err
	}
	if snapshot == nil {
		return nil
	}
	_, added, err := snapshot.MergeSchema(rows)
	if err != nil {
		return err
	}
	if len(added) > 0 && !d.sink.mergeSchema {
		return fault.New("DELTA_METADATA_MISMATCH", "the rows have columns that the table %s has not, or wider ones: %s", d.sink, strings.Join(added, ", ")).
			WithHint("Leave them out, add them to the table, or set mergeSchema on the sink to let the flow add them")
	}
	return nil
}

// planHandler learns what a handler writes, and compares it with its tables.
func (pl *planner) planHandler(ctx context.Context, d *dataset) error {
	f := d.flows[0]
	c := pl.p.anyChainOf(f, pl.inputSchema, nil)
	schema, err := pl.sourceSchema(ctx, f, c.source)
	if err != nil {
		return err
	}
	for _, s := range c.steps {
		if schema, err = s.Schema(ctx, schema); err != nil {
			return err
		}
	}
	columns, err := pl.p.handler(f, c, pl.inputSchema).Schemas(ctx, schema)
	if err != nil {
		return err
	}
	for i, o := range pl.p.outputs(d) {
		snapshot, err := snapshotOf(ctx, o.Table)
		if err == nil {
			err = stream.CheckOutput(o, columns[i], snapshot)
		}
		if err == nil {
			if cerr := checkColumns(&dataset{id: o.Dataset}, columns[i]); cerr != nil {
				err = cerr
			}
		}
		if err != nil {
			return located(err, "INVALID_SINK", fault.Where{Dataset: o.Dataset})
		}
	}
	return nil
}

// outputs gives the tables that the handler of a sink writes to.
func (p *Pipeline) outputs(d *dataset) []stream.Output {
	var out []stream.Output
	for i, o := range d.function.Outputs {
		out = append(out, stream.Output{Dataset: d.outputs[i].String(), Table: p.openTable(p.catalog().Table(d.outputs[i])), Keys: o.Keys})
	}
	return out
}
