package cdc

import "github.com/weir-data/weir/host/cdc/rowcode"

// event is what the rules see of one change. The events of a timeline are those
// of one key in the order of their sequence, no two of the same order.
type event struct {
	ref    int32 // where its values are
	moment int32 // equal for events of one sequence, ascending
	upsert bool  // else it removes the key
	old    bool  // it was there before this batch
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

// expired leaves out deletes that are forgotten. One that ends a row is never
// forgotten in SCD type 2, for the row's end is its moment.
func expired(line []event, old func(ref int32) bool, ends bool) []event {
	kept := line[:0]
	for _, e := range line {
		shown := ends && len(kept) > 0 && kept[len(kept)-1].upsert
		if e.upsert || shown || !old(e.ref) {
			kept = append(kept, e)
		}
	}
	return kept
}
