package delta

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/faultstore"
)

const day = 24 * time.Hour

// calendar is a fixture whose clock, and the times of whose files, the test sets.
type calendar struct {
	*fixture
	now  time.Time
	seen map[string]bool
}

func newCalendar(t testing.TB) *calendar {
	c := &calendar{fixture: newFixture(t), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), seen: map[string]bool{}}
	c.table = c.open(c.store)
	return c
}

func (c *calendar) open(store storage.Store) *Table {
	return Open(store, WithAllocator(c.mem), WithClock(func() time.Time { return c.now }))
}

// stamp gives the files that are new the time of the calendar.
func (c *calendar) stamp() {
	c.t.Helper()
	err := filepath.WalkDir(c.dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || c.seen[p] {
			return err
		}
		c.seen[p] = true
		return os.Chtimes(p, c.now, c.now)
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.table = c.open(c.store) // the times of its commits have changed
}

// put writes a file that no version names.
func (c *calendar) put(names ...string) {
	c.t.Helper()
	for _, name := range names {
		if err := c.store.Put(background, name, []byte(name)); err != nil {
			c.t.Fatal(err)
		}
	}
	c.stamp()
}

func (c *calendar) vacuum(opt VacuumOptions) (gone []string, res VacuumResult) {
	c.t.Helper()
	opt.Each = func(i storage.Info) error {
		gone = append(gone, i.Name)
		return nil
	}
	res, err := c.table.Vacuum(background, opt)
	if err != nil {
		c.t.Fatal(err)
	}
	if int(res.Files) != len(gone) {
		c.t.Errorf("%d files counted, %d named", res.Files, len(gone))
	}
	return gone, res
}

func (c *calendar) exists(name string) bool {
	_, err := c.store.Stat(background, name)
	return err == nil
}

// covers §11: what is old and needed by no version goes; what was removed within the retention stays.
func TestVacuumDeletesWhatNoVersionInRetentionNeeds(t *testing.T) {
	c := newCalendar(t)
	s := c.create()
	files := c.files(s, "early", "late", "live")
	c.commit(Commit{Read: s, Add: files})
	c.put("orphan.parquet")
	c.commit(Commit{Read: c.snapshot(), Remove: files[:1]})
	c.stamp()
	c.now = c.now.Add(6 * day)
	c.commit(Commit{Read: c.snapshot(), Remove: files[1:2]})
	c.put("in_flight.parquet")
	c.now = c.now.Add(3 * day)

	want := []string{files[0].Path, "orphan.parquet"}
	slices.Sort(want)
	gone, res := c.vacuum(VacuumOptions{DryRun: true})
	if !slices.Equal(gone, want) || !c.exists(files[0].Path) {
		t.Errorf("a dry run would delete %v, want %v", gone, want)
	}
	if res.Cutoff != c.now.Add(-7*day) || res.Version != 3 || res.Listed != 4+3+2 {
		t.Errorf("%+v", res)
	}
	if gone, _ = c.vacuum(VacuumOptions{}); !slices.Equal(gone, want) {
		t.Errorf("deleted %v, want %v", gone, want)
	}
	for _, name := range want {
		if c.exists(name) {
			t.Errorf("%s is there", name)
		}
	}
	if got := c.cells(); got != "live" {
		t.Errorf("rows %s", got)
	}
	if gone, _ = c.vacuum(VacuumOptions{}); len(gone) > 0 {
		t.Errorf("again: %v", gone)
	}
	if gone, _ = c.vacuum(VacuumOptions{AllowShort: true}); !slices.Equal(gone, []string{"in_flight.parquet", files[1].Path}) {
		t.Errorf("with no retention: %v", gone)
	}
}

func TestVacuumLeavesHiddenNamesAlone(t *testing.T) {
	for name, hidden := range map[string]bool{
		"a.parquet": false, "p=1/a.parquet": false, "deletion_vector_x.bin": false, "ab/deletion_vector_x.bin": false,
		"_change_data/cdc.parquet": false, "p=1/_change_data/cdc.parquet": false, "_delta_index/x": false,
		"_col=1/a.parquet": false, ".dot=1/a.parquet": false, "_col=1/_col=2/a.parquet": false,
		"_delta_log/00000000000000000000.json": true, "_temporary/0/x": true, "_other=1/a.parquet": true,
		".hidden": true, ".crc/a": true, "a/.b/c": true, "_SUCCESS": true, "p=1/_x.parquet": true,
		"metadata/v1.json": true, "metadata": false, "a/metadata/x": false,
	} {
		if got := hiddenFromVacuum(name, []string{"p", "_col", ".dot"}); got != hidden {
			t.Errorf("%s: hidden %v", name, got)
		}
	}
	c := newCalendar(t)
	c.create()
	c.put("_stray/a", ".x/a", "_change_data/a", "q=1/a")
	c.now = c.now.Add(10 * day)
	if gone, _ := c.vacuum(VacuumOptions{}); !slices.Equal(gone, []string{"_change_data/a", "q=1/a"}) {
		t.Errorf("%v", gone)
	}
}

// covers §11: the vectors of live adds and of unexpired removes are kept, wherever they lie.
func TestVacuumKeepsVectorsAndChangeFiles(t *testing.T) {
	c := newCalendar(t)
	s := c.create()
	files := c.files(s, "a", "b", "c", "d")
	c.commit(Commit{Read: s, Add: files})
	vector := func(prefix string, n byte) (*DeletionVector, string) {
		raw := make([]byte, 16)
		raw[15] = n
		dv := &DeletionVector{StorageType: "u", PathOrInlineDv: prefix + encodeZ85(raw), SizeInBytes: 34, Cardinality: 1}
		name, err := relativeDV(dv.PathOrInlineDv)
		if err != nil {
			t.Fatal(err)
		}
		c.put(name)
		return dv, name
	}
	live, liveName := vector("", 1)
	prefixed, prefixedName := vector("x y", 2)
	gone, goneName := vector("", 3)
	expired, expiredName := vector("", 4)
	c.put("abs/deletion vector.bin", "_change_data/needed.parquet", "_change_data/expired.parquet")
	inside := &DeletionVector{StorageType: "p", PathOrInlineDv: "file://" + escapePath(storage.Root(c.store)) + "/abs/deletion%20vector.bin", SizeInBytes: 34, Cardinality: 1}
	c.log(2, "cdc", CDCFile{Path: "_change_data/expired.parquet"},
		"remove", removeOf(files[3], expired, c.now), "remove", removeOf(files[3], nil, c.now))
	c.now = c.now.Add(4 * day)
	c.log(3, "cdc", CDCFile{Path: "_change_data/needed.parquet"},
		"add", withVector(files[0], live), "remove", removeOf(files[0], nil, c.now),
		"add", withVector(files[1], prefixed), "remove", removeOf(files[1], inside, c.now),
		"remove", removeOf(files[2], gone, c.now))
	c.now = c.now.Add(4 * day)
	got, _ := c.vacuum(VacuumOptions{})
	want := []string{expiredName, files[3].Path, "_change_data/expired.parquet"}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("deleted %v, want %v", got, want)
	}
	for _, name := range []string{liveName, prefixedName, goneName, "abs/deletion vector.bin", "_change_data/needed.parquet"} {
		if !c.exists(name) {
			t.Errorf("%s is gone", name)
		}
	}
}

