package expect

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// QuarantineSchema is the schema of every <target>_quarantine table.
func QuarantineSchema() *arrow.Schema {
	str := arrow.BinaryTypes.String
	return arrow.NewSchema([]arrow.Field{
		{Name: "_quarantined_at", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
		{Name: "_batch_id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "_flow", Type: str, Nullable: true},
		{Name: "_rule", Type: arrow.ListOf(str), Nullable: true},
		{Name: "_code", Type: str, Nullable: true},
		{Name: "_message", Type: str, Nullable: true},
		{Name: "_source", Type: str, Nullable: true},
		{Name: "_row", Type: str, Nullable: true},
	}, nil)
}

// QuarantineRow is one row set aside. An empty text becomes NULL.
type QuarantineRow struct {
	Rules   []string // expectations that keep it out; none for a row error
	Code    string   // of a row error
	Message string   // of a row error
	Source  string   // file and position, or table and version
	Row     []byte   // the row as JSON, see relation.RowJSON
}

// QuarantineBuilder gathers the rows set aside in one micro-batch of a flow.
// It is for one goroutine.
type QuarantineBuilder struct {
	b     *array.RecordBuilder
	flow  string
	batch int64
	at    arrow.Timestamp
	n     int
}

// NewQuarantine starts the rows of a micro-batch; at is the batch timestamp.
func NewQuarantine(mem memory.Allocator, flow string, batch int64, at time.Time) *QuarantineBuilder {
	return &QuarantineBuilder{b: array.NewRecordBuilder(mem, QuarantineSchema()), flow: flow, batch: batch, at: arrow.Timestamp(at.UnixMicro())}
}

// Add appends a row.
func (q *QuarantineBuilder) Add(r QuarantineRow) {
	q.b.Field(0).(*array.TimestampBuilder).Append(q.at)
	q.b.Field(1).(*array.Int64Builder).Append(q.batch)
	q.text(2, q.flow)
	rules := q.b.Field(3).(*array.ListBuilder)
	rules.Append(true)
	for _, name := range r.Rules {
		rules.ValueBuilder().(*array.StringBuilder).Append(name)
	}
	q.text(4, r.Code)
	q.text(5, r.Message)
	q.text(6, r.Source)
	q.text(7, string(r.Row))
	q.n++
}

func (q *QuarantineBuilder) text(field int, s string) {
	b := q.b.Field(field).(*array.StringBuilder)
	if s == "" {
		b.AppendNull()
		return
	}
	b.Append(s)
}

// Len is the number of rows since the last NewBatch.
func (q *QuarantineBuilder) Len() int { return q.n }

// NewBatch gives the rows gathered and starts afresh; the caller releases it.
func (q *QuarantineBuilder) NewBatch() arrow.RecordBatch {
	q.n = 0
	return q.b.NewRecordBatch()
}

// Release frees what was gathered and not taken.
func (q *QuarantineBuilder) Release() { q.b.Release() }
