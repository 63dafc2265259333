package weir

import "github.com/weir-data/weir/sdk/go/internal/host"

// columnSet is the columns of an output or the fields of a struct, found by name.
type columnSet struct {
	columns  []*ColumnBuilder
	path     string
	declared bool // no column may be added
	errs     *stickyError
}

func (s *columnSet) column(name string) *ColumnBuilder {
	for _, c := range s.columns {
		if c.name == name {
			return c
		}
	}
	c := newColumn(Field{Name: name, Nullable: true}, s.path+name, s.errs)
	if s.declared {
		s.errs.set(errorf("[COLUMN_NOT_FOUND] the output declares no column ", s.path, name, "; it declares ", fieldNames(s.fields())))
		return c
	}
	s.columns = append(s.columns, c)
	return c
}

func (s *columnSet) fields() []Field {
	fields := make([]Field, len(s.columns))
	for i, c := range s.columns {
		fields[i] = c.field()
	}
	return fields
}

// freeze settles what is still open: the schema is about to be sent.
func (s *columnSet) freeze() {
	s.declared = true
	for _, c := range s.columns {
		c.freeze()
	}
}

// checkRows says which column has not the number of rows the others have, and what else is wrong.
func (s *columnSet) checkRows(rows int) error {
	for _, c := range s.columns {
		if c.Len() != rows {
			return errorf("[OUTPUT_INVALID] output column ", c.path, " has ", itoa(int64(c.Len())), " rows, not ", itoa(int64(rows)))
		}
		if err := c.check(); err != nil {
			return err
		}
	}
	return nil
}

// Writer is one output of a call: values go into its columns, Flush sends them off as one batch.
type Writer struct {
	columnSet
	index     int
	enc       encoder
	hasSchema bool
}

// Column gives a column by its name. Where the function declares no output, its first use adds the
// column, up to the first Flush.
func (o *Writer) Column(name string) *ColumnBuilder { return o.column(name) }

// Fields gives the columns there are so far.
func (o *Writer) Fields() []Field { return o.fields() }

// Flush sends the rows since the last Flush as one batch. Every column must have as many.
func (o *Writer) Flush() error {
	rows := 0
	if len(o.columns) > 0 {
		rows = o.columns[0].Len()
	}
	return o.FlushRows(rows)
}

// FlushRows is Flush for outputs without columns of their own: a row-aligned function that only
// passes columns through says how many rows it has seen.
func (o *Writer) FlushRows(rows int) error {
	if o.errs.err != nil {
		return o.errs.err
	}
	if err := o.checkRows(rows); err != nil {
		o.errs.set(err)
		return err
	}
	e := &o.enc
	e.reset()
	o.start()
	for _, c := range o.columns {
		c.encode(e)
	}
	e.batch(rows)
	for _, c := range o.columns {
		c.reset()
	}
	return o.write(e.out)
}

// start puts the schema before the first batch; from then on no column can be added.
func (o *Writer) start() {
	if !o.hasSchema {
		o.freeze()
		o.enc.schema(o.fields())
		o.hasSchema = true
	}
}

func (o *Writer) write(p []byte) error {
	if host.OutputWrite(o.index, p) != 0 {
		err := lastError("writing an output")
		o.errs.set(err)
		return err
	}
	return nil
}

// close sends what is left, the schema if nothing was, and the end of the stream.
func (o *Writer) close() error {
	if len(o.columns) > 0 && o.columns[0].Len() > 0 {
		if err := o.Flush(); err != nil {
			return err
		}
	}
	if err := o.checkRows(0); err != nil {
		return err
	}
	o.enc.reset()
	o.start()
	return o.write(append(o.enc.out, endOfStream...))
}
