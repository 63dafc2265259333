package main

import "github.com/weir-data/weir/sdk/go"

// rate is one ECB rate: units of the currency for one euro.
type rate struct {
	value weir.Decimal128
	day   weir.Date
	scale int16
	state finding // found, or why this rate cannot be used
}

// series is the rates of one currency in the order of their days.
type series struct {
	rates []rate
	// last[i] is the place in rates of the last rate up to day first+i. It is made when it is first
	// asked for, and never where the days lie too far apart for a table of all days.
	first weir.Date
	last  []int32
}

// span is how many days there are from the first rate to the last.
func (s *series) span() int64 {
	return int64(s.rates[len(s.rates)-1].day) - int64(s.first) + 1
}

// maxDense is the most days a series' table has: a few hundred years.
const maxDense = 150_000

// rateTable finds the rate of a currency and day. Currencies are keyed by their letters packed into a
// word, so that a lookup compares numbers; slots is an open hash table.
type rateTable struct {
	maxAge int32
	slots  []slot
	mask   uint64
	count  int
	series []series
	plain  *plainTable
}

type slot struct {
	key    uint64
	series int32 // place in series plus one; 0 is an empty slot
}

var euro = rate{value: weir.DecimalFromInt64(1)}

// packed gives the currency's letters as a word. SAP pads currency keys with spaces; one that is
// empty or longer than a word is no currency.
func packed(b []byte) (key uint64, ok bool) {
	for len(b) > 0 && b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	if len(b) == 0 || len(b) > 8 {
		return 0, false
	}
	for _, c := range b {
		key = key<<8 | uint64(c)
	}
	return key, true
}

const euroKey = 'E'<<16 | 'U'<<8 | 'R'

func (t *rateTable) slot(key uint64) *slot {
	at := key * 0x9E3779B97F4A7C15 >> 32
	for {
		s := &t.slots[at&t.mask]
		if s.series == 0 || s.key == key {
			return s
		}
		at++
	}
}

// find gives the rate for row i's currency on a day, or why there is none.
func (t *rateTable) find(currencies weir.Strings, i int, day weir.Date) (*rate, finding) {
	if currencies.Null(i) {
		return nil, unknownCurrency
	}
	key, ok := packed(currencies.Bytes(i))
	if !ok {
		return nil, unknownCurrency
	}
	if key == euroKey {
		return &euro, found
	}
	s := t.slot(key)
	if s.series == 0 {
		return nil, unknownCurrency
	}
	r := t.series[s.series-1].on(day)
	switch {
	case r == nil:
		return nil, noRate
	case int64(day)-int64(r.day) > int64(t.maxAge):
		return nil, rateTooOld
	}
	return r, r.state
}

// on gives the rate of the day or the last one before it.
func (s *series) on(day weir.Date) *rate {
	if len(s.rates) == 0 || day < s.first {
		return nil
	}
	if s.last == nil {
		if s.span() > maxDense {
			return s.search(day)
		}
		s.spread()
	}
	if at := int(day - s.first); at < len(s.last) {
		return &s.rates[s.last[at]]
	}
	return &s.rates[len(s.rates)-1]
}

// search gives the last rate up to day, which is not before the first.
func (s *series) search(day weir.Date) *rate {
	low, high := 0, len(s.rates)
	for high-low > 1 {
		if middle := (low + high) / 2; s.rates[middle].day <= day {
			low = middle
		} else {
			high = middle
		}
	}
	return &s.rates[low]
}

// kept is the table of an instance that runs more than one task: the rates of a table version do not
// change, and the host sends them once.
var kept *rateTable

