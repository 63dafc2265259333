package events

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Schema is the columns of the event log's table.
var Schema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "sequence", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "origin", Type: originType, Nullable: true},
	{Name: "timestamp", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
	{Name: "message", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "level", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "maturity_level", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "error", Type: errorType, Nullable: true},
	{Name: "details", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "event_type", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

var originType = arrow.StructOf(
	arrow.Field{Name: "pipeline_id", Type: arrow.BinaryTypes.String, Nullable: true},
	arrow.Field{Name: "pipeline_name", Type: arrow.BinaryTypes.String, Nullable: true},
	arrow.Field{Name: "update_id", Type: arrow.BinaryTypes.String, Nullable: true},
	arrow.Field{Name: "dataset_name", Type: arrow.BinaryTypes.String, Nullable: true},
	arrow.Field{Name: "flow_id", Type: arrow.BinaryTypes.String, Nullable: true},
	arrow.Field{Name: "flow_name", Type: arrow.BinaryTypes.String, Nullable: true},
	arrow.Field{Name: "batch_id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
)

var errorType = arrow.StructOf(
	arrow.Field{Name: "fatal", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	arrow.Field{Name: "exceptions", Type: arrow.ListOf(arrow.StructOf(
		arrow.Field{Name: "class_name", Type: arrow.BinaryTypes.String, Nullable: true},
		arrow.Field{Name: "message", Type: arrow.BinaryTypes.String, Nullable: true},
	)), Nullable: true},
)

// record gives the events as one batch; the caller releases it.
func record(rows []row) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, Schema)
	defer b.Release()
	for _, r := range rows {
		text(b.Field(0), r.ID)
		b.Field(1).(*array.Int64Builder).Append(r.Sequence)
		appendOrigin(b.Field(2).(*array.StructBuilder), r.Origin)
		b.Field(3).(*array.TimestampBuilder).Append(arrow.Timestamp(r.Timestamp.UnixMicro()))
		text(b.Field(4), r.Message)
		text(b.Field(5), string(r.Level))
		text(b.Field(6), string(r.Maturity))
		appendFailure(b.Field(7).(*array.StructBuilder), r.Error)
		text(b.Field(8), r.details)
		text(b.Field(9), r.Type)
	}
	return b.NewRecordBatch()
}

func appendOrigin(b *array.StructBuilder, o Origin) {
	b.Append(true)
	for i, v := range []string{o.PipelineID, o.PipelineName, o.UpdateID, o.DatasetName, o.FlowID, o.FlowName} {
		text(b.FieldBuilder(i), v)
	}
	batch := b.FieldBuilder(6).(*array.Int64Builder)
	if o.BatchID == nil {
		batch.AppendNull()
	} else {
		batch.Append(*o.BatchID)
	}
}

func appendFailure(b *array.StructBuilder, f *Failure) {
	if f == nil {
		b.AppendNull()
		return
	}
	b.Append(true)
	b.FieldBuilder(0).(*array.BooleanBuilder).Append(f.Fatal)
	list := b.FieldBuilder(1).(*array.ListBuilder)
	list.Append(true)
	each := list.ValueBuilder().(*array.StructBuilder)
	for _, e := range f.Exceptions {
		each.Append(true)
		text(each.FieldBuilder(0), e.ClassName)
		text(each.FieldBuilder(1), e.Message)
	}
}

// text appends a string, the empty one as null.
func text(b array.Builder, s string) {
	if s == "" {
		b.AppendNull()
		return
	}
	b.(*array.StringBuilder).Append(s)
}
