package stream

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// taskResult is what a task leaves behind: files that nothing refers to yet.
type taskResult struct {
	adds    []delta.AddFile // of the target
	refused []delta.AddFile // of the quarantine table
	metrics Metrics
	rules   []expect.RuleCounts
	files   []fileOutcome
	states  map[string][]byte // new ones, by step
}

// taskHooks is what a running task offers its steps. Steps may call it from
// several goroutines.
type taskHooks struct {
	side   map[string]*delta.Table
	pins   map[string]TableVersion
	policy RowErrorPolicy
	source sourceReader
	query  *queryInputs // of a batch query
	means  means
	before map[string][]byte // states, by step
	// snapshots is what a provider of snapshots hears and says.
	snapshots *snapshotHooks

	mu      sync.Mutex
	refused []refusal
	errors  int64
	stop    error // what a row error ended the task with
	user    map[string]float64
	fuel    int64
	guest   time.Duration
	states  map[string][]byte
	// what expectations of views did
	rules                []expect.RuleCounts
	dropped, quarantined int64
}

// refusal is one row that goes to quarantine.
type refusal struct {
	row   int64 // ordinal of its source row; negative when it comes from none in particular
	seq   int   // among the refusals of its row
	rules []string
	code  string
	text  string
	json  []byte // the row itself, when it has no source row
}

func (h *taskHooks) openSide(ctx context.Context, name string, where *delta.Predicate) (array.RecordReader, error) {
	if pin, ok := h.pins[name]; ok && h.query != nil && pin.Version < 0 {
		return h.query.absent(name)
	}
	_, snap, err := h.sideSnapshot(ctx, name)
	if err != nil {
		return nil, err
	}
	r, err := snap.Scan(ctx, delta.ScanOptions{Where: where})
	if err != nil || h.query == nil {
		return r, err
	}
	return counting(r, func(rows int64) { h.query.read(sourceCounts{rows: rows}, snap.NumFiles(), 0) }), nil
}

// sideSnapshot gives a side input as the batch pins it.
func (h *taskHooks) sideSnapshot(ctx context.Context, name string) (*delta.Table, *delta.Snapshot, error) {
	table, ok := h.side[name]
	pin, pinned := h.pins[name]
	if !ok || !pinned {
		return nil, nil, fault.New("INTERNAL_ERROR", "the flow has no side input %q", name)
	}
	snap, err := table.SnapshotAt(ctx, pin.Version)
	if err != nil {
		return nil, nil, fault.Place(err, "DELTA_SOURCE_UNAVAILABLE", fault.Where{Dataset: name})
	}
	if snap.Metadata().ID != pin.TableID {
		return nil, nil, fault.New("DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE", "the side input was made again since the batch was planned").
			WithHint("Run a full refresh of this table").At(fault.Where{Dataset: name})
	}
	return table, snap, nil
}

func (h *taskHooks) batchRowError(row int64, json func() ([]byte, error), code, message string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errors++
	switch h.policy {
	case SkipRowErrors:
		return nil
	case QuarantineRowErrors:
		text, err := json()
		if err != nil {
			return err
		}
		h.refused = append(h.refused, refusal{row: -1, seq: len(h.refused), code: code, text: message, json: text})
		return nil
	}
	return h.stopWith(fault.New(code, "%s", message).At(fault.Where{Row: row + 1}))
}

// stopWith ends the task with the row error that came first; h.mu is held.
func (h *taskHooks) stopWith(e *fault.Error) error {
	err := e.WithHint("Set on_row_error to skip or quarantine to go on without such rows")
	if h.stop == nil {
		h.stop = err
	}
	return err
}

func (h *taskHooks) rowError(row int64, code, message string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errors++
	switch h.policy {
	case SkipRowErrors:
		return nil
	case QuarantineRowErrors:
		if row < 0 {
			return fault.New("INTERNAL_ERROR", "a step refuses a row that comes from no source row: [%s] %s", code, message)
		}
		h.refused = append(h.refused, refusal{row: row, seq: len(h.refused), code: code, text: message})
		return nil
	}
	var where fault.Where
	if row >= 0 {
		where = h.source.locate(row)
		where.Row = row + 1
	}
	return h.stopWith(fault.New(code, "%s", message).At(where))
}

func (h *taskHooks) stopped() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stop
}

func (h *taskHooks) metric(name string, value float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.user == nil {
		h.user = map[string]float64{}
	}
	h.user[name] += value
}

func (h *taskHooks) spent(fuel int64, guest time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fuel += fuel
	h.guest += guest
}

// endWith notes what ends the task, whatever later steps make of it.
func (h *taskHooks) endWith(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stop == nil {
		h.stop = err
	}
}

