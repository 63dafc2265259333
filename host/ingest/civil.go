package ingest

import (
	"bytes"
	"sync"
	"time"
)

const (
	microsPerSecond = 1_000_000
	secondsPerDay   = 86_400
	// maxYear bounds the years that a microsecond count can hold.
	maxYear = 294_000
)

// civil is a date and a time of day as written, with the zone if one was.
type civil struct {
	year, month, day, hour, minute, second, micro int
	zoned                                         bool
	offset                                        int            // seconds east, when zoned
	zone                                          *time.Location // instead of offset, for a named zone
}

var monthDays = [...]int{0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

func validDate(y, m, d int) bool {
	if m < 1 || m > 12 || d < 1 || y > maxYear || y < -maxYear {
		return false
	}
	if m == 2 && d == 29 {
		return y%4 == 0 && (y%100 != 0 || y%400 == 0)
	}
	return d <= monthDays[m]
}

// daysOf counts the days from 1970-01-01 in the proleptic Gregorian calendar.
func daysOf(y, m, d int) int64 {
	if m <= 2 {
		y--
		m += 12
	}
	era := y / 400
	if y < 0 {
		era = (y - 399) / 400
	}
	yoe := y - era*400
	doy := (153*(m-3)+2)/5 + d - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return int64(era)*146097 + int64(doe) - 719468
}

func (c civil) valid() bool {
	return validDate(c.year, c.month, c.day) && c.hour < 24 && c.minute < 60 && c.second < 60
}

// local gives the microseconds since 1970-01-01T00:00 on the clock as written.
func (c civil) local() int64 {
	sec := daysOf(c.year, c.month, c.day)*secondsPerDay + int64(c.hour*3600+c.minute*60+c.second)
	return sec*microsPerSecond + int64(c.micro)
}

// instant gives the microseconds since the epoch; a time without a zone is one of session.
func (c civil) instant(session *time.Location) int64 {
	zone := c.zone
	if !c.zoned {
		zone = session
	}
	if c.zoned && zone == nil {
		return c.local() - int64(c.offset)*microsPerSecond
	}
	if zone == nil || zone == time.UTC {
		return c.local()
	}
	t := time.Date(c.year, time.Month(c.month), c.day, c.hour, c.minute, c.second, c.micro*1000, zone)
	return t.UnixMicro()
}

// digits reads 1 to most digits at i.
func digits(b []byte, i, most int) (v, next int) {
	start := i
	for i < len(b) && i-start < most && b[i]-'0' <= 9 {
		v = v*10 + int(b[i]-'0')
		i++
	}
	return v, i
}

// parseDate reads what Spark casts to a date: [+-]y…-[m]m-[d]d with at least four
// digits of the year, month and day optional, anything behind a space or T.
func parseDate(b []byte) (days int64, ok bool) {
	b = bytes.TrimSpace(b)
	c, rest, ok := parseDay(b)
	if !ok || rest < len(b) && b[rest] != ' ' && b[rest] != 'T' {
		return 0, false
	}
	if !validDate(c.year, c.month, c.day) {
		return 0, false
	}
	return daysOf(c.year, c.month, c.day), true
}

// parseDay reads the date part and gives the index behind it.
func parseDay(b []byte) (c civil, i int, ok bool) {
	c.month, c.day = 1, 1
	neg := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		neg = b[0] == '-'
		i = 1
	}
	start := i
	c.year, i = digits(b, i, 7)
	if i-start < 4 {
		return c, i, false
	}
	if neg {
		c.year = -c.year
	}
	for _, part := range []*int{&c.month, &c.day} {
		if i >= len(b) || b[i] != '-' {
			// Year or year and month stand alone: nothing may follow.
			return c, i, i == len(b)
		}
		start = i + 1
		if *part, i = digits(b, start, 2); i == start {
			return c, i, false
		}
	}
	return c, i, true
}

