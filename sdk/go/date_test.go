package weir

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestDatesEqualThoseOfPackageTime(t *testing.T) {
	for day := -800_000; day < 3_000_000; day += 37 {
		want := time.Unix(int64(day)*86400, 0).UTC()
		y, m, d := Date(day).Civil()
		if y != want.Year() || m != int(want.Month()) || d != want.Day() || DateOf(y, m, d) != Date(day) {
			t.Fatalf("day %d is %d-%d-%d, want %v", day, y, m, d, want)
		}
		if y < 1 || y > 9999 {
			continue
		}
		for _, layout := range []string{"2006-01-02", "20060102"} {
			if got, ok := ParseDate(want.Format(layout)); !ok || got != Date(day) {
				t.Fatalf("%s read as %d, %v", want.Format(layout), got, ok)
			}
		}
		if Date(day).String() != want.Format("2006-01-02") {
			t.Fatalf("day %d prints as %s", day, Date(day))
		}
	}
}

func TestDaysThatDoNotExistAreNoDates(t *testing.T) {
	for _, text := range []string{"", "0000-00-00", "00000000", "2023-02-29", "20230229", "2024-13-01", "2024-00-10", "2024-01-00", "2024-01-32",
		"2024-1-1", "24-01-01", "2024/01/01", "2024-01-01T", " 2024-01-01", "202401011", "2024-0a-01", "-2024-01-1"} {
		if d, ok := ParseDate(text); ok {
			t.Errorf("%q was read as %s", text, d)
		}
	}
}

func TestTimestampsEqualThoseOfPackageTime(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		us := r.Int64N(4e15) - 2e15
		if r.IntN(2) == 0 {
			us -= us % 1_000_000
		}
		want := time.UnixMicro(us).UTC()
		text := string(AppendTimestamp(nil, us))
		if back, err := time.Parse(time.RFC3339, text); err != nil || !back.Equal(want) {
			t.Fatalf("%d printed as %s: %v", us, text, err)
		}
		zone := time.FixedZone("", (r.IntN(29)-14)*3600+r.IntN(4)*900)
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999Z07:00", "2006-01-02T15:04:05.000000000-0700"} {
			text := want.In(zone).Format(layout)
			got, zoned, ok := ParseTimestamp(text)
			if !ok || !zoned || got != us {
				t.Fatalf("%s read as %d, %v, %v; want %d", text, got, zoned, ok, us)
			}
		}
	}
	for _, text := range []string{"", "2026-07-28", "2026-07-28T", "2026-07-28T25:00:00Z", "2026-07-28T02:60:00Z", "2026-07-28T02:15:60Z", "2026-07-28T02:15:04X",
		"2026-07-28T02:15:04.", "2026-07-28T02:15:04+2", "2026-07-28x02:15:04", "2026-02-30T02:15:04Z", "2026-07-28T02:15:04+02:0", "2026-07-28T02:15:04.1234567890Z"} {
		if us, _, ok := ParseTimestamp(text); ok {
			t.Errorf("%q was read as %s", text, AppendTimestamp(nil, us))
		}
	}
	if us, zoned, ok := ParseTimestamp("2026-07-28 02:15"); !ok || zoned || us != 1785204900000000 {
		t.Errorf("a timestamp without seconds and zone: %d, %v, %v", us, zoned, ok)
	}
}
