package pipeline

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/events"
	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/sql"
)

// Query runs one read-only SELECT over the pipeline's datasets, named by one
// to three parts. The caller releases the reader.
func (p *Pipeline) Query(ctx context.Context, text string) (array.RecordReader, error) {
	text, logs, err := sql.EventLogs(text)
	if err != nil {
		return nil, err
	}
	named := func(name string) (*input, error) {
		if ref := logs[name]; ref != nil {
			return &input{written: name, log: ref}, p.checkOwnLog(ctx, ref)
		}
		return p.named(name)
	}
	names, err := p.engine.relations(ctx, text)
	if err != nil {
		return nil, err
	}
	filters, err := p.engine.filters(ctx, sql.Query{Text: text}, func(name string) (*arrow.Schema, error) {
		in, err := named(name)
		if err != nil {
			return nil, nil
		}
		if s, err := snapshotOf(ctx, p.inputTable(in)); err == nil && s != nil {
			return s.Schema(), nil
		}
		return nil, nil // the scan says what is wrong
	})
	if err != nil {
		return nil, err
	}
	inputs, keys := map[string]array.RecordReader{}, map[string][]string{}
	var opened openReaders
	for _, name := range names {
		in, err := named(name)
		if err != nil {
			opened.release()
			return nil, err
		}
		r, err := p.scan(ctx, in, filters[name])
		if err != nil {
			opened.release()
			return nil, err
		}
		opened = append(opened, r)
		inputs[name] = r
		if keys[name], err = p.keysForQuery(ctx, in); err != nil {
			opened.release()
			return nil, err
		}
	}
	out, err := p.engine.run(ctx, sql.Query{Text: text, Clock: p.opts.Clock(), Keys: keys}, inputs)
	if err != nil {
		opened.release()
		return nil, err
	}
	return releasing(out, opened.release), nil
}

// snapshot gives a table by the name a query gives it, nil when it has not been made.
func (p *Pipeline) snapshot(ctx context.Context, name string) (*delta.Snapshot, error) {
	in, err := p.named(name)
	if err != nil {
		return nil, err
	}
	return snapshotOf(ctx, p.inputTable(in))
}

// scan reads a table, without the files that hold no row for where, or computes
// a persistent view; reading are the views that are being computed from it.
func (p *Pipeline) scan(ctx context.Context, in *input, where *delta.Predicate, reading ...*dataset) (array.RecordReader, error) {
	snapshot, err := snapshotOf(ctx, p.inputTable(in))
	if err != nil {
		return nil, err
	}
	if snapshot == nil {
		view, err := p.viewNamed(ctx, in)
		if err != nil {
			return nil, err
		}
		if view != nil {
			return p.readView(ctx, view, reading)
		}
		return p.unmade(in)
	}
	return snapshot.Scan(ctx, delta.ScanOptions{Where: where})
}

// unmade answers for a table that is not there: a quarantine table without
// rows is an empty one, anything else an error.
func (p *Pipeline) unmade(in *input) (array.RecordReader, error) {
	switch {
	case in.quarantine != nil:
		return array.NewRecordReader(expect.QuarantineSchema(), nil)
	case in.log != nil:
		return array.NewRecordReader(events.Schema, nil)
	case in.dataset != nil:
		return nil, fault.New("TABLE_OR_VIEW_NOT_FOUND", "the table %s has not been made yet", in.id()).
			WithHint("`weir run` makes it")
	}
	return nil, suggest(fault.New("TABLE_OR_VIEW_NOT_FOUND", "there is no table %q", in.written), in.written, p.graph.names(), "")
}
