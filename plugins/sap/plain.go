package main

import "github.com/weir-data/weir/sdk/go"

const (
	// plainScale is the scale of the rates in a plain table: that of the ECB's table.
	plainScale = 6
	// A plain table has so many days, the last 44 years there are rates for, and so many currencies.
	plainDays   = 1 << 14
	plainPlaces = 1 << 6
	// tooLarge has more digits than decimal(18,2).
	tooLarge = 1_000_000_000_000_000_000
)

// plainTable has the rate of each currency of three letters for each day, at plainScale: that of the
// day or of the last one before it, 0 where the row must be looked at closely. Its sizes are powers of
// two, so that finding a rate needs no comparison.
type plainTable struct {
	first int64                          // day
	codes [1 << 15]uint8                 // by letters: the currency's place; 0 is an empty one, 1 euro's
	rates [plainPlaces][plainDays]uint64 // by place and day
}

// letters gives the place of a currency of three bytes between '@' and '_' in the table of codes.
func letters(key uint64) (uint64, bool) {
	return key>>6&(31<<10) | key>>3&(31<<5) | key&31, key&^0x1F1F1F == 0x404040
}

// lay makes the plain table of the series, as many as there is room for.
func (t *rateTable) lay() *plainTable {
	p := &plainTable{}
	first, last := int64(1<<31), int64(-1<<31)
	for i := range t.series {
		s := &t.series[i]
		first, last = min(first, int64(s.first)), max(last, int64(s.rates[len(s.rates)-1].day))
	}
	p.first = max(first, last+min(int64(t.maxAge), plainDays/2)-plainDays+1)
	for i := range p.rates[1] {
		p.rates[1][i] = 1_000_000
	}
	euro, _ := letters(euroKey)
	p.codes[euro] = 1
	place := 2
	for _, s := range t.slots {
		code, ok := letters(s.key)
		if s.series == 0 || !ok || code == euro || place == plainPlaces {
			continue
		}
		p.codes[code] = uint8(place)
		t.series[s.series-1].fill(p.rates[place][:], p.first, t.maxAge)
		place++
	}
	return p
}

// fill lays the usable rates out by day, up to the last day on which each may be used.
func (s *series) fill(row []uint64, first int64, maxAge int32) {
	for i := range s.rates {
		r := &s.rates[i]
		units := r.value.Lo
		if r.state != found || r.scale != plainScale || r.value.Hi != 0 || int64(units) < 0 {
			var ok bool
			if units, ok = r.plain(); !ok {
				continue
			}
		}
		start := int64(r.day) - first
		end := min(int64(len(row)), start+int64(maxAge)+1)
		if i+1 < len(s.rates) {
			end = min(end, int64(s.rates[i+1].day)-first)
		}
		for at := max(start, 0); at < end; at++ {
			row[at] = units
		}
	}
}

// plain gives a usable rate at plainScale, where it has no more decimals and fits a word.
func (r *rate) plain() (uint64, bool) {
	if r.state != found {
		return 0, false
	}
	value := r.value
	if r.scale != plainScale {
		scaled, ok := value.Rescale(int(r.scale), plainScale, weir.Down)
		if back, _ := scaled.Rescale(plainScale, int(r.scale), weir.Down); !ok || back != value {
			return 0, false
		}
		value = scaled
	}
	return value.Lo, value.IsInt64()
}

// find gives the rate of a currency on a day, 0 where there is none. odd is not 0 where the currency is
// no three letters, or the day is not in the table.
func (p *plainTable) find(a, b, c byte, day weir.Date) (rate, odd uint64) {
	at := uint64(int64(day) - p.first)
	place := p.codes[uint(a&31)<<10|uint(b&31)<<5|uint(c&31)] % plainPlaces
	return p.rates[place][at%plainDays], at/plainDays | uint64((a^0x40|b^0x40|c^0x40)&0xE0)
}

// scaling is what takes amounts of a scale to the dividend of a quotient of eurScale.
type scaling struct{ up, most uint64 }

func scalingOf(scale int) (s scaling, ok bool) {
	e := eurScale + plainScale - scale
	if e < 0 || e > 18 {
		return s, false
	}
	s.up = 1
	for range e {
		s.up *= 10
	}
	s.most = uint64(1<<63-1) / s.up
	return s, true
}

