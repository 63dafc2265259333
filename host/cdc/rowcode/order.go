package rowcode

import (
	"github.com/apache/arrow-go/v18/arrow"
)

// Order gives the order code of each value: compared as bytes they stand as the
// values do. NULL gives no bytes, which is less than any value.
func Order(col arrow.Array) (Bytes, error) {
	code, err := orderOf(col)
	if err != nil {
		return Bytes{}, err
	}
	return encode(col.Len(), func(dst []byte, i int) []byte {
		if col.IsNull(i) {
			return dst
		}
		return code(dst, i)
	})
}

// Sequences gives the order codes of a sequence followed by columns that decide
// between equal sequences; a NULL among those is less than any value. The code
// of the sequence alone is its beginning (Prefix).
func Sequences(sequence arrow.Array, ties ...arrow.Array) (Bytes, error) {
	first, err := orderOf(sequence)
	if err != nil {
		return Bytes{}, err
	}
	rest := make([]appender, len(ties))
	for t, col := range ties {
		if rest[t], err = orderOf(col); err != nil {
			return Bytes{}, err
		}
	}
	return encode(sequence.Len(), func(dst []byte, i int) []byte {
		if sequence.IsNull(i) {
			return dst
		}
		dst = first(dst, i)
		for t, code := range rest {
			if ties[t].IsNull(i) {
				dst = append(dst, fieldNull)
			} else {
				dst = code(append(dst, fieldPresent), i)
			}
		}
		return dst
	})
}

// Keys gives the canonical code of the columns of each row: equal values give
// equal bytes, different ones different bytes. NULL has a code of its own;
// where a key must not be NULL the caller looks first.
func Keys(rec arrow.RecordBatch, columns []int) (Bytes, error) {
	cols := make([]*column, len(columns))
	for c, place := range columns {
		col := rec.Column(place)
		code, err := orderOf(col)
		if err != nil {
			return Bytes{}, err
		}
		cols[c] = newColumn(col, []byte{fieldPresent}, []byte{fieldNull}, code, false)
	}
	return codeColumns(int(rec.NumRows()), cols)
}

func encode(n int, code appender) (Bytes, error) {
	out := Bytes{Offsets: make([]int32, n+1), Data: make([]byte, 0, 16*n)}
	for i := range n {
		out.Data = code(out.Data, i)
		if err := tooLong(len(out.Data)); err != nil {
			return Bytes{}, err
		}
		out.Offsets[i+1] = int32(len(out.Data))
	}
	return out, nil
}
