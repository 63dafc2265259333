package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

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
	last := 0.0
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
		last = max(last, row["sequence"].(float64))
	}
	if last != float64(at.UnixMicro()+2) {
		t.Errorf("sequence %v", last)
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
