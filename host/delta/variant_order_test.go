package delta

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/variant"
)

// One value has one encoding, however it was put together.
func TestVariantsHaveOneEncoding(t *testing.T) {
	var first []byte
	for _, keys := range [][]string{{"a", "b", "c"}, {"c", "a", "b"}, {"b", "c", "a"}} {
		var meta variant.Builder
		for _, k := range []string{"a", "b", "c"} {
			meta.AddKey(k)
		}
		start := meta.Offset()
		var fields []variant.FieldEntry
		for _, k := range keys {
			fields = append(fields, meta.NextField(start, k))
			inner := meta.Offset()
			offsets := []int{meta.NextElement(inner)}
			if err := meta.AppendString("value of " + k); err != nil {
				t.Fatal(err)
			}
			if err := meta.FinishArray(inner, offsets); err != nil {
				t.Fatal(err)
			}
		}
		if err := meta.FinishObject(start, fields); err != nil {
			t.Fatal(err)
		}
		v, err := meta.Build()
		if err != nil {
			t.Fatal(err)
		}
		got, err := inOrder(v)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = got
		}
		back, err := variant.NewWithMetadata(v.Metadata(), got)
		if err != nil || back.String() != v.String() || !bytes.Equal(got, first) {
			t.Errorf("%v: %s, was %s, %v", keys, back.String(), v.String(), err)
		}
	}
}
