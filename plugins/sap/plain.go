package main

import "github.com/weir-data/weir/sdk/go"

// plainScale is the scale of the rates in a calendar: that of the ECB's table.
const plainScale = 6

// calendar has a series' rate for each day from first on, at plainScale: that of the day or of the
// last one before it, 0 where the row must be looked at closely.
type calendar struct {
	first weir.Date
	rates []uint64
}

// euroCalendar has rate 1 on each day of two centuries, so that the loop below has no branch for euro.
func euroCalendar() calendar {
	first := weir.DateOf(1900, 1, 1)
	c := calendar{first, make([]uint64, weir.DateOf(2100, 1, 1)-first)}
	for i := range c.rates {
		c.rates[i] = 1_000_000
	}
	return c
}

// letters gives the place of a currency of three bytes between '@' and '_' in the table of codes.
func letters(key uint64) (uint64, bool) {
	return key>>6&(31<<10) | key>>3&(31<<5) | key&31, key&^0x1F1F1F == 0x404040
}

// convertPlain is convert for batches as they mostly come: amounts are decimals, days dates and
// currencies short strings. A row that is out of the ordinary in any way is left to convert.
//
// Compiled to WebAssembly, each jump of a Go function is a dispatch over all its jump targets, and a
// call costs as much as a dozen additions: so the usual row runs straight through, without either.
func (r *rows) convertPlain() bool {
	offsets, names, ok := r.currencies.Raw()
	e := eurScale + plainScale - r.amounts.scale
	if !ok || !r.amounts.plain || !r.days.plain || e < 0 || e > 18 || r.amounts.values.HasNulls() || r.days.dates.HasNulls() || r.currencies.HasNulls() {
		return false
	}
	up := uint64(1)
	for range e {
		up *= 10
	}
	most := uint64(1<<63-1) / up
	n := len(r.dst)
	dst, amounts, days := r.dst, r.amounts.values.Values()[:n], r.days.dates.Values()[:n]
	starts, ends := offsets[:n], offsets[1:][:n]
	codes, calendars := r.rates.codes, r.rates.calendars
	for i := range dst {
		name := names[starts[i]:ends[i]]
		if len(name) != 3 {
			r.convert(i)
			continue
		}
		key := uint64(name[0])<<16 | uint64(name[1])<<8 | uint64(name[2])
		code, ok := letters(key)
		if !ok {
			r.convert(i)
			continue
		}
		c := &calendars[codes[code]]
		at := uint64(int64(days[i]) - int64(c.first))
		amount := amounts[i]
		sign := uint64(amount.Hi)
		magnitude := (amount.Lo ^ sign) - sign
		if at >= uint64(len(c.rates)) || magnitude > most || !amount.IsInt64() {
			r.convert(i)
			continue
		}
		rate := c.rates[at]
		if rate == 0 {
			r.convert(i)
			continue
		}
		magnitude *= up
		q := magnitude / rate
		rem := magnitude - q*rate
		q += ^(rem - (rate - rem)) >> 63 // one more when the remainder is half the rate or above
		if q >= 1_000_000_000_000_000_000 {
			r.convert(i)
			continue
		}
		q = (q ^ sign) - sign
		dst[i] = weir.Decimal128{Lo: q, Hi: int64(q) >> 63}
	}
	return true
}
