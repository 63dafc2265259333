package stream

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/ingest"
)

var (
	fpDataWritten         = failpoint.New("stream.data_written")
	fpQuarantineCommitted = failpoint.New("stream.quarantine_committed")
	fpBeforeTargetCommit  = failpoint.New("stream.before_target_commit")
	fpTargetCommitted     = failpoint.New("stream.target_committed")
	fpCommitWritten       = failpoint.New("stream.commit_written")
)

const (
	engineInfo = "weir"
	// fullRefreshKey marks a commit that replaced all rows, for streams that
	// read from the table.
	fullRefreshKey = "weir.fullRefresh"
)

// attempt is one try at a batch that is in the offset log.
type attempt struct {
	*run
	entry  *offsetEntry
	number int

	operation string // in the history of the tables that are written

	target  *delta.Snapshot // nil: there is no table yet
	schema  readSchema
	output  outputSchema
	replace bool
	result  taskResult  // of all tasks together
	out     outcome     // what is noted of them in the commit
	outputs []*handling // of a handler, in place of a target

	application Application  // of a flow that applies its rows, in place of files
	snapshot    *abi.Version // that the rows are, of a flow of snapshots
	committing  bool         // the commit of the target is about to be made, or more

	before map[string]stateRef // the states that the batch before left
	states map[string][]byte   // those of them that steps of the flow read
}

// runBatch takes batch n, which is in the offset log, into the target and
// writes its commit entry.
func (r *run) runBatch(ctx context.Context, n int64, number int) (err error) {
	entry, err := r.ck.offset(ctx, n)
	if err != nil {
		return err
	}
	a := &attempt{run: r, entry: entry, number: number, operation: "STREAMING UPDATE"}
	if r.flow.Handler != nil {
		return a.handle(ctx)
	}
	if a.target, err = snapshot(ctx, r.flow.Target.Table); err != nil {
		return err
	}
	if v, ok := txn(a.target, r.ck.gen.AppID); ok && v >= n {
		return a.recover(ctx)
	}
	a.replace = n == 0 && r.ck.gen.Replace
	files, bytes := entry.Source.size()
	r.tell(Progress{Kind: BatchStarted, Batch: n, Attempt: number, Timestamp: entry.Timestamp, Files: files, Bytes: bytes})
	if err := a.plan(ctx); err != nil {
		return err
	}
	if err := a.loadStates(ctx); err != nil {
		return err
	}
	if a.flow.Apply != nil {
		defer func() { err = errors.Join(err, a.endApply(ctx)) }()
		if err := a.beginApply(ctx); err != nil {
			return err
		}
	}
	if err := a.work(ctx); err != nil {
		return a.evolved(ctx, err)
	}
	fpDataWritten.Hit()
	if err := a.commitQuarantine(ctx); err != nil {
		return err
	}
	a.out = a.outcome()
	if a.out.States, err = a.writeStates(ctx); err != nil {
		return err
	}
	fpBeforeTargetCommit.Hit()
	version, err := a.commitTarget(ctx)
	var already *delta.AlreadyCommitted
	if errors.As(err, &already) {
		return a.recover(ctx)
	}
	if err != nil {
		return err
	}
	fpTargetCommitted.Hit()
	return a.finish(ctx, a.out, version, false)
}

// snapshot gives a table as it is, nil when there is none.
func snapshot(ctx context.Context, t *delta.Table) (*delta.Snapshot, error) {
	snap, err := t.Snapshot(ctx)
	if fault.CodeOf(err) == "DELTA_TABLE_NOT_FOUND" {
		return nil, nil
	}
	return snap, err
}

func txn(snap *delta.Snapshot, appID string) (int64, bool) {
	if snap == nil {
		return 0, false
	}
	return snap.Txn(appID)
}

// plan works out the columns the batch reads and writes.
func (a *attempt) plan(ctx context.Context) (err error) {
	if len(a.entry.Source.Files) == 0 && a.entry.Source.Kind == filesKind {
		// A full refresh of an empty source takes rows away and leaves the
		// columns, unless they are known without a file.
		a.schema, err = a.flow.Source.schema(ctx, a.versions, a.entry.Batch, nil)
		if a.target != nil && fault.CodeOf(err) == "UNABLE_TO_INFER_SCHEMA" {
			if a.flow.Apply == nil {
				a.output.rows = a.target.Schema()
			}
			return nil
		}
		if err != nil {
			return err
		}
	} else if a.schema, err = a.flow.Source.schema(ctx, a.versions, a.entry.Batch, &a.entry.Source); err != nil {
		return err
	}
	if a.output, err = a.flow.planRows(ctx, a.schema.arrow, a.target, a.replace); err != nil {
		return err
	}
	if t := a.flow.Target; t.External && !t.Evolve && a.target != nil && a.output.table != nil {
		return strangeColumns(a.target.Schema(), a.output.table)
	}
	return nil
}

