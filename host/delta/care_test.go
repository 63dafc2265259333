package delta

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Property: in any history of writes, deletions and care, an optimize changes
// neither rows nor their ids, a restore gives an old version's rows, a vacuum
// leaves every version of the retention readable, and the check finds nothing.
func TestCareChangesNoVersionThatIsKept(t *testing.T) {
	for seed := range uint64(careSeeds()) {
		r := rand.New(rand.NewPCG(seed, 14))
		h := newCareHistory(t, r)
		for step := range 10 + r.IntN(20) {
			h.step(step)
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
		report, err := h.table.Check(background, CheckOptions{})
		if err != nil || !report.Clean() {
			t.Errorf("seed %d: %+v, %v", seed, report, err)
		}
	}
}

// careSeeds is how many histories are tried; make soak says more.
func careSeeds() int {
	if n, err := strconv.Atoi(os.Getenv("WEIR_SOAK_CARE")); err == nil {
		return n
	}
	return 12
}

// careHistory is a table whose versions are remembered.
type careHistory struct {
	*calendar
	r       *rand.Rand
	tracked bool
	rows    []string    // of each version
	times   []time.Time // of each version
	next    int         // row
}

func newCareHistory(t *testing.T, r *rand.Rand) *careHistory {
	h := &careHistory{calendar: newCalendar(t), r: r, tracked: r.IntN(2) == 0}
	c := Commit{Schema: grouped, Properties: map[string]string{
		"delta.enableDeletionVectors": "true", "delta.targetFileSize": fmt.Sprint(200 + r.IntN(2000)), "delta.checkpointInterval": fmt.Sprint(2 + r.IntN(6)),
	}}
	if h.tracked {
		c.Properties["delta.enableRowTracking"] = "true"
	}
	if r.IntN(3) == 0 {
		c.Properties["delta.checkpointPolicy"] = "v2"
	}
	switch r.IntN(3) {
	case 0:
		c.PartitionBy = []string{"p"}
	case 1:
		c.ClusterBy = []string{"p", "id"}
	}
	h.commit(c)
	h.remember()
	return h
}

// remember notes what the newest versions read as.
func (h *careHistory) remember() {
	h.stamp()
	for v := int64(len(h.rows)); v <= h.snapshot().Version(); v++ {
		h.rows = append(h.rows, h.rowsAt(int(v), nil))
		h.times = append(h.times, h.now)
	}
}

func (h *careHistory) last() string { return h.rows[len(h.rows)-1] }

func (h *careHistory) step(n int) {
	h.t.Helper()
	h.now = h.now.Add(time.Duration(h.r.IntN(int(2 * day))))
	before := h.last()
	switch h.r.IntN(7) {
	case 0, 1, 2:
		h.append(n)
	case 3:
		h.deleteSome()
	case 4:
		ids := h.identities()
		h.optimize(OptimizeOptions{Full: h.r.IntN(3) == 0, PurgeRatio: []float64{-1, 0.3, 1e-9}[h.r.IntN(3)], CommitBytes: int64(h.r.IntN(3)) * 500})
		h.remember()
		for v := len(h.rows) - 1; v >= 0 && h.times[v].Equal(h.now); v-- {
			if h.rows[v] != before {
				h.t.Errorf("an optimize changed the rows in version %d", v)
			}
		}
		if got := h.identities(); h.tracked && got != ids {
			h.t.Errorf("an optimize changed identities: %s, were %s", got, ids)
		}
	case 5:
		version := h.r.IntN(len(h.rows))
		if _, err := h.table.Restore(background, RestoreOptions{Version: int64(version)}); err == nil {
			h.remember()
			if h.last() != h.rows[version] {
				h.t.Errorf("restored version %d as %s, was %s", version, h.last(), h.rows[version])
			}
		} else if h.kept(version) {
			h.t.Errorf("version %d, which is kept: %v", version, err)
		}
	case 6:
		h.vacuum(VacuumOptions{})
		for v, want := range h.rows {
			if h.kept(v) {
				if got := h.rowsAt(v, nil); got != want {
					h.t.Errorf("behind a vacuum version %d reads %s, was %s", v, got, want)
				}
			}
		}
	}
	h.remember()
}

// kept tells whether a version was current within the retention.
func (h *careHistory) kept(version int) bool {
	return version+1 >= len(h.rows) || !h.times[version+1].Before(h.now.Add(-7*day))
}

func (h *careHistory) append(n int) {
	var rows []string
	for range 1 + h.r.IntN(40) {
		h.next++
		p := fmt.Sprint(h.r.IntN(3))
		if h.r.IntN(10) == 0 {
			p = "null"
		}
		rows = append(rows, fmt.Sprintf(`{"id":%d,"s":"%s","p":%s}`, h.next, strings.Repeat("x", h.r.IntN(20)), p))
	}
	s := h.snapshot()
	h.commit(Commit{Read: s, Add: h.write(WriteOptions{Snapshot: s, Name: fmt.Sprint("w", n)}, "["+strings.Join(rows, ",")+"]")})
}

// deleteSome deletes rows by vectors, here and there whole files.
func (h *careHistory) deleteSome() {
	c := Commit{Read: h.snapshot()}
	for _, f := range h.live() {
		switch h.r.IntN(4) {
		case 0:
			rows := NewRowSet()
			n, _ := f.NumRecords()
			gone, err := h.table.DeletedRows(background, &f)
			if err != nil {
				h.t.Fatal(err)
			}
			for i := range n {
				if h.r.IntN(3) == 0 && !gone.Contains(i) {
					rows.Add(i)
				}
			}
			if rows.Len() > 0 {
				c.Delete = append(c.Delete, FileDelete{File: f, Rows: rows})
			}
		case 1:
			if h.r.IntN(3) == 0 {
				c.Remove = append(c.Remove, f)
			}
		}
	}
	if len(c.Delete)+len(c.Remove) > 0 {
		h.commit(c)
	}
}

func (h *careHistory) identities() string {
	if !h.tracked {
		return ""
	}
	return rowIDs(h.t.(*testing.T), h.snapshot(), nil, "id")
}
