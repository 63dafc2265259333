package oracle

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/fault"
)

// Two changes of one key and sequence that say different things stop the batch
// in which they meet, and leave the table as it was; what says the same twice
// does not. SCD type 1 meets the newest change of a key only. covers A63 B2
func TestChangesThatContradictEachOtherStopTheBatch(t *testing.T) {
	seed := seedOf(t)
	for n, s := range shapes() {
		if s.last != nil {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // small numbers
			for range 4 {
				s.contradicts(t, r)
			}
		})
	}
}

func (s *shape) contradicts(t *testing.T, r *rand.Rand) {
	changes := numbered(s.randomChanges(r), 0)
	x := newTarget(t, s.rules)
	if err := x.apply(changes); err != nil {
		t.Fatal(err)
	}
	before := x.read()
	// One that is remembered, and another one of its moment.
	c := changes[r.IntN(len(changes))]
	if s.scd == 1 && s.ignoreNull == nil {
		for _, o := range changes {
			if text(o.key) == text(c.key) && compare(o.seq, c.seq) > 0 {
				c = o
			}
		}
	}
	other := change{key: c.key, seq: c.seq, op: c.op, row: slices.Clone(c.row)}
	switch {
	case c.op == remove:
		other.op = upsert
	case r.IntN(2) == 0:
		other.op = remove
	default:
		other.row[0] = "something else"
	}
	batch := append(numbered(s.randomChanges(r), 1), other)
	v := x.snapshot().Version()
	err := x.apply(batch)
	if !fault.Is(err, "CDC_SEQUENCE_TIE") || !strings.Contains(err.Error(), "1 change contradicts") {
		t.Fatalf("%s %s at %s, then %s %s: %v", text(c.key), text(c.row), text(c.seq), []string{"upsert", "delete"}[other.op], text(other.row), err)
	}
	same(t, "after the error", x.read(), before)
	if now := x.snapshot().Version(); now != v {
		t.Errorf("the table went from version %d to %d", v, now)
	}
	// In one batch it is the same, whichever comes first.
	for _, pair := range [][]change{{c, other}, {other, c}} {
		y := newTarget(t, s.rules)
		if err := y.apply(pair); !fault.Is(err, "CDC_SEQUENCE_TIE") {
			t.Errorf("in one batch: %v", err)
		}
		if y.snapshot() != nil {
			t.Error("a table was made")
		}
	}
	// Without it, the batch passes.
	if err := x.apply(batch[:len(batch)-1]); err != nil {
		t.Fatal(err)
	}
	same(t, "without", x.read(), s.table(slices.Concat(changes, batch[:len(batch)-1])))
}

// Who meets a tie is told to name the columns that decide. The changes that came
// before know nothing of them; what comes then must not win by that. covers A63
func TestColumnsThatDecideMayBeNamedLater(t *testing.T) {
	for _, scd := range []int{1, 2} {
		for _, nulls := range [][]string{nil, {"city"}} {
			for _, n := range []int64{3, 12} {
				r := rules{scd: scd, keys: userID, columns: append(slices.Clone(userColumns), field("n", number)), sequence: number, ignoreNull: nulls}
				first := change{key: []val{int64(1)}, seq: int64(5), row: []val{"first", "x", int64(9)}}
				second := change{key: []val{int64(1)}, seq: int64(5), row: []val{"second", "y", n}}
				x := newTarget(t, r)
				if err := x.apply([]change{first}); err != nil {
					t.Fatal(err)
				}
				if err := x.apply([]change{second}); !fault.Is(err, "CDC_SEQUENCE_TIE") {
					t.Fatal(err)
				}
				x.rules.last = []string{"n"}
				if err := x.apply([]change{second}); !fault.Is(err, "CDC_SEQUENCE_TIE") || !strings.Contains(err.Error(), "full refresh") {
					t.Errorf("scd %d, n=%d: %v", scd, n, err)
				}
				// What says the same, and what comes later, goes on.
				later := change{key: first.key, seq: int64(6), row: first.row}
				tied := change{key: first.key, seq: int64(6), row: []val{"tied", "z", int64(10)}}
				for _, batch := range [][]change{{first}, {tied, first}, {later}} {
					if err := x.apply(batch); err != nil {
						t.Fatal(err)
					}
				}
				same(t, "rows", x.read(), x.rules.table([]change{first, tied, later}))
				if err := x.applied([]change{second, first}, true); err != nil {
					t.Fatal(err)
				}
				same(t, "rows after a full refresh", x.read(), x.rules.table([]change{first, second}))
			}
		}
	}
}