// strangeColumns is the error of rows that have columns which a table outside
// the pipeline has not.
func strangeColumns(table, merged *arrow.Schema) error {
	var names []string
	for _, f := range merged.Fields() {
		if columnNamed(table, f.Name) < 0 {
			names = append(names, f.Name)
		}
	}
	what := "columns of other types than the table's"
	if len(names) > 0 {
		what = "columns that the table has not: " + strings.Join(names, ", ")
	}
	return fault.New("DELTA_METADATA_MISMATCH", "the rows have %s", what).
		WithHint("Leave them out, add them to the table, or set mergeSchema on the sink to let the flow add them")
}

// work runs the tasks and gathers what they leave.
func (a *attempt) work(ctx context.Context) error {
	inputs, err := a.flow.Source.split(ctx, &a.entry.Source, a.taskBytes())
	if err != nil {
		return err
	}
	atOnce := max(min(a.flow.Parallel, len(inputs)), 1)
	runner := &taskRunner{
		flow: a.flow, means: means{a.mem, max(runtime.GOMAXPROCS(0)/atOnce, 1)}, schema: a.schema, output: a.output, target: a.target,
		outputs: a.outputs, application: a.application, replace: a.replace, states: a.states,
	}
	if a.flow.Quarantine != nil {
		if runner.quarantine, err = snapshot(ctx, a.flow.Quarantine); err != nil {
			return err
		}
		// An attempt that got as far as this commit and no further may have run
		// other code. Its files are live, so none is written over them.
		v, ok := txn(runner.quarantine, a.ck.gen.AppID)
		runner.quarantined = ok && v >= a.entry.Batch
	}
	if names := a.flow.stateNames(); len(names) > 0 && len(inputs) > 1 {
		return fault.New("INTERNAL_ERROR", "the batch of %v, which has state, is cut into %d tasks", names, len(inputs))
	}
	results := make([]taskResult, len(inputs))
	var mu sync.Mutex
	var unknown error // a task that met new columns lets the others go on
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, in := range inputs {
		group.Go(func() error {
			if err := a.flow.Slots.take(gctx); err != nil {
				return err
			}
			defer a.flow.Slots.giveBack()
			res, err := runner.run(gctx, a.task(i, in))
			if err == nil {
				results[i] = res
				return nil
			}
			var fields *ingest.UnknownFieldError
			if !errors.As(err, &fields) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if unknown == nil {
				unknown = err
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if unknown != nil {
		return unknown
	}
	for _, res := range results {
		a.result.adds = append(a.result.adds, res.adds...)
		a.result.refused = append(a.result.refused, res.refused...)
		a.result.files = append(a.result.files, res.files...)
		a.result.rules = addRules(a.result.rules, res.rules)
		a.result.metrics.add(res.metrics)
		if res.states != nil {
			a.result.states = res.states // a batch with state is one task
		}
	}
	for _, in := range inputs {
		files, bytes := in.size()
		a.result.metrics.InputFiles += files
		a.result.metrics.InputBytes += bytes
	}
	sortOutcomes(a.result.files)
	return nil
}

func (in Input) size() (files, bytes int64) {
	for _, f := range in.Files {
		bytes += max(f.Size, 0)
	}
	files = int64(len(in.Files))
	if in.Table != nil {
		files += int64(len(in.Table.Adds))
		for _, f := range in.Table.Adds {
			bytes += f.Size
		}
		if feed := in.Table.Feed; feed != nil {
			files += feed.Files
			bytes += feed.Bytes
		}
	}
	return files, bytes
}

func (a *attempt) task(i int, in Input) *Task {
	return &Task{
		Dataset: a.flow.Dataset, Flow: a.flow.Name, Pipeline: a.flow.Pipeline, UpdateID: a.flow.UpdateID,
		Generation: a.ck.gen.Generation, Batch: a.entry.Batch, Index: i, Attempt: a.number,
		Timestamp: a.entry.Timestamp, FullRefresh: a.replace, SchemaVersion: a.schema.version,
		Input: in, Side: a.entry.Side,
	}
}

// evolved records the columns that a batch has and its schema lacks, and hands
// the error on: the next attempt reads with them.
func (a *attempt) evolved(ctx context.Context, err error) error {
	var fields *ingest.UnknownFieldError
	src, ok := a.flow.Source.(evolving)
	if !ok || !errors.As(err, &fields) {
		return err
	}
	if inputs, serr := a.flow.Source.split(ctx, &a.entry.Source, a.taskBytes()); serr != nil {
		return errors.Join(serr, err)
	} else if len(inputs) > 1 {
		// Each task saw its own files only.
		whole, rerr := src.evolve(ctx, &a.entry.Source, a.schema, a.mem)
		if rerr != nil {
			return rerr
		}
		if whole != nil {
			fields = whole
		}
	}
	if fields.Evolved == nil {
		return err // the mode stops at new columns and records nothing
	}
	if _, err := a.versions.record(ctx, fields.Evolved, a.entry.Batch); err != nil {
		return err
	}
	var names []string
	for _, f := range fields.Fields {
		names = append(names, f.Name)
	}
	a.res.NewColumns = append(a.res.NewColumns, names...)
	a.tell(Progress{Kind: SchemaEvolved, Batch: a.entry.Batch, Attempt: a.number, NewColumns: names})
	message := strings.TrimPrefix(fields.Error(), "["+fields.CodeName()+"] ")
	return &recordedError{fault.New(fields.CodeName(), "%s", message), fields}
}

// recordedError says that new columns are recorded and that trying again helps.
type recordedError struct {
	coded  *fault.Error // what is printed; it takes the place in
	fields *ingest.UnknownFieldError
}

func (e *recordedError) Error() string    { return e.coded.Error() }
func (e *recordedError) CodeName() string { return e.coded.Code }
func (e *recordedError) Unwrap() []error  { return []error{e.coded, e.fields} }

// outcome sums the batch up for the logs.
func (a *attempt) outcome() outcome {
	o := outcome{Metrics: a.result.metrics, Expectations: ruleRecords(a.result.rules), Files: a.result.files}
	if a.schema.files != nil && len(a.entry.Source.Files) > 0 {
		v := a.schema.version
		o.SchemaVersion = &v
	}
	return o
}

// commitQuarantine commits the refused rows. The first batch of a full refresh
// takes away those of the generation before, whether it has any itself.
func (a *attempt) commitQuarantine(ctx context.Context) error {
	table := a.flow.Quarantine
	if table == nil {
		return nil
	}
	snap, err := snapshot(ctx, table)
	if err != nil {
		return err
	}
	if len(a.result.refused) == 0 && (!a.replace || snap == nil) {
		return nil
	}
	c := a.commit(snap, a.result.refused)
	if snap == nil {
		c.Schema = expect.QuarantineSchema()
		c.Comment = "rows that " + a.flow.Dataset + " refused"
	}
	c.ReplaceAll = a.replace && snap != nil
	res, err := table.Commit(ctx, c)
	var already *delta.AlreadyCommitted
	if err != nil && !errors.As(err, &already) {
		return err
	}
	a.checkpointed(a.flow.Dataset+"_quarantine", res)
	fpQuarantineCommitted.Hit()
	return nil
}

// commitTarget is the commit point of the batch.
func (a *attempt) commitTarget(ctx context.Context) (int64, error) {
	c := a.commit(a.target, a.result.adds)
	if err := a.settle(&c, Counts{}); err != nil {
		return 0, err
	}
	c.Schema = a.output.table
	c.ReplaceAll = a.replace && a.target != nil
	if a.target == nil || a.replace {
		t := a.flow.Target
		c.PartitionBy, c.ClusterBy = t.layout(a.target)
		c.Properties, c.Name, c.Comment = t.Properties, t.Name, t.Comment
	}
	if c.ReplaceAll {
		c.Redefines = !a.flow.Target.External
		c.Unset, c.NoComment = a.flow.Target.Unset, c.Comment == ""
		c.Parameters[fullRefreshKey] = "true"
	}
	var res delta.Result
	var err error
	if a.application != nil {
		c.Parameters["outputMode"] = "Update"
		res, a.out.Metrics.Applied, err = a.application.Commit(ctx, c)
	} else {
		res, err = a.flow.Target.Table.Commit(ctx, c)
	}
	a.checkpointed(a.flow.Dataset, res)
	return res.Version, err
}

// layout gives the partitioning and clustering of a commit that makes the table
// or replaces all its rows: what a definition no longer names is ended.
func (t *Target) layout(snap *delta.Snapshot) (partitionBy, clusterBy []string) {
	partitionBy, clusterBy = t.PartitionBy, t.ClusterBy
	if snap == nil {
		return partitionBy, clusterBy
	}
	if partitionBy == nil && len(snap.PartitionColumns()) > 0 {
		partitionBy = []string{}
	}
	if _, clustered := snap.Domains()["delta.clustering"]; clustered && clusterBy == nil {
		clusterBy = []string{}
	}
	return partitionBy, clusterBy
}

func (a *attempt) outputMode() string {
	if a.ck.gen.Kind == completeGeneration {
		return "Complete"
	}
	return "Append"
}

// commit is what both commits of a batch share.
func (a *attempt) commit(snap *delta.Snapshot, adds []delta.AddFile) delta.Commit {
	return delta.Commit{
		Read:       snap,
		Operation:  a.operation,
		Parameters: map[string]any{"outputMode": a.outputMode(), "queryId": a.ck.gen.AppID, "epochId": strconv.FormatInt(a.entry.Batch, 10)},
		EngineInfo: engineInfo,
		Add:        adds,
		Txn:        &delta.Txn{AppID: a.ck.gen.AppID, Version: a.entry.Batch},
		Timestamp:  a.flow.now(),
	}
}

// recover writes the commit entry of a batch that the target has already; what
// the batch did is in the target's commit.
func (a *attempt) recover(ctx context.Context) (err error) {
	if a.target, err = snapshot(ctx, a.flow.Target.Table); err != nil {
		return err
	}
	if a.target == nil {
		return fault.New("TARGET_TABLE_MISSING", "the table vanished while it was written")
	}
	out, version, err := findOutcome(ctx, a.flow.Target.Table, a.target.Version(), a.ck.gen.AppID, a.entry.Batch)
	if err != nil {
		return err
	}
	if names := a.flow.stateNames(); out.unknown && len(names) > 0 {
		return fault.New("CHECKPOINT_CORRUPT", "the target's log no longer tells which state of %v batch %d left", names, a.entry.Batch).
			WithHint("Run a full refresh of this table")
	}
	return a.finish(ctx, out, version, true)
}

// findOutcome looks for the commit of a batch from the newest version back.
func findOutcome(ctx context.Context, table *delta.Table, newest int64, appID string, batch int64) (outcome, int64, error) {
	const step = 16
	for high := newest; high >= 0; high -= step {
		for entry, err := range table.Log(ctx, max(high-step+1, 0), high) {
			if fault.CodeOf(err) == "DELTA_LOG_GAP" {
				// The log was cleaned up beyond the commit: the rows are there, the figures are not.
				return outcome{unknown: true}, newest, nil
			}
			if err != nil {
				return outcome{}, 0, err
			}
			mine := slices.ContainsFunc(entry.Txns, func(t delta.Txn) bool { return t.AppID == appID && t.Version == batch })
			if !mine {
				continue
			}
			if entry.CommitInfo != nil {
				if out, ok := decodeOutcome(entry.CommitInfo.OperationParameters[outcomeKey]); ok {
					return out, entry.Version, nil
				}
			}
			return outcome{unknown: true}, entry.Version, nil
		}
	}
	return outcome{unknown: true}, newest, nil
}

// finish writes the commit entry, after which the batch is history.
func (a *attempt) finish(ctx context.Context, out outcome, version int64, recovered bool) error {
	id := ""
	if a.flow.Handler == nil {
		snap, err := snapshot(ctx, a.flow.Target.Table)
		if err != nil {
			return err
		}
		if snap != nil {
			id = snap.Metadata().ID
			a.res.Columns = snap.Schema()
		}
	}
	e := &commitEntry{Format: 1, Batch: a.entry.Batch, Timestamp: a.flow.now(), UpdateID: a.flow.UpdateID, TableID: id, TargetVersion: version, outcome: out}
	if err := a.ck.finish(ctx, e); err != nil {
		return err
	}
	fpCommitWritten.Hit()
	a.pruneStates(ctx, out.States)
	r := a.res
	r.Batches++
	if recovered {
		r.Recovered++
	}
	r.TargetVersion = version
	r.Metrics.add(out.Metrics)
	r.Expectations = addRules(r.Expectations, out.rules())
	p := Progress{Kind: BatchCommitted, Batch: e.Batch, Attempt: a.number, Timestamp: a.entry.Timestamp, Metrics: out.Metrics,
		Expectations: out.rules(), TargetVersion: version, Recovered: recovered}
	p.Files, p.Bytes = int(out.Metrics.InputFiles), out.Metrics.InputBytes
	a.tell(p)
	return a.ck.compact(ctx)
}
