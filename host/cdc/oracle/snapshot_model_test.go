package oracle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// extract is one snapshot of a source: all of its rows at a version. The op of
// its changes is upsert and their sequence nothing.
type extract struct {
	version val
	rows    []change
}

// changesOf says the same as the snapshots do: at each version, a key that is
// there has these values, and one that is not is removed.
func changesOf(extracts []extract) []change {
	keys := map[string][]val{}
	for _, e := range extracts {
		for _, c := range e.rows {
			keys[text(c.key)] = c.key
		}
	}
	var out []change
	for _, e := range extracts {
		for k, key := range keys {
			at := slices.IndexFunc(e.rows, func(c change) bool { return text(c.key) == k })
			if at < 0 {
				out = append(out, change{key: key, seq: e.version, op: remove})
				continue
			}
			out = append(out, change{key: key, seq: e.version, row: e.rows[at].row})
		}
	}
	return out
}

func extractOf(version val, rows ...[]val) extract {
	e := extract{version: version}
	for _, row := range rows {
		e.rows = append(e.rows, change{key: row[:1], row: row[1:]})
	}
	return e
}

// snapshotVectors are the published examples of AUTO CDC FROM SNAPSHOT.
var snapshotVectors = []struct {
	name     string
	columns  []arrow.Field
	tracked  []string
	extracts []extract
	scd2     string
	scd1     string
}{
	{
		"periodic", []arrow.Field{field("value", textType)}, nil,
		[]extract{
			extractOf(int64(1), []val{int64(1), "a1"}, []val{int64(2), "a2"}),
			extractOf(int64(2), []val{int64(2), "b2"}, []val{int64(3), "a3"}),
		}, `
id=1 value="a1" [1,2)
id=2 value="a2" [1,2)
id=2 value="b2" [2,-)
id=3 value="a3" [2,-)`, `
id=2 value="b2"
id=3 value="a3"`,
	},
	{
		"historical", []arrow.Field{field("tracking", textType), field("other", textType)}, []string{"tracking"},
		[]extract{
			extractOf(int64(1), []val{int64(1), "a1", "b1"}, []val{int64(2), "a2", "b2"}, []val{int64(4), "a4", "b4"}),
			extractOf(int64(2), []val{int64(2), "a2_new", "b2"}, []val{int64(3), "a3", "b3"}, []val{int64(4), "a4", "b4_new"}),
		}, `
id=1 tracking="a1" other="b1" [1,2)
id=2 tracking="a2" other="b2" [1,2)
id=2 tracking="a2_new" other="b2" [2,-)
id=3 tracking="a3" other="b3" [2,-)
id=4 tracking="a4" other="b4_new" [1,-)`, `
id=2 tracking="a2_new" other="b2"
id=3 tracking="a3" other="b3"
id=4 tracking="a4" other="b4_new"`,
	},
	{
		"a key that comes back", []arrow.Field{field("value", textType)}, nil,
		[]extract{
			extractOf(int64(1), []val{int64(1), "a"}), extractOf(int64(2)), extractOf(int64(5), []val{int64(1), "a"}), extractOf(int64(6), []val{int64(1), "a"}),
		}, `
id=1 value="a" [1,2)
id=1 value="a" [5,-)`, `
id=1 value="a"`,
	},
}

// covers B3
func TestTheModelGivesThePublishedTablesOfSnapshots(t *testing.T) {
	for _, v := range snapshotVectors {
		r := rules{scd: 2, keys: userID, columns: v.columns, sequence: number, tracked: v.tracked}
		same(t, v.name, r.table(changesOf(v.extracts)), lines(v.scd2))
		r.scd = 1
		same(t, v.name+", scd 1", r.table(changesOf(v.extracts)), lines(v.scd1))
	}
}

// Extracts that come one by one give what the rules say of the changes between
// them, on every kind of table and whatever happens between. covers A81 A85 A87 B3
func TestSnapshotsGiveWhatTheRulesSay(t *testing.T) {
	seed := seedOf(t)
	for n, s := range shapes() {
		if s.ignoreNull != nil || s.last != nil || s.sequence != number {
			continue // these are not for snapshots
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // small numbers
			for range 3 {
				s.extracts(t, r)
			}
		})
	}
	for _, v := range snapshotVectors {
		for scd, want := range map[int]string{1: v.scd1, 2: v.scd2} {
			r := rules{scd: scd, keys: userID, columns: v.columns, sequence: number, tracked: v.tracked}
			x := newTarget(t, r)
			x.extracted(v.extracts)
			same(t, fmt.Sprintf("%s, scd %d", v.name, scd), x.read(), lines(want))
		}
	}
}

func (x *target) extracted(extracts []extract) {
	x.t.Helper()
	for _, e := range extracts {
		x.version = e.version.(int64)
		if err := x.apply(e.rows); err != nil {
			x.t.Fatal(err)
		}
	}
}

func (s *shape) extracts(t *testing.T, r *rand.Rand) {
	x := newTarget(t, s.rules)
	flavours[r.IntN(len(flavours))](x)
	var seen []extract
	rows := map[int64]change{}
	for version := int64(1 + r.IntN(3)); len(seen) < 6; version += 1 + r.Int64N(3) {
		for key := range int64(12) {
			switch r.IntN(5) {
			case 0:
				delete(rows, key)
			case 1, 2:
				rows[key] = change{key: numbered([]change{{key: s.key(key)}}, 0)[0].key, row: s.randomRow(r)}
			}
		}
		e := extract{version: version}
		for _, c := range rows {
			e.rows = append(e.rows, c)
		}
		seen = append(seen, e)
		x.extracted([]extract{e})
		if !same(t, fmt.Sprintf("version %d", version), x.read(), s.table(changesOf(seen))) {
			return
		}
		x.disturb(r)
	}
}