// expected takes what the rules of a view counted.
func (h *taskHooks) expected(dataset string, c expect.Counts) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// A query may read a view more than once: the same rows count once.
	if slices.ContainsFunc(h.rules, func(r expect.RuleCounts) bool { return r.Dataset == dataset }) {
		return
	}
	for _, r := range c.Rules {
		r.Dataset = dataset
		h.rules = addRules(h.rules, []expect.RuleCounts{r})
	}
	h.dropped += c.Dropped
	h.quarantined += c.Quarantined
}

func (h *taskHooks) setState(name string, state []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.states == nil {
		h.states = map[string][]byte{}
	}
	h.states[name] = state
}

// taskRunner runs the tasks of one attempt of a batch.
type taskRunner struct {
	flow    *Flow
	means   means
	schema  readSchema
	output  outputSchema
	target  *delta.Snapshot // nil when the batch makes the table
	replace bool            // the batch replaces all rows and columns
	outputs []*handling     // of a flow with a handler, in place of a target
	// application takes the rows in place of files, nil of most flows.
	application Application
	snapshots   *snapshotHooks // of a flow of snapshots
	quarantine  *delta.Snapshot
	// quarantined says that the batch's refused rows are committed already.
	quarantined bool
	// query stands for the source of a batch query, nil for a stream; writers is
	// how many of its files are encoded at once.
	query   *queryInputs
	writers int
	states  map[string][]byte // that the batch before left
}

// run does the task. A panic of a step is an error here: one bad function must
// not take the other flows with it.
func (r *taskRunner) run(ctx context.Context, t *Task) (res taskResult, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New("INTERNAL_ERROR", "a step panicked: %v\n%s", p, debug.Stack())
		}
	}()
	source, err := r.open(ctx, t.Input)
	if err != nil {
		return res, err
	}
	defer source.Release()
	t.hooks = &taskHooks{side: r.flow.Side, pins: t.Side, policy: r.flow.OnRowError, source: source, query: r.query, means: r.means, before: r.states, snapshots: r.snapshots}
	defer func() { t.hooks = nil }()

	switch {
	case r.outputs != nil:
		err = r.handOver(ctx, t, source, &res.metrics)
	case r.application != nil:
		res.rules, err = r.apply(ctx, t, source, &res.metrics)
	default:
		res.adds, res.rules, err = r.pour(ctx, t, source, &res.metrics)
	}
	// A step hands on the failure of what it reads in its own words; the first
	// cause says more.
	if err != nil {
		if cause := source.Err(); cause != nil {
			return res, cause
		}
		if stop := t.hooks.stopped(); stop != nil {
			return res, stop
		}
		return res, err
	}
	r.tally(source, t.hooks, &res)
	res.states = t.hooks.states
	res.rules = append(res.rules, t.hooks.rules...)
	res.metrics.DroppedRows += t.hooks.dropped
	res.metrics.QuarantinedRows += t.hooks.quarantined
	if len(t.hooks.refused) == 0 || r.quarantined {
		return res, nil
	}
	res.refused, err = r.quarantineRows(ctx, t, source)
	return res, err
}

// open gives the rows of a share.
func (r *taskRunner) open(ctx context.Context, in Input) (sourceReader, error) {
	if r.query != nil {
		return r.query, nil
	}
	return r.flow.Source.read(ctx, in, r.schema, r.means)
}

// writer starts the files of a task.
func (r *taskRunner) writer(ctx context.Context, t *Task) (rowWriter, error) {
	target := &r.flow.Target
	open := func(i int) (rowWriter, error) {
		return target.Table.Write(ctx, target.writeOptions(r.target, r.output.table, r.replace, stripeName(t.Name(), i)))
	}
	if r.query != nil {
		return newStriped(r.writers, open)
	}
	return open(0)
}

