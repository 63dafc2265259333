package weir

// declaration is what options apply to; a part that the verb does not have is nil.
type declaration struct {
	who      string
	dataset  *dataset
	function *function
	flow     *flow
}

// Option is a part of a declaration. One that does not fit the verb is a mistake that weir_describe
// reports; nothing panics.
type Option struct {
	name  string
	apply func(d *declaration) (fits bool)
}

func (d *declaration) apply(options []Option) {
	for _, o := range options {
		if o.apply == nil {
			d.wrong("an empty Option")
		} else if !o.apply(d) {
			d.wrong(o.name + " does not apply here")
		}
	}
}

//go:noinline
func (d *declaration) wrong(what string) { registered.wrong(d.who + ": " + what) }

func datasetOption(name string, set func(d *declaration, ds *dataset)) Option {
	return Option{name, func(d *declaration) bool {
		if d.dataset == nil {
			return false
		}
		set(d, d.dataset)
		return true
	}}
}

// tableOption is for datasets that are stored.
func tableOption(name string, set func(ds *dataset)) Option {
	return Option{name, func(d *declaration) bool {
		if d.dataset == nil || d.dataset.typ == "temporary_view" || d.dataset.typ == "sink" {
			return false
		}
		set(d.dataset)
		return true
	}}
}

func functionOption(name string, set func(d *declaration, f *function)) Option {
	return Option{name, func(d *declaration) bool {
		if d.function == nil {
			return false
		}
		set(d, d.function)
		return true
	}}
}

// Comment describes the dataset.
func Comment(text string) Option {
	return Option{"Comment", func(d *declaration) bool {
		switch {
		case d.dataset != nil:
			d.dataset.comment = text
		case d.function != nil:
			d.function.comment = text
		default:
			return false
		}
		return true
	}}
}

// TableProperties sets properties of the table.
func TableProperties(properties map[string]string) Option {
	return tableOption("TableProperties", func(ds *dataset) { ds.properties = properties })
}

// PartitionBy lays the table out in folders by columns.
func PartitionBy(columns ...string) Option {
	return tableOption("PartitionBy", func(ds *dataset) { ds.partitionBy = columns })
}

// ClusterBy clusters the table by up to four columns.
func ClusterBy(columns ...string) Option {
	return tableOption("ClusterBy", func(ds *dataset) { ds.clusterBy = columns })
}

// Private stores the table without publishing it.
func Private() Option {
	return tableOption("Private", func(ds *dataset) { ds.private = true })
}

// Schema declares the dataset's columns: Schema(DDL("order_id string not null")...).
func Schema(columns ...ColumnDef) Option {
	return datasetOption("Schema", func(d *declaration, ds *dataset) {
		ds.schema = columns
		d.checkColumns("Schema", columns)
	})
}

// RowErrorPolicy says what becomes of rows that a function reports with RowError.
type RowErrorPolicy string

// The policies. A row in quarantine is kept, with its error, in the table <target>_quarantine.
const (
	FailOnRowError      RowErrorPolicy = "fail"
	SkipRowErrors       RowErrorPolicy = "skip"
	QuarantineRowErrors RowErrorPolicy = "quarantine"
)

// OnRowError sets the policy of the dataset or flow; without it a row error fails the flow.
func OnRowError(policy RowErrorPolicy) Option {
	return Option{"OnRowError", func(d *declaration) bool {
		switch policy {
		case FailOnRowError, SkipRowErrors, QuarantineRowErrors:
		default:
			d.wrong("OnRowError " + string(policy) + " is none of fail, skip, quarantine")
		}
		switch {
		case d.dataset != nil:
			d.dataset.onRowError = string(policy)
		case d.flow != nil:
			d.flow.onRowError = string(policy)
		default:
			return false
		}
		return true
	}}
}

// With adds an input behind the first one: a side input that the function reads to its end.
func With(source Source) Option {
	return functionOption("With", func(d *declaration, f *function) {
		if source.mode == "stream" && f.kind != "query" {
			d.wrong("With: only the first input may be a stream")
		}
		f.inputs = append(f.inputs, source)
	})
}

