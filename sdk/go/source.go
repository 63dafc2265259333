package weir

// Source is what a dataset reads: another dataset by its name, or files.
type Source struct {
	dataset    string
	format     string
	path       string
	options    map[string]string
	mode       string
	columns    []string
	hasColumns bool
}

// ReadStream reads what is new in a dataset: spark.readStream.table.
func ReadStream(dataset string) Source { return Source{dataset: dataset, mode: "stream"} }

// Read reads the whole of a dataset: spark.read.table.
func Read(dataset string) Source { return Source{dataset: dataset, mode: "batch"} }

// ReadStreamFormat reads what is new in a place that is no dataset:
//
//	weir.ReadStreamFormat("cloudFiles").
//		Option("cloudFiles.format", "json").
//		Load(weir.ConfOr("dwh.landing", "landing") + "/shop_order")
func ReadStreamFormat(format string) Source { return Source{format: format, mode: "stream"} }

// ReadFormat reads the whole of a place that is no dataset.
func ReadFormat(format string) Source { return Source{format: format, mode: "batch"} }

// Option sets an option of the format, or of the stream of a dataset:
//
//	weir.ReadStream("silver.customers").Option("readChangeFeed", "true").Option("startingVersion", "0")
func (s Source) Option(key, value string) Source {
	options := make(map[string]string, len(s.options)+1)
	for k, v := range s.options {
		options[k] = v
	}
	options[key] = value
	s.options = options
	return s
}

// Load names the place.
func (s Source) Load(path string) Source {
	s.path = path
	return s
}

// Columns names the columns that the function receives, in this order; it gets no others. Without
// names it gets none at all, only row counts.
func (s Source) Columns(names ...string) Source {
	s.columns, s.hasColumns = names, true
	return s
}

func (s Source) write(w *jsonWriter) {
	w.open('{')
	if s.dataset != "" {
		w.text("dataset", s.dataset)
		w.texts("options", s.options)
	} else {
		w.key("source")
		w.open('{')
		w.text("format", s.format)
		w.text("path", s.path)
		w.texts("options", s.options)
		w.close('}')
	}
	w.text("mode", s.mode)
	if s.hasColumns {
		w.strings("columns", s.columns)
	}
	w.close('}')
}

// check records what is missing.
func (s Source) check(r *registry, who string) {
	switch {
	case s.mode == "":
		r.wrong(who + ": a Source that is not made by ReadStream, Read, ReadStreamFormat or ReadFormat")
	case s.dataset == "" && s.format == "":
		r.wrong(who + ": reads neither a dataset nor a format")
	case s.dataset != "" && s.path != "":
		r.wrong(who + ": Load is for ReadStreamFormat and ReadFormat, not for dataset " + s.dataset)
	case s.dataset != "" && s.options != nil && s.mode != "stream":
		r.wrong(who + ": options are for a stream; dataset " + s.dataset + " is read whole")
	case s.dataset == "" && s.path == "":
		r.wrong(who + ": " + s.format + " without Load")
	}
}

// ColumnDef is a column of a declared output or schema.
type ColumnDef struct {
	field   Field
	comment string
	err     error
}

// Col is a column of a type, by the type's name: Col("net_amount_eur", "decimal(18,2)").
func Col(name, typ string) ColumnDef {
	t, err := ParseType(typ)
	return ColumnDef{field: Field{Name: name, Type: t, Nullable: true}, err: err}
}

// DDL reads a list of columns: DDL("order_id string not null, amount decimal(18,2)").
func DDL(text string) []ColumnDef {
	fields, err := ParseColumns(text)
	if err != nil {
		return []ColumnDef{{field: Field{Name: text}, err: err}}
	}
	columns := make([]ColumnDef, len(fields))
	for i, f := range fields {
		columns[i].field = f
	}
	return columns
}

// NotNull declares that the column is never null.
func (c ColumnDef) NotNull() ColumnDef {
	c.field.Nullable = false
	return c
}

// Comment describes the column.
func (c ColumnDef) Comment(text string) ColumnDef {
	c.comment = text
	return c
}

func (c ColumnDef) write(w *jsonWriter) {
	w.open('{')
	w.text("name", c.field.Name)
	w.text("type", c.field.Type.String())
	w.bool("nullable", c.field.Nullable)
	w.text("comment", c.comment)
	w.close('}')
}

func writeColumns(w *jsonWriter, name string, columns []ColumnDef) {
	w.key(name)
	w.open('[')
	for _, c := range columns {
		c.write(w)
	}
	w.close(']')
}
