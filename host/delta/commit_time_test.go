package delta

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

const commitTimestamps = "delta.enableInCommitTimestamps"

// clock gives the table a clock that the test sets.
func (f *fixture) clock(at *time.Time) {
	f.table = Open(f.store, WithAllocator(f.mem), WithClock(func() time.Time { return *at }))
}

func TestCommitTimestampsOnlyRise(t *testing.T) {
	f := newFixture(t)
	now := time.UnixMilli(5_000_000_000_000).UTC()
	f.clock(&now)
	f.commit(Commit{Schema: plain, Properties: map[string]string{commitTimestamps: "true"}})
	want := now.UnixMilli()
	for i, step := range []time.Duration{time.Minute, 0, -time.Hour, time.Hour} {
		now = now.Add(step)
		f.commit(Commit{Read: f.snapshot()})
		want = max(now.UnixMilli(), want+1)
		if got := f.snapshot().Timestamp().UnixMilli(); got != want {
			t.Errorf("version %d is of %d, want %d", i+1, got, want)
		}
	}
	if conf := f.snapshot().Properties(); len(conf) != 1 {
		t.Errorf("a table that always had them says since when: %v", conf)
	}
}

// The commit that enables them is later than the file of the one before, and says which it is.
func TestEnablingCommitTimestampsOnATableThatIsThere(t *testing.T) {
	f := newFixture(t)
	now := time.UnixMilli(1_000_000_000_000).UTC()
	f.clock(&now)
	f.commit(Commit{Schema: plain})
	f.commit(Commit{Read: f.snapshot()})
	modified := time.UnixMilli(2_000_000_000_000)
	if err := os.Chtimes(filepath.Join(f.dir, filepath.FromSlash(commitName(1))), modified, modified); err != nil {
		t.Fatal(err)
	}
	f.clock(&now)
	f.commit(Commit{Read: f.snapshot(), Properties: map[string]string{commitTimestamps: "true"}})
	s := f.snapshot()
	if got := s.Timestamp().UnixMilli(); got != modified.UnixMilli()+1 {
		t.Errorf("enabled at %d, the file before is of %d", got, modified.UnixMilli())
	}
	conf := s.Properties()
	if conf["delta.inCommitTimestampEnablementVersion"] != "2" || conf["delta.inCommitTimestampEnablementTimestamp"] != strconv.FormatInt(modified.UnixMilli()+1, 10) {
		t.Errorf("%v", conf)
	}
	// Off and on again, the later enablement counts.
	f.commit(Commit{Read: f.snapshot(), Properties: map[string]string{commitTimestamps: "false"}})
	if e, err := f.table.entry(background, 3); err != nil || e.CommitInfo.InCommitTimestamp != nil {
		t.Errorf("%+v, %v", e.CommitInfo, err)
	}
	now = time.UnixMilli(3_000_000_000_000)
	f.commit(Commit{Read: f.snapshot(), Properties: map[string]string{commitTimestamps: "true"}})
	if conf := f.snapshot().Properties(); conf["delta.inCommitTimestampEnablementVersion"] != "4" {
		t.Errorf("%v", conf)
	}
}

// A table that forgets transactions does so by the time they were made, with its checkpoints.
func TestOldTransactionsAreForgottenWhereTheTableSaysSo(t *testing.T) {
	f := newFixture(t)
	now := time.UnixMilli(5_000_000_000_000).UTC()
	f.clock(&now)
	txn := func(app string) *Txn { return &Txn{AppID: app, Version: 1} }
	has := func(app string, want bool) {
		t.Helper()
		if err := f.table.writeCheckpoint(background, f.snapshot()); err != nil {
			t.Fatal(err)
		}
		f.clock(&now) // from the checkpoint
		if _, ok := f.snapshot().Txn(app); ok != want {
			t.Errorf("%s is there: %t", app, ok)
		}
	}
	f.commit(Commit{Schema: plain, Txn: txn("old")})
	now = now.Add(2 * time.Hour)
	f.commit(Commit{Read: f.snapshot(), Txn: txn("new")})
	has("old", true)
	f.commit(Commit{Read: f.snapshot(), Properties: map[string]string{"delta.setTransactionRetentionDuration": "interval 1 hour"}})
	has("old", false)
	has("new", true)
	now = now.Add(2 * time.Hour)
	has("new", false)
}
