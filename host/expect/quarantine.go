package expect

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// QuarantineSchema is the fixed schema of every <target>_quarantine table.
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

// QuarantineRow is one row set aside.
type QuarantineRow struct {
	Rules   []string // expectations it violates; nil for a row error
	Code    string   // row error; "" for an expectation
	Message string
	Source  string // file and position, or table and version
	Row     []byte // JSON
}

// QuarantineBuilder gathers the quarantined rows of one batch.
type QuarantineBuilder struct{}

// NewQuarantine starts the rows of one micro-batch of a flow.
func NewQuarantine(mem memory.Allocator, flow string, batch int64, at time.Time) *QuarantineBuilder {
	return &QuarantineBuilder{}
}

// Add appends a row.
func (b *QuarantineBuilder) Add(r QuarantineRow) {}

// Len is the number of rows gathered since NewBatch.
func (b *QuarantineBuilder) Len() int { return 0 }

// NewBatch gives the gathered rows and starts afresh; the caller releases it.
func (b *QuarantineBuilder) NewBatch() arrow.RecordBatch { return nil }

// Release frees what was gathered.
func (b *QuarantineBuilder) Release() {}
