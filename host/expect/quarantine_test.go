package expect

import (
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/relation"
)

// covers A104
func TestQuarantineRows(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	q := NewQuarantine(mem, "orders", 7, time.Date(2026, 4, 13, 10, 30, 0, 5000, time.UTC))
	defer q.Release()
	q.Add(QuarantineRow{Rules: []string{"a", "b"}, Source: "/in/f.json:3", Row: []byte(`{"id":1}`)})
	q.Add(QuarantineRow{Code: "NO_RATE", Message: "no rate for XXX", Source: "/in/f.json:4", Row: []byte(`{"id":2}`)})
	if q.Len() != 2 {
		t.Errorf("%d rows", q.Len())
	}
	rec := q.NewBatch()
	defer rec.Release()
	for i, want := range []string{
		`{"_quarantined_at":"2026-04-13T10:30:00.000005Z","_batch_id":7,"_flow":"orders","_rule":["a","b"],"_code":null,"_message":null,"_source":"/in/f.json:3","_row":"{\"id\":1}"}`,
		`{"_quarantined_at":"2026-04-13T10:30:00.000005Z","_batch_id":7,"_flow":"orders","_rule":[],"_code":"NO_RATE","_message":"no rate for XXX","_source":"/in/f.json:4","_row":"{\"id\":2}"}`,
	} {
		if got := string(relation.RowJSON(rec, i)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if q.Len() != 0 {
		t.Error("NewBatch does not start afresh")
	}
}
