package cdc

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-data/weir/host/cdc/rowcode"
)

// shownAt is the slow model: the tracked value that is valid at a moment, -1 for
// none, found by walking through all events up to it.
func shownAt(line []event, moment int32) int {
	value := -1
	for _, e := range line {
		switch {
		case e.moment > moment:
			return value
		case e.upsert:
			value = int(e.tracked[0])
		default:
			value = -1
		}
	}
	return value
}

// checkHistory holds the rows of a timeline to what is valid at each moment, and
// to having no two neighbours that could be one, unless a moment lies between.
func checkHistory(line []event) error {
	rows := history(nil, line)
	last := int32(0)
	if len(line) > 0 {
		last = line[len(line)-1].moment
	}
	for m := int32(-1); m <= last+1; m++ {
		got := -1
		for _, r := range rows {
			from, to := line[r.head].moment, int32(1<<30)
			if r.end != never {
				to = line[r.end].moment
			}
			if from >= to {
				return fmt.Errorf("row %+v is valid for no time", r)
			}
			if m >= from && m < to {
				if got >= 0 {
					return fmt.Errorf("two rows are valid at %d", m)
				}
				got = int(line[r.tail].tracked[0])
			}
		}
		if want := shownAt(line, m); got != want {
			return fmt.Errorf("%d is valid at %d, not %d", got, m, want)
		}
	}
	now := newest(nil, line)
	open := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.end != never })
	if len(now) != len(open) || len(now) == 1 && now[0].tail != open[0].tail {
		return fmt.Errorf("type 1 shows %+v, of type 2 %+v is open", now, open)
	}
	return nil
}

// timelineOf reads events from bytes: what each is, and whether time goes on after it.
func timelineOf(code []byte) []event {
	var line []event
	moment := int32(0)
	for i, c := range code {
		line = append(line, event{ref: int32(i), moment: moment, upsert: c%4 != 0, again: never, tracked: rowcode.Hash{c % 4}})
		if c&8 == 0 {
			moment++
		}
	}
	return line
}

// covers B2
func FuzzHistory(f *testing.F) {
	f.Add([]byte{1, 1, 2, 0, 2})
	f.Add([]byte{1, 1, 0, 2})     // SPARK-58937
	f.Add([]byte{1, 10, 1, 8, 1}) // several of one moment
	f.Fuzz(func(t *testing.T, code []byte) {
		if len(code) > 64 {
			return
		}
		if err := checkHistory(timelineOf(code)); err != nil {
			t.Errorf("%v of %v", err, code)
		}
	})
}

// covers B2
func TestShortHistories(t *testing.T) {
	var try func(code []byte)
	try = func(code []byte) {
		if err := checkHistory(timelineOf(code)); err != nil {
			t.Fatalf("%v of %v", err, code)
		}
		if len(code) == 5 {
			return
		}
		for _, c := range []byte{0, 1, 2, 8, 9, 10} {
			try(append(code[:len(code):len(code)], c))
		}
	}
	try(nil)
}

// TestAuthors compares with the values themselves, carried forward.
func TestAuthors(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		line := timelineOf(make([]byte, rng.IntN(12)))
		values := make([]int, len(line)) // 0 is null
		for i := range line {
			line[i].upsert = rng.IntN(5) > 0
			values[i] = rng.IntN(3)
		}
		by := authors(nil, line, func(ref int32) bool { return values[ref] == 0 })
		now := 0
		for i, e := range line {
			if !e.upsert {
				now = 0
				continue
			}
			if values[i] != 0 {
				now = values[i]
			}
			if values[by[i]] != now || by[i] > int32(i) {
				t.Fatalf("event %d of %v shows the value of %d, not %d", i, values, by[i], now)
			}
		}
	}
}

func TestForget(t *testing.T) {
	for _, v := range []struct{ line, want string }{
		{"D", ""},     // nothing to say
		{"UD", "UD"},  // ends a row
		{"DU", "U"},   // before everything
		{"UDD", "UD"}, // the second says nothing
		{"UDDU", "UDU"},
		{"dU", "dU"},   // not due
		{"dD", "d"},    // as the second says nothing
		{"*U", "U"},    // of this batch
		{"D+U", "D+U"}, // comes again
	} {
		var line []event
		for i, c := range v.line {
			switch c {
			case '+':
				line[len(line)-1].again = int32(i)
			default:
				line = append(line, event{ref: int32(i), upsert: c == 'U', old: c != '*', again: never})
			}
		}
		forget(line, func(ref int32) bool { return v.line[ref] == 'D' })
		got := ""
		for _, e := range line {
			switch {
			case e.gone:
			case v.line[e.ref] == '+':
				got += "D+"
			case v.line[e.ref] != '*':
				got += string(v.line[e.ref])
			}
		}
		if got != v.want {
			t.Errorf("of %s stays %s, not %s", v.line, got, v.want)
		}
	}
}