// dividend gives the amount without its sign, scaled up. odd is not 0 where that does not fit a word.
func (s scaling) dividend(amount weir.Decimal128) (d, odd uint64) {
	sign := uint64(amount.Hi)
	d = (amount.Lo ^ sign) - sign
	return d * s.up, (s.most-d)>>63 | uint64(amount.Hi^int64(amount.Lo)>>63)
}

// quotient divides and rounds half up.
func quotient(dividend, rate uint64) uint64 {
	q := dividend / rate
	rem := dividend - q*rate
	return q + ^(rem-(rate-rem))>>63 // one more when the remainder is half the rate or above
}

// signed gives a magnitude the sign of the amount it came from.
func signed(q uint64, amount weir.Decimal128) weir.Decimal128 {
	sign := uint64(amount.Hi)
	q = (q ^ sign) - sign
	return weir.Decimal128{Lo: q, Hi: int64(q) >> 63}
}

// convertPlain is convert for batches as they mostly come: amounts are decimals, days dates and
// currencies short strings. A row that is out of the ordinary in any way is left to convert.
//
// Compiled to WebAssembly, a Go function is one large switch over its basic blocks: each jump is a
// dispatch, and values do not stay in registers from one block to the next. So four rows go through
// together in as few blocks as can be. What would be a comparison sets bits of odd instead, lengths
// are looked at once, and the methods are small enough to be inlined.
func (r *rows) convertPlain() bool {
	offsets, names, ok := r.currencies.Raw()
	by, fits := scalingOf(r.amounts.scale)
	if !ok || !r.amounts.plain || !r.days.plain || !fits || r.amounts.values.HasNulls() || r.days.dates.HasNulls() || r.currencies.HasNulls() {
		return false
	}
	p := r.rates.plain
	out, amounts, days := r.dst, r.amounts.values.Values(), r.days.dates.Values()
	for len(out) >= 4 && len(amounts) >= 4 && len(days) >= 4 && len(offsets) >= 5 {
		from := offsets[0]
		gaps := (offsets[1] - from) ^ 3 | (offsets[2] - from) ^ 6 | (offsets[3] - from) ^ 9 | (offsets[4] - from) ^ 12
		if gaps != 0 {
			r.four(len(out))
		} else {
			n := (*[12]byte)(names[from:])
			r0, x0 := p.find(n[0], n[1], n[2], days[0])
			r1, x1 := p.find(n[3], n[4], n[5], days[1])
			r2, x2 := p.find(n[6], n[7], n[8], days[2])
			r3, x3 := p.find(n[9], n[10], n[11], days[3])
			d0, y0 := by.dividend(amounts[0])
			d1, y1 := by.dividend(amounts[1])
			d2, y2 := by.dividend(amounts[2])
			d3, y3 := by.dividend(amounts[3])
			if x0|x1|x2|x3|y0|y1|y2|y3 != 0 || r0 == 0 || r1 == 0 || r2 == 0 || r3 == 0 {
				r.four(len(out))
			} else {
				q0, q1, q2, q3 := quotient(d0, r0), quotient(d1, r1), quotient(d2, r2), quotient(d3, r3)
				out[0], out[1] = signed(q0, amounts[0]), signed(q1, amounts[1])
				out[2], out[3] = signed(q2, amounts[2]), signed(q3, amounts[3])
				if (tooLarge-1-q0|tooLarge-1-q1|tooLarge-1-q2|tooLarge-1-q3)>>63 != 0 {
					r.four(len(out))
				}
			}
		}
		out, amounts, days, offsets = out[4:], amounts[4:], days[4:], offsets[4:]
	}
	r.each(len(r.dst)-len(out), len(r.dst))
	return true
}

// four converts the next rows one by one, left are those not converted yet.
func (r *rows) four(left int) {
	at := len(r.dst) - left
	clear(r.dst[at : at+4])
	r.each(at, at+4)
}

// each converts rows one by one.
func (r *rows) each(from, to int) {
	for i := from; i < to; i++ {
		r.convert(i)
	}
}
