package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/storage"
)

const shownName = "dev.silver.shown"

// newestSnapshot is a SnapshotApplier whose table holds the rows of the latest
// snapshot and those that were kept, each with the version. Id -1 says how many there were.
type newestSnapshot struct{}

func shownSchema() *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "at", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "kept", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
}

func (newestSnapshot) Schema(*arrow.Schema) (*arrow.Schema, error) { return shownSchema(), nil }

func (newestSnapshot) Begin(_ context.Context, b ApplyBatch) (Application, error) {
	if b.Snapshot == nil {
		return nil, fmt.Errorf("no version")
	}
	w := &newestOfSnapshot{b: b, rec: array.NewRecordBuilder(memory.DefaultAllocator, shownSchema())}
	return w, nil
}

func (newestSnapshot) Latest(ctx context.Context, target *delta.Snapshot) (*LatestSnapshot, error) {
	if target == nil {
		return nil, nil
	}
	r, err := target.Scan(ctx, delta.ScanOptions{})
	if err != nil {
		return nil, err
	}
	defer r.Release()
	var latest *LatestSnapshot
	for r.Next() {
		rec := r.RecordBatch()
		for i := range int(rec.NumRows()) {
			at, rows := rec.Column(1).(*array.String).Value(i), rec.Column(2).(*array.Int64).Value(i)
			if id := rec.Column(0).(*array.Int64).Value(i); id == -1 {
				typ, value, _ := strings.Cut(at, " ")
				latest = &LatestSnapshot{Version: abi.Version{Type: typ, Value: value}, Rows: rows}
			}
		}
	}
	return latest, r.Err()
}

type newestOfSnapshot struct {
	b    ApplyBatch
	rec  *array.RecordBuilder
	rows int64
}

func (w *newestOfSnapshot) add(id, kept int64) {
	w.rec.Field(0).(*array.Int64Builder).Append(id)
	w.rec.Field(1).(*array.StringBuilder).Append(w.b.Snapshot.Type + " " + w.b.Snapshot.Value)
	w.rec.Field(2).(*array.Int64Builder).Append(kept)
}

func (w *newestOfSnapshot) addAll(rec arrow.RecordBatch, kept int64) {
	w.rows += rec.NumRows()
	for i := range int(rec.NumRows()) {
		id, _ := rowID(rec, i)
		w.add(id, kept)
	}
}

func (w *newestOfSnapshot) Take(_ context.Context, _ int, rec arrow.RecordBatch) error {
	w.addAll(rec, 0)
	return nil
}

func (w *newestOfSnapshot) Keep(_ context.Context, rec arrow.RecordBatch) error {
	w.addAll(rec, 1)
	return nil
}

func (w *newestOfSnapshot) Commit(ctx context.Context, c delta.Commit) (delta.Result, Counts, error) {
	n := Counts{Inserted: w.rows}
	w.add(-1, w.rows)
	rec := w.rec.NewRecordBatch()
	defer rec.Release()
	out, err := w.b.Table.Write(ctx, w.b.Write)
	if err != nil {
		return delta.Result{}, n, err
	}
	if err := out.Write(ctx, rec); err != nil {
		return delta.Result{}, n, errors.Join(err, out.Abort(ctx))
	}
	if c.Add, err = out.Close(ctx); err != nil {
		return delta.Result{}, n, err
	}
	c.ReplaceAll = w.b.Target != nil
	if err := w.b.Settle(&c, n); err != nil {
		return delta.Result{}, n, err
	}
	res, err := w.b.Table.Commit(ctx, c)
	return res, n, err
}

func (w *newestOfSnapshot) Release(context.Context) error {
	w.rec.Release()
	return nil
}

// hundreds provides the ids of the bronze table by their hundreds: 101 and 102 are
// snapshot 1, 201 is snapshot 2.
type hundreds struct {
	idsStep
	say func(after int64, next int64) abi.SnapshotResult // nil: what is right
}

