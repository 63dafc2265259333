package delta

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-data/weir/host/fault"
)

var v2Properties = map[string]string{"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "1000000"}

// history makes a table with partitions, transactions, a domain, removed files and some versions.
func (f *fixture) history(properties map[string]string, commits int) {
	f.t.Helper()
	f.commit(Commit{Schema: plain, PartitionBy: []string{"s"}, Properties: properties, Name: "n", Comment: "c"})
	for i := range commits {
		c := Commit{Read: f.snapshot(), Txn: &Txn{AppID: fmt.Sprint("app", i%3), Version: int64(i)},
			Add: f.write(WriteOptions{Snapshot: f.snapshot(), Name: fmt.Sprint(i)}, fmt.Sprintf(`[{"id":%d,"s":"a/b %d"},{"id":1,"s":null}]`, i, i))}
		if i%4 == 3 {
			live, err := f.snapshot().Files(background)
			if err != nil {
				f.t.Fatal(err)
			}
			c.Remove = live[:2]
		}
		f.commit(c)
	}
}

// logFiles gives the paths of files of the log, sorted.
func (f *fixture) logFiles(pattern string) []string {
	f.t.Helper()
	names, err := filepath.Glob(filepath.Join(f.dir, logFolder, pattern))
	if err != nil {
		f.t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func (f *fixture) remove(names ...string) {
	f.t.Helper()
	for _, n := range names {
		if err := os.Remove(n); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fixture) sameState(what string, want map[string]any) {
	f.t.Helper()
	s, err := f.reopen().Snapshot(background)
	if err != nil {
		f.t.Fatalf("%s: %v", what, err)
	}
	f.equalStates(what, state(f.t, s), want)
}

func (f *fixture) equalStates(what string, got, want map[string]any) {
	f.t.Helper()
	for k := range want {
		if !reflect.DeepEqual(got[k], want[k]) {
			f.t.Errorf("%s: %s:\n%+v\nwant\n%+v", what, k, got[k], want[k])
		}
	}
}

// Rule: every form of checkpoint holds the whole state, alone.
func TestEveryFormOfCheckpointHoldsTheWholeState(t *testing.T) {
	for _, form := range []CheckpointForm{CheckpointClassic, CheckpointV2, CheckpointV2JSON, CheckpointByPolicy} {
		t.Run("form "+string(form), func(t *testing.T) {
			f := newFixture(t)
			f.history(v2Properties, 9)
			want := state(t, f.snapshot())
			if v, err := f.table.Checkpoint(background, form); err != nil || v != 9 {
				t.Fatal(v, err)
			}
			for _, n := range f.logFiles("*.json") {
				if !strings.Contains(n, "checkpoint") {
					f.remove(n)
				}
			}
			f.sameState("checkpoint alone", want)
			f.remove(f.logFiles("_last_checkpoint")...)
			f.sameState("without the hint", want)
			sidecars := f.logFiles("_sidecars/*")
			if (len(sidecars) == 0) != (form == CheckpointClassic) {
				t.Errorf("%d sidecars", len(sidecars))
			}
		})
	}
}

func TestV2CheckpointsNeedTheirFeature(t *testing.T) {
	f := newFixture(t)
	f.create()
	if _, err := f.table.Checkpoint(background, CheckpointV2); !codeIs(err, "DELTA_UNSUPPORTED_FEATURE") {
		t.Error(err)
	}
	if _, err := f.table.Checkpoint(background, "x"); !codeIs(err, "INVALID_ARGUMENT") {
		t.Error(err)
	}
}

// Rule: sidecars that still hold true are named again, those that do not are written anew.
func TestSidecarsAreUsedAgain(t *testing.T) {
	f := newFixture(t)
	f.history(v2Properties, 40)
	checkpoint := func() map[string]bool {
		t.Helper()
		if _, err := f.table.Checkpoint(background, CheckpointV2); err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		sidecars, err := f.table.sidecarsIn(background, strings.TrimPrefix(f.logFiles(fmt.Sprintf("%020d.checkpoint.*", f.snapshot().version))[0], f.dir+"/"))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sidecars {
			names[s.Path] = true
		}
		return names
	}
	first := checkpoint()
	for _, reopen := range []bool{false, true} {
		if reopen {
			f.table = f.reopen()
		}
		f.commit(Commit{Read: f.snapshot(), Add: f.write(WriteOptions{Snapshot: f.snapshot(), Name: fmt.Sprint("more", reopen)}, `[{"id":7,"s":"x"}]`)})
		second := checkpoint()
		for name := range first {
			if !second[name] {
				t.Errorf("reopened %v: sidecar %s was written anew", reopen, name)
			}
		}
		if reopen && len(second) != 2 {
			t.Errorf("%d sidecars: small ones are merged", len(second))
		}
		f.sameState("with sidecars used again", state(t, f.snapshot()))
	}
	live, err := f.snapshot().Files(background)
	if err != nil {
		t.Fatal(err)
	}
	f.commit(Commit{Read: f.snapshot(), Remove: live[:1]})
	third := checkpoint()
	for name := range first {
		if third[name] {
			t.Errorf("sidecar %s holds a file that is gone", name)
		}
	}
	f.remove(f.logFiles("_sidecars/*")...) // as by a cleanup of another writer
	f.commit(Commit{Read: f.snapshot()})
	checkpoint()
	f.sameState("after the sidecars were removed", state(t, f.snapshot()))
}

// Rule: the sidecars of many checkpoints do not become many.
func TestTheNumberOfSidecarsStaysSmall(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: plain, Properties: map[string]string{"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "1"}})
	for i := range 60 {
		f.commit(Commit{Read: f.snapshot(), Add: f.files(f.snapshot(), fmt.Sprint("f", i))})
	}
	if n := len(f.table.sidecars); n > 8 {
		t.Errorf("%d sidecars after 60 checkpoints", n)
	}
	f.sameState("after 60 checkpoints", state(t, f.snapshot()))
}

// Rule: the checksum's test vector of the protocol, and what it guards.
func TestTheHintHasTheChecksumOfTheProtocol(t *testing.T) {
	sum, err := jsonChecksum([]byte(`{"k0":"'v 0'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}`))
	if err != nil || sum != "6a92d155a59bf2eecbd4b4ec7fd1f875" {
		t.Errorf("%s, %v", sum, err)
	}
	for _, bad := range []string{``, `{`, `{"a":1,"a":2}`, `{"a":1} {}`, strings.Repeat("[", 200)} {
		if sum, err := jsonChecksum([]byte(bad)); err == nil {
			t.Errorf("%s: %s", bad, sum)
		}
	}
	f := newFixture(t)
	f.history(v2Properties, 5)
	if _, err := f.table.Checkpoint(background, CheckpointV2); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.dir, lastCheckpointName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var hint struct {
		Version, Size, SizeInBytes, NumOfAddFiles int64
		Checksum                                  string
		V2Checkpoint                              struct {
			Path           string
			SidecarFiles   []sidecar
			NonFileActions []map[string]any
		}
	}
	if err := json.Unmarshal(data, &hint); err != nil {
		t.Fatal(err)
	}
	if hint.Version != 5 || hint.NumOfAddFiles != 8 || hint.Size != 6+1+8+2 || len(hint.V2Checkpoint.SidecarFiles) != 1 || len(hint.V2Checkpoint.NonFileActions) != 6 || !strings.HasPrefix(hint.V2Checkpoint.Path, "00000000000000000005.checkpoint.") {
		t.Errorf("%s", data)
	}
	if v, ok := decodeHint(data); v != 5 || !ok {
		t.Errorf("%d, %v", v, ok)
	}
	if _, ok := decodeHint([]byte(strings.Replace(string(data), `"version":5`, `"version":4`, 1))); ok {
		t.Error("a hint that does not fit its checksum is taken")
	}
}

// dayOf2024 gives a time in 2024 by its day of the year.
func dayOf2024(n float64) time.Time {
	return time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n * 24 * float64(time.Hour)))
}

// Rule (reference §9): cleanup keeps the newest checkpoint that is not newer
// than the first version to be kept, its commit, and all after it; it takes
// compacted files that start at or before it, and sidecars that nothing names.
func TestTheLogIsCleanedUpToACheckpoint(t *testing.T) {
	f := newFixture(t)
	now := dayOf2024(0)
	clock := WithClock(func() time.Time { return now })
	f.table = Open(f.store, WithAllocator(f.mem), clock)
	f.commit(Commit{Schema: plain, Properties: map[string]string{"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "5", "delta.logRetentionDuration": "interval 10 days"}})
	at := func(name string, when time.Time) {
		if err := os.Chtimes(filepath.Join(f.dir, name), when, when); err != nil {
			t.Fatal(err)
		}
	}
	at(commitName(0), now)
	for i := range 23 {
		now = dayOf2024(float64(i + 1))
		f.commit(Commit{Read: f.snapshot(), ReplaceAll: i%6 == 5, Add: f.files(f.snapshot(), fmt.Sprint("f", i))})
		at(commitName(int64(i+1)), now)
		for _, n := range f.logFiles("_sidecars/*") {
			at(strings.TrimPrefix(n, f.dir+"/"), now)
		}
		f.table = Open(f.store, WithAllocator(f.mem), clock) // times of commits are remembered
	}
	// Day 23, retention 10 days: commit 13 is the first to keep, checkpoint 10 the newest not after it.
	for _, name := range []string{"00000000000000000002.00000000000000000004.compacted.json", "00000000000000000010.00000000000000000012.compacted.json",
		"00000000000000000011.00000000000000000012.compacted.json", "00000000000000000009.crc", "00000000000000000010.crc", "00000000000000000009.unknown"} {
		if err := os.WriteFile(filepath.Join(f.dir, logFolder, name), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	removed, err := f.table.CleanUpLog(background)
	if err != nil || len(removed) == 0 {
		t.Fatal(removed, err)
	}
	var kept []string
	for _, n := range f.logFiles("0*") {
		kept = append(kept, strings.TrimLeft(filepath.Base(n)[:20], "0")+filepath.Base(n)[20:])
	}
	for _, n := range kept {
		v, rest, _ := strings.Cut(n, ".")
		if len(v) < 2 && rest != "unknown" || n == "10.00000000000000000012.compacted.json" {
			t.Errorf("kept %s", n)
		}
	}
	for _, want := range []string{"10.json", "10.crc", "11.json", "23.json", "9.unknown", "11.00000000000000000012.compacted.json"} {
		if !slices.Contains(kept, want) {
			t.Errorf("%s is gone: %v", want, kept)
		}
	}
	f.remove(f.logFiles("*.compacted.json")...)
	named, err := f.table.namedSidecars(background)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range f.logFiles("_sidecars/*") {
		info, err := os.Stat(n)
		if err != nil {
			t.Fatal(err)
		}
		if !named[strings.TrimPrefix(n, f.dir+"/")] && info.ModTime().Before(dayOf2024(21)) {
			t.Errorf("sidecar %s is named by nothing", n)
		}
	}
	for v := int64(10); v <= 23; v++ {
		if _, err := f.reopen().SnapshotAt(background, v); err != nil {
			t.Errorf("version %d: %v", v, err)
		}
	}
	if again, err := f.table.CleanUpLog(background); err != nil || len(again) != 0 {
		t.Errorf("again: %v, %v", again, err)
	}
}

// Rule: what a checkpoint that cannot be read stands for is not removed, and
// the property switches the cleanup off.
func TestTheLogIsNotCleanedUpBehindADamagedCheckpoint(t *testing.T) {
	for _, broken := range []bool{false, true} {
		f := newFixture(t)
		now := dayOf2024(0)
		f.table = Open(f.store, WithAllocator(f.mem), WithClock(func() time.Time { return now }))
		f.commit(Commit{Schema: plain, Properties: map[string]string{"delta.checkpointInterval": "5", "delta.enableExpiredLogCleanup": "false", "delta.logRetentionDuration": "interval 1 day"}})
		for i := range 7 {
			f.commit(Commit{Read: f.snapshot(), Add: f.files(f.snapshot(), fmt.Sprint("f", i))})
		}
		for v := range int64(8) {
			if err := os.Chtimes(filepath.Join(f.dir, commitName(v)), now, now); err != nil {
				t.Fatal(err)
			}
		}
		now = dayOf2024(30)
		f.table = Open(f.store, WithAllocator(f.mem), WithClock(func() time.Time { return now }))
		for i := range 3 { // up to the checkpoint at 10
			f.commit(Commit{Read: f.snapshot(), Add: f.files(f.snapshot(), fmt.Sprint("g", i))})
		}
		if n := len(f.logFiles("*.json")); n != 11 {
			t.Fatalf("%d commits: cleaned up although switched off", n)
		}
		if broken {
			if err := os.WriteFile(filepath.Join(f.dir, checkpointName(5)), []byte("PAR1"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		removed, err := f.table.CleanUpLog(background)
		if err != nil || (len(removed) == 0) != broken {
			t.Errorf("broken %v: %v, %v", broken, removed, err)
		}
	}
}

func codeIs(err error, code string) bool { return fault.CodeOf(err) == code }
