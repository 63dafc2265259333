package delta

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// Tables that break the protocol in ways found in the wild, and whose meaning is
// still clear, read right. Each case is a table made by hand.
func TestOddTablesWhoseMeaningIsClearReadRight(t *testing.T) {
	mapped := `{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"col-1"}}]}`
	byName := map[string]string{"delta.columnMapping.mode": "name"}
	physical := arrow.NewSchema([]arrow.Field{{Name: "col-1", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	narrow := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int8, Nullable: true}}, nil)
	widened := `{"type":"struct","fields":[{"name":"id","type":"decimal(4,1)","nullable":true,"metadata":{"delta.typeChanges":[{"toType":"decimal(4,1)","fromType":"byte","tableVersion":2}]}}]}`
	protocol := func(p Protocol) map[string]any { return map[string]any{"protocol": p} }
	for _, c := range []struct {
		name    string
		actions []any
		want    string
		schema  *arrow.Schema // of the file
	}{
		{"column mapping is listed for writers only (DAT iceberg_compat_v1)",
			[]any{protocol(Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{}, WriterFeatures: []string{"columnMapping"}}), metaAction(mapped, byName)}, "id=5", physical},
		{"column mapping is listed for readers only",
			[]any{protocol(Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"columnMapping"}, WriterFeatures: []string{}}), metaAction(mapped, byName)}, "id=5", physical},
		{"reader version 2 with writer features",
			[]any{protocol(Protocol{MinReaderVersion: 2, MinWriterVersion: 7, WriterFeatures: []string{"columnMapping"}}), metaAction(mapped, byName)}, "id=5", physical},
		{"the property without the feature maps nothing",
			[]any{protocol(Protocol{MinReaderVersion: 1, MinWriterVersion: 2}), metaAction(mapped, byName)}, "id=null", physical},
		{"a byte became a decimal that holds bytes, but not all integers (delta-kernel-rs type-widening)",
			[]any{protocol(Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{"typeWidening-preview"}, WriterFeatures: []string{"typeWidening-preview"}}), metaAction(widened, nil)}, "id=5.0", narrow},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.log(0, append(c.actions, addAction(f.dataFile("a.parquet", c.schema, fmt.Sprintf(`[{%q:5}]`, c.schema.Field(0).Name))))...)
			got, err := scanRows(background, f.snapshot(), ScanOptions{}, nil)
			if err != nil || len(got) != 1 || got[0] != c.want+"|" {
				t.Errorf("%v, %v, want %s", got, err, c.want)
			}
		})
	}
}