func ratesOf(in *weir.Reader, maxAge int32) (*rateTable, error) {
	if kept != nil && in.Unchanged() {
		return kept, nil
	}
	t := &rateTable{maxAge: maxAge}
	t.resize(64)
	for in.Next() {
		if !t.addPlain(in.Batch()) {
			t.add(in.Batch())
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	for i := range t.series {
		t.series[i].arrange()
	}
	t.plain = t.lay()
	kept = t
	return t, nil
}

// add takes a batch of rates in any order. Rows without a rate, which is what the ECB's N/A becomes,
// say nothing.
func (t *rateTable) add(b *weir.Batch) {
	days, currencies, values := daysOf(b.Column("rate_date")), b.Column("currency").String(), amountsOf(b.Column("rate"))
	var current int // place in series
	var currentKey uint64
	for i := range b.Len() {
		if currencies.Null(i) || values.Null(i) {
			continue
		}
		day, ok := days.at(i)
		if !ok {
			continue
		}
		key, ok := packed(currencies.Bytes(i))
		if !ok {
			continue
		}
		if key != currentKey {
			current, currentKey = t.seriesOf(key), key
		}
		r := rate{day: day}
		var scale int
		r.value, scale, ok = values.at(i)
		r.scale = int16(scale)
		if !ok || r.value.Sign() <= 0 {
			r.state = invalidRate
		}
		s := &t.series[current]
		s.rates = append(s.rates, r)
	}
}

// addPlain is add for batches as they mostly come: decimals, dates and short texts without nulls.
func (t *rateTable) addPlain(b *weir.Batch) bool {
	days, currencies, values := daysOf(b.Column("rate_date")), b.Column("currency").String(), amountsOf(b.Column("rate"))
	offsets, names, ok := currencies.Raw()
	if !ok || !days.plain || !values.plain || days.dates.HasNulls() || values.values.HasNulls() || currencies.HasNulls() {
		return false
	}
	n := b.Len()
	dates, decimals, starts, ends := days.dates.Values()[:n], values.values.Values()[:n], offsets[:n], offsets[1:][:n]
	for i := 0; i < n; {
		// The rates of a currency mostly stand together.
		name := names[starts[i]:ends[i]]
		end := i + 1
		if len(name) == 3 {
			four := [12]byte{name[0], name[1], name[2], name[0], name[1], name[2], name[0], name[1], name[2], name[0], name[1], name[2]}
			for end+4 <= n && ends[end+3]-starts[end] == 12 && *(*[12]byte)(names[starts[end]:]) == four &&
				(ends[end]-starts[end])^3|(ends[end+1]-starts[end])^6|(ends[end+2]-starts[end])^9 == 0 {
				end += 4
			}
		}
		for end < n && string(names[starts[end]:ends[end]]) == string(name) {
			end++
		}
		key, ok := packed(name)
		if !ok {
			i = end
			continue
		}
		s := &t.series[t.seriesOf(key)]
		s.add(decimals[i:end], dates[i:end], int16(values.scale))
		i = end
	}
	return true
}

// add takes rates. The room for them at least doubles, so that short runs do not copy again and again.
func (s *series) add(values []weir.Decimal128, days []weir.Date, scale int16) {
	n := len(s.rates)
	if n+len(values) > cap(s.rates) {
		grown := make([]rate, n, max(2*cap(s.rates), n+len(values)))
		copy(grown, s.rates)
		s.rates = grown
	}
	s.rates = s.rates[:n+len(values)]
	to := s.rates[n:]
	days, to = days[:len(values)], to[:len(values)]
	for i, v := range values {
		r := &to[i]
		r.value, r.day, r.scale, r.state = v, days[i], scale, found
		if v.Hi < 0 || v.Hi|int64(v.Lo) == 0 {
			r.state = invalidRate
		}
	}
}

// seriesOf gives the place of a currency's series, made at need.
func (t *rateTable) seriesOf(key uint64) int {
	s := t.slot(key)
	if s.series == 0 {
		if 2*(t.count+1) > len(t.slots) {
			t.resize(2 * len(t.slots))
			s = t.slot(key)
		}
		t.count++
		t.series = append(t.series, series{})
		*s = slot{key, int32(len(t.series))}
	}
	return int(s.series - 1)
}

func (t *rateTable) resize(n int) {
	old := t.slots
	t.slots, t.mask = make([]slot, n), uint64(n-1)
	for _, s := range old {
		if s.series != 0 {
			*t.slot(s.key) = s
		}
	}
}

// arrange sorts the series. Two rates for one day that are the same are one; two that differ cannot be
// chosen between.
func (s *series) arrange() {
	if !s.ascends() {
		sortByDay(s.rates)
		merged := s.rates[:0]
		for _, r := range s.rates {
			if n := len(merged); n > 0 && merged[n-1].day == r.day {
				merged[n-1].join(r)
				continue
			}
			merged = append(merged, r)
		}
		s.rates = merged
	}
	s.first = s.rates[0].day
}

// ascends reports whether each rate is of a later day than the one before.
func (s *series) ascends() bool {
	for i := 1; i < len(s.rates); i++ {
		if s.rates[i-1].day >= s.rates[i].day {
			return false
		}
	}
	return true
}

// spread makes the table of days.
func (s *series) spread() {
	span := s.span()
	s.last = make([]int32, span)
	for i := range s.rates {
		end := span
		if i+1 < len(s.rates) {
			end = int64(s.rates[i+1].day - s.first)
		}
		for at := int64(s.rates[i].day - s.first); at < end; at++ {
			s.last[at] = int32(i)
		}
	}
}

// sortByDay is Shell's sort: quick enough for the few thousand rates of a currency, also when they come
// newest first, and a tenth of the code of package slices.
func sortByDay(r []rate) {
	for gap := len(r) / 2; gap > 0; {
		for i := gap; i < len(r); i++ {
			for j := i; j >= gap && r[j].day < r[j-gap].day; j -= gap {
				r[j], r[j-gap] = r[j-gap], r[j]
			}
		}
		if gap == 2 {
			gap = 1
		} else {
			gap = gap * 5 / 11
		}
	}
}

// join takes a second rate for the day of r. What comes out does not depend on which came first.
func (r *rate) join(o rate) {
	switch {
	case r.state == ambiguousRate || o.state == ambiguousRate:
		r.state = ambiguousRate
	case r.state != found || o.state != found:
		if r.state != o.state {
			r.state = ambiguousRate
		}
	case !same(*r, o):
		r.state = ambiguousRate
	}
}

// same compares rates that may come with different scales.
func same(a, b rate) bool {
	if a.scale > b.scale {
		a, b = b, a
	}
	up, ok := a.value.MulPow10(int(b.scale - a.scale))
	return ok && up == b.value
}
