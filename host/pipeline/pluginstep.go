package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/stream"
	"github.com/weir-data/weir/runtime/plugin"
)

// pluginStep runs a function of a module over the rows of a task.
type pluginStep struct {
	pipeline string
	module   *module
	function *abi.Function
	engine   *lazyEngine  // of its queries
	sides    []batchInput // by input number; nil for the stream
	log      functionLog
	alloc    memory.Allocator
}

// Schema gives the function's output and the row's ordinal; in is nil when
// every input is a batch.
func (s *pluginStep) Schema(ctx context.Context, in *arrow.Schema) (*arrow.Schema, error) {
	if in != nil && s.function.Kind == abi.KindQuery {
		return nil, queryOverStream(s.module.name, s.function.Name)
	}
	inputs, err := s.inputSchemas(ctx, in)
	if err != nil {
		return nil, err
	}
	out, err := s.module.loaded.SchemaWith(ctx, s.function.Name, inputs, &guestQueries{step: s})
	if err != nil || in == nil {
		return out, err
	}
	return withRow(out), nil
}

// inputSchemas gives the columns that each input offers the function.
func (s *pluginStep) inputSchemas(ctx context.Context, in *arrow.Schema) ([]*arrow.Schema, error) {
	inputs := make([]*arrow.Schema, len(s.sides))
	for i, side := range s.sides {
		var err error
		if side == nil {
			inputs[i], _ = pick(in, s.visible)
		} else if inputs[i], err = side.schema(ctx); err != nil {
			return nil, err
		}
	}
	return inputs, nil
}

// queryOverStream refuses a function that wants all rows of a stream.
func queryOverStream(module, function string) *fault.Error {
	return fault.New("UNSUPPORTED_STREAMING_OPERATION", "%s.%s is of kind query: it reads all rows before it writes any, which no stream can give", module, function).
		WithHint("Fill a materialized view with it, or let it read a table as a batch")
}

// visible tells whether a column of the stream is the function's to see or to
// pass on. Where a row came from is seen by those that name it.
func (s *pluginStep) visible(column string) bool {
	switch column {
	case relation.RowColumn, relation.MaskColumn:
		return false
	case relation.MetadataColumn:
		named := func(r abi.Rename) bool { return r.Input == column }
		return slices.Contains(s.function.Inputs[0].Columns, column) || slices.ContainsFunc(s.function.Passthrough, named)
	}
	return true
}

// Run starts the function; in is nil when every input is a batch.
func (s *pluginStep) Run(ctx context.Context, t *stream.Task, in array.RecordReader) (array.RecordReader, error) {
	call, release, err := s.call(ctx, t, in)
	if err != nil {
		return nil, err
	}
	carried := in != nil && s.function.RowAligned
	if carried {
		call.Carry = []string{relation.RowColumn}
	}
	out, err := s.module.loaded.Map(ctx, call)
	if err != nil {
		release()
		return nil, err
	}
	out = detached(out)
	if in != nil && !carried {
		plain := out
		out = mapped(plain, withRow(plain.Schema()), s.unknownRows)
		return releasing(out, func() { plain.Release(); release() }), nil
	}
	return releasing(out, release), nil
}

// call opens the inputs of a call; release closes them.
func (s *pluginStep) call(ctx context.Context, t *stream.Task, in array.RecordReader) (_ plugin.Call, release func(), err error) {
	call := plugin.Call{
		Function: s.function.Name,
		Context: abi.CallContext{
			Pipeline: s.pipeline, UpdateID: t.UpdateID, Flow: t.Flow, BatchID: t.Batch, Task: t.Index,
			FullRefresh: t.FullRefresh, BatchTimestamp: t.Timestamp,
		},
		Seed:     seed(t, s.module.name, s.function.Name),
		Inputs:   make([]array.RecordReader, len(s.sides)),
		Versions: s.versions(t),
		OnMetric: t.Metric,
		OnUsage:  func(u plugin.Usage) { t.Spent(u.Fuel, u.GuestTime) },
		OnLog: func(level abi.LogLevel, message string) {
			s.log(t, s.module.name+"."+s.function.Name, level, message)
		},
		Querier: &guestQueries{step: s, task: t},
		Mem:     s.alloc,
	}
	if s.function.Kind == abi.KindSnapshot {
		call.Context.LatestVersion = t.LatestSnapshot()
		call.OnSnapshot = t.Snapshot
	}
	if name := s.StateName(); name != "" {
		call.State = t.State(name)
		call.OnState = func(state []byte) error { return t.SetState(name, state) }
	}
	var opened openReaders
	rows, recent := &rowOrdinals{}, &recentRows{}
	release = func() { opened.release(); recent.release() }
	for i, side := range s.sides {
		if side == nil {
			r := s.feed(in, rows)
			opened, call.Inputs[i] = append(opened, r), r
			continue
		}
		r, err := side.open(ctx, t)
		if err != nil {
			release()
			return call, nil, err
		}
		if i == 0 {
			opened = append(opened, r)
			r = recent.watch(r)
		}
		opened, call.Inputs[i] = append(opened, r), r
	}
	call.OnRowError = func(input int, row int64, code, message string) error {
		if input != 0 {
			return fault.New("PLUGIN_FAILED", "%s.%s refuses row %d of its batch input %d: [%s] %s; only rows of the first input can be refused",
				s.module.name, s.function.Name, row, input, code, message)
		}
		if in == nil {
			return t.BatchRowError(row, func() ([]byte, error) { return recent.json(row) }, code, message)
		}
		ordinal, ok := rows.at(row)
		if !ok {
			return fault.New("PLUGIN_FAILED", "%s.%s refuses row %d, which it has not read", s.module.name, s.function.Name, row)
		}
		return t.RowError(ordinal, code, message)
	}
	return call, release, nil
}

