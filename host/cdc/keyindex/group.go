package keyindex

import (
	"cmp"
	"slices"

	"github.com/weir-data/weir/host/delta"
)

// FileRows are places in one file, ascending by row.
type FileRows struct {
	File *delta.AddFile
	Rows []int64
	// At tells, for each row, which of the places it was.
	At []int
}

// Group sorts places by file and row, as Mutation takes them. Places of nothing
// are left out.
func Group(places []Place) []FileRows {
	at := make([]int, 0, len(places))
	for i := range places {
		if places[i].File != nil {
			at = append(at, i)
		}
	}
	slices.SortFunc(at, func(a, b int) int {
		p, q := &places[a], &places[b]
		if p.File != q.File {
			return cmp.Compare(p.File.Path, q.File.Path)
		}
		return cmp.Compare(p.Row, q.Row)
	})
	var out []FileRows
	for _, i := range at {
		if n := len(out); n == 0 || out[n-1].File != places[i].File {
			out = append(out, FileRows{File: places[i].File})
		}
		g := &out[len(out)-1]
		g.Rows, g.At = append(g.Rows, places[i].Row), append(g.At, i)
	}
	return out
}

// Set gives the rows as a set.
func (f *FileRows) Set() *delta.RowSet { return delta.NewRowSet(f.Rows...) }
