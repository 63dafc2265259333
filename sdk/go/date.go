package weir

// Date counts days from 1970-01-01 in the proleptic Gregorian calendar.
type Date int32

// DateOf gives the date of a year, month (1 to 12) and day; it does not check that the day exists.
func DateOf(year, month, day int) Date {
	// Days from a March-based civil date (Howard Hinnant's algorithm): the leap day ends the year.
	if month <= 2 {
		year--
	}
	era := floorDiv(int64(year), 400)
	yoe := int64(year) - era*400
	doy := int64((153*((month+9)%12)+2)/5 + day - 1)
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return Date(era*146097 + doe - 719468)
}

// Civil gives year, month and day.
func (d Date) Civil() (year, month, day int) {
	z := int64(d) + 719468
	era := floorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = int(doy - (153*mp+2)/5 + 1)
	month = int((mp+2)%12 + 1)
	year = int(yoe + era*400)
	if month <= 2 {
		year++
	}
	return year, month, day
}

// String gives "2026-07-29".
func (d Date) String() string { return string(d.Append(nil)) }

// Append appends what String gives.
func (d Date) Append(b []byte) []byte {
	y, m, day := d.Civil()
	if y < 0 {
		b, y = append(b, '-'), -y
	}
	return appendPadded(append(appendPadded(append(appendPadded(b, y, 4), '-'), m, 2), '-'), day, 2)
}

func appendPadded(b []byte, v, width int) []byte {
	for limit := 10; width > 1; width, limit = width-1, limit*10 {
		if v < limit {
			return appendInt(append(b, "00000"[:width-1]...), int64(v))
		}
	}
	return appendInt(b, int64(v))
}

// ParseDate reads "2026-07-29" or "20260729". A day that does not exist is no date.
func ParseDate(text string) (Date, bool) {
	if len(text) == 10 && text[4] == '-' && text[7] == '-' {
		var b [8]byte
		copy(b[:4], text[:4])
		copy(b[4:6], text[5:7])
		copy(b[6:], text[8:])
		return parseDigits(b)
	}
	if len(text) != 8 {
		return 0, false
	}
	var b [8]byte
	copy(b[:], text)
	return parseDigits(b)
}

func parseDigits(b [8]byte) (Date, bool) {
	var n int
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return validDate(n/10000, n/100%100, n%100)
}

func validDate(year, month, day int) (Date, bool) {
	if year < 1 || month < 1 || month > 12 || day < 1 || day > 31 {
		return 0, false
	}
	d := DateOf(year, month, day)
	_, m, dd := d.Civil()
	return d, m == month && dd == day
}

const microsPerDay = 86_400_000_000

// ParseTimestamp reads ISO 8601 as microseconds since 1970 in UTC: "2026-07-28T02:15:04Z", with a
// space instead of the T, a fraction of up to nine digits (cut to six), an offset such as +02:00.
// Without a zone it is taken as UTC; zoned tells which.
func ParseTimestamp(text string) (micros int64, zoned, ok bool) {
	if len(text) < 16 || text[10] != 'T' && text[10] != ' ' {
		return 0, false, false
	}
	d, ok := ParseDate(text[:10])
	hour, ok1 := twoDigits(text[11:], 23)
	minute, ok2 := twoDigits(text[14:], 59)
	if !ok || !ok1 || !ok2 || text[13] != ':' {
		return 0, false, false
	}
	rest, second, fraction := text[16:], 0, int64(0)
	if len(rest) >= 3 && rest[0] == ':' {
		if second, ok = twoDigits(rest[1:], 59); !ok {
			return 0, false, false
		}
		if fraction, rest, ok = parseFraction(rest[3:]); !ok {
			return 0, false, false
		}
	}
	offset, zoned, ok := parseOffset(rest)
	micros = int64(d)*microsPerDay + int64((hour*60+minute-offset)*60+second)*1_000_000 + fraction
	return micros, zoned, ok
}

func twoDigits(s string, most int) (int, bool) {
	if len(s) < 2 || s[0] < '0' || s[0] > '9' || s[1] < '0' || s[1] > '9' {
		return 0, false
	}
	v := int(s[0]-'0')*10 + int(s[1]-'0')
	return v, v <= most
}

func parseFraction(s string) (micros int64, rest string, ok bool) {
	if s == "" || s[0] != '.' && s[0] != ',' {
		return 0, s, true
	}
	i, unit := 1, int64(100_000)
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		micros += int64(s[i]-'0') * unit
		unit /= 10
	}
	return micros, s[i:], i > 1 && i <= 10
}

// parseOffset reads "", "Z", "+02", "+0200" or "+02:00" as minutes east of UTC.
func parseOffset(s string) (minutes int, zoned, ok bool) {
	if s == "" {
		return 0, false, true
	}
	if s == "Z" || s == "z" {
		return 0, true, true
	}
	sign := 1
	if s[0] == '-' {
		sign = -1
	} else if s[0] != '+' {
		return 0, false, false
	}
	hours, ok := twoDigits(s[1:], 18)
	if !ok {
		return 0, false, false
	}
	rest := s[3:]
	if rest == "" {
		return sign * hours * 60, true, true
	}
	if rest[0] == ':' {
		rest = rest[1:]
	}
	mins, ok := twoDigits(rest, 59)
	return sign * (hours*60 + mins), true, ok && len(rest) == 2
}

// AppendTimestamp writes microseconds since 1970 as "2026-07-28T02:15:04.000001Z", without the
// fraction when it is 0.
func AppendTimestamp(b []byte, micros int64) []byte {
	day := floorDiv(micros, microsPerDay)
	us := micros - day*microsPerDay
	s := int(us / 1_000_000)
	b = append(Date(day).Append(b), 'T')
	b = append(appendPadded(b, s/3600, 2), ':')
	b = append(appendPadded(b, s/60%60, 2), ':')
	b = appendPadded(b, s%60, 2)
	if f := int(us % 1_000_000); f != 0 {
		b = appendPadded(append(b, '.'), f, 6)
	}
	return append(b, 'Z')
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
