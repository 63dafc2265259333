package cdc

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/cdc/foreign"
	"github.com/weir-data/weir/host/cdc/keyindex"
	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/cdc/state"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/stream"
)

// New makes the applier of an AUTO CDC flow.
func New(d Definition) stream.Applier { return &applier{d} }

type applier struct{ def Definition }

// Schema gives the target's columns for rows of these.
func (a *applier) Schema(rows *arrow.Schema) (*arrow.Schema, error) { return a.def.Schema(rows) }

// Begin starts the application of one batch.
func (a *applier) Begin(ctx context.Context, b stream.ApplyBatch) (stream.Application, error) {
	app := &application{b: b}
	var err error
	var sequence arrow.DataType
	if b.Rows != nil {
		at := columnNamed(b.Rows, SequenceColumn)
		if at < 0 {
			return nil, a.def.fault("INTERNAL_ERROR", "the rows have no sequence")
		}
		sequence = b.Rows.Field(at).Type
	}
	if app.apply, err = begin(ctx, &a.def, b, sequence); err != nil {
		return nil, err
	}
	if b.Rows != nil {
		app.coder = newCoder(app.layout, b.Rows, b.Timestamp.UnixMicro(), app.mem)
	}
	app.warm(ctx)
	return app, nil
}

// application is the application of one batch of AUTO CDC.
type application struct {
	*apply
	b     stream.ApplyBatch
	coder *coder

	mu        sync.Mutex
	flaws     flaws
	truncate  []byte
	truncates int64
}

// Take takes rows of a task.
func (a *application) Take(ctx context.Context, _ int, rec arrow.RecordBatch) error {
	if a.coder == nil {
		return a.def.fault("INTERNAL_ERROR", "a batch without columns has rows")
	}
	got, err := a.coder.code(ctx, rec)
	if err != nil {
		return fault.Place(err, "INTERNAL_ERROR", fault.Where{Dataset: a.def.Dataset, Flow: a.def.Flow})
	}
	a.mu.Lock()
	a.flaws.add(got.flaws)
	a.truncates += got.count
	a.truncate = later(a.truncate, got.truncate)
	a.mu.Unlock()
	if got.rec == nil {
		return nil
	}
	return a.changes.add(ctx, got.rec)
}

// apply is the part that all sources of changes share: it holds the state of the
// target and the entries of the batch.
type apply struct {
	*layout     // nil when the batch's columns are not known
	def         *Definition
	b           stream.ApplyBatch
	mem         memory.Allocator
	state       *state.State // nil when there is none, or the batch replaces all rows
	was         state.Manifest
	made        record // what the state notes of the definition that made it
	index       *keyindex.Index
	warming     sync.WaitGroup // of the index
	stopWarming context.CancelFunc
	changes     *collector
	// tied makes the error of several entries of one key and order where they may
	// not even say the same; nil where they may.
	tied func(*ties) error
}

// begin opens the state that the target names, and refuses what does not fit it.
// sequence is nil when the columns of the batch are not known.
func begin(ctx context.Context, d *Definition, b stream.ApplyBatch, sequence arrow.DataType) (_ *apply, err error) {
	a := &apply{def: d, b: b, mem: b.Alloc, was: state.Manifest{K: -1, Base: -1}}
	if a.mem == nil {
		a.mem = memory.DefaultAllocator
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Release(ctx))
		}
	}()
	if sequence != nil {
		if err := rowcode.Orderable(sequence); err != nil {
			return nil, fault.Place(err, "AUTOCDC_MICROBATCH_VALIDATION.NON_ORDERABLE_SEQUENCE", fault.Where{Dataset: d.Dataset, Flow: d.Flow})
		}
		if a.layout, err = newLayout(d, b.Columns, sequence); err != nil {
			return nil, err
		}
		a.changes = &collector{schema: a.entries(), mem: a.mem, limit: cmp.Or(d.Memory, 256<<20), dir: d.TempDir}
	}
	if b.Target == nil || b.Replace {
		return a, nil
	}
	return a, a.open(ctx)
}

// open loads the state and compares it with the definition and the target.
func (a *apply) open(ctx context.Context) error {
	k, ok := a.b.Target.Txn(a.def.StateID)
	if !ok {
		k = -1
	}
	var values []arrow.Field
	if a.layout != nil && a.keeps() {
		values = a.values.Fields()
	}
	var err error
	if a.state, err = a.def.State.Load(ctx, k, values...); err != nil {
		return fault.Place(err, "CDC_STATE_CORRUPT", fault.Where{Dataset: a.def.Dataset, Flow: a.def.Flow})
	}
	a.was = a.state.Manifest()
	if err := a.def.byHand(a.b.Target.Schema()); err != nil {
		return err
	}
	if len(a.was.Definition) > 0 && a.layout != nil {
		if a.made, err = a.def.drift(a.was.Definition, a.record()); err != nil {
			return err
		}
	}
	warning, err := foreign.Check(ctx, a.b.Table, a.b.Target, foreign.State{Dataset: a.def.Dataset, AppID: a.def.StateID, Base: a.was.Base, Live: a.was.Live})
	if warning != nil {
		a.warn(warning)
	}
	return err
}

// warmBytes bounds the data files whose index is made before it is known to be needed.
const warmBytes = 16 << 20

// warm gets the index ready while the changes are read and compared.
func (a *apply) warm(ctx context.Context) {
	if a.state == nil || a.was.Live == 0 {
		return
	}
	a.index = a.def.openIndex(a.b.Target, a.mem)
	ctx, a.stopWarming = context.WithCancel(ctx)
	a.warming.Go(func() {
		// A lookup tries again, and fails by itself; a batch may need none.
		if err := a.index.Warm(ctx, a.b.Target, warmBytes); err != nil && ctx.Err() == nil {
			a.warn(fault.Place(err, "CDC_INDEX_CACHE", fault.Where{Dataset: a.def.Dataset, Flow: a.def.Flow}))
		}
	})
}

func (a *apply) tell(n stream.Notice) {
	if a.b.Tell != nil {
		a.b.Tell(n)
	}
}

// warn tells of an error that stops nothing.
func (a *apply) warn(err error) {
	n := stream.Notice{Code: fault.CodeOf(err), Text: err.Error()}
	var coded *fault.Error
	if errors.As(err, &coded) {
		n.Text, n.Hint = coded.Message, coded.Hint
	}
	a.tell(n)
}

func (a *apply) workers() int { return cmp.Or(a.def.Workers, runtime.GOMAXPROCS(0)) }

// Release drops what the application holds.
func (a *apply) Release(context.Context) error {
	var errs []error
	if a.state != nil {
		errs = append(errs, a.state.Release())
		a.state = nil
	}
	if a.stopWarming != nil {
		a.stopWarming()
		a.warming.Wait()
	}
	if a.index != nil {
		errs = append(errs, a.index.Close())
		a.index = nil
	}
	if a.changes != nil {
		errs = append(errs, a.changes.release())
	}
	return errors.Join(errs...)
}
