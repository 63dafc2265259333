package oracle

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/cdc"
)

// Every published example gives its table in every order of arrival, cut into
// batches at every place. Changes of different keys do not meet but in a
// TRUNCATE, so all ways to arrive share a table. covers B2
func TestTheOrderOfArrivalDoesNotMatter(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			r := v.rules
			r.keys, r.columns, r.sequence = append([]arrow.Field{field("stream", number)}, userID...), userColumns, number
			var arrivals []arrival
			for _, changes := range byKey(v.changes) {
				arrivals = append(arrivals, everyArrival(changes)...)
			}
			x := newTarget(t, r)
			// By turns the state is asked for keys, and read from end to end by what was spilled.
			x.define = func(d *cdc.Definition) {
				if d.ScanShare = 1e9; x.batches%2 == 1 {
					d.ScanShare, d.Memory = 1e-9, 200<<10
				}
			}
			x.holds(arrivals, nil)
		})
	}
}

// A TRUNCATE may come before, with, between and after the changes that it kills.
func TestATruncateMayComeAtAnyTime(t *testing.T) {
	r := rules{scd: 1, keys: append([]arrow.Field{field("stream", number)}, userID...), columns: userColumns, sequence: number}
	var arrivals []arrival
	longest := 0
	for _, changes := range byKey(users) {
		for _, a := range everyArrival(changes) {
			arrivals = append(arrivals, a)
			longest = max(longest, len(a))
		}
	}
	for seq := range int64(8) {
		for at := range longest + 1 {
			x := newTarget(t, r)
			x.holds(arrivals, arrival(slices.Insert(make([][]change, longest), at, []change{{op: truncate, seq: seq}})))
		}
	}
}

// byKey splits changes by their key.
func byKey(changes []change) map[string][]change {
	out := map[string][]change{}
	for _, c := range changes {
		out[text(c.key)] = append(out[text(c.key)], c)
	}
	return out
}

// holds applies arrivals, all in one table, and compares it with the model:
// after each batch, for the changes that have come until then. The batches of
// shared come with them; they hold truncates.
func (x *target) holds(arrivals []arrival, shared arrival) {
	x.t.Helper()
	batches := packed(arrivals)
	for i, batch := range shared {
		if i == len(batches) {
			batches = append(batches, nil)
		}
		batches[i] = append(batches[i], batch...)
	}
	var seen []change
	for i, batch := range batches {
		if err := x.apply(batch); err != nil {
			x.t.Fatalf("batch %d: %v", i, err)
		}
		seen = append(seen, batch...)
		if want, got := x.rules.table(seen), x.read(); !slices.Equal(got, want) {
			x.explain(i, got, want, batches[:i+1])
			return
		}
	}
}

// explain finds one key whose rows are wrong, and the smallest arrival that makes them so.
func (x *target) explain(at int, got, want []string, batches arrival) {
	x.t.Helper()
	sign, row := firstDifference(got, want)
	x.t.Errorf("after batch %d of %d: %d rows, want %d: %s %s", at, len(batches), len(got), len(want), sign, row)
	key := ""
	for _, c := range batches.all() {
		if c.op != truncate && strings.HasPrefix(row, keyText(&x.rules, c.key)) {
			key = text(c.key)
		}
	}
	alone := arrival{}
	for _, batch := range batches {
		alone = append(alone, slices.DeleteFunc(slices.Clone(batch), func(c change) bool { return c.op != truncate && text(c.key) != key }))
	}
	fails := func(a arrival) bool {
		y := newTarget(x.t, x.rules)
		y.define, y.properties = x.define, x.properties
		for _, batch := range a {
			if y.apply(batch) != nil {
				return true
			}
		}
		return !slices.Equal(y.read(), y.rules.table(a.all()))
	}
	if !fails(alone) {
		x.t.Errorf("the changes of key %s alone give the right rows", key)
		return
	}
	alone = smaller(alone, fails)
	y := newTarget(x.t, x.rules)
	y.define, y.properties = x.define, x.properties
	for _, batch := range alone {
		if err := y.apply(batch); err != nil {
			x.t.Error(err)
		}
	}
	same(x.t, "the smallest that fails:\n"+alone.String(), y.read(), y.rules.table(alone.all()))
}

