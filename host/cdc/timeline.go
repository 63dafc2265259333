package cdc

import "github.com/weir-data/weir/host/cdc/rowcode"

// event is what the rules see of one change. The events of a timeline are those
// of one key in the order of their sequence, no two of the same order.
type event struct {
	ref    int32 // where its values are
	moment int32 // equal for events of one sequence, ascending
	upsert bool  // else it removes the key
	old    bool  // it was there before this batch
	gone   bool  // it was, and is forgotten
	again  int32 // ref of the same change when this batch brings it again, or never
	// tracked is the hash of the columns whose change opens a row.
	tracked rowcode.Hash
}

// never is the end of a row that shows now.
const never = -1

// row is one that shows: from the moment of its head, with the values of its
// tail, to the moment of its end. They are places in the timeline.
type row struct{ head, tail, end int32 }

// history gives the rows of SCD type 2. Neighbours that are equal in what is
// tracked are one row, which begins with the first and has the values of the
// last. It ends when something else comes, or a delete. What would be valid for
// no time at all is no row.
func history(rows []row, line []event) []row {
	open := -1 // in rows
	for i := range line {
		e, at := &line[i], int32(i) //nolint:gosec // a key has fewer events than that
		if open >= 0 {
			r := &rows[open]
			if e.upsert && line[r.tail].tracked == e.tracked {
				r.tail = at
				continue
			}
			r.end = at
			if line[r.head].moment == e.moment {
				rows = rows[:open]
			}
			open = -1
		}
		if e.upsert {
			open = len(rows)
			rows = append(rows, row{at, at, never})
		}
	}
	return rows
}

// newest gives the row of SCD type 1: the last event, unless it removes the key.
func newest(rows []row, line []event) []row {
	if last := len(line) - 1; last >= 0 && line[last].upsert {
		at := int32(last) //nolint:gosec // a key has fewer events than that
		rows = append(rows, row{at, at, never})
	}
	return rows
}

// authors says for each event whose value of a column it shows, by its ref: its
// own or, where that is null, the one that was valid before, back to the last
// delete.
func authors(out []int32, line []event, null func(ref int32) bool) []int32 {
	before := int32(never)
	for _, e := range line {
		switch {
		case !e.upsert:
			before = never
			out = append(out, e.ref)
			continue
		case before == never || !null(e.ref):
			before = e.ref
		}
		out = append(out, before)
	}
	return out
}

// forget marks deletes of the state that are due to be forgotten. One that an
// upsert precedes is never forgotten: it ends a row, or keeps one from showing.
func forget(line []event, due func(ref int32) bool) {
	ends := false
	for i := range line {
		e := &line[i]
		switch {
		case !e.old:
		case e.upsert:
			ends = true
		case ends || !due(e.ref):
			ends = false
		case e.again != never:
			// It is as new as if it had been forgotten before.
			e.ref, e.old = e.again, false
		default:
			e.gone = true
		}
	}
}
