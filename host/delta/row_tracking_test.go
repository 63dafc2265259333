package delta

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage/faultstore"
)

var tracked = map[string]string{enableRowTracking: "true", "delta.enableDeletionVectors": "true"}

// ids gives the live files as "name base+version", by path.
func (f *fixture) ids() string {
	var out []string
	for _, file := range f.live() {
		base, version := "-", "-"
		if file.BaseRowID != nil {
			base = itoa(*file.BaseRowID)
		}
		if file.DefaultRowCommitVersion != nil {
			version = itoa(*file.DefaultRowCommitVersion)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(file.Path, "part-00000-"), "-c000.zstd.parquet")
		out = append(out, fmt.Sprintf("%s %s+%s", name, base, version))
	}
	return strings.Join(out, ", ")
}

func (f *fixture) wantIDs(want string, mark int) {
	f.t.Helper()
	if got := f.ids(); got != want {
		f.t.Errorf("files are %s, want %s", got, want)
	}
	conf := f.snapshot().Domains()[rowTrackingDomainName]
	if conf != fmt.Sprintf(`{"rowIdHighWaterMark":%d}`, mark) {
		f.t.Errorf("the highest id is %s, want %d", conf, mark)
	}
}

func TestRowsOfNewFilesGetIDs(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: plain, Properties: tracked, Add: f.letters(nil, "1", "abc")})
	f.wantIDs("1 0+0", 2)
	s := f.snapshot()
	p, conf := s.Protocol(), s.Properties()
	if got := fmt.Sprint(p.MinReaderVersion, p.MinWriterVersion, p.WriterFeatures); got != "3 7 [appendOnly deletionVectors domainMetadata invariants rowTracking]" {
		t.Errorf("protocol %s", got)
	}
	if a, b := conf[rowIDNameKey], conf[rowCommitVersionNameKey]; a == "" || b == "" || a == b {
		t.Errorf("columns %q and %q", a, b)
	}
	f.commit(Commit{Read: s, Add: append(f.letters(s, "2", "d"), f.letters(s, "3", "ef")...)})
	f.wantIDs("1 0+0, 2 3+1, 3 4+1", 5)
	// A deletion keeps the ids of its file, in the remove action, too.
	f.commit(Commit{Read: f.snapshot(), Delete: remove(f.live()[0], 1)})
	f.wantIDs("1 0+0, 2 3+1, 3 4+1", 5)
	e, err := f.table.entry(background, 2)
	if err != nil || *e.Removes[0].BaseRowID != 0 || *e.Removes[0].DefaultRowCommitVersion != 0 || len(e.Domains) != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	if e.CommitInfo.Tags["delta.rowTracking.preserved"] != "true" {
		t.Errorf("tags %v", e.CommitInfo.Tags)
	}
	// Ids are not used again when their rows are gone.
	f.commit(Commit{Read: f.snapshot(), ReplaceAll: true, Add: f.letters(s, "4", "xy")})
	f.wantIDs("4 6+3", 7)
	// A file that comes back brings its ids.
	if _, err := f.table.Restore(background, RestoreOptions{Version: 1}); err != nil {
		t.Fatal(err)
	}
	f.wantIDs("1 0+0, 2 3+1, 3 4+1", 7)
}

func TestEnablingRowTrackingGivesIDsToTheRowsThereAre(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: plain, Add: append(f.letters(nil, "1", "abc"), f.letters(nil, "2", "de")...)})
	// Files without statistics are counted by their footers.
	bare := f.letters(f.snapshot(), "3", "fghi")
	bare[0].Stats = ""
	f.commit(Commit{Read: f.snapshot(), Add: bare})
	f.commit(Commit{Read: f.snapshot(), Properties: map[string]string{enableRowTracking: "true"}})
	f.wantIDs("1 0+2, 2 3+2, 3 5+2", 8)
	e, err := f.table.entry(background, 2)
	if err != nil || len(e.Adds) != 3 || len(e.Removes) != 0 || e.Adds[0].DataChange {
		t.Errorf("%+v, %v", e, err)
	}
	if got := f.cells(); got != "a b c d e f g h i" {
		t.Error(got)
	}
}

// The feature without the property demands ids of new files only.
func TestSupportedRowTrackingAssignsWithoutPreserving(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: plain, Add: f.letters(nil, "1", "abc")})
	s := f.snapshot()
	f.commit(Commit{Read: s, Properties: map[string]string{"delta.feature.rowTracking": "supported"}})
	f.commit(Commit{Read: f.snapshot(), Add: f.letters(s, "2", "de")})
	f.wantIDs("1 -+-, 2 0+2", 1)
	if conf := f.snapshot().Properties(); len(conf) != 0 {
		t.Errorf("properties %v", conf)
	}
	if e, err := f.table.entry(background, 2); err != nil || e.CommitInfo.Tags != nil {
		t.Errorf("%v, %v", e.CommitInfo.Tags, err)
	}
	f.commit(Commit{Read: f.snapshot(), Properties: map[string]string{rowTrackingSuspended: "true"}})
	f.commit(Commit{Read: f.snapshot(), Add: f.letters(s, "3", "f")})
	f.wantIDs("1 -+-, 2 0+2, 3 -+-", 1)
	_, err := f.table.Commit(background, Commit{Read: f.snapshot(), Properties: map[string]string{enableRowTracking: "true"}})
	if fault.CodeOf(err) != "DELTA_INVALID_PROPERTY" {
		t.Errorf("both: %v", err)
	}
}

// A lost race needs other ids: those of the first attempt are the winner's.
func TestALostRaceGetsOtherIDs(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: plain, Properties: tracked, Add: f.letters(nil, "1", "abc")})
	s := f.snapshot()
	ours, theirs := f.letters(s, "ours", "de"), f.letters(s, "theirs", "fgh")
	rival := f.reopen()
	f.twin(faultstore.Rule{Op: faultstore.OpPutIfAbsent, Name: "*.json", Times: 1, Effect: faultstore.Call(func() {
		if _, err := rival.Commit(background, Commit{Read: s, Add: theirs}); err != nil {
			t.Error(err)
		}
	})})
	f.commit(Commit{Read: s, Add: ours})
	f.wantIDs("1 0+0, ours 6+2, theirs 3+1", 7)
	if ours[0].BaseRowID != nil {
		t.Error("the caller's file was changed")
	}
}

// Keys of other writers in the domain stay.
func TestTheHighWaterMarkKeepsForeignKeys(t *testing.T) {
	base := &Snapshot{domains: map[string]DomainMetadata{rowTrackingDomainName: {Configuration: `{"rowIdHighWaterMark":41,"other":[1]}`}}}
	mark, keys, err := highWaterMark(base)
	if mark != 41 || string(keys["other"]) != "[1]" || err != nil {
		t.Errorf("%d, %s, %v", mark, keys, err)
	}
	for _, bad := range []string{``, `{`, `{"rowIdHighWaterMark":"x"}`, `{"rowIdHighWaterMark":-2}`, `{"rowIdHighWaterMark":1.5}`} {
		base.domains[rowTrackingDomainName] = DomainMetadata{Configuration: bad}
		if _, _, err := highWaterMark(base); fault.CodeOf(err) != "DELTA_INVALID_LOG" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
