package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"go.uber.org/goleak"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func table(t *testing.T) *delta.Table {
	t.Helper()
	d, err := storage.OpenDir(t.TempDir(), storage.NoSync)
	if err != nil {
		t.Fatal(err)
	}
	return delta.Open(d)
}

func rows(t *testing.T, table *delta.Table) []map[string]any {
	t.Helper()
	ctx := context.Background()
	snap, err := table.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r, err := snap.Scan(ctx, delta.ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	var out []map[string]any
	for r.Next() {
		for i := range int(r.RecordBatch().NumRows()) {
			var row map[string]any
			if err := json.Unmarshal(relation.RowJSON(r.RecordBatch(), i), &row); err != nil {
				t.Fatal(err)
			}
			out = append(out, row)
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return out
}

// covers A157 A158 B5
func TestTheLogIsADeltaTableWithTheColumnsOfTheField(t *testing.T) {
	ctx := context.Background()
	tbl := table(t)
	at := time.Date(2026, 11, 30, 13, 45, 0, 123456789, time.UTC)
	log := Open(tbl, Origin{PipelineID: "p", PipelineName: "dwh", UpdateID: "u"}, func() time.Time { return at })
	if err := log.Flush(ctx); err != nil {
		t.Fatal("nothing to flush", err)
	}
	batch := int64(4)
	log.Emit(Event{Type: UpdateProgress, Message: "update is RUNNING", Details: StateDetails{State: "RUNNING"}})
	log.Emit(Event{Type: FlowProgress, Level: Metrics, Origin: Origin{FlowName: "orders", BatchID: &batch}, Details: FlowProgressDetails{
		Status:      "COMPLETED",
		DataQuality: &DataQuality{DroppedRecords: 3, Expectations: []Expectation{{Name: "has_id", Dataset: "orders", Passed: 7, Failed: 3}}},
	}})
	if err := log.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	err := fault.Wrap(fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), "UNKNOWN_FIELD", "column x")
	log.Emit(Event{Type: FlowProgress, Level: Error, Error: FailureOf(err)})
	if err := log.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	got := rows(t, tbl)
	if len(got) != 3 {
		t.Fatalf("%d rows", len(got))
	}
	byType := map[string]map[string]any{}
	var numbers []float64
	for _, row := range got {
		if row["error"] != nil {
			byType["error"] = row
		} else {
			byType[row["event_type"].(string)] = row
		}
		if row["timestamp"] != "2026-11-30T13:45:00.123456Z" || row["id"] == nil || row["maturity_level"] != "EVOLVING" {
			t.Errorf("%v", row)
		}
		if o := row["origin"].(map[string]any); o["pipeline_id"] != "p" || o["pipeline_name"] != "dwh" || o["update_id"] != "u" {
			t.Errorf("%v", o)
		}
		sequence := row["sequence"].(map[string]any)
		plane := sequence["data_plane_id"].(map[string]any)
		if plane["instance"] != "u" || plane["seq_no"] != sequence["control_plane_seq_no"] {
			t.Errorf("%v", sequence)
		}
		numbers = append(numbers, plane["seq_no"].(float64))
	}
	if slices.Sort(numbers); !slices.Equal(numbers, []float64{1, 2, 3}) {
		t.Errorf("sequence %v", numbers)
	}
	if row := byType[UpdateProgress]; row["details"] != `{"update_progress":{"state":"RUNNING"}}` || row["level"] != "INFO" {
		t.Errorf("%v", row)
	}
	want := `{"flow_progress":{"status":"COMPLETED","data_quality":{"dropped_records":3,"quarantined_records":0,"rescued_records":0,"malformed_records":0,"expectations":[{"name":"has_id","dataset":"orders","passed_records":7,"failed_records":3}]}}}`
	if row := byType[FlowProgress]; row["details"] != want || row["origin"].(map[string]any)["batch_id"] != 4.0 {
		t.Errorf("%v", row)
	}
	failure, _ := json.Marshal(byType["error"]["error"])
	if string(failure) != `{"exceptions":[{"class_name":"UNKNOWN_FIELD","message":"[UNKNOWN_FIELD] column x: reading: unexpected EOF"},{"class_name":null,"message":"reading: unexpected EOF"}],"fatal":true}` {
		t.Errorf("%s", failure)
	}
}

type brokenStore struct{ storage.Store }

func (brokenStore) PutIfAbsent(context.Context, string, []byte) error { return errors.New("no") }

func TestEventsStayUntilAFlushSucceeds(t *testing.T) {
	ctx := context.Background()
	d, err := storage.OpenDir(t.TempDir(), storage.NoSync)
	if err != nil {
		t.Fatal(err)
	}
	log := Open(delta.Open(brokenStore{d}), Origin{}, nil)
	log.Emit(Event{Type: CreateUpdate})
	if err := log.Flush(ctx); !fault.Is(err, "EVENT_LOG_WRITE_FAILED") {
		t.Fatal(err)
	}
	tbl := delta.Open(d)
	log.table = tbl
	log.Emit(Event{Type: UpdateProgress})
	if err := log.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if err := log.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if got := rows(t, tbl); len(got) != 2 {
		t.Fatalf("%d rows", len(got))
	}
}

// lossyStore takes commits and says that it failed.
type lossyStore struct {
	storage.Store
	lose bool
}

func (s *lossyStore) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	err := s.Store.PutIfAbsent(ctx, name, data)
	if s.lose && err == nil && strings.HasSuffix(name, ".json") {
		s.lose = false
		return errors.New("the answer got lost")
	}
	return err
}

func (s *lossyStore) Get(ctx context.Context, name string) ([]byte, error) {
	if strings.HasSuffix(name, ".json") && s.lose {
		return nil, errors.New("gone")
	}
	return s.Store.Get(ctx, name)
}

// numbersOf checks that the pipeline's events are numbered from 1 without
// gaps, those of each instance too, and that each is there once.
func numbersOf(t *testing.T, tbl *delta.Table, want int) []Event {
	t.Helper()
	got, err := Read(context.Background(), tbl, Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != want {
		t.Fatalf("%d events, not %d", len(got), want)
	}
	within, ids := map[string]int64{}, map[string]bool{}
	for i := range got {
		e := &got[i]
		within[e.Sequence.Instance]++
		if e.Sequence.Control != int64(i)+1 || e.Sequence.Number != within[e.Sequence.Instance] || ids[e.ID] {
			t.Fatalf("event %d has %+v", i, e.Sequence)
		}
		ids[e.ID] = true
	}
	return got
}

// covers B5
func TestEventsAreNumberedWithoutGapsAcrossUpdatesAndFailures(t *testing.T) {
	ctx := context.Background()
	d, err := storage.OpenDir(t.TempDir(), storage.NoSync)
	if err != nil {
		t.Fatal(err)
	}
	store := &lossyStore{Store: d}
	total := 0
	for update := range 6 {
		// Each opens the table anew, as each process does.
		log := Open(delta.Open(store), Origin{PipelineID: "p", UpdateID: fmt.Sprint("u", update)}, nil)
		for flush := range 3 {
			for range flush + 1 {
				log.Emit(Event{Type: UpdateProgress, Message: "x"})
				total++
			}
			store.lose = (update+flush)%2 == 1
			if err := log.Flush(ctx); err != nil && !fault.Is(err, "EVENT_LOG_WRITE_FAILED") {
				t.Fatal(err)
			}
			store.lose = false
		}
		if err := log.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		numbersOf(t, delta.Open(d), total)
	}
}

func TestEventsAreWrittenWhileAnUpdateRuns(t *testing.T) {
	ctx := context.Background()
	tbl := table(t)
	log := Open(tbl, Origin{PipelineID: "p", UpdateID: "u"}, nil)
	stop := log.Keep(ctx, func(err error) { t.Error(err) })
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 50 {
				log.Emit(Event{Type: FlowProgress})
				log.Nudge()
			}
		})
	}
	writers.Wait()
	// A nudge is enough: nobody flushes.
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if got, err := Read(ctx, tbl, Filter{}); err != nil {
			t.Fatal(err)
		} else if len(got) == 200 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("%d events", len(got))
		}
	}
	stop()
	numbersOf(t, tbl, 200)
}

