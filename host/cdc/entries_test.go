package cdc

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/cdc/state"
	"github.com/weir-data/weir/host/stream"
)

func bytesOf(texts []string) rowcode.Bytes {
	out := rowcode.Bytes{Offsets: []int32{0}}
	for _, s := range texts {
		out.Data = append(out.Data, s...)
		out.Offsets = append(out.Offsets, int32(len(out.Data)))
	}
	return out
}

// TestEntriesAreSortedByHashKeyAndOrder has two keys of each hash, which nobody
// can count on never to meet, and orders that begin alike or are each other's beginning.
func TestEntriesAreSortedByHashKeyAndOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	none := arrow.NewSchema(nil, nil)
	for range 50 {
		n := rng.IntN(60)
		var hashes []rowcode.Hash
		var keys, orders []string
		for range n {
			hashes = append(hashes, rowcode.Hash{byte(rng.IntN(2)), 15: byte(rng.IntN(2))})
			keys = append(keys, string(rune('a'+rng.IntN(2))))
			orders = append(orders, "same start"+strings.Repeat("x", rng.IntN(12))+string(rune('a'+rng.IntN(3))))
		}
		c := &coder{layout: &layout{values: none}, schema: state.Schema()}
		zero := make([]rowcode.Hash, n)
		values, err := joined(none, nil, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		rec := c.assemble(hashes, bytesOf(keys), bytesOf(orders), make([]byte, n), zero, zero, values)
		e := entriesOf(rec, 0)
		text := func(i int32) string { return string(hashes[i][:]) + keys[i] + "\x00" + orders[i] }
		var got, want []string
		for _, s := range e.sorted() {
			got = append(got, text(s.at))
		}
		for i := range hashes {
			want = append(want, text(int32(i)))
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("sorted %q\nnot %q", got, want)
		}
		rec.Release()
		values.Release()
	}
}

func TestManyTombstonesAreWorthAWord(t *testing.T) {
	for _, v := range []struct {
		n, entries int64
		def        Definition
		warns      bool
	}{
		{manyTombstones - 1, 10, Definition{}, false},
		{manyTombstones, 2*manyTombstones + 1, Definition{}, false},
		{manyTombstones, 2 * manyTombstones, Definition{}, true},
		{manyTombstones, 2 * manyTombstones, Definition{Tombstones: 1}, false},
	} {
		var told []stream.Notice
		a := &apply{def: &v.def, b: stream.ApplyBatch{Tell: func(n stream.Notice) { told = append(told, n) }}}
		a.tombstones(v.n, []state.RunInfo{{Entries: v.entries - 1}, {Entries: 1}})
		if (len(told) == 1) != v.warns || v.warns && (told[0].Code != "CDC_TOMBSTONES" || !strings.Contains(told[0].Hint, "pipelines.cdc.tombstoneGCThresholdInSeconds")) {
			t.Errorf("%+v tells %+v", v, told)
		}
	}
}
