package weir

// dataset is one declared dataset.
type dataset struct {
	name         string
	typ          string
	function     string
	comment      string
	private      bool
	properties   map[string]string
	partitionBy  []string
	clusterBy    []string
	schema       []ColumnDef
	expectations []expectation
	onRowError   string
	format       string
	options      map[string]string
}

// function is one dataset function; its number is its place in the registry.
type function struct {
	name        string
	kind        string
	comment     string
	inputs      []Source
	rowAligned  bool
	passthrough []rename
	output      []ColumnDef
	outputSet   bool
	outputs     []Target
	reuse       bool
	conf        []string
	version     string // of a snapshot provider
	run         Func
}

type rename struct{ from, to string }

// TemporaryView declares a view that other flows of the pipeline read; nothing of it is stored.
//
// fn may be nil for a row-aligned view that only renames: then [RowAligned] and [Passthrough] say all.
func TemporaryView(name string, from Source, fn Func, options ...Option) {
	declare("TemporaryView", &dataset{name: name, typ: "temporary_view"}, from, fn, options)
}

// StreamingTable declares a table that grows by what is new in a stream.
func StreamingTable(name string, from Source, fn Func, options ...Option) {
	if from.mode == "batch" {
		registered.wrong("StreamingTable " + name + ": cannot create a streaming table from a batch query; read it with ReadStream, or declare a MaterializedView")
	}
	declare("StreamingTable", &dataset{name: name, typ: "streaming_table"}, from, fn, options)
}

// MaterializedView declares a table that each update brings in line with its sources.
func MaterializedView(name string, from Source, fn Func, options ...Option) {
	if from.mode == "stream" {
		registered.wrong("MaterializedView " + name + ": a materialized view reads no stream; read it with Read, or declare a StreamingTable")
	}
	declare("MaterializedView", &dataset{name: name, typ: "materialized_view"}, from, fn, options)
}

// CreateStreamingTable declares an empty table that flows write to.
func CreateStreamingTable(name string, options ...Option) {
	d := &declaration{who: "CreateStreamingTable " + name, dataset: &dataset{name: name, typ: "streaming_table"}}
	d.apply(options)
	registered.addDataset(d.dataset)
}

// Sink declares a target outside the pipeline, which append flows write to: "delta", "kafka".
func Sink(name, format string, settings map[string]string) {
	if format == "" {
		registered.wrong("Sink " + name + ": needs a format")
	}
	registered.addDataset(&dataset{name: name, typ: "sink", format: format, options: settings})
}

// ForeachBatchSink declares a sink whose function handles each micro-batch of the stream itself; it
// may write to several targets, named with [Into].
func ForeachBatchSink(name string, from Source, fn Func, options ...Option) {
	declare("ForeachBatchSink", &dataset{name: name, typ: "sink"}, from, fn, options)
}

func declare(verb string, ds *dataset, from Source, fn Func, options []Option) {
	d := &declaration{who: verb + " " + ds.name, dataset: ds}
	d.function = &function{name: ds.name, kind: "map", inputs: []Source{from}, run: fn}
	if verb == "ForeachBatchSink" {
		d.function.kind = "foreach_batch"
	}
	d.apply(options)
	ds.function = registered.addFunction(d.who, d.function)
	registered.addDataset(ds)
}

func (r *registry) addDataset(d *dataset) {
	if d.name == "" {
		r.wrong("a dataset without a name")
	}
	for _, o := range r.datasets {
		if lower(o.name) == lower(d.name) {
			r.wrong("dataset " + d.name + " is declared twice")
		}
	}
	r.datasets = append(r.datasets, d)
}

// addFunction gives the name that the function got.
func (r *registry) addFunction(who string, f *function) string {
	for _, o := range r.functions {
		if o.name == f.name {
			r.wrong(who + ": there is a function of the name " + f.name + " already")
		}
	}
	for _, in := range f.inputs {
		in.check(r, who)
	}
	if f.run == nil {
		if f.rowAligned && len(f.passthrough) > 0 && len(f.output) == 0 {
			f.run, f.outputSet = passOn, true
			f.inputs[0] = f.inputs[0].Columns()
		} else {
			r.wrong(who + ": needs a function; only a row-aligned one with nothing but Passthrough does without")
		}
	}
	if len(f.passthrough) > 0 && !f.rowAligned {
		r.wrong(who + ": Passthrough needs RowAligned")
	}
	r.functions = append(r.functions, f)
	return f.name
}

// passOn is the function of a view that only renames: it sees row counts and no columns.
func passOn(c *Call) error {
	in, out := c.Input(0), c.Output()
	for in.Next() {
		if err := out.FlushRows(in.Batch().Len()); err != nil {
			return err
		}
	}
	return in.Err()
}

func (d *dataset) write(w *jsonWriter) {
	w.open('{')
	w.text("name", d.name)
	w.text("type", d.typ)
	w.text("function", d.function)
	w.text("comment", d.comment)
	w.flag("private", d.private)
	w.texts("table_properties", d.properties)
	w.list("partition_by", d.partitionBy)
	w.list("cluster_by", d.clusterBy)
	if len(d.schema) > 0 {
		writeColumns(w, "schema", d.schema)
	}
	if len(d.expectations) > 0 {
		w.key("expectations")
		w.open('[')
		for _, e := range d.expectations {
			e.write(w)
		}
		w.close(']')
	}
	w.text("on_row_error", d.onRowError)
	w.text("format", d.format)
	w.texts("options", d.options)
	w.close('}')
}

func (f *function) write(w *jsonWriter, confRead []string) {
	w.open('{')
	w.text("name", f.name)
	w.text("kind", f.kind)
	w.text("comment", f.comment)
	if len(f.inputs) > 0 {
		w.key("inputs")
		w.open('[')
		for _, in := range f.inputs {
			in.write(w)
		}
		w.close(']')
	}
	w.flag("row_aligned", f.rowAligned)
	if len(f.passthrough) > 0 {
		w.key("passthrough")
		w.open('{')
		for _, p := range f.passthrough {
			w.key(p.from)
			w.value(p.to)
		}
		w.close('}')
	}
	if f.outputSet {
		writeColumns(w, "output", f.output)
	}
	if len(f.outputs) > 0 {
		w.key("outputs")
		w.open('[')
		for _, o := range f.outputs {
			o.write(w)
		}
		w.close(']')
	}
	w.flag("reuse", f.reuse)
	w.list("conf", union(f.conf, confRead))
	w.text("version", f.version)
	w.close('}')
}

// union joins what the function declares to read with what the declarations read.
func union(a, b []string) []string {
	out := append([]string(nil), a...)
	for _, s := range b {
		known := false
		for _, o := range out {
			known = known || o == s
		}
		if !known {
			out = append(out, s)
		}
	}
	return out
}