// pour takes the rows through steps and expectations into the target's files.
func (r *taskRunner) pour(ctx context.Context, t *Task, source sourceReader, m *Metrics) (_ []delta.AddFile, _ []expect.RuleCounts, err error) {
	w, err := r.writer(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	closed := false
	defer func() {
		if !closed {
			err = errors.Join(err, w.Abort(context.WithoutCancel(ctx)))
		}
	}()
	feed := r.blindFeed(source)
	counts, err := r.expected(ctx, t, source, nil, func(ctx context.Context, rec arrow.RecordBatch) error {
		if feed != nil {
			m.OldImages += feed.oldImages(rec)
		}
		out, err := project(rec, r.output.rows)
		if err != nil {
			return err
		}
		defer out.Release()
		return w.Write(ctx, out)
	})
	if err != nil {
		return nil, nil, err
	}
	closed = true
	adds, err := w.Close(ctx)
	if err != nil {
		return nil, nil, err
	}
	m.OutputRows, m.DroppedRows, m.QuarantinedRows = counts.Kept, counts.Dropped, counts.Quarantined
	for _, a := range adds {
		m.OutputFiles++
		m.OutputBytes += a.Size
	}
	return adds, counts.Rules, nil
}

// apply takes the rows through steps and expectations to the application of the batch.
func (r *taskRunner) apply(ctx context.Context, t *Task, source sourceReader, m *Metrics) ([]expect.RuleCounts, error) {
	give := func(to func(context.Context, arrow.RecordBatch) error) func(context.Context, arrow.RecordBatch) error {
		return func(ctx context.Context, rec arrow.RecordBatch) error {
			out, err := project(rec, r.output.rows)
			if err != nil {
				return err
			}
			defer out.Release()
			return to(ctx, out)
		}
	}
	var refused func(context.Context, arrow.RecordBatch) error
	if s, ok := r.application.(SnapshotApplication); ok {
		refused = give(s.Keep)
	}
	counts, err := r.expected(ctx, t, source, refused, give(func(ctx context.Context, rec arrow.RecordBatch) error {
		return r.application.Take(ctx, t.Index, rec)
	}))
	m.DroppedRows, m.QuarantinedRows = counts.Dropped, counts.Quarantined
	return counts.Rules, err
}

// expected takes the rows of a task through the steps and hands on those that
// the expectations keep, and those that they refuse where somebody wants them.
func (r *taskRunner) expected(ctx context.Context, t *Task, source sourceReader, refused, keep func(context.Context, arrow.RecordBatch) error) (counts expect.Counts, err error) {
	err = r.through(ctx, t, source, func(in array.RecordReader) (err error) {
		counts, err = expect.Apply(ctx, r.flow.Rules, in, expect.Sink{
			Keep:       keep,
			Refused:    refused,
			Quarantine: t.hooks.quarantineRules,
			Locate:     func(row int64) string { return placeOf(source, row) },
		})
		return err
	})
	return counts, err
}

// through takes the rows of a task through the steps to their end, and reads
// the rest of what steps leave unread.
func (r *taskRunner) through(ctx context.Context, t *Task, source sourceReader, end func(array.RecordReader) error) error {
	var in array.RecordReader
	if r.query == nil {
		in = source
	}
	var stateful []array.RecordReader
	for _, step := range r.flow.Steps {
		out, err := step.Run(ctx, t, in)
		if err != nil {
			return err
		}
		defer out.Release()
		if _, counts := out.(*placedReader); counts || stateName(step) != "" {
			stateful = append(stateful, out)
		}
		in = out
	}
	if err := end(in); err != nil {
		return err
	}
	// A step with state, and the rules of a view, see every row of the batch and
	// get to its end, whether a later step wants what they give.
	for _, out := range slices.Backward(stateful) {
		for out.Next() {
		}
		if err := out.Err(); err != nil {
			return err
		}
	}
	// A step need not read all rows, a filter that is never true for one. All
	// of the source is looked at nevertheless: it may hold new columns.
	for source.Next() {
	}
	return source.Err()
}

// blindFeed gives the reader of a change feed whose rows lose their change
// type on the way to the target, nil of anything else: old images that stay
// among them look like rows of the table.
func (r *taskRunner) blindFeed(source sourceReader) *tableReader {
	t, ok := source.(*tableReader)
	if !ok || t.feed == nil || len(r.output.rows.FieldIndices(delta.ChangeTypeColumn)) > 0 {
		return nil
	}
	return t
}

// quarantineRules notes the rows that expectations set aside.
func (h *taskHooks) quarantineRules(_ context.Context, rec arrow.RecordBatch, rules [][]string) error {
	rows, ok := relation.Int64Column(rec, relation.RowColumn)
	if !ok && h.query == nil {
		return fault.New("STEP_SCHEMA_MISMATCH", "the last step lost the column %s", relation.RowColumn)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range rules {
		r := refusal{row: -1, seq: len(h.refused), rules: rules[i]}
		if rows != nil {
			r.row = rows.Value(i)
		}
		if h.query != nil || rows.IsNull(i) || r.row < 0 {
			r.row, r.json = -1, relation.RowJSON(rec, i)
		}
		h.refused = append(h.refused, r)
	}
	return nil
}

// placeOf says where a row came from, "" when from none in particular.
func placeOf(source sourceReader, row int64) string {
	if row < 0 {
		return ""
	}
	return source.place(row)
}

// tally fills in the figures that the source and the hooks know.
func (r *taskRunner) tally(source sourceReader, h *taskHooks, res *taskResult) {
	c := source.counts()
	m := &res.metrics
	m.InputRows, m.RescuedRows, m.MalformedRows = c.rows, c.rescued, c.malformed
	m.DroppedMalformed, m.LostValues = c.dropped, c.lost
	m.RowErrors, m.User = h.errors, h.user
	m.Fuel, m.GuestTime = h.fuel, h.guest
	if r.query != nil {
		m.InputFiles, m.InputBytes = r.query.in.files, r.query.in.bytes
	}
	switch r.flow.OnRowError {
	case SkipRowErrors:
		m.SkippedRows = h.errors
	case QuarantineRowErrors:
		m.QuarantinedRows += h.errors
	}
	res.files = c.files
}

// quarantineRows writes the refused rows. Their source rows are read a second
// time, only the files that hold one, so that a task keeps no rows in memory
// for the case that they will be refused.
func (r *taskRunner) quarantineRows(ctx context.Context, t *Task, source sourceReader) (_ []delta.AddFile, err error) {
	refused := t.hooks.refused
	slices.SortFunc(refused, func(a, b refusal) int { return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.seq, b.seq)) })
	w, err := r.flow.Quarantine.Write(ctx, delta.WriteOptions{Schema: expect.QuarantineSchema(), Snapshot: r.quarantine, Name: t.Name()})
	if err != nil {
		return nil, err
	}
	closed := false
	defer func() {
		if !closed {
			err = errors.Join(err, w.Abort(context.WithoutCancel(ctx)))
		}
	}()
	b := expect.NewQuarantine(r.means.mem, t.Flow, t.Batch, t.Timestamp)
	defer b.Release()
	flush := func() error {
		rec := b.NewBatch()
		defer rec.Release()
		return w.Write(ctx, rec)
	}
	err = r.again(ctx, t.Input, source, refused, func(of refusal, row []byte) error {
		b.Add(expect.QuarantineRow{Rules: of.rules, Code: of.code, Message: of.text, Source: placeOf(source, of.row), Row: row})
		if b.Len() < quarantineBatch {
			return nil
		}
		return flush()
	})
	if err != nil {
		return nil, err
	}
	if b.Len() > 0 {
		if err := flush(); err != nil {
			return nil, err
		}
	}
	closed = true
	return w.Close(ctx)
}

