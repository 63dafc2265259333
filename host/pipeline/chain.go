package pipeline

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/sql"
	"github.com/weir-data/weir/host/stream"
)

// schemaOf gives the schema of a table that an input reads.
type schemaOf func(ctx context.Context, in *input) (*arrow.Schema, error)

// chain is a flow with the views on its way dissolved: one source, which a batch
// query has not, the steps its rows go through, and the tables that steps read whole.
type chain struct {
	source *input
	steps  []stream.Step
	labels []string          // what each step is, for people
	sides  map[string]*input // by id
	files  map[string]*fileInput
	views  []*viewInput
	log    functionLog
}

func newChain(log functionLog) *chain {
	return &chain{sides: map[string]*input{}, files: map[string]*fileInput{}, log: log}
}

// functionLog takes a line that a function logs; it may be called by several
// tasks at once.
type functionLog func(t *stream.Task, function string, level abi.LogLevel, message string)

// chainOf makes the chain of a flow. schemas is asked only when a step's schema
// is, log only while rows run through it.
func (p *Pipeline) chainOf(f *flow, schemas schemaOf, log functionLog) *chain {
	c := newChain(log)
	b := &f.body
	var view *dataset // whose query b is
	for {
		var rules []expect.Rule
		if view != nil {
			rules = view.rules
		}
		if len(rules) > 0 {
			c.steps = append(c.steps, &expectStep{view: view})
			c.labels = append(c.labels, "expectations of "+view.id)
		}
		s := p.step(b, c, schemas)
		if marks := p.marking(s, rules); marks != nil {
			c.steps = append(c.steps, marks)
			c.labels = append(c.labels, "conditions")
		}
		if s != nil {
			c.steps = append(c.steps, s)
			c.labels = append(c.labels, b.label())
		}
		c.source = b.streamInput()
		if c.source == nil || c.source.dataset == nil || !c.source.dataset.isView() {
			break
		}
		view = c.source.dataset
		b = view.query()
	}
	if f.kind == autoCDCFlow && f.readsFeed() {
		c.steps = append(c.steps, withoutOldImages(p.engine))
		c.labels = append(c.labels, "without old images")
	}
	slices.Reverse(c.steps)
	slices.Reverse(c.labels)
	c.end(p, f)
	return c
}

// end adds what the target asks of the rows.
func (c *chain) end(p *Pipeline, f *flow) {
	d := f.target
	if f.kind == snapshotFlow {
		c.addRules(p, d.rules)
		c.labels = append(c.labels, "AUTO CDC FROM SNAPSHOT")
		return
	}
	if f.kind == autoCDCFlow {
		c.steps = append(c.steps, &changeStep{flow: f, engine: p.engine, stream: c.source != nil, rules: d.rules, alloc: p.opts.Alloc})
		c.labels = append(c.labels, "AUTO CDC")
		return
	}
	if f.byName && len(d.columns) > 0 {
		c.steps = append(c.steps, &fillStep{dataset: d, alloc: p.opts.Alloc})
		c.labels = append(c.labels, "columns by name")
	}
	if d.generates() {
		c.steps = append(c.steps, &generateStep{dataset: d, engine: p.engine, stream: c.source != nil})
		c.labels = append(c.labels, "generated columns")
	}
	c.addRules(p, d.rules)
	if len(d.columns) > 0 {
		c.steps = append(c.steps, &declareStep{dataset: d})
		c.labels = append(c.labels, "declared columns")
	}
}

// addRules lets the last step mark the rows that violate a rule. A SELECT does
// so itself; after a function, or without any step, one more SELECT does.
func (c *chain) addRules(p *Pipeline, rules []expect.Rule) {
	if len(rules) == 0 {
		return
	}
	var last stream.Step
	if len(c.steps) > 0 {
		last = c.steps[len(c.steps)-1]
	}
	marks := p.marking(last, rules)
	if marks == nil {
		return
	}
	if c.source == nil {
		marks.query.Stream = ""
	}
	c.steps = append(c.steps, marks)
	c.labels = append(c.labels, "expectations")
}

// marking lets a SELECT mark the rows that violate a rule. After another step
// it gives one more SELECT that does so, after one itself nil.
func (p *Pipeline) marking(last stream.Step, rules []expect.Rule) *sqlStep {
	if len(rules) == 0 {
		return nil
	}
	s, own := last.(*sqlStep)
	if !own {
		s = &sqlStep{engine: p.engine, query: sql.Query{Text: "SELECT * FROM source", Stream: "source"}, from: "source"}
	}
	withRules(&s.query, rules)
	if own {
		return nil
	}
	return s
}

