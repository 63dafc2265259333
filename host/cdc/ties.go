package cdc

import (
	"bytes"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/cdc/state"
)

// ties are changes of one key and one sequence that say different things: which
// of them is right is nothing that the order of arrival may decide.
type ties struct {
	count    int64
	examples []string
}

// add notes that entry i contradicts the one before it.
func (t *ties) add(w *work, i int32) {
	t.count++
	if len(t.examples) == shown && t.count > 1000 {
		return // naming more of them costs more than it tells
	}
	values := array.NewRecordBatch(w.values, w.rec.Columns()[state.Values:], w.rec.NumRows())
	defer values.Release()
	text := w.keyText(values, int(i))
	if !w.unique { // else all have one sequence
		text += " at " + w.sequenceText(i)
	}
	t.examples = addExample(t.examples, text)
}

func (w *work) sequenceText(i int32) string {
	b := array.NewBuilder(w.mem, w.sequence)
	defer b.Release()
	if err := rowcode.AppendOrder(b, w.sequence, w.order(i)); err != nil {
		return "an unreadable sequence"
	}
	one := b.NewArray()
	defer one.Release()
	return one.ValueStr(0)
}

func (t *ties) merge(o ties) {
	t.count += o.count
	for _, e := range o.examples {
		t.examples = addExample(t.examples, e)
	}
}

func (t *ties) err(d *Definition) error {
	if t.count == 0 {
		return nil
	}
	hint := "Let SEQUENCE BY tell them apart, as in STRUCT(time, counter), or name the columns that decide with the property pipelines.cdc.ties = last_by(column, …)"
	if len(d.LastBy) > 0 {
		hint = "The columns of last_by do not tell them apart, or were named when one of them had been applied already: name further ones, or run a full refresh of the target"
	}
	return d.fault("CDC_SEQUENCE_TIE", "%s another change of the same key and sequence: %s", countText(t.count, "change contradicts", "changes contradict"), strings.Join(t.examples, "; ")).WithHint("%s", hint)
}

// less orders entries that say the same but for technical columns, so that which
// one stays does not depend on which task came first.
func (w *work) less(a, b int32) bool {
	columns := make([]int, w.values.NumFields())
	for i := range columns {
		columns[i] = state.Values + i
	}
	hash := func(i int32) rowcode.Hash {
		one := w.rec.NewSlice(int64(i), int64(i)+1)
		defer one.Release()
		return rowcode.Rows(one, columns)[0]
	}
	x, y := hash(a), hash(b)
	return bytes.Compare(x[:], y[:]) < 0
}
