package cdc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// shown is how many keys an error names.
const shown = 5

// flaws are the rows of a batch that no rule can place.
type flaws struct {
	keys, sequences               int64
	keyExamples, sequenceExamples []string
}

func (f *flaws) any() bool { return f.keys > 0 || f.sequences > 0 }

// look finds rows without a key or a sequence. A row that lacks both is of the first kind.
func (f *flaws) look(l *layout, values arrow.RecordBatch, sequence arrow.Array) {
	nulls := sequence.NullN()
	for _, k := range l.keys {
		nulls += values.Column(k).NullN()
	}
	if nulls == 0 {
		return
	}
	for i := range int(values.NumRows()) {
		switch {
		case slices.ContainsFunc(l.keys, func(k int) bool { return values.Column(k).IsNull(i) }):
			f.keys++
			f.keyExamples = addExample(f.keyExamples, l.keyText(values, i)+", sequence "+sequence.ValueStr(i))
		case sequence.IsNull(i):
			f.nullSequence(1, l.keyText(values, i))
		}
	}
}

func (f *flaws) nullSequence(n int64, example string) {
	f.sequences += n
	f.sequenceExamples = addExample(f.sequenceExamples, example)
}

func (f *flaws) add(o flaws) {
	f.keys += o.keys
	f.sequences += o.sequences
	for _, e := range o.keyExamples {
		f.keyExamples = addExample(f.keyExamples, e)
	}
	for _, e := range o.sequenceExamples {
		f.sequenceExamples = addExample(f.sequenceExamples, e)
	}
}

// err is the error of the batch, nil for none.
func (f *flaws) err(d *Definition) error {
	switch {
	case f.keys > 0:
		return d.fault("AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY", "%s no value in a key: %s", countText(f.keys, "row has", "rows have"), strings.Join(f.keyExamples, "; ")).
			WithHint("Drop such rows with an expectation, or repair them in the view that the flow reads")
	case f.sequences > 0:
		return d.fault("AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE", "%s no sequence: %s", countText(f.sequences, "row has", "rows have"), strings.Join(f.sequenceExamples, "; ")).
			WithHint("Drop such rows with an expectation, or give them a sequence in the view that the flow reads")
	}
	return nil
}

// addExample keeps the least few texts, so that they do not depend on which task was first.
func addExample(list []string, text string) []string {
	at, have := slices.BinarySearch(list, text)
	if have || at >= shown {
		return list
	}
	list = slices.Insert(list, at, text)
	return list[:min(len(list), shown)]
}

// keyText names a row by its key.
func (l *layout) keyText(values arrow.RecordBatch, i int) string {
	parts := make([]string, len(l.keys))
	for n, k := range l.keys {
		parts[n] = fmt.Sprintf("%s=%s", l.values.Field(k).Name, valueText(values.Column(k), i))
	}
	return strings.Join(parts, ", ")
}

func valueText(col arrow.Array, i int) string {
	if col.IsNull(i) {
		return "NULL"
	}
	return col.ValueStr(i)
}