func keyText(m *rules, key []val) string {
	s := ""
	for i, f := range m.keys {
		s += fmt.Sprintf("%s=%s ", f.Name, text(key[i]))
	}
	return s
}

// firstDifference gives a row that is missing or too much.
func firstDifference(got, want []string) (sign, row string) {
	count := map[string]int{}
	for _, row := range want {
		count[row]++
	}
	for _, row := range got {
		count[row]--
	}
	for _, row := range slices.Concat(want, got) {
		switch {
		case count[row] > 0:
			return "missing", row
		case count[row] < 0:
			return "too much", row
		}
	}
	return "", ""
}

func seedOf(t testing.TB) uint64 {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("WEIR_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("WEIR_SEED=%d", seed)
	return seed
}

// streamsAtOnce is how many random streams share a table.
const streamsAtOnce = 15

// soak is how many random streams to run, of all shapes together: a few for
// each, or what WEIR_SOAK says.
func soak(t testing.TB) int {
	text := os.Getenv("WEIR_SOAK")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Random streams, shuffled, cut into batches and with changes that come again,
// give what the rules say, after each batch. So do all changes sorted at once.
// WEIR_SOAK sets how many streams run, hundreds without; WEIR_SEED repeats them.
//
// covers A59 A61 A66 A68 A71 B2
func TestRandomStreamsGiveWhatTheRulesSay(t *testing.T) {
	seed := seedOf(t)
	list := shapes()
	for n, s := range list {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for from := 0; from*len(list) < soak(t) && !t.Failed(); from += streamsAtOnce {
				s.holds(t, rand.New(rand.NewPCG(seed, uint64(n<<32+from)))) //nolint:gosec // small numbers
			}
		})
	}
}

func (s *shape) holds(t *testing.T, r *rand.Rand) {
	var arrivals, sorted []arrival
	batches := 1 + r.IntN(6)
	for range streamsAtOnce {
		changes := s.randomChanges(r)
		arrivals = append(arrivals, batched(r, changes, batches, 0.15))
		s.rules.sort(changes)
		sorted = append(sorted, arrival{changes})
	}
	shared := make(arrival, batches)
	if s.scd == 1 {
		for _, c := range s.randomTruncates(r) {
			at := r.IntN(batches)
			shared[at] = append(shared[at], c)
		}
	}
	shuffled := newTarget(t, s.rules)
	shares := []float64{0, 1e9, 1e-9}
	shuffled.define = func(d *cdc.Definition) { d.ScanShare = shares[r.IntN(len(shares))] }
	shuffled.holds(arrivals, shared)
	at := newTarget(t, s.rules)
	at.holds(sorted, arrival{shared.all()})
	same(t, "shuffled and sorted", shuffled.read(), at.read())
}

// The rows of SCD type 1 are the open ones of type 2, of the same changes. covers B2
func TestTheOpenRowsOfOneTypeAreTheRowsOfTheOther(t *testing.T) {
	seed := seedOf(t)
	for n, s := range shapes() {
		if s.scd == 1 {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // small numbers
			var arrivals []arrival
			for range streamsAtOnce {
				arrivals = append(arrivals, batched(r, s.randomChanges(r), 3, 0.15))
			}
			history := newTarget(t, s.rules)
			history.mustApply(packed(arrivals))
			s.scd = 1
			newest := newTarget(t, s.rules)
			newest.mustApply(packed(arrivals))
			var open []string
			for _, row := range history.read() {
				if at := strings.LastIndex(row, "["); strings.HasSuffix(row, ",-)") {
					open = append(open, row[:at])
				}
			}
			if len(open) == 0 {
				t.Fatal("no row is open")
			}
			same(t, "open rows", open, newest.read())
		})
	}
}