const quarantineBatch = 4096

// again reads the source rows of refusals, which ascend by row, and calls each
// with the row as JSON.
func (r *taskRunner) again(ctx context.Context, in Input, source sourceReader, refused []refusal, each func(refusal, []byte) error) error {
	for len(refused) > 0 && refused[0].row < 0 {
		if err := each(refused[0], refused[0].json); err != nil {
			return err
		}
		refused = refused[1:]
	}
	if len(refused) == 0 {
		return nil
	}
	for _, part := range shareOf(in, source.counts().starts, refused) {
		if err := r.againPart(ctx, part, each); err != nil {
			return err
		}
	}
	return nil
}

// rereading is an input to read again: rows of it count from base.
type rereading struct {
	input   Input
	base    int64
	refused []refusal
}

// shareOf narrows an input to the files that hold refused rows; the whole of
// it when the rows of files are not known.
func shareOf(in Input, starts []int64, refused []refusal) []rereading {
	if len(starts) == 0 || len(starts) != len(in.Files) {
		return []rereading{{in, 0, refused}}
	}
	var parts []rereading
	for len(refused) > 0 {
		// The last file that starts at or before the row; empty ones before it start there, too.
		f, _ := slices.BinarySearch(starts, refused[0].row+1)
		f--
		n := len(refused)
		if f+1 < len(starts) {
			n, _ = slices.BinarySearchFunc(refused, starts[f+1], func(x refusal, start int64) int { return cmp.Compare(x.row, start) })
		}
		parts = append(parts, rereading{Input{Files: in.Files[f : f+1]}, starts[f], refused[:n]})
		refused = refused[n:]
	}
	return parts
}

func (r *taskRunner) againPart(ctx context.Context, part rereading, each func(refusal, []byte) error) error {
	source, err := r.open(ctx, part.input)
	if err != nil {
		return err
	}
	defer source.Release()
	refused := part.refused
	start := part.base
	for len(refused) > 0 && source.Next() {
		rec := source.RecordBatch()
		for len(refused) > 0 && refused[0].row < start+rec.NumRows() {
			if err := each(refused[0], relation.RowJSON(rec, int(refused[0].row-start))); err != nil {
				return err
			}
			refused = refused[1:]
		}
		start += rec.NumRows()
	}
	if err := source.Err(); err != nil {
		return err
	}
	if len(refused) > 0 {
		return fault.New("SOURCE_CHANGED", "row %d was refused and cannot be read again", refused[0].row+1).
			WithHint("The file changed while it was read. Run again")
	}
	return nil
}
