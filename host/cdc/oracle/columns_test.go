package oracle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/cdc"
	"github.com/weir-data/weir/host/fault"
)

// Columns that come later are NULL in what came before. A change that comes
// again, with them or without, is the same change. In SCD type 2 a new column
// that would be tracked stops the flow, since it would open rows that the
// history does not have. covers B2
func TestColumnsMayComeLater(t *testing.T) {
	seed := seedOf(t)
	for n, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // small numbers
			s.columns = append(slices.Clone(s.columns), field("later", textType), field("at_later", addressed))
			if s.scd == 2 && s.tracked == nil {
				s.driftsBy(t, r)
				return
			}
			if s.ignoreNull != nil {
				s.ignoreNull = append(slices.Clone(s.ignoreNull), "at_later")
			}
			s.evolves(t, r)
		})
	}
}

// early gives changes that know nothing of the last two columns.
func early(changes []change) []change {
	out := slices.Clone(changes)
	for i := range out {
		out[i].row = slices.Clone(out[i].row)
		for c := len(out[i].row) - 2; c < len(out[i].row); c++ {
			out[i].row[c] = nil
		}
	}
	return out
}

func (s *shape) evolves(t *testing.T, r *rand.Rand) {
	x := newTarget(t, s.rules)
	shares := []float64{0, 1e9, 1e-9}
	x.define = func(d *cdc.Definition) {
		if s.ignoreNull != nil {
			// Columns that are not there yet cannot be named.
			d.IgnoreNulls = &cdc.Choice{Except: []string{}}
			for _, f := range s.columns {
				if !slices.ContainsFunc(s.ignoreNull, func(name string) bool {
					return name == f.Name || len(name) > len(f.Name) && name[:len(f.Name)+1] == f.Name+"."
				}) {
					d.IgnoreNulls.Except = append(d.IgnoreNulls.Except, f.Name)
				}
				if slices.Contains(s.ignoreNull, f.Name+".street") {
					d.IgnoreNulls.Except = append(d.IgnoreNulls.Except, f.Name+".no")
				}
			}
		}
		d.ScanShare = shares[r.IntN(3)]
	}
	all := packed([]arrival{batched(r, s.randomChanges(r), 6, 0.3), batched(r, s.randomChanges(r), 6, 0.3)})
	var seen []change
	for i, batch := range all {
		x.columns = nil
		if i < 3 {
			x.columns = s.columns[:len(s.columns)-2]
			batch = early(batch)
		} else {
			// What came before the columns comes again, as it was.
			for _, c := range seen {
				if r.IntN(4) == 0 {
					batch = append(batch, c)
				}
			}
			batch = withoutTies(&s.rules, seen, batch)
		}
		if err := x.apply(batch); err != nil {
			t.Fatalf("batch %d: %v", i, err)
		}
		seen = append(seen, batch...)
		if !same(t, fmt.Sprintf("batch %d", i), x.read(), s.table(seen)) {
			return
		}
	}
	// A flow whose rows lack the columns goes on, too.
	x.columns = s.columns[:len(s.columns)-2]
	batch := withoutTies(&s.rules, seen, early(numbered(s.randomChanges(r), 9)))
	if err := x.apply(batch); err != nil {
		t.Fatal(err)
	}
	same(t, "without the columns", x.read(), s.table(slices.Concat(seen, batch)))
}

// withoutTies leaves out of a batch what contradicts what came before: a change
// that came without columns and comes again with them.
func withoutTies(m *rules, seen, batch []change) []change {
	var out []change
	for _, c := range batch {
		if !m.tied(slices.Concat(seen, out, []change{c})) {
			out = append(out, c)
		}
	}
	return out
}

func (s *shape) driftsBy(t *testing.T, r *rand.Rand) {
	x := newTarget(t, s.rules)
	x.columns = s.columns[:len(s.columns)-2]
	changes := early(numbered(s.randomChanges(r), 0))
	if err := x.apply(changes); err != nil {
		t.Fatal(err)
	}
	x.columns = nil
	if err := x.apply(changes); !fault.Is(err, "TRACK_HISTORY_DRIFT") || !strings.Contains(err.Error(), "TRACK HISTORY ON (") {
		t.Fatal(err)
	}
	same(t, "rows", x.read(), s.table(changes))
	// Those that were tracked so far may be named, and the new ones have no history.
	for _, f := range s.columns[:len(s.columns)-2] {
		x.rules.tracked = append(x.rules.tracked, f.Name)
	}
	more := numbered(s.randomChanges(r), 1)
	if err := x.apply(more); err != nil {
		t.Fatal(err)
	}
	same(t, "rows with the columns", x.read(), x.rules.table(slices.Concat(changes, more)))
	x.rules.tracked = nil
	// A full refresh takes them in.
	if err := x.applied(changes, true); err != nil {
		t.Fatal(err)
	}
	same(t, "rows after a full refresh", x.read(), s.table(changes))
}

// What a flow declares must be what its state was made by. covers B2
func TestADefinitionThatDriftsIsRefused(t *testing.T) {
	base := rules{scd: 2, keys: []arrow.Field{field("id", number), field("region", textType)}, columns: userColumns, sequence: number}
	changes := []change{{key: []val{int64(1), "a"}, seq: int64(1), row: []val{"x", "y"}}}
	for code, drift := range map[string]func(x *target){
		"KEY_SCHEMA_DRIFT":      func(x *target) { x.rules.keys = []arrow.Field{field("id", number)} },
		"SEQUENCING_TYPE_DRIFT": func(x *target) { x.rules.sequence = decimal },
		"SCD_TYPE_DRIFT":        func(x *target) { x.define = func(d *cdc.Definition) { d.SCDType = 1 } },
		"TRACK_HISTORY_DRIFT":   func(x *target) { x.rules.tracked = []string{"city"} },
		"":                      func(x *target) { x.define = func(d *cdc.Definition) { slices.Reverse(d.Keys) } },
	} {
		r := base
		if code == "SEQUENCING_TYPE_DRIFT" {
			r.scd = 1 // the columns of type 2 do not fit the table's, which host/stream finds first
		}
		x := newTarget(t, r)
		if err := x.apply(changes); err != nil {
			t.Fatal(err)
		}
		drift(x)
		err := x.apply(changes)
		if code == "" && err != nil || code != "" && !fault.Is(err, code) {
			t.Errorf("%s: %v", code, err)
		}
	}
}
