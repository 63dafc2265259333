package delta

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-data/weir/host/fault"
)

// setTimes gives the commits the times that a foreign disk might: ms by version.
func (f *fixture) setTimes(times ...int64) {
	f.t.Helper()
	for v, ms := range times {
		at := time.UnixMilli(ms)
		if err := os.Chtimes(filepath.Join(f.dir, commitName(int64(v))), at, at); err != nil {
			f.t.Fatal(err)
		}
	}
}

// asOf says which version a time leads to, or the code of the error.
func asOf(t *Table, ms int64) string {
	s, err := t.SnapshotAsOf(background, time.UnixMilli(ms))
	if err != nil {
		return fault.CodeOf(err)
	}
	return fmt.Sprint(s.Version())
}

func since(t *Table, ms int64) string {
	v, err := t.VersionSince(background, time.UnixMilli(ms))
	if err != nil {
		return fault.CodeOf(err)
	}
	return fmt.Sprint(v)
}

const (
	tooEarly = "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"
	tooLate  = "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"
)

func (f *fixture) checkTravel(what string, now int64, asOfWant, sinceWant map[int64]string) {
	f.t.Helper()
	table := Open(f.store, WithAllocator(f.mem), WithClock(func() time.Time { return time.UnixMilli(now) }))
	for ms, want := range asOfWant {
		if got := asOf(table, ms); got != want {
			f.t.Errorf("%s: as of %d: %s, want %s", what, ms, got, want)
		}
	}
	for ms, want := range sinceWant {
		if got := since(table, ms); got != want {
			f.t.Errorf("%s: since %d: %s, want %s", what, ms, got, want)
		}
	}
}

// Rule: without in-commit timestamps the files' times count, raised so that they ascend.
func TestTimeTravelByTheTimesOfFiles(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	for i := range 4 {
		f.commit(Commit{Read: s, Add: f.files(s, fmt.Sprint("n", i))})
	}
	f.setTimes(10_000, 20_000, 15_000, 20_000, 30_000) // 10000, 20000, 20001, 20002, 30000
	f.checkTravel("file times", 40_000,
		map[int64]string{9_999: tooEarly, 10_000: "0", 19_999: "0", 20_000: "1", 20_001: "2", 20_002: "3", 29_999: "3", 30_000: "4", 39_000: "4", 40_001: tooLate},
		map[int64]string{0: "0", 10_000: "0", 10_001: "1", 20_000: "1", 20_001: "2", 20_003: "4", 30_000: "4", 30_001: tooLate})
}

// Rule (reference §10): at or after the enablement only in-commit timestamps
// count, before it only the times of files.
func TestTimeTravelIsPiecewiseAroundTheEnablement(t *testing.T) {
	f := newFixture(t)
	now := int64(10_000)
	f.table = Open(f.store, WithAllocator(f.mem), WithClock(func() time.Time { return time.UnixMilli(now) }))
	s := f.create()
	f.commit(Commit{Read: s, Add: f.files(s, "a")})
	f.setTimes(10_000, 90_000) // the second file's time is later than all that follows
	now = 50_000
	f.commit(Commit{Read: f.snapshot(), Properties: map[string]string{"delta.enableInCommitTimestamps": "true"}, Timestamp: time.UnixMilli(95_000)})
	for i := range 2 {
		now = 100_000 + int64(i)*10_000
		f.commit(Commit{Read: f.snapshot(), Add: f.files(f.snapshot(), fmt.Sprint("n", i))})
	}
	f.setTimes(10_000, 90_000, 1, 2, 3) // of no account from version 2 on
	f.checkTravel("enabled later", 200_000,
		map[int64]string{9_999: tooEarly, 10_000: "0", 89_999: "0", 90_000: "1", 94_999: "1", 95_000: "2", 99_999: "2", 100_000: "3", 109_999: "3", 110_000: "4", 150_000: "4"},
		map[int64]string{10_001: "1", 90_001: "2", 95_000: "2", 95_001: "3", 110_000: "4", 110_001: tooLate})
}

// Rule: only versions that can be reconstructed are found by time.
func TestTimeTravelInACleanedLog(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	for i := range 12 {
		f.commit(Commit{Read: s, Add: f.files(s, fmt.Sprint("n", i))})
	}
	var times []int64
	for v := range 13 {
		times = append(times, int64(v)*1000)
	}
	f.setTimes(times...)
	for v := range int64(8) { // 8 and 9 are there, but nothing they build on
		if err := os.Remove(filepath.Join(f.dir, commitName(v))); err != nil {
			t.Fatal(err)
		}
	}
	f.checkTravel("commit of the checkpoint kept", 20_000,
		map[int64]string{9_999: tooEarly, 10_000: "10", 11_500: "11", 12_000: "12"}, map[int64]string{0: "10", 11_000: "11"})
	if err := os.Remove(filepath.Join(f.dir, commitName(10))); err != nil {
		t.Fatal(err)
	}
	f.checkTravel("commit of the checkpoint gone", 20_000,
		map[int64]string{10_999: tooEarly, 11_000: "11", 12_000: "12"}, map[int64]string{0: "11"})
}