func withVector(f AddFile, dv *DeletionVector) AddFile {
	f.DeletionVector = dv
	return f
}

func removeOf(f AddFile, dv *DeletionVector, at time.Time) RemoveFile {
	f.DeletionVector = dv
	return f.removal(at.UnixMilli(), true)
}

// log writes one commit by hand, of pairs of a key and its action.
func (c *calendar) log(version int64, actions ...any) {
	c.t.Helper()
	lines := []any{map[string]any{"commitInfo": CommitInfo{Timestamp: c.now.UnixMilli(), Operation: "TEST"}}}
	for i := 0; i < len(actions); i += 2 {
		lines = append(lines, map[string]any{actions[i].(string): actions[i+1]})
	}
	data, err := encodeActions(lines)
	if err == nil {
		err = c.store.PutIfAbsent(background, commitName(version), data)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.stamp()
}

// A retention longer than the table's own outlives the removes of its checkpoints.
func TestALongerRetentionKeepsMore(t *testing.T) {
	c := newCalendar(t)
	c.commit(Commit{Schema: plain, Properties: map[string]string{"delta.deletedFileRetentionDuration": "interval 1 day", "delta.checkpointInterval": "3"}})
	s := c.snapshot()
	files := c.files(s, "a", "b")
	c.commit(Commit{Read: s, Add: files})
	c.stamp()
	c.now = c.now.Add(day)
	c.commit(Commit{Read: c.snapshot(), Remove: files[:1]})
	c.stamp()
	c.now = c.now.Add(3 * day)
	c.commit(Commit{Read: c.snapshot(), Add: c.files(s, "c")})
	c.stamp()
	if _, ok := c.snapshot().tombs.get(files[0].Path); ok {
		t.Fatal("the checkpoint holds an expired remove")
	}
	if gone, _ := c.vacuum(VacuumOptions{Retention: 4 * day}); len(gone) > 0 {
		t.Errorf("deleted %v", gone)
	}
	if gone, _ := c.vacuum(VacuumOptions{Retention: 2 * day}); !slices.Equal(gone, []string{files[0].Path}) {
		t.Errorf("deleted %v", gone)
	}
}

func TestRetentionsThatAreTooShortAreRefused(t *testing.T) {
	c := newCalendar(t)
	c.create()
	for _, opt := range []VacuumOptions{{Retention: time.Hour}, {Retention: 7*day - 1}, {Retention: 1, DryRun: true}} {
		if _, err := c.table.Vacuum(background, opt); fault.CodeOf(err) != "DELTA_VACUUM_RETENTION_TOO_SHORT" {
			t.Errorf("%+v: %v", opt, err)
		}
	}
	if _, err := c.table.Vacuum(background, VacuumOptions{Retention: -1, AllowShort: true}); fault.CodeOf(err) != "INVALID_ARGUMENT" {
		t.Error(err)
	}
	if _, err := newCalendar(t).table.Vacuum(background, VacuumOptions{}); fault.CodeOf(err) != "DELTA_TABLE_NOT_FOUND" {
		t.Error(err)
	}
}

// covers vacuumProtocolCheck: a writer feature may keep files that we would take for rubbish.
func TestTablesOfUnknownWritersAreNotVacuumed(t *testing.T) {
	for feature, refused := range map[string]bool{"madeUp": true, "identityColumns": false, "vacuumProtocolCheck": false, "catalogManaged": true} {
		c := newCalendar(t)
		c.create()
		p := Protocol{MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: []string{}, WriterFeatures: []string{feature}}
		if feature == "vacuumProtocolCheck" {
			p.ReaderFeatures = []string{feature}
		}
		c.log(1, "protocol", p)
		_, err := c.table.Vacuum(background, VacuumOptions{})
		if (fault.CodeOf(err) == "DELTA_UNSUPPORTED_FEATURE") != refused || !refused && err != nil {
			t.Errorf("%s: %v", feature, err)
		}
	}
}

// A file that is committed while the folder is read stays.
func TestVacuumSeesCommitsMadeMeanwhile(t *testing.T) {
	c := newCalendar(t)
	s := c.create()
	old := c.files(s, "slow")
	c.stamp()
	c.now = c.now.Add(30 * day)
	rival := c.open(c.store)
	twin := faultstore.New(c.store)
	c.table = c.open(twin)
	if _, err := c.table.Snapshot(background); err != nil {
		t.Fatal(err)
	}
	twin.Add(faultstore.Rule{Op: faultstore.OpList, Name: "", Times: 1, Effect: faultstore.Call(func() {
		if _, err := rival.Commit(background, Commit{Read: s, Add: old}); err != nil {
			t.Error(err)
		}
	})})
	if gone, res := c.vacuum(VacuumOptions{}); len(gone) > 0 || res.Version != 1 {
		t.Errorf("deleted %v at version %d", gone, res.Version)
	}
	if got := c.cells(); got != "slow" {
		t.Errorf("rows %s", got)
	}
}

// What a writer that died was writing goes, too, but never what one writes now.
func TestVacuumSweepsWhatDeadWritersLeft(t *testing.T) {
	c := newCalendar(t)
	c.create()
	for _, name := range []string{".tmp-part-1", "_delta_log/.tmp-00000000000000000009.json-1"} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.stamp()
	c.now = c.now.Add(time.Minute)
	if gone, _ := c.vacuum(VacuumOptions{AllowShort: true}); len(gone) > 0 {
		t.Errorf("a minute old: %v", gone)
	}
	c.now = c.now.Add(8 * day)
	if gone, _ := c.vacuum(VacuumOptions{}); !slices.Equal(gone, []string{".tmp-part-1", "_delta_log/.tmp-00000000000000000009.json-1"}) {
		t.Errorf("swept %v", gone)
	}
	if gone, _ := c.vacuum(VacuumOptions{}); len(gone) > 0 {
		t.Errorf("again: %v", gone)
	}
}

func TestAVacuumThatFailsTellsWhatItDid(t *testing.T) {
	c := newCalendar(t)
	c.create()
	c.put("a", "b", "c")
	c.now = c.now.Add(30 * day)
	c.table = c.open(faultstore.New(c.store, faultstore.Rule{Op: faultstore.OpDelete, Name: "b", Effect: faultstore.Fail(errLost)}))
	res, err := c.table.Vacuum(background, VacuumOptions{})
	if !errors.Is(err, errLost) || res.Files > 2 {
		t.Errorf("%+v, %v", res, err)
	}
}

// Property: whatever the history, a vacuum changes no version that was current
// within the retention, and leaves no old file that none of these needs.
func TestVacuumNeverChangesAKeptVersion(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 11))
		c := newCalendar(t)
		c.commit(Commit{Schema: plain, Properties: map[string]string{"delta.checkpointInterval": fmt.Sprint(2 + r.IntN(5))}})
		c.stamp()
		times := []time.Time{c.now}
		for i := range 4 + r.IntN(16) {
			c.now = c.now.Add(time.Duration(r.IntN(int(2 * day))))
			s := c.snapshot()
			live, err := s.Files(background)
			if err != nil {
				t.Fatal(err)
			}
			commit := Commit{Read: s, Add: c.files(s, fmt.Sprint("f", i))}
			for _, f := range live {
				if r.IntN(4) == 0 {
					commit.Remove = append(commit.Remove, f)
				}
			}
			if r.IntN(5) == 0 {
				c.put(fmt.Sprintf("orphan%d.parquet", i))
			}
			c.commit(commit)
			c.stamp()
			times = append(times, c.now)
		}
		c.now = c.now.Add(time.Duration(r.IntN(int(8 * day))))
		cutoff := c.now.Add(-7 * day)
		before := map[int]string{}
		needed := map[string]bool{}
		for v := range times {
			if v+1 < len(times) && times[v+1].Before(cutoff) {
				continue
			}
			before[v] = c.rowsAt(v, needed)
		}
		c.vacuum(VacuumOptions{})
		for v, want := range before {
			if got := c.rowsAt(v, nil); got != want {
				t.Errorf("seed %d: version %d reads %q, was %q", seed, v, got, want)
			}
		}
		for info, err := range c.store.List(background, "", storage.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if info.ModTime.Before(cutoff) && !needed[info.Name] && !strings.HasPrefix(info.Name, "_") {
				t.Errorf("seed %d: %s was left", seed, info.Name)
			}
		}
	}
}

// rowsAt scans a version and notes the files it is made of.
func (c *calendar) rowsAt(version int, needed map[string]bool) string {
	c.t.Helper()
	s, err := c.open(c.store).SnapshotAt(background, int64(version))
	if err != nil {
		c.t.Fatal(err)
	}
	files, err := s.Files(background)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, f := range files {
		if needed != nil {
			needed[f.Path] = true
		}
	}
	rows, err := scanRows(background, s, ScanOptions{}, nil)
	if err != nil {
		return err.Error()
	}
	slices.Sort(rows)
	return strings.Join(rows, "\n")
}
