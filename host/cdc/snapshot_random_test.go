package cdc_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/cdc"
)

// covers B3, A81, A87: random snapshots against an obvious model, which compares
// the map of one version with that of the one before.
func TestRandomSnapshots(t *testing.T) {
	streams := 16
	if testing.Short() {
		streams = 4
	}
	for seed := range streams {
		r := rand.New(rand.NewPCG(uint64(seed), 77))
		d := cdc.Definition{Keys: []string{"k"}, SCDType: 1 + seed%2, Workers: 2}
		if seed >= 14 {
			d.Memory = 1 // compares in parts
		}
		m := snapshotModel{type2: seed%2 == 1, tracksB: seed%4 == 3, open: map[string]*modelRow{}}
		switch {
		case !m.type2:
		case m.tracksB:
			d.Tracked.Except = []string{"_loaded"}
		default:
			d.Tracked.Only = []string{"a"}
		}
		e := newExtracts(t, d, int64Type, field("k", stringType), field("a", int64Type), field("b", int64Type), field("_loaded", int64Type))
		last := map[string][2]int64{}
		for v := int64(1); v <= 8; v++ {
			next := map[string][2]int64{}
			if r.IntN(4) == 0 {
				next = maps.Clone(last) // the same extract
			} else {
				for k := range 12 {
					if r.IntN(3) > 0 {
						next["k"+strconv.Itoa(k)] = [2]int64{int64(r.IntN(3)), int64(r.IntN(3))}
					}
				}
			}
			var rows []string
			for _, k := range slices.Sorted(maps.Keys(next)) {
				rows = append(rows, fmt.Sprintf(`{"k":%q,"a":%d,"b":%d,"_loaded":%d}`, k, next[k][0], next[k][1], v))
			}
			r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			e.take("int", strconv.FormatInt(v, 10), rows...)
			m.take(v, next)
			last = next
			got, err := e.Rows(background)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got { // when a row was loaded is not compared
				before, after, _ := strings.Cut(got[i], " _loaded=")
				_, after, _ = strings.Cut(after, " ")
				got[i] = strings.TrimSpace(before + " " + after)
			}
			slices.Sort(got)
			if want := m.rows(); !slices.Equal(got, want) {
				t.Fatalf("seed %d, version %d:\n%s\nwant\n%s", seed, v, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

// modelRow is an interval of a key; end 0 is none.
type modelRow struct {
	k                string
	a, b, start, end int64
}

type snapshotModel struct {
	type2, tracksB bool
	open           map[string]*modelRow
	closed         []*modelRow
}

func (m *snapshotModel) close(k string, v int64) {
	if row := m.open[k]; row != nil && m.type2 {
		row.end = v
		m.closed = append(m.closed, row)
	}
	delete(m.open, k)
}

func (m *snapshotModel) take(v int64, next map[string][2]int64) {
	for k := range m.open {
		if _, ok := next[k]; !ok {
			m.close(k, v)
		}
	}
	for k, at := range next {
		if row := m.open[k]; row != nil && m.type2 && (row.a != at[0] || m.tracksB && row.b != at[1]) {
			m.close(k, v)
		}
		if m.open[k] == nil {
			m.open[k] = &modelRow{k: k, start: v}
		}
		m.open[k].a, m.open[k].b = at[0], at[1]
	}
}

func (m *snapshotModel) rows() []string {
	out := []string{}
	for _, row := range append(slices.Collect(maps.Values(m.open)), m.closed...) {
		text := fmt.Sprintf("k=%s a=%d b=%d", row.k, row.a, row.b)
		if m.type2 {
			end := "null"
			if row.end > 0 {
				end = strconv.FormatInt(row.end, 10)
			}
			text += fmt.Sprintf(" __START_AT=%d __END_AT=%s", row.start, end)
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}
