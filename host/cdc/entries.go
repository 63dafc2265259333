package cdc

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/cdc/state"
)

// entries gives the codes of a batch of entries by row. The batch outlives it.
type entries struct {
	rec     arrow.RecordBatch
	old     int // so many come from the state; they stand first
	hashes  []rowcode.Hash
	keys    *array.Binary
	orders  *array.Binary
	kinds   []uint8
	rows    []rowcode.Hash
	tracked []rowcode.Hash
	times   []int64
}

func entriesOf(rec arrow.RecordBatch, old int) *entries {
	return &entries{
		rec: rec, old: old, hashes: hashesOf(rec.Column(state.Hash)),
		keys: rec.Column(state.Key).(*array.Binary), orders: rec.Column(state.Order).(*array.Binary),
		kinds: rec.Column(state.Kind).(*array.Uint8).Uint8Values(), times: rec.Column(state.Time).(*array.Int64).Int64Values(),
		rows: hashesOf(rec.Column(state.Row)), tracked: hashesOf(rec.Column(state.Tracked)),
	}
}

func (e *entries) len() int                { return len(e.hashes) }
func (e *entries) order(i int32) []byte    { return e.orders.Value(int(i)) }
func (e *entries) key(i int32) []byte      { return e.keys.Value(int(i)) }
func (e *entries) isOld(i int32) bool      { return int(i) < e.old }
func (e *entries) sameKey(a, b int32) bool { return bytes.Equal(e.key(a), e.key(b)) }

// same tells whether two changes of one order say the same.
func (e *entries) same(a, b int32) bool {
	return e.kinds[a] == e.kinds[b] && (e.kinds[a] == state.Delete || e.rows[a] == e.rows[b])
}

// spot is an entry while it is sorted: its hash and eight telling bytes of its order.
type spot struct {
	a, b, o uint64
	at      int32
}

// sorted gives the entries by (hash, key, order); of equal ones those of the state first.
func (e *entries) sorted() []spot {
	skip := e.commonOrder()
	spots := make([]spot, e.len())
	for i := range spots {
		h := &e.hashes[i]
		spots[i] = spot{binary.BigEndian.Uint64(h[:8]), binary.BigEndian.Uint64(h[8:]), word(e.orders.Value(i)[skip:]), int32(i)} //nolint:gosec // bounded by memory
	}
	slices.SortFunc(spots, func(x, y spot) int {
		switch {
		case x.a != y.a:
			return cmp.Compare(x.a, y.a)
		case x.b != y.b:
			return cmp.Compare(x.b, y.b)
		case x.o != y.o:
			return cmp.Compare(x.o, y.o)
		}
		return cmp.Or(bytes.Compare(e.order(x.at), e.order(y.at)), cmp.Compare(x.at, y.at))
	})
	// Two keys of one hash are next to impossible, so the keys are only looked at here.
	for from, to := 0, 0; from < len(spots); from = to {
		same := true
		for to = from + 1; to < len(spots) && spots[to].a == spots[from].a && spots[to].b == spots[from].b; to++ {
			same = same && e.sameKey(spots[from].at, spots[to].at)
		}
		if !same {
			slices.SortStableFunc(spots[from:to], func(x, y spot) int { return bytes.Compare(e.key(x.at), e.key(y.at)) })
		}
	}
	return spots
}

// commonOrder is how many bytes all orders begin with alike.
func (e *entries) commonOrder() int {
	if e.len() == 0 {
		return 0
	}
	first := e.order(0)
	n := len(first)
	for i := 1; i < e.len() && n > 0; i++ {
		o := e.orders.Value(i)
		n = min(n, len(o))
		for n > 0 && o[n-1] != first[n-1] || n > 1 && !bytes.Equal(o[:n], first[:n]) {
			n--
		}
	}
	return n
}

// word gives the first eight bytes as a number that compares as they do.
func word(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var w uint64
	for i := range 8 {
		w <<= 8
		if i < len(b) {
			w |= uint64(b[i])
		}
	}
	return w
}