// RowAligned promises that output row i comes from row i of input 0: the host may then carry other
// columns around the function.
func RowAligned() Option {
	return functionOption("RowAligned", func(_ *declaration, f *function) { f.rowAligned = true })
}

// Passthrough names the columns of input 0 that the host carries around a row-aligned function, in
// the order of the output: "VBELN AS order_id" renames, "change_seq" does not.
func Passthrough(columns ...string) Option {
	return functionOption("Passthrough", func(d *declaration, f *function) {
		for _, c := range columns {
			from, to := splitAs(c)
			if from == "" || to == "" {
				d.wrong("Passthrough \"" + c + "\" is no column")
			}
			for _, p := range f.passthrough {
				if lower(p.to) == lower(to) {
					d.wrong("Passthrough gives column " + to + " twice")
				}
				if p.from == from {
					d.wrong("Passthrough takes column " + from + " twice")
				}
			}
			f.passthrough = append(f.passthrough, rename{from, to})
		}
	})
}

// splitAs cuts "VBELN AS order_id" at its last AS, in any case.
func splitAs(text string) (from, to string) {
	for i := len(text) - 4; i > 0; i-- {
		if lower(text[i:i+4]) == " as " {
			return trim(text[:i]), trim(text[i+4:])
		}
	}
	return trim(text), trim(text)
}

func trim(s string) string {
	for s != "" && s[0] == ' ' {
		s = s[1:]
	}
	for s != "" && s[len(s)-1] == ' ' {
		s = s[:len(s)-1]
	}
	return s
}

// Output declares the columns that the function writes, besides those passed through. Without it the
// host calls the function with no rows to learn them.
func Output(columns ...ColumnDef) Option {
	return functionOption("Output", func(d *declaration, f *function) {
		f.output, f.outputSet = columns, true
		d.checkColumns("Output", columns)
	})
}

func (d *declaration) checkColumns(what string, columns []ColumnDef) {
	for i, c := range columns {
		if c.err != nil {
			d.wrong(what + ", column " + c.field.Name + ": " + c.err.Error())
		}
		for _, o := range columns[:i] {
			if lower(o.field.Name) == lower(c.field.Name) {
				d.wrong(what + " has column " + c.field.Name + " twice")
			}
		}
	}
}

// Target is one of several outputs of a function.
type Target struct {
	dataset string
	mode    string
	keys    []string
}

// AppendTo appends an output to a dataset.
func AppendTo(dataset string) Target { return Target{dataset: dataset, mode: "append"} }

// MergeInto merges an output into a dataset by keys.
func MergeInto(dataset string, keys ...string) Target {
	return Target{dataset: dataset, mode: "merge", keys: keys}
}

func (t Target) write(w *jsonWriter) {
	w.open('{')
	w.text("dataset", t.dataset)
	w.text("mode", t.mode)
	w.list("keys", t.keys)
	w.close('}')
}

// Into names the outputs of a function that writes several; Call.OutputTo gives them.
func Into(targets ...Target) Option {
	return functionOption("Into", func(d *declaration, f *function) {
		for _, t := range targets {
			if t.mode == "merge" && len(t.keys) == 0 {
				d.wrong("Into: MergeInto " + t.dataset + " needs keys")
			}
		}
		f.outputs = targets
	})
}

// Reuse promises that nothing but the function's batch inputs carries over between its calls: the
// host may then keep the instance, and send a side input again only when it changed
// (Reader.Unchanged).
func Reuse() Option {
	return functionOption("Reuse", func(_ *declaration, f *function) { f.reuse = true })
}

// UsesConf names the configuration keys that the function reads, or "prefix.*".
func UsesConf(keys ...string) Option {
	return functionOption("UsesConf", func(_ *declaration, f *function) { f.conf = append(f.conf, keys...) })
}

// Query makes the function one that reads all inputs to their end before it writes: joins, totals.
func Query() Option {
	return functionOption("Query", func(_ *declaration, f *function) { f.kind = "query" })
}

// Stateful makes the function one that carries state between micro-batches: Call.State, SetState.
func Stateful() Option {
	return functionOption("Stateful", func(_ *declaration, f *function) { f.kind = "stateful" })
}
