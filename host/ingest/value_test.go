package ingest

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-data/weir/host/fault"
)

// The forms of Spark's cast to a timestamp.
func TestTimestampForms(t *testing.T) {
	berlin, ok := location("Europe/Berlin")
	if !ok {
		t.Skip("skipped: no time zone data")
	}
	for _, c := range []struct {
		text, want string
		zone       *time.Location
	}{
		{"2026-07-28T02:15:04Z", "2026-07-28T02:15:04Z", nil},
		{"2026-07-28 02:15:04", "2026-07-28T02:15:04Z", nil},
		{"2026-07-28 02:15:04", "2026-07-28T00:15:04Z", berlin},
		{"2026-01-28 02:15:04", "2026-01-28T01:15:04Z", berlin},
		{"2026-07-28T02:15:04.123456789Z", "2026-07-28T02:15:04.123456Z", nil},
		{"2026-07-28T02:15:04.1+02:00", "2026-07-28T00:15:04.1Z", nil},
		{"2026-07-28T02:15:04+0200", "2026-07-28T00:15:04Z", nil},
		{"2026-07-28T02:15:04-2", "2026-07-28T04:15:04Z", nil},
		{"2026-07-28T02:15:04 Europe/Berlin", "2026-07-28T00:15:04Z", nil},
		{"2026-07-28T02:15:04 UTC+01:00", "2026-07-28T01:15:04Z", nil},
		{"2026-07-28T02:15:04GMT", "2026-07-28T02:15:04Z", nil},
		{"2026-7-8 2:5:4", "2026-07-08T02:05:04Z", nil},
		{" 2026-07-28 ", "2026-07-28T00:00:00Z", nil},
		{"2026-07", "2026-07-01T00:00:00Z", nil},
		{"2026", "2026-01-01T00:00:00Z", nil},
		{"1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.5Z", nil},
		{"0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", nil},
		{"2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z", nil},
		{"2026-02-29T00:00:00Z", "", nil}, {"2026-13-01T00:00:00Z", "", nil}, {"2026-07-28T24:00:00Z", "", nil}, {"2026-07-28T02:60:00Z", "", nil},
		{"2026-07-28T02:15", "", nil}, {"2026-07-28T02", "", nil}, {"02:15:04", "", nil}, {"T02:15:04", "", nil}, {"now", "", nil}, {"", "", nil}, {"2026-07-28T02:15:04+19:00", "", nil}, {"2026-07-28T02:15:04 Mars", "", nil}, {"26-07-28", "", nil}, {"2026-07-28x", "", nil}, {"20260728", "", nil},
	} {
		conf := defaults(ReadFiles)
		if c.zone != nil {
			conf.zone = c.zone
		}
		got := ""
		if v, ok := conf.timestampOf([]byte(c.text)); ok {
			got = time.UnixMicro(v).UTC().Format("2006-01-02T15:04:05.999999Z07:00")
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

func TestDateForms(t *testing.T) {
	for text, want := range map[string]string{
		"2026-07-28": "2026-07-28", "2026-7-8": "2026-07-08", "2026-07-28T10:00:00Z": "2026-07-28", "2026-07-28 rest": "2026-07-28", " 2026-07 ": "2026-07-01", "2026": "2026-01-01",
		"26-07-28": "", "2026-07-32": "", "2026-00-01": "", "2026-07-28x": "", "28.07.2026": "", "": "", "2026-": "", "2026-07-": "",
	} {
		got := ""
		if days, ok := parseDate([]byte(text)); ok {
			got = time.Unix(days*secondsPerDay, 0).UTC().Format("2006-01-02")
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestDaysAgreeWithTheStandardLibrary(t *testing.T) {
	for i := range int64(800_000) / 7 {
		days := 7*i - 400_000
		d := time.Unix(days*secondsPerDay, 0).UTC()
		if got := daysOf(d.Year(), int(d.Month()), d.Day()); got != days {
			t.Fatalf("%v: %d, want %d", d, got, days)
		}
		if !validDate(d.Year(), int(d.Month()), d.Day()) {
			t.Fatal(d)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct{ format, text, want string }{
		{"d MMMM yyyy", "13 April 2026", "2026-04-13T00:00:00"},
		{"d MMMM yyyy", "1 may 2026", "2026-05-01T00:00:00"},
		{"d MMMM yyyy", "13 Foo 2026", ""},
		{"yyyyMMdd", "20260728", "2026-07-28T00:00:00"},
		{"yyyyMMdd", "2026072", ""},
		{"dd.MM.yyyy HH:mm", "28.07.2026 14:30", "2026-07-28T14:30:00"},
		{"M/d/yy h:mm a", "7/8/26 12:05 AM", "2026-07-08T00:05:00"},
		{"M/d/yy h:mm a", "7/8/26 2:05 pm", "2026-07-08T14:05:00"},
		{"yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2026-07-28T02:15:04", "2026-07-28T02:15:04"},
		{"yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2026-07-28T02:15:04.120+02:00", "2026-07-28T00:15:04.12"},
		{"yyyy-MM-dd'T'HH:mm:ss.SSSSSS", "2026-07-28T02:15:04.123456", "2026-07-28T02:15:04.123456"},
		{"EEE, dd MMM yyyy HH:mm:ss z", "Tue, 28 Jul 2026 02:15:04 GMT", "2026-07-28T02:15:04"},
		{"'o''clock' HH", "o'clock 05", "1970-01-01T05:00:00"},
		{"HH'' 'a b'", "05' a b", "1970-01-01T05:00:00"},
		{"yyyy-MM-dd", "2026-07-28 ", ""}, {"yyyy-MM-dd", "2026-7-28", ""}, {"yyyy-MM-dd", "2026-02-30", ""}, {"hh", "13", ""},
	} {
		p, err := parsePattern("timestampFormat", c.format)
		if err != nil {
			t.Errorf("%s: %v", c.format, err)
			continue
		}
		got := ""
		if r, ok := p.parse([]byte(c.text)); ok {
			got = time.UnixMicro(r.instant(time.UTC)).UTC().Format("2006-01-02T15:04:05.999999")
		}
		if got != c.want {
			t.Errorf("%s %q: %q, want %q", c.format, c.text, got, c.want)
		}
	}
	for _, bad := range []string{"", "qq", "yyyy[MM", "yyyy]", "'open", "HHH", "MMMMM", "DDD"} {
		if _, err := parsePattern("dateFormat", bad); fault.CodeOf(err) != "INVALID_DATETIME_PATTERN" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestDecimalsAgreeWithBigIntegers(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 40_000 {
		var b strings.Builder
		if rnd.IntN(2) == 0 {
			b.WriteByte('-')
		}
		whole, fraction := rnd.IntN(40), rnd.IntN(25)
		for range whole {
			b.WriteByte(byte('0' + rnd.IntN(10)))
		}
		if whole == 0 {
			b.WriteByte('0')
		}
		if fraction > 0 {
			b.WriteByte('.')
			for range fraction {
				b.WriteByte(byte('0' + rnd.IntN(10)))
			}
		}
		if rnd.IntN(4) == 0 {
			fmt.Fprintf(&b, "e%d", rnd.IntN(40)-20)
		}
		text := b.String()
		precision := int32(1 + rnd.IntN(38))
		scale := int32(rnd.IntN(int(precision) + 1))
		want, fits := roundedDecimal(text, precision, scale)
		got, ok := parseDecimal([]byte(text), precision, scale)
		if ok != fits || ok && bigOf(got).Cmp(want) != 0 {
			t.Fatalf("%s as decimal(%d,%d): %v %v, want %v %v", text, precision, scale, bigOf(got), ok, want, fits)
		}
	}
}

func roundedDecimal(text string, precision, scale int32) (*big.Int, bool) {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, false
	}
	ten := big.NewInt(10)
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(ten, big.NewInt(int64(scale)), nil)))
	neg := r.Sign() < 0
	r.Abs(r)
	num := new(big.Int).Mul(r.Num(), big.NewInt(2))
	num.Add(num, r.Denom())
	v := num.Quo(num, new(big.Int).Mul(r.Denom(), big.NewInt(2)))
	if v.Cmp(new(big.Int).Exp(ten, big.NewInt(int64(precision)), nil)) >= 0 {
		return nil, false
	}
	if neg {
		v.Neg(v)
	}
	return v, true
}

func bigOf(d decimal) *big.Int {
	v := new(big.Int).SetUint64(d.hi)
	v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(d.lo))
	if d.hi>>63 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), 128))
	}
	return v
}

func FuzzNumbers(f *testing.F) {
	for _, s := range []string{"0", "-0.0", "1e22", "1.7976931348623157e308", "5e-324", "123456789012345678901234567890", "0.1", "9007199254740993", "1e-400"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b := append([]byte(text), make([]byte, padding)...)
		s := jsonScan{b: b, end: len(text)}
		if s.token(0) != tokNumber {
			return
		}
		end, whole := s.number(0)
		if end < 0 {
			return
		}
		num := text[:end]
		got, ok := parseFloat([]byte(num), 64)
		want, err := strconv.ParseFloat(num, 64)
		if ok != (err == nil || math.IsInf(want, 0)) || ok && math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%s: %v %v, want %v %v", num, got, ok, want, err)
		}
		if whole {
			n, ok := parseInt([]byte(num))
			w, err := strconv.ParseInt(num, 10, 64)
			if ok != (err == nil) || ok && n != w {
				t.Fatalf("%s: %d %v, want %d %v", num, n, ok, w, err)
			}
		}
		d, ok := parseDecimal([]byte(num), 38, 10)
		if len(num) < 200 && !strings.ContainsAny(num, "eE") {
			if w, fits := roundedDecimal(num, 38, 10); ok != fits || ok && bigOf(d).Cmp(w) != 0 {
				t.Fatalf("%s: %v %v, want %v %v", num, bigOf(d), ok, w, fits)
			}
		}
	})
}

func FuzzTimestamps(f *testing.F) {
	f.Add("2026-07-28T02:15:04.123Z", "yyyy-MM-dd'T'HH:mm:ss[.SSS]X")
	f.Add("2026-7-8 2:5:4 Europe/Berlin", "M/d/yy h:mm a")
	f.Add("+99999-01-01", "EEEE, d MMMM uuuu")
	f.Fuzz(func(t *testing.T, text, format string) {
		conf := defaults(ReadFiles)
		conf.timestampOf([]byte(text))
		conf.timestampNTZOf([]byte(text))
		conf.dateOf([]byte(text))
		if at, err := time.Parse("2006-01-02T15:04:05.999999999Z07:00", text); err == nil && at.Year() > 0 && !strings.ContainsAny(text, ",") {
			if v, ok := conf.timestampOf([]byte(text)); ok && v != at.UnixMicro() && at.Nanosecond()%1000 == 0 {
				t.Fatalf("%s: %d, want %d", text, v, at.UnixMicro())
			}
		}
		if p, err := parsePattern("timestampFormat", format); err == nil {
			p.parse([]byte(text))
		}
	})
}
