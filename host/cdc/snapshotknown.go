package cdc

import (
	"context"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/cdc/state"
)

// knownBytes is about what one key takes in a known.
const knownBytes = 48

// Marks of keys that a snapshot has.
const (
	markSeen uint8 = 1 << iota
	markKept       // a rule refused its row
)

// known is what a part of the state shows: of each key that has a row the hashes
// of what it holds, ascending by the hash of the key. Two keys of one hash of
// 128 bits are not expected.
type known struct {
	keys, rows, tracked []rowcode.Hash // tracked is nil unless it is asked for
	marks               []uint8
	// starts says for the first bits of a hash where its keys begin.
	starts []int32
	first  uint64 // the first bits of the part's least hash
	shift  uint
	// fresh are keys of the snapshot that the state does not show.
	fresh map[rowcode.Hash]struct{}
	room  int // for more of fresh
}

// knownOf reads a part of the state.
func (c *comparison) knownOf(ctx context.Context, part, parts int) (_ *known, err error) {
	// Without values: only hashes are compared.
	st, err := c.def.State.Load(ctx, c.was.K)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Release()) }()
	r, err := st.Scan(ctx, part, parts)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	k := &known{fresh: map[rowcode.Hash]struct{}{}}
	n := int(st.Entries()/int64(parts)) + 64
	k.keys, k.rows = make([]rowcode.Hash, 0, n), make([]rowcode.Hash, 0, n)
	for r.Next() {
		rec := r.RecordBatch()
		keys, rows := hashesOf(rec.Column(state.Hash)), hashesOf(rec.Column(state.Row))
		tracked, kinds := hashesOf(rec.Column(state.Tracked)), rec.Column(state.Kind).(*array.Uint8).Uint8Values()
		for i := range keys {
			// The last entry of a key says what it is now.
			if last := len(k.keys) - 1; last >= 0 && k.keys[last] == keys[i] {
				k.drop(last)
			}
			if kinds[i] == state.Upsert {
				k.keys, k.rows = append(k.keys, keys[i]), append(k.rows, rows[i])
				if c.both {
					k.tracked = append(k.tracked, tracked[i])
				}
			}
		}
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	k.index(part, parts)
	k.room = int(max(c.changes.limit/knownBytes-int64(len(k.keys)), 1<<16))
	return k, nil
}

func (k *known) drop(at int) {
	k.keys, k.rows = k.keys[:at], k.rows[:at]
	if k.tracked != nil {
		k.tracked = k.tracked[:at]
	}
}

// index lets find look at a key or two.
func (k *known) index(part, parts int) {
	k.marks = make([]uint8, len(k.keys))
	width := bits.Len(uint(len(k.keys))) //nolint:gosec // a length
	partBits := bits.Len(uint(parts)) - 1
	width = min(width, 28)
	k.shift = uint(64 - partBits - width)
	k.first = uint64(part) << width //nolint:gosec // at most maxParts
	k.starts = make([]int32, 1<<width+1)
	for i := range k.keys {
		k.starts[k.slot(&k.keys[i])+1]++
	}
	for i := 1; i < len(k.starts); i++ {
		k.starts[i] += k.starts[i-1]
	}
}

func (k *known) slot(h *rowcode.Hash) int {
	return int(binary.BigEndian.Uint64(h[:8])>>k.shift - k.first) //nolint:gosec // within starts
}

// find gives the place of a key, -1 for none.
func (k *known) find(h *rowcode.Hash) int {
	if len(k.keys) == 0 {
		return -1
	}
	s := k.slot(h)
	for at := k.starts[s]; at < k.starts[s+1]; at++ {
		if k.keys[at] == *h {
			return int(at)
		}
	}
	return -1
}