// parseTimestamp reads what Spark casts to a timestamp: a date, then optionally
// a space or T and h:m:s with a fraction (cut at microseconds) and a zone. A time
// without a date is refused: Spark would take the current day.
func parseTimestamp(b []byte) (c civil, ok bool) {
	if c, ok = isoTimestamp(b); ok {
		return c, true
	}
	b = bytes.TrimSpace(b)
	c, i, ok := parseDay(b)
	if !ok {
		return c, false
	}
	if i == len(b) {
		return c, c.valid()
	}
	if b[i] != ' ' && b[i] != 'T' {
		return c, false
	}
	i++
	for k, part := range []*int{&c.hour, &c.minute, &c.second} {
		if k > 0 {
			if i >= len(b) || b[i] != ':' {
				return c, false
			}
			i++
		}
		start := i
		if *part, i = digits(b, i, 2); i == start {
			return c, false
		}
	}
	if i < len(b) && b[i] == '.' {
		i++
		scale := 100_000
		for ; i < len(b) && b[i]-'0' <= 9; i++ {
			c.micro += int(b[i]-'0') * scale
			scale /= 10
		}
	}
	if i < len(b) && !c.parseZone(bytes.TrimSpace(b[i:])) {
		return c, false
	}
	return c, c.valid()
}

// isoTimestamp is the fast path: 2026-07-28T02:15:04, a fraction, Z or an offset.
func isoTimestamp(b []byte) (c civil, ok bool) {
	if len(b) < 19 || b[4] != '-' || b[7] != '-' || b[10] != 'T' && b[10] != ' ' || b[13] != ':' || b[16] != ':' {
		return c, false
	}
	two := func(i int) int {
		x, y := b[i]-'0', b[i+1]-'0'
		if x > 9 || y > 9 {
			return -1 << 20
		}
		return int(x)*10 + int(y)
	}
	c.year = two(0)*100 + two(2)
	c.month, c.day, c.hour, c.minute, c.second = two(5), two(8), two(11), two(14), two(17)
	if c.year < 0 || c.hour < 0 || c.minute < 0 || c.second < 0 || !c.valid() {
		return c, false
	}
	i := 19
	if i < len(b) && b[i] == '.' {
		scale := 100_000
		for i++; i < len(b) && b[i]-'0' <= 9; i++ {
			c.micro += int(b[i]-'0') * scale
			scale /= 10
		}
	}
	switch {
	case i == len(b):
		return c, true
	case b[i] == 'Z' && i+1 == len(b):
		c.zoned = true
		return c, true
	case (b[i] == '+' || b[i] == '-') && i+6 == len(b) && b[i+3] == ':':
		h, m := two(i+1), two(i+4)
		if h < 0 || m < 0 || h > 18 || m > 59 {
			return c, false
		}
		c.zoned, c.offset = true, h*3600+m*60
		if b[i] == '-' {
			c.offset = -c.offset
		}
		return c, true
	}
	return c, false
}

// parseZone reads Z, an offset, an offset behind UTC, GMT or UT, or a region.
func (c *civil) parseZone(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	c.zoned = true
	if string(b) == "Z" {
		return true
	}
	for _, prefix := range []string{"UTC", "GMT", "UT"} {
		if rest, ok := bytes.CutPrefix(b, []byte(prefix)); ok {
			if len(rest) == 0 {
				return true
			}
			if rest[0] == '+' || rest[0] == '-' {
				b = rest
				break
			}
		}
	}
	if b[0] == '+' || b[0] == '-' {
		return c.parseOffset(b)
	}
	zone, ok := location(string(b))
	c.zone = zone
	return ok
}

// parseOffset reads ±h, ±hh, ±h:mm, ±hh:mm, ±hhmm, ±hh:mm:ss and ±hhmmss.
func (c *civil) parseOffset(b []byte) bool {
	neg := b[0] == '-'
	b = b[1:]
	h, i := digits(b, 0, 2)
	if i == 0 {
		return false
	}
	total := h * 3600
	unit := 60
	if h > 18 {
		return false
	}
	for i < len(b) && unit > 0 {
		if b[i] == ':' {
			i++
		}
		start := i
		var v int
		if v, i = digits(b, i, 2); i-start == 0 || i-start == 1 && b[start-1] != ':' || v > 59 {
			return false
		}
		total += v * unit
		unit /= 60
	}
	if i < len(b) || total > 18*3600 {
		return false
	}
	if neg {
		total = -total
	}
	c.offset = total
	return true
}

var locations sync.Map // name → *time.Location, nil for names that are none

// location finds a zone by name; "Local" and the empty name are none.
func location(name string) (*time.Location, bool) {
	if v, ok := locations.Load(name); ok {
		zone := v.(*time.Location)
		return zone, zone != nil
	}
	var zone *time.Location
	if name != "" && name != "Local" {
		zone, _ = time.LoadLocation(name)
	}
	// Names come from input: remember the real ones only, they are few.
	if zone != nil {
		locations.Store(name, zone)
	}
	return zone, zone != nil
}