func TestAFilterPicksEvents(t *testing.T) {
	ctx := context.Background()
	tbl := table(t)
	at := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	for update := range 3 {
		log := Open(tbl, Origin{PipelineID: "p", UpdateID: fmt.Sprint("u", update)}, func() time.Time { at = at.Add(time.Minute); return at })
		for _, typ := range Types {
			for _, level := range Levels {
				log.Emit(Event{Type: typ, Level: level, Origin: Origin{DatasetName: "d" + typ}})
			}
		}
		if err := log.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	all := numbersOf(t, tbl, 3*len(Types)*len(Levels))
	for _, f := range []Filter{
		{UpdateID: "u1"}, {Types: []string{FlowProgress, CreateUpdate}}, {Levels: []Level{Error}}, {Dataset: "d" + StreamProgress},
		{Since: all[60].Timestamp}, {After: 17, Before: 23}, {UpdateID: "u2", Levels: []Level{Warn, Info}, Types: []string{FunctionLog}},
		{UpdateID: "none"}, {Limit: 7}, {Limit: 2, UpdateID: "u0"},
	} {
		var want []string
		for i := range all {
			if f.picks(&all[i]) {
				want = append(want, all[i].ID)
			}
		}
		if f.Limit > 0 {
			want = want[len(want)-f.Limit:]
		}
		got, err := Read(ctx, tbl, f)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, e := range got {
			ids = append(ids, e.ID)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("%+v gives %d events, not %d", f, len(ids), len(want))
		}
	}
	if got, err := Read(ctx, tbl, Filter{Since: all[60].Timestamp}); err != nil || len(got) != len(all)-60 {
		t.Errorf("%d, %v", len(got), err)
	}
}

func TestAnEventIsReadAsItWasWritten(t *testing.T) {
	ctx := context.Background()
	tbl := table(t)
	batch := int64(7)
	at := time.Date(2026, 11, 30, 1, 2, 3, 4000, time.UTC)
	want := Event{
		Type: StreamProgress, Level: Metrics, Maturity: Stable, Message: "batch 7", Timestamp: at, ID: "id",
		Origin:  Origin{PipelineID: "p", PipelineName: "n", UpdateID: "u", DatasetName: "d", SinkName: "s", FlowID: "f", FlowName: "fn", BatchID: &batch, Host: "h"},
		Error:   &Failure{Fatal: true, Exceptions: []Exception{{"A", "a"}, {"", "b"}}},
		Details: StreamDetails{BatchID: 7, InputRows: 3},
	}
	log := Open(tbl, Origin{PipelineID: "p", UpdateID: "u"}, nil)
	log.Emit(want)
	if err := log.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	got := numbersOf(t, tbl, 1)[0]
	if d, ok := DetailsOf[StreamDetails](&got); !ok || d != want.Details {
		t.Errorf("%+v", d)
	}
	want.Details, want.Sequence = nil, Sequence{Instance: "u", Number: 1, Control: 1}
	got.Details = nil
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if string(a) != string(b) {
		t.Errorf("%s\n%s", a, b)
	}
}

func TestAnUpdateWithoutALastWordIsFound(t *testing.T) {
	ctx := context.Background()
	tbl := table(t)
	found := func() *Unfinished {
		t.Helper()
		u, err := FindUnfinished(ctx, tbl, "p")
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	if found() != nil {
		t.Error("there is no log yet")
	}
	log := Open(tbl, Origin{PipelineID: "p", UpdateID: "first"}, nil)
	flow := func(name, status string) {
		log.Emit(Event{Type: FlowProgress, Origin: Origin{DatasetName: "d", FlowName: name, FlowID: name + "/0"}, Details: FlowProgressDetails{Status: status}})
	}
	state := func(s string) {
		log.Emit(Event{Type: UpdateProgress, Details: StateDetails{State: s}})
		if err := log.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []string{"INITIALIZING", "RUNNING", "STOPPING"} {
		if state(s); found() == nil || found().UpdateID != "first" || len(found().Flows) != 0 {
			t.Errorf("%s: %+v", s, found())
		}
	}
	for _, f := range []struct{ name, status string }{{"a", "STARTING"}, {"b", "RUNNING"}, {"c", "RUNNING"}, {"c", "COMPLETED"}, {"d", "QUEUED"}, {"e", "FAILED"}} {
		flow(f.name, f.status)
	}
	if state("RUNNING"); found() == nil || len(found().Flows) != 2 || found().Flows[0].FlowID != "a/0" || found().Flows[1].FlowName != "b" {
		t.Errorf("%+v", found())
	}
	for _, s := range []string{"COMPLETED", "FAILED", "CANCELED"} {
		if state(s); found() != nil {
			t.Errorf("%s: %+v", s, found())
		}
	}
	if u, err := FindUnfinished(ctx, tbl, "another pipeline"); u != nil || err != nil {
		t.Error(u, err)
	}
}

func TestManySmallFilesOfTheLogArePacked(t *testing.T) {
	ctx := context.Background()
	tbl := table(t)
	log := Open(tbl, Origin{PipelineID: "p", UpdateID: "u"}, nil)
	for i := range packFrom {
		log.Emit(Event{Type: FlowProgress, Message: fmt.Sprint(i)})
		if err := log.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if err := log.Pack(ctx); err != nil {
			t.Fatal(err)
		}
	}
	snap, err := tbl.Snapshot(ctx)
	if err != nil || snap.NumFiles() != 1 {
		t.Fatal(snap.NumFiles(), err)
	}
	log.Emit(Event{Type: FlowProgress})
	if err := log.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	numbersOf(t, tbl, packFrom+1)
}

func TestATableThatIsNoEventLogIsRefused(t *testing.T) {
	ctx := context.Background()
	tbl := table(t)
	other := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "sequence", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	if _, err := tbl.Commit(ctx, delta.Commit{Operation: "CREATE TABLE", Schema: other}); err != nil {
		t.Fatal(err)
	}
	log := Open(tbl, Origin{PipelineID: "p"}, nil)
	log.Emit(Event{Type: CreateUpdate})
	if err := log.Flush(ctx); !strings.Contains(fmt.Sprint(err), "EVENT_LOG_INVALID") {
		t.Error(err)
	}
	if _, err := Read(ctx, tbl, Filter{}); !fault.Is(err, "EVENT_LOG_INVALID") {
		t.Error(err)
	}
}

// covers A140
func TestTextsAreRedactedBeforeTheyAreKept(t *testing.T) {
	events := table(t)
	l := Open(events, Origin{PipelineID: "p"}, nil)
	l.Redact(func(s string) string { return strings.ReplaceAll(s, "canary", "-") })
	cause := fault.New("INNER", "canary within")
	l.Emit(Event{Type: FunctionLog, Message: "a canary", Details: FunctionLogDetails{Function: "canary"},
		Error: FailureOf(fault.Wrap(cause, "OUTER", "canary around"))})
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(rows(t, events))
	if strings.Contains(got, "canary") || strings.Count(got, "INNER") < 2 {
		t.Error(got)
	}
}