// probe compares rows with what is known: those that differ are changes.
func (c *comparison) probe(ctx context.Context, k *known, rec arrow.RecordBatch) error {
	hashes, rows := hashesOf(rec.Column(state.Hash)), hashesOf(rec.Column(state.Row))
	tracked, kinds := hashesOf(rec.Column(state.Tracked)), rec.Column(state.Kind).(*array.Uint8).Uint8Values()
	var differ []int32
	for i := range hashes {
		h := &hashes[i]
		at := k.find(h)
		switch {
		case kinds[i] == state.Removed: // a rule refused the row
			if at >= 0 {
				k.marks[at] |= markKept
			}
		case at < 0:
			if _, again := k.fresh[*h]; again {
				c.repeats(rec, i)
				continue
			}
			if len(k.fresh) < k.room {
				k.fresh[*h] = struct{}{}
			}
			differ = append(differ, int32(i)) //nolint:gosec // bounded by memory
		case k.marks[at]&markSeen != 0:
			c.repeats(rec, i)
		default:
			k.marks[at] |= markSeen
			if k.rows[at] == rows[i] && (!c.both || k.tracked[at] == tracked[i]) {
				c.unchanged++
				continue
			}
			differ = append(differ, int32(i)) //nolint:gosec // as above
		}
	}
	if len(differ) == 0 {
		return nil
	}
	changed, err := takeRows(ctx, rec, differ, c.mem)
	if err != nil {
		return err
	}
	return c.changes.add(ctx, changed)
}

// repeats notes a row whose key another row of the snapshot has.
func (c *comparison) repeats(rec arrow.RecordBatch, i int) {
	c.twice.count++
	if len(c.twice.examples) == shown && c.twice.count > 1000 {
		return
	}
	values := array.NewRecordBatch(c.values, rec.Columns()[state.Values:], rec.NumRows())
	defer values.Release()
	c.twice.examples = addExample(c.twice.examples, c.keyText(values, i))
}

// missing makes deletes of the keys that the snapshot has not.
func (c *comparison) missing(ctx context.Context, k *known) error {
	const atOnce = 1 << 16
	var gone []rowcode.Hash
	flush := func() error {
		if len(gone) == 0 {
			return nil
		}
		rec, err := c.deletes(ctx, gone)
		gone = gone[:0]
		if err != nil {
			return err
		}
		return c.changes.add(ctx, rec)
	}
	for i, mark := range k.marks {
		if mark != 0 {
			continue
		}
		if gone = append(gone, k.keys[i]); len(gone) == atOnce {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// deletes makes entries that remove keys, whose hashes ascend.
func (c *comparison) deletes(ctx context.Context, gone []rowcode.Hash) (arrow.RecordBatch, error) {
	found, err := c.state.Find(ctx, gone)
	if err != nil {
		return nil, err
	}
	defer found.Release()
	hashes, keys := hashesOf(found.Column(state.Hash)), found.Column(state.Key).(*array.Binary)
	var rows []int32
	for i := range hashes {
		if i == 0 || hashes[i] != hashes[i-1] {
			rows = append(rows, int32(i)) //nolint:gosec // bounded by memory
		}
	}
	at := indexColumn(rows)
	defer at.Release()
	cols := make([]arrow.Array, c.entries().NumFields())
	defer func() { releaseAll(cols) }()
	none := make([]rowcode.Hash, len(rows))
	if cols[state.Hash], err = takeArray(ctx, found.Column(state.Hash), at, c.mem); err != nil {
		return nil, err
	}
	if cols[state.Key], err = takeArray(ctx, keys, at, c.mem); err != nil {
		return nil, err
	}
	sequence, err := repeated(c.version, len(rows), c.mem)
	if err != nil {
		return nil, err
	}
	defer sequence.Release()
	orders, err := rowcode.Sequences(sequence)
	if err != nil {
		return nil, err
	}
	cols[state.Order], cols[state.Kind] = orders.Binary(), kindColumn(slices.Repeat([]byte{state.Delete}, len(rows)))
	cols[state.Row], cols[state.Tracked] = hashColumn(none), hashColumn(slices.Clone(none))
	cols[state.Time] = timeColumn(c.b.Timestamp.UnixMicro(), len(rows))
	for i, f := range c.values.Fields() {
		cols[state.Values+i] = array.MakeArrayOfNull(c.mem, f.Type, len(rows))
	}
	return array.NewRecordBatch(c.entries(), cols, int64(len(rows))), nil
}

// repeated is the error of several rows of one key in a snapshot.
func (t *ties) repeated(d *Definition, version string) error {
	if t.count == 0 {
		return nil
	}
	return d.fault("DUPLICATE_KEY_VIOLATION", "snapshot %s has %s a key that another row has: %s", version, countText(t.count, "row with", "rows with"), strings.Join(t.examples, "; ")).
		WithHint("A snapshot has one row for each key: name all columns that make it, or keep one row of each in the provider")
}