// StateName implements stream.Stateful. A function that is given another name,
// or its module another file name, is another one.
func (s *pluginStep) StateName() string {
	if s.function.Kind != abi.KindStateful {
		return ""
	}
	return s.module.name + "." + s.function.Name
}

// versions says of the batch inputs which version of their tables they are. The
// first input is never what an instance may know already.
func (s *pluginStep) versions(t *stream.Task) []string {
	out := make([]string, len(s.sides))
	for i, side := range s.sides {
		if i > 0 && side != nil {
			out[i] = side.version(t)
		}
	}
	return out
}

// feed gives the stream as the function's first input and remembers which
// source row each of its rows is.
func (s *pluginStep) feed(in array.RecordReader, rows *rowOrdinals) array.RecordReader {
	schema, places := pick(in.Schema(), func(name string) bool { return name == relation.RowColumn || s.visible(name) })
	if !s.function.RowAligned {
		schema, places = pick(in.Schema(), s.visible)
	}
	return mapped(in, schema, func(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
		ordinals, ok := relation.Int64Column(rec, relation.RowColumn)
		if !ok {
			return nil, fault.New("INTERNAL_ERROR", "the input of %s.%s does not carry %s", s.module.name, s.function.Name, relation.RowColumn)
		}
		rows.add(ordinals)
		return columnsOf(rec, schema, places), nil
	})
}

// unknownRow is the ordinal of a row that comes from no single source row.
const unknownRow = -1

// unknownRows adds the column of ordinals to a batch whose rows come from no
// row in particular.
func (s *pluginStep) unknownRows(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
	mem := s.alloc
	if mem == nil {
		mem = memory.DefaultAllocator
	}
	b := array.NewInt64Builder(mem)
	defer b.Release()
	b.Reserve(int(rec.NumRows()))
	for range rec.NumRows() {
		b.UnsafeAppend(unknownRow)
	}
	ordinals := b.NewArray()
	defer ordinals.Release()
	return array.NewRecordBatch(withRow(rec.Schema()), append(slices.Clone(rec.Columns()), ordinals), rec.NumRows()), nil
}

// withRow gives the schema with the row's ordinal at its end.
func withRow(s *arrow.Schema) *arrow.Schema {
	meta := s.Metadata()
	return arrow.NewSchema(append(slices.Clone(s.Fields()), relation.RowField()), &meta)
}

// seed gives the random seed of a call. It depends on nothing that a replay changes.
func seed(t *stream.Task, module, function string) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%d\x00%s\x00%s", t.Dataset, t.Flow, t.Batch, t.Index, module, function))
	return binary.LittleEndian.Uint64(sum[:8])
}

// rowOrdinals maps the rows of a call, counted from 0, to ordinals of source
// rows. Consecutive ordinals share one run, so an unfiltered task needs one.
type rowOrdinals struct {
	runs []ordinalRun
	rows int64
}

type ordinalRun struct{ row, ordinal int64 }

func (r *rowOrdinals) add(ordinals *array.Int64) {
	for _, ordinal := range ordinals.Int64Values() {
		last := len(r.runs) - 1
		if last < 0 || ordinal != r.runs[last].ordinal+r.rows-r.runs[last].row {
			r.runs = append(r.runs, ordinalRun{r.rows, ordinal})
		}
		r.rows++
	}
}

func (r *rowOrdinals) at(row int64) (ordinal int64, ok bool) {
	if row < 0 || row >= r.rows {
		return 0, false
	}
	i, found := slices.BinarySearchFunc(r.runs, row, func(run ordinalRun, row int64) int {
		switch {
		case run.row < row:
			return -1
		case run.row > row:
			return 1
		}
		return 0
	})
	if !found {
		i--
	}
	return r.runs[i].ordinal + row - r.runs[i].row, true
}
