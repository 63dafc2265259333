package delta

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Rule: a compacted file stands for its commits, whatever ranges there are.
func TestCompactedLogsGiveTheStateOfTheirCommits(t *testing.T) {
	for seed := range uint64(6) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		f := newFixture(t)
		f.history(map[string]string{"delta.checkpointInterval": "1000000"}, 25)
		f.commit(Commit{Read: f.snapshot(), ReplaceAll: true, Properties: map[string]string{"k": "v"}})
		f.commit(Commit{Read: f.snapshot(), Add: f.write(WriteOptions{Snapshot: f.snapshot(), Name: "last"}, `[{"id":1,"s":"z"}]`)})
		want := map[int64]map[string]any{}
		for _, v := range []int64{5, 13, 24, 27} {
			s, err := f.reopen().SnapshotAt(background, v)
			if err != nil {
				t.Fatal(err)
			}
			want[v] = state(t, s)
		}
		for range 6 {
			from := rnd.Int64N(26)
			if err := f.table.CompactLog(background, from, from+1+rnd.Int64N(27-from)); err != nil {
				t.Fatal(err)
			}
		}
		if seed%2 == 1 {
			if _, err := f.table.Checkpoint(background, CheckpointClassic); err != nil {
				t.Fatal(err)
			}
		}
		used := 0
		seg, err := f.table.list(background, 0)
		if err != nil {
			t.Fatal(err)
		}
		for v, want := range want {
			for _, p := range seg.parts(0, v) {
				if p.name != "" {
					used++
				}
			}
			s, err := f.reopen().SnapshotAt(background, v)
			if err != nil {
				t.Fatal(err)
			}
			f.equalStates(fmt.Sprintf("seed %d, version %d", seed, v), state(t, s), want)
		}
		if used == 0 {
			t.Errorf("seed %d: no compacted file is used", seed)
		}
	}
}

func TestRangesThatCannotBeCompacted(t *testing.T) {
	f := newFixture(t)
	f.history(nil, 3)
	for _, c := range []struct {
		from, to int64
		code     string
	}{{-1, 2, "INVALID_ARGUMENT"}, {2, 2, "INVALID_ARGUMENT"}, {3, 1, "INVALID_ARGUMENT"}, {2, 9, "DELTA_VERSION_NOT_FOUND"}} {
		if err := f.table.CompactLog(background, c.from, c.to); !codeIs(err, c.code) {
			t.Errorf("%d..%d: %v", c.from, c.to, err)
		}
	}
	for range 2 { // the second time finds it done
		if err := f.table.CompactLog(background, 1, 3); err != nil {
			t.Error(err)
		}
	}
	data, err := os.ReadFile(filepath.Join(f.dir, compactedName(1, 3)))
	if err != nil || strings.Contains(string(data), "commitInfo") || !strings.Contains(string(data), `"dataChange":false`) {
		t.Errorf("%s, %v", data, err)
	}
}

// Rule: a compacted file that is damaged, foreign or gone costs time, never the table.
func TestADamagedCompactedFileIsPassedOver(t *testing.T) {
	f := newFixture(t)
	f.history(map[string]string{"delta.checkpointInterval": "1000000"}, 8)
	want := state(t, f.snapshot())
	if err := f.table.CompactLog(background, 1, 6); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.dir, compactedName(1, 6))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var strung []byte // newest first, as some writers have it
	for v := int64(6); v > 0; v-- {
		commit, err := os.ReadFile(filepath.Join(f.dir, commitName(v)))
		if err != nil {
			t.Fatal(err)
		}
		strung = append(strung, commit...)
	}
	for name, content := range map[string]string{"cut": string(data[:len(data)/2]), "text": "{", "no actions": "[]", "not reconciled": string(strung), "a transaction twice": string(data) + `{"txn":{"appId":"app0","version":0}}`, "two protocols": `{"protocol":{}}{"protocol":{}}`} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		f.sameState(name, want)
	}
	// Names that say nothing of use.
	f.remove(path)
	for _, n := range []string{"x.00000000000000000003.compacted.json", "00000000000000000002.3.compacted.json", "00000000000000000005.00000000000000000005.compacted.json",
		"00000000000000000006.00000000000000000005.compacted.json", "00000000000000000002.00000000000000000099.compacted.json"} {
		if err := os.WriteFile(filepath.Join(f.dir, logFolder, n), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f.sameState("odd names", want)
}
