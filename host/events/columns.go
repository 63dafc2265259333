package events

import (
	"encoding/json"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
)

// Schema is the columns of the event log's table.
var Schema = arrow.NewSchema([]arrow.Field{
	stringField("id"),
	{Name: "sequence", Type: sequenceType, Nullable: true},
	{Name: "origin", Type: originType, Nullable: true},
	{Name: "timestamp", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
	stringField("message"),
	stringField("level"),
	stringField("maturity_level"),
	{Name: "error", Type: errorType, Nullable: true},
	stringField("details"),
	stringField("event_type"),
}, nil)

var sequenceType = arrow.StructOf(
	arrow.Field{Name: "data_plane_id", Type: arrow.StructOf(stringField("instance"), longField("seq_no")), Nullable: true},
	longField("control_plane_seq_no"),
)

var originType = arrow.StructOf(
	stringField("pipeline_id"), stringField("pipeline_name"), stringField("update_id"), stringField("dataset_name"),
	stringField("sink_name"), stringField("flow_id"), stringField("flow_name"), longField("batch_id"), stringField("host"),
)

var errorType = arrow.StructOf(
	arrow.Field{Name: "fatal", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	arrow.Field{Name: "exceptions", Type: arrow.ListOf(arrow.StructOf(stringField("class_name"), stringField("message"))), Nullable: true},
)

func stringField(name string) arrow.Field {
	return arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true}
}

func longField(name string) arrow.Field {
	return arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64, Nullable: true}
}

// properties of the table. Statistics of what is searched for, and files small
// enough that packing them anew stays cheap.
var properties = map[string]string{
	"delta.dataSkippingStatsColumns": "sequence,origin.update_id,timestamp,level,event_type",
	"delta.targetFileSize":           "16mb",
}

// texts are the parts of an origin that are strings, in the order of originType.
func (o *Origin) texts() []*string {
	return []*string{&o.PipelineID, &o.PipelineName, &o.UpdateID, &o.DatasetName, &o.SinkName, &o.FlowID, &o.FlowName, nil, &o.Host}
}

// record gives the events as one batch; the caller releases it.
func record(rows []row) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, Schema)
	defer b.Release()
	for _, r := range rows {
		text(b.Field(0), r.ID)
		sequence := b.Field(1).(*array.StructBuilder)
		sequence.Append(true)
		plane := sequence.FieldBuilder(0).(*array.StructBuilder)
		plane.Append(true)
		text(plane.FieldBuilder(0), r.Sequence.Instance)
		plane.FieldBuilder(1).(*array.Int64Builder).Append(r.Sequence.Number)
		sequence.FieldBuilder(1).(*array.Int64Builder).Append(r.Sequence.Control)
		appendOrigin(b.Field(2).(*array.StructBuilder), &r.Origin)
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

func appendOrigin(b *array.StructBuilder, o *Origin) {
	b.Append(true)
	for i, v := range o.texts() {
		if v != nil {
			text(b.FieldBuilder(i), *v)
			continue
		}
		batch := b.FieldBuilder(i).(*array.Int64Builder)
		if o.BatchID == nil {
			batch.AppendNull()
		} else {
			batch.Append(*o.BatchID)
		}
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

// checkSchema refuses a table that has not the columns of an event log; more
// columns than those do no harm.
func checkSchema(s *arrow.Schema) error {
	for i, want := range Schema.Fields() {
		if i >= s.NumFields() || s.Field(i).Name != want.Name || !arrow.TypeEqual(s.Field(i).Type, want.Type) {
			return fault.New("EVENT_LOG_INVALID", "the table of the event log has no column %s as an event log has it", want.Name).
				WithHint("Move the table away; the next update makes a new one")
		}
	}
	return nil
}

// decode gives row i of a batch of the log's table.
func decode(rec arrow.RecordBatch, i int) Event {
	sequence := rec.Column(1).(*array.Struct)
	plane := sequence.Field(0).(*array.Struct)
	e := Event{
		ID: stringAt(rec.Column(0), i),
		Sequence: Sequence{
			Instance: stringAt(plane.Field(0), i), Number: longAt(plane.Field(1), i), Control: longAt(sequence.Field(1), i),
		},
		Timestamp: time.UnixMicro(longAt(rec.Column(3), i)).UTC(),
		Message:   stringAt(rec.Column(4), i),
		Level:     Level(stringAt(rec.Column(5), i)),
		Maturity:  Maturity(stringAt(rec.Column(6), i)),
		Error:     failureAt(rec.Column(7).(*array.Struct), i),
		Details:   json.RawMessage("{}"),
		Type:      stringAt(rec.Column(9), i),
	}
	if d := stringAt(rec.Column(8), i); json.Valid([]byte(d)) {
		e.Details = json.RawMessage(d)
	}
	origin := rec.Column(2).(*array.Struct)
	for c, at := range e.Origin.texts() {
		if at != nil {
			*at = stringAt(origin.Field(c), i)
		} else if origin.Field(c).IsValid(i) {
			batch := longAt(origin.Field(c), i)
			e.Origin.BatchID = &batch
		}
	}
	return e
}

func failureAt(s *array.Struct, i int) *Failure {
	if s.IsNull(i) {
		return nil
	}
	f := &Failure{}
	if fatal := s.Field(0).(*array.Boolean); fatal.IsValid(i) {
		f.Fatal = fatal.Value(i)
	}
	list := s.Field(1).(*array.List)
	if list.IsNull(i) {
		return f
	}
	each := list.ListValues().(*array.Struct)
	from, to := list.ValueOffsets(i)
	for j := int(from); j < int(to); j++ {
		f.Exceptions = append(f.Exceptions, Exception{stringAt(each.Field(0), j), stringAt(each.Field(1), j)})
	}
	return f
}

func stringAt(a arrow.Array, i int) string {
	if s, ok := a.(array.StringLike); ok && a.IsValid(i) {
		return s.Value(i)
	}
	return ""
}

func longAt(a arrow.Array, i int) int64 {
	if a.IsNull(i) {
		return 0
	}
	switch a := a.(type) {
	case *array.Int64:
		return a.Value(i)
	case *array.Timestamp:
		return int64(a.Value(i))
	}
	return 0
}
