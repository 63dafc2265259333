package plugin

import (
	"slices"
	"testing"
)

func TestRowSet(t *testing.T) {
	var s rowSet
	for _, row := range []int64{0, 63, 64, 1000, 5} {
		if !s.add(row) {
			t.Errorf("row %d was there before", row)
		}
	}
	if s.add(64) {
		t.Error("row 64 twice")
	}
	for _, c := range []struct {
		from, n int64
		want    []int64
	}{{0, 6, []int64{0, 5}}, {0, 5, []int64{0}}, {5, 60, []int64{0, 58, 59}}, {65, 900, nil}, {1000, 1, []int64{0}}, {2000, 50, nil}} {
		if got := s.within(c.from, c.n); !slices.Equal(got, c.want) {
			t.Errorf("within %d, %d: %v, want %v", c.from, c.n, got, c.want)
		}
	}
}