// withRules lets a query mark the rows that violate a rule.
func withRules(q *sql.Query, rules []expect.Rule) {
	q.Expectations, q.ExpectationNames, q.NullPass, q.GuestRules = nil, nil, nil, false
	for _, r := range rules {
		q.Expectations = append(q.Expectations, r.Condition)
		q.ExpectationNames = append(q.ExpectationNames, r.Name)
		q.NullPass = append(q.NullPass, r.NullPass)
		q.GuestRules = q.GuestRules || r.Guest
	}
}

// label names a body for people.
func (b *body) label() string {
	if b.function != nil {
		return b.module.name + "." + b.function.Name
	}
	return "SQL"
}

// step makes the step of one body, nil when it only passes rows on.
func (p *Pipeline) step(b *body, c *chain, schemas schemaOf) stream.Step {
	sides := make([]batchInput, len(b.inputs))
	for i, in := range b.inputs {
		if !in.stream {
			sides[i] = p.batchInput(in, c, schemas)
		}
	}
	switch {
	case b.statement != nil:
		q := b.statement.Select()
		q.Expectations, q.ExpectationNames, q.NullPass = nil, nil, nil
		s := &sqlStep{engine: p.engine, query: q, from: q.Stream, sides: map[string]batchInput{}}
		s.query.Keys = map[string][]string{}
		for i, in := range b.inputs {
			if sides[i] != nil {
				s.sides[in.alias], s.query.Keys[in.alias] = sides[i], in.historyKeys()
			}
		}
		return s
	case b.function != nil:
		return &pluginStep{pipeline: p.spec.Name, module: b.module, function: b.function, engine: p.engine, sides: sides, log: c.log, alloc: p.opts.Alloc}
	case len(sides) == 1 && sides[0] != nil: // a batch passes through a query as well
		return &sqlStep{engine: p.engine, query: sql.Query{Text: "SELECT * FROM source"}, sides: map[string]batchInput{"source": sides[0]}}
	}
	return nil
}

// batchInput is a relation that a step reads whole.
type batchInput interface {
	schema(ctx context.Context) (*arrow.Schema, error)
	open(ctx context.Context, t *stream.Task) (array.RecordReader, error)
	// version says which rows open gives: the same text, the same rows. "" says nothing.
	version(t *stream.Task) string
}

func (p *Pipeline) batchInput(in *input, c *chain, schemas schemaOf) batchInput {
	if in.dataset != nil && in.dataset.isView() {
		// checkFlow let only batch views through, which a body computes whole.
		v := &viewInput{step: p.ruled(in.dataset, p.step(in.dataset.query(), c, schemas))}
		c.views = append(c.views, v)
		return v
	}
	if in.files != nil {
		return c.fileInput(in, p.sources[in], schemas)
	}
	c.sides[in.id()] = in
	if in.changes != nil {
		return &changesInput{in: in, schemas: schemas}
	}
	return &tableInput{in: in, schemas: schemas}
}

// tableInput is a Delta table, read at the version that the batch pins.
type tableInput struct {
	in      *input
	schemas schemaOf
}

func (t *tableInput) schema(ctx context.Context) (*arrow.Schema, error) { return t.schemas(ctx, t.in) }

func (t *tableInput) open(ctx context.Context, task *stream.Task) (array.RecordReader, error) {
	return task.OpenSide(ctx, t.in.id())
}

// openWhere implements filteredInput.
func (t *tableInput) openWhere(ctx context.Context, task *stream.Task, where *delta.Predicate) (array.RecordReader, error) {
	return task.OpenSideWhere(ctx, t.in.id(), where)
}

func (t *tableInput) version(task *stream.Task) string {
	pin, ok := task.Side[t.in.id()]
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s@%d", pin.TableID, pin.Version)
}

// viewInput is a temporary view over batch inputs, computed by each task that reads it.
type viewInput struct{ step stream.Step }

func (v *viewInput) schema(ctx context.Context) (*arrow.Schema, error) {
	s, err := v.step.Schema(ctx, nil)
	if err != nil {
		return nil, err
	}
	return relation.DataSchema(s), nil
}

func (v *viewInput) open(ctx context.Context, t *stream.Task) (array.RecordReader, error) {
	return v.step.Run(ctx, t, nil)
}

// version gives "": the view may read the batch's time or its number.
func (v *viewInput) version(*stream.Task) string { return "" }
