package cdc

// compareNewest notes what changes in the target in SCD type 1.
func (w *work) compareNewest(fresh int) {
	w.inherit()
	w.shown, w.shows = newest(w.shown[:0], w.before), newest(w.shows[:0], w.after)
	c := &w.out.counts
	switch was, is := len(w.shown) > 0, len(w.shows) > 0; {
	case is && !was:
		w.insert.add(w, w.shows[0])
		c.Inserted++
		c.Upserted++
	case is && !w.sameValues(w.shown[0], w.shows[0]):
		w.change(w.shown[0], w.shows[0])
		c.Upserted++
	case was && !is:
		w.drop(w.shown[0])
		c.Deleted++
	default:
		if is {
			w.stay(w.shows[0])
		}
		c.Unchanged += int64(fresh)
	}
}

// change puts a row in the place of another, stay leaves one where it is, and
// drop takes one away. When all rows are written anew nothing is taken away.
func (w *work) change(was, is row) {
	w.out.counts.Updated++
	if w.rewrite {
		w.insert.add(w, is)
		return
	}
	w.update.add(w, is)
	w.replaced = append(w.replaced, w.before[was.head].ref)
}

func (w *work) stay(is row) {
	if w.rewrite {
		w.insert.add(w, is)
	}
}

func (w *work) drop(was row) {
	w.out.counts.Removed++
	if !w.rewrite {
		w.removed = append(w.removed, w.before[was.head].ref)
	}
}

// compareHistory notes what changes in the target in SCD type 2.
func (w *work) compareHistory() {
	w.inherit()
	w.shown, w.shows = history(w.shown[:0], w.before), history(w.shows[:0], w.after)
	c := &w.out.counts
	for _, e := range w.after {
		switch {
		case e.old:
		case e.upsert:
			c.Upserted++
		default:
			c.Deleted++
		}
	}
	b := 0
	for _, now := range w.shows {
		start := w.after[now.head].moment
		for b < len(w.shown) && w.before[w.shown[b].head].moment < start {
			w.drop(w.shown[b])
			b++
		}
		if b == len(w.shown) || w.before[w.shown[b].head].moment > start {
			w.insert.add(w, now)
			c.Inserted++
			continue
		}
		was := w.shown[b]
		b++
		ended, ends := momentOf(w.before, was.end), momentOf(w.after, now.end)
		if ended == ends && w.sameValues(was, now) {
			w.stay(now)
			continue
		}
		w.change(was, now)
		if ended == never && ends != never {
			c.Closed++
		}
	}
	for ; b < len(w.shown); b++ {
		w.drop(w.shown[b])
	}
}

func momentOf(line []event, at int32) int32 {
	if at == never {
		return never
	}
	return line[at].moment
}

// sameValues tells whether a row that showed has the values of one that shows now.
func (w *work) sameValues(was, is row) bool {
	a, b := w.before[was.tail].ref, w.after[is.tail].ref
	if a != b && !(w.exact && w.rows[a] == w.rows[b]) {
		return false
	}
	for i := range w.leaves {
		if w.wasBy[i][was.tail] != w.isBy[i][is.tail] {
			return false
		}
	}
	return true
}