func (s hundreds) Run(ctx context.Context, t *Task, in array.RecordReader) (array.RecordReader, error) {
	all, err := s.idsStep.Run(ctx, t, in)
	if err != nil {
		return nil, err
	}
	defer all.Release()
	after := int64(0)
	if v := t.LatestSnapshot(); v != nil {
		after, _ = strconv.ParseInt(v.Value, 10, 64)
	}
	by := map[int64][]int64{}
	next := int64(0)
	for all.Next() {
		ids, _ := relation.Int64Column(all.RecordBatch(), "id")
		for _, id := range ids.Int64Values() {
			if n := id / 100; n > after {
				by[n] = append(by[n], id)
				if next == 0 || n < next {
					next = n
				}
			}
		}
	}
	said := abi.SnapshotResult{}
	if next > 0 {
		said.Version = &abi.Version{Type: abi.VersionInt, Value: strconv.FormatInt(next, 10)}
	}
	if s.say != nil {
		said = s.say(after, next)
	}
	if err := t.Snapshot(said); err != nil {
		return nil, fmt.Errorf("the module says: %w", err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, all.Schema())
	defer b.Release()
	if said.Version != nil {
		b.Field(0).(*array.Int64Builder).AppendValues(by[next], nil)
	}
	rec := b.NewRecordBatch()
	return array.NewRecordReader(rec.Schema(), []arrow.RecordBatch{rec})
}

// shown is a flow of snapshots of the bronze table.
func (l *lake) shown(provider bool) *Snapshots {
	s := &Snapshots{
		Flow: Flow{
			Dataset: shownName, Name: "shown", Pipeline: l.pipeline, UpdateID: "update",
			Side:       map[string]*delta.Table{bronzeName: l.table(bronzeName)},
			Target:     Target{Table: l.table(shownName), Name: shownName},
			Quarantine: l.table(shownName + "_quarantine"),
			Checkpoint: l.open("_weir/dwh/checkpoints/" + shownName + "/shown"),
			Apply:      newestSnapshot{}, Alloc: l.mem,
		},
		Fingerprint: "1", Provider: provider, MaxShrink: 0.25,
	}
	s.Steps = []Step{idsStep{table: bronzeName, column: "id"}}
	if provider {
		s.Steps = []Step{hundreds{idsStep: idsStep{table: bronzeName, column: "id"}}}
	}
	return s
}

func (l *lake) ids(t testing.TB) string {
	t.Helper()
	var out []string
	r, err := mustSnapshot(t, l.table(shownName)).Scan(context.Background(), delta.ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	for r.Next() {
		for i := range int(r.RecordBatch().NumRows()) {
			if id, _ := rowID(r.RecordBatch(), i); id >= 0 {
				out = append(out, strings.TrimPrefix(r.RecordBatch().Column(1).ValueStr(i), "int ")+":"+strconv.FormatInt(id, 10)+strings.Repeat("k", int(r.RecordBatch().Column(2).(*array.Int64).Value(i))))
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func mustSnapshot(t testing.TB, table *delta.Table) *delta.Snapshot {
	t.Helper()
	s, err := table.Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (l *lake) mustSnapshots(t testing.TB, s *Snapshots, batches int64) Result {
	t.Helper()
	res, err := RunSnapshots(context.Background(), s, nil)
	if err != nil || res.Batches != batches {
		t.Fatalf("%d snapshots, want %d: %v", res.Batches, batches, err)
	}
	return res
}

func (l *lake) wantSnapshotError(t testing.TB, s *Snapshots, code, says string) {
	t.Helper()
	before := l.names(t)
	_, err := RunSnapshots(context.Background(), s, nil)
	if !fault.Is(err, code) || !strings.Contains(err.Error(), says) {
		t.Fatalf("got %v, want [%s] %s", err, code, says)
	}
	for _, name := range l.names(t) {
		if !slices.Contains(before, name) && strings.Contains(name, "_delta_log") {
			t.Errorf("%s was written", name)
		}
	}
}

// names lists everything in the storage.
func (l *lake) names(t testing.TB) []string {
	t.Helper()
	var out []string
	for info, err := range l.store.List(context.Background(), "", storage.ListOptions{NamesOnly: true}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, info.Name)
	}
	return out
}

// covers A78, A207: the provider is asked until it has no more.
func TestAProviderIsAskedUntilItHasNoMore(t *testing.T) {
	l := newLake(t)
	l.write(t, bronzeName, 101, 102, 301, 302, 201)
	s := l.shown(true)
	s.MaxShrink = 1
	var told []string
	res, err := RunSnapshots(context.Background(), s, ObserverFunc(func(p Progress) {
		if p.Kind == BatchCommitted || p.Kind == Noticed {
			told = append(told, string(p.Kind)+p.Notice.Code)
		}
	}))
	if err != nil || res.Batches != 3 || res.Metrics.Applied.Inserted != 5 || strings.Join(told, " ") != "batch_committed batch_committed batch_committed" {
		t.Fatalf("%+v %v %v", res, told, err)
	}
	if got := l.ids(t); got != "3:301 3:302" {
		t.Error(got)
	}
	// A run that finds nothing leaves nothing.
	before := l.names(t)
	told = nil
	if _, err := RunSnapshots(context.Background(), s, ObserverFunc(func(p Progress) { told = append(told, p.Notice.Code) })); err != nil || strings.Join(told, " ") != "NO_NEW_SNAPSHOT" {
		t.Error(told, err)
	}
	if after := l.names(t); !slices.Equal(before, after) {
		t.Errorf("%v were written", after[len(before):])
	}
	l.write(t, bronzeName, 401, 402)
	l.mustSnapshots(t, s, 1)
	if got := l.ids(t); got != "4:401 4:402" {
		t.Error(got)
	}
}

// covers A79, A80
func TestSnapshotsOutOfOrderAreRefused(t *testing.T) {
	l := newLake(t)
	l.write(t, bronzeName, 201)
	s := l.shown(true)
	l.mustSnapshots(t, s, 1)
	says := func(typ, value string) {
		step := s.Steps[0].(hundreds)
		step.say = func(int64, int64) abi.SnapshotResult {
			return abi.SnapshotResult{Version: &abi.Version{Type: typ, Value: value}}
		}
		s.Steps = []Step{step}
	}
	says("int", "2")
	l.wantSnapshotError(t, s, "SNAPSHOT_VERSION_NOT_ASCENDING", "2, which does not come after the latest, 2")
	says("int", "1")
	l.wantSnapshotError(t, s, "SNAPSHOT_VERSION_NOT_ASCENDING", "1, which does not come after")
	says("string", "3")
	l.wantSnapshotError(t, s, "SNAPSHOT_VERSION_TYPE_CHANGED", "of type string")
	s = l.shown(true)
	l.mustSnapshots(t, s, 0)
}

// covers A83, A205
func TestTheCountGateHoldsASnapshotAsAWhole(t *testing.T) {
	l := newLake(t)
	l.write(t, bronzeName, 101, 102, 103, 104, 201, 202, 203, 301, 302, 401, 402)
	s := l.shown(true)
	for range 2 {
		l.wantSnapshotErrorAfter(t, s)
		if got := l.ids(t); got != "2:201 2:202 2:203" {
			t.Fatal(got)
		}
	}
	s.Accept = func(v string) bool { return v == "4" }
	l.wantSnapshotError(t, s, "SNAPSHOT_SHRANK", "")
	s.Accept = func(v string) bool { return v == "3" }
	var notices []string
	if res, err := RunSnapshots(context.Background(), s, ObserverFunc(func(p Progress) {
		if p.Kind == Noticed {
			notices = append(notices, p.Notice.Code)
		}
	})); err != nil || res.Batches != 2 || strings.Join(notices, " ") != "SNAPSHOT_ACCEPTED" {
		t.Fatalf("%+v %v %v", res, notices, err)
	}
	if got := l.ids(t); got != "4:401 4:402" {
		t.Error(got)
	}
}

func (l *lake) wantSnapshotErrorAfter(t testing.TB, s *Snapshots) {
	t.Helper()
	_, err := RunSnapshots(context.Background(), s, nil)
	if !fault.Is(err, "SNAPSHOT_SHRANK") || !strings.Contains(err.Error(), "snapshot 3 has 2 rows, 2 before it had 3: 33.3 % fewer, and 25 % is the most") || !strings.Contains(err.Error(), shownName+":3") {
		t.Fatal(err)
	}
}

func TestAHeldSnapshotThatIsDeliveredAgainPasses(t *testing.T) {
	l := newLake(t)
	l.write(t, bronzeName, 101, 102, 103, 104, 201)
	s := l.shown(true)
	if _, err := RunSnapshots(context.Background(), s, nil); !fault.Is(err, "SNAPSHOT_SHRANK") {
		t.Fatal(err)
	}
	l.write(t, bronzeName, 202, 203, 204)
	l.mustSnapshots(t, s, 1)
	if got := l.ids(t); got != "2:201 2:202 2:203 2:204" {
		t.Error(got)
	}
}

// covers A78: the source is a table, and there is one snapshot a run.
func TestATableIsOneSnapshotARun(t *testing.T) {
	l := newLake(t)
	now := time.Date(2026, 7, 29, 6, 0, 0, 0, time.UTC)
	l.write(t, bronzeName, 1, 2)
	s := l.shown(false)
	s.Clock = func() time.Time { now = now.Add(time.Hour); return now }
	l.mustSnapshots(t, s, 1)
	version := func() string { return strings.Fields(l.ids(t))[1][:14] }
	first := version()
	if first != "2026-07-29T07:" && first != "2026-07-29T08:" {
		t.Error(first)
	}
	l.mustSnapshots(t, s, 0)
	if got := version(); got != first {
		t.Error("compared again at", got)
	}
	l.write(t, bronzeName, 3, 4)
	l.mustSnapshots(t, s, 1)
	if got := version(); got <= first {
		t.Error("the second is at", got)
	}
	s.Clock = func() time.Time { return time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC) }
	l.write(t, bronzeName, 5)
	l.wantSnapshotError(t, s, "SNAPSHOT_VERSION_NOT_ASCENDING", "2026-07-01T00:00:00.000000Z")
}

func TestAHeldTableKeepsItsVersionUntilItChanges(t *testing.T) {
	l := newLake(t)
	now := time.Date(2026, 7, 29, 6, 0, 0, 0, time.UTC)
	l.write(t, bronzeName, 1, 2, 3, 4)
	s := l.shown(false)
	s.Clock = func() time.Time { now = now.Add(time.Hour); return now }
	l.mustSnapshots(t, s, 1)
	l.replace(t, bronzeName, 1)
	held := func() string {
		t.Helper()
		_, err := RunSnapshots(context.Background(), s, nil)
		if !fault.Is(err, "SNAPSHOT_SHRANK") {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(err.Error(), "snapshot ")
		version, _, _ := strings.Cut(rest, " ")
		return version
	}
	first := held()
	if second := held(); second != first {
		t.Errorf("%s became %s", first, second)
	}
	s.Accept = func(v string) bool { return v == first }
	l.mustSnapshots(t, s, 1)
	l.replace(t, bronzeName)
	second := held()
	l.replace(t, bronzeName, 7, 8)
	l.mustSnapshots(t, s, 1)
	if got := l.ids(t); !strings.Contains(got, ":7") || strings.Contains(got, second) {
		t.Errorf("%s, held was %s", got, second)
	}
}

// replace lets other ids be all that a table holds.
func (l *lake) replace(t testing.TB, name string, ids ...int64) {
	t.Helper()
	ctx := context.Background()
	table := delta.Open(storage.Sub(l.store, strings.ReplaceAll(name, ".", "/")))
	snap := mustSnapshot(t, table)
	if _, err := table.Commit(ctx, delta.Commit{Read: snap, Operation: "DELETE", Parameters: map[string]any{}, ReplaceAll: true}); err != nil {
		t.Fatal(err)
	}
	if len(ids) > 0 {
		l.write(t, name, ids...)
	}
}

// covers A82: a rule keeps a row out of the comparison, not its key.
func TestRowsThatRulesRefuseAreHandedOverAsKept(t *testing.T) {
	l := newLake(t)
	l.write(t, bronzeName, 101, 102, 103, 213, 202)
	s := l.shown(true)
	s.MaxShrink = 0.4
	s.Steps = append(s.Steps, maskStep{})
	s.Rules = []expect.Rule{{Name: "has_id", Condition: "id >= 0", Action: expect.Quarantine}, {Name: "no_13", Condition: "id % 100 <> 13", Action: expect.Drop}}
	res := l.mustSnapshots(t, s, 2)
	if got := l.ids(t); !strings.Contains(got, "2:202") || res.Expectations[1].Passed+res.Expectations[1].Failed != 5 {
		t.Errorf("%s %+v", got, res.Expectations)
	}
	s.OnRowError = SkipRowErrors
	l.wantSnapshotError(t, s, "NOT_SUPPORTED", "what is missing was deleted")
}

// covers A72, A86
func TestAFullRefreshMissesSnapshotsThatAreGone(t *testing.T) {
	l := newLake(t)
	ctx := context.Background()
	l.write(t, bronzeName, 101, 201, 301)
	s := l.shown(true)
	if loss, err := MissingSnapshots(ctx, s, true); err != nil || loss.Any() {
		t.Fatal(loss, err)
	}
	l.mustSnapshots(t, s, 3)
	if loss, err := MissingSnapshots(ctx, s, true); err != nil || loss.Any() {
		t.Fatal(loss, err)
	}
	l.replace(t, bronzeName, 201, 401)
	loss, err := MissingSnapshots(ctx, s, true)
	if err != nil || loss.Snapshots != 2 || strings.Join(loss.Examples, " ") != "1 3" || !strings.Contains(loss.String(), "2 snapshots") {
		t.Fatalf("%+v %v", loss, err)
	}
	full := l.shown(true)
	full.FullRefresh = true
	l.mustSnapshots(t, full, 2)
	if got := l.ids(t); got != "4:401" {
		t.Error(got)
	}
	if loss, err := MissingSnapshots(ctx, s, true); err != nil || loss.Any() {
		t.Fatal(loss, err)
	}
	l.replace(t, bronzeName)
	full = l.shown(true)
	full.FullRefresh = true
	l.wantSnapshotError(t, full, "FULL_REFRESH_LOSES_DATA", "no snapshot at all")
	if got := l.ids(t); got != "4:401" {
		t.Error(got)
	}
}

func TestAFullRefreshOfATableLosesItsHistory(t *testing.T) {
	l := newLake(t)
	l.write(t, bronzeName, 1)
	s := l.shown(false)
	l.mustSnapshots(t, s, 1)
	for _, history := range []bool{true, false} {
		if loss, err := MissingSnapshots(context.Background(), s, history); err != nil || loss.Any() {
			t.Fatal(loss, err)
		}
	}
	l.write(t, bronzeName, 2)
	l.mustSnapshots(t, s, 1)
	if loss, err := MissingSnapshots(context.Background(), s, true); err != nil || loss.Snapshots != 1 || !strings.Contains(loss.String(), "1 earlier") {
		t.Fatal(loss, err)
	}
	if loss, err := MissingSnapshots(context.Background(), s, false); err != nil || loss.Any() {
		t.Fatal(loss, err)
	}
}

func TestASnapshotThatACrashLeftIsTheSameAgain(t *testing.T) {
	l := newLake(t)
	ctx := context.Background()
	l.write(t, bronzeName, 101, 201)
	s := l.shown(true)
	s.Steps = append(s.Steps, cutOff{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.Steps[1] = cutOff{cancel}
	if _, err := RunSnapshots(ctx, s, nil); err == nil {
		t.Fatal("it went on")
	}
	// What came later is not part of the snapshot that was begun.
	l.write(t, bronzeName, 102)
	s = l.shown(true)
	l.mustSnapshots(t, s, 2)
	first, err := l.table(shownName).SnapshotAt(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if latest, err := (newestSnapshot{}).Latest(context.Background(), first); err != nil || latest.Rows != 1 || latest.Version.Value != "1" {
		t.Errorf("%+v %v", latest, err)
	}
	// One that says something else for the same inputs is not trusted.
	l.write(t, bronzeName, 301)
	ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	s = l.shown(true)
	s.Steps = append(s.Steps, cutOff{cancel})
	if _, err := RunSnapshots(ctx, s, nil); err == nil {
		t.Fatal("it went on")
	}
	s = l.shown(true)
	s.Steps[0] = hundreds{s.Steps[0].(hundreds).idsStep, func(int64, int64) abi.SnapshotResult { return abi.SnapshotResult{} }}
	l.wantSnapshotError(t, s, "SNAPSHOT_NOT_REPEATED", "said 3, and for the same inputs now says that there is none")
}

// cutOff ends the run while rows are on their way.
type cutOff struct{ cancel func() }

func (cutOff) Schema(_ context.Context, in *arrow.Schema) (*arrow.Schema, error) { return in, nil }

func (c cutOff) Run(ctx context.Context, _ *Task, in array.RecordReader) (array.RecordReader, error) {
	return mapReader(in, in.Schema(), func(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
		c.cancel()
		return nil, ctx.Err()
	}), nil
}
