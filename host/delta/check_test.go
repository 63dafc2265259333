package delta

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func (f *fixture) check(opt CheckOptions) *CheckReport {
	f.t.Helper()
	r, err := f.reopen().Check(background, opt)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// codes gives what a report found, by file or version.
func codes(r *CheckReport) map[string]string {
	out := map[string]string{}
	for _, p := range r.Problems {
		out[p.File] = p.Code
	}
	return out
}

func TestACheckNamesEveryFileThatIsNotAsTheLogSays(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	files := f.files(s, "a", "b", "c", "d", "e")
	files[4].Stats = `{"numRecords":7}`
	f.commit(Commit{Read: s, Add: files})
	f.commit(Commit{Read: f.snapshot(), Add: f.files(s, "z")})
	clean := f.check(CheckOptions{NamesOnly: true})
	if !clean.Clean() || clean.Files != 6 || clean.Version != 2 {
		t.Fatalf("%+v", clean)
	}
	change := func(i int, how func(path string) error) {
		if err := how(filepath.Join(f.dir, files[i].Path)); err != nil {
			t.Fatal(err)
		}
	}
	change(0, os.Remove)
	change(1, func(p string) error { return os.Truncate(p, 5) })
	change(2, func(p string) error {
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		copy(data[len(data)-8:], "xxxxxxxx")
		return os.WriteFile(p, data, 0o644)
	})
	want := map[string]string{
		files[0].Path: "DELTA_FILE_NOT_FOUND", files[1].Path: "DELTA_FILE_SIZE_MISMATCH", files[2].Path: "DELTA_INVALID_DATA_FILE", files[4].Path: "DELTA_ROW_COUNT_MISMATCH",
	}
	for _, opt := range []CheckOptions{{}, {Decode: true}} {
		got := f.check(opt)
		for file, code := range want {
			if codes(got)[file] != code {
				t.Errorf("%s: %q, want %s", file, codes(got)[file], code)
			}
		}
		if len(got.Problems) != len(want) || got.Files != 2 || got.Rows != 2 {
			t.Errorf("%+v", got)
		}
	}
	if got := f.check(CheckOptions{Limit: 2}); len(got.Problems) != 2 || !got.Cut {
		t.Errorf("%+v", got)
	}
	v := int64(0)
	if got := f.check(CheckOptions{Version: &v}); !got.Clean() || got.Files != 0 {
		t.Errorf("%+v", got)
	}
}

func (f *fixture) put(name string, data []byte) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), data, 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) get(name string) []byte {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		f.t.Fatal(err)
	}
	return data
}

// Rule: what is derived from the commits must say what they come to.
func TestACheckHoldsCheckpointsAndChecksumsAgainstTheCommits(t *testing.T) {
	f := newFixture(t)
	f.history(map[string]string{"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "4", "delta.enableInCommitTimestamps": "true"}, 11)
	for _, form := range []CheckpointForm{CheckpointClassic, CheckpointV2JSON} {
		if _, err := f.table.Checkpoint(background, form); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.table.CompactLog(background, 2, 9); err != nil {
		t.Fatal(err)
	}
	s := f.snapshot()
	size := int64(0)
	for file := range s.EachFile() {
		size += file.Size
	}
	meta, err := json.Marshal(s.metadata)
	if err != nil {
		t.Fatal(err)
	}
	crc := fmt.Sprintf(`{"tableSizeBytes":%d,"numFiles":%d,"numMetadata":1,"numProtocol":1,"inCommitTimestampOpt":%d,"setTransactions":[{"appId":"app0","version":9}],"domainMetadata":[],"metadata":%s,"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["v2Checkpoint"],"writerFeatures":["inCommitTimestamp","v2Checkpoint","appendOnly","invariants"]},"numDeletedRecordsOpt":0,"numDeletionVectorsOpt":0}`,
		size, s.NumFiles(), s.time.UnixMilli(), meta)
	crcName := logFolder + "/00000000000000000011.crc"
	f.put(crcName, []byte(crc))
	clean := f.check(CheckOptions{})
	if !clean.Clean() || clean.Commits != 12 || clean.Checkpoints != 4 || clean.Checksums != 1 {
		t.Fatalf("%+v", clean)
	}
	for name, c := range map[string]struct {
		file, code string
		data       func(data []byte) []byte
	}{
		"a checkpoint of another state": {file: checkpointName(11), code: "DELTA_CHECKPOINT_MISMATCH", data: func([]byte) []byte { return f.another() }},
		"a damaged checkpoint":          {file: checkpointName(11), code: "DELTA_INVALID_CHECKPOINT", data: func(d []byte) []byte { return d[:len(d)/2] }},
		"a checksum of other files":     {file: crcName, code: "DELTA_CHECKSUM_MISMATCH", data: func(d []byte) []byte { return bytes.Replace(d, []byte(`"numFiles":`), []byte(`"numFiles":1`), 1) }},
		"a checksum of another schema": {file: crcName, code: "DELTA_CHECKSUM_MISMATCH", data: func(d []byte) []byte {
			return bytes.Replace(d, []byte(`schemaString":"`), []byte(`schemaString":" `), 1)
		}},
		"a checksum of another time":      {file: crcName, code: "DELTA_CHECKSUM_MISMATCH", data: func(d []byte) []byte { return bytes.Replace(d, []byte(`TimestampOpt":`), []byte(`TimestampOpt":1`), 1) }},
		"a checksum of other txns":        {file: crcName, code: "DELTA_CHECKSUM_MISMATCH", data: func(d []byte) []byte { return bytes.Replace(d, []byte(`"version":9`), []byte(`"version":8`), 1) }},
		"a torn checksum":                 {file: crcName, code: "DELTA_INVALID_CHECKSUM", data: func(d []byte) []byte { return d[:20] }},
		"a compacted file without a file": {file: compactedName(2, 9), code: "DELTA_COMPACTED_LOG_MISMATCH", data: func(d []byte) []byte { return d[:bytes.LastIndexByte(d[:len(d)-1], '\n')+1] }},
	} {
		t.Run(name, func(t *testing.T) {
			before := f.get(c.file)
			f.put(c.file, c.data(before))
			defer f.put(c.file, before)
			got := f.check(CheckOptions{NamesOnly: true})
			if codes(got)[c.file] != c.code {
				t.Errorf("%+v", got.Problems)
			}
		})
	}
	f.remove(f.logFiles("_sidecars/*")...)
	if got := f.check(CheckOptions{NamesOnly: true}); len(got.Problems) != 3 {
		t.Errorf("without sidecars: %+v", got.Problems)
	}
}

// another gives a checkpoint of version 11 of a table with one more file.
func (f *fixture) another() []byte {
	f.t.Helper()
	other := newFixture(f.t)
	if err := os.CopyFS(other.dir, os.DirFS(f.dir)); err != nil {
		f.t.Fatal(err)
	}
	s, err := other.table.SnapshotAt(background, 10)
	if err != nil {
		f.t.Fatal(err)
	}
	older := *s
	older.version = 11
	if _, err := other.table.writeClassicCheckpoint(background, &older); err != nil {
		f.t.Fatal(err)
	}
	return other.get(checkpointName(11))
}

// Rule: a cleaned log is checked from the oldest checkpoint on.
func TestACleanedLogIsChecked(t *testing.T) {
	f := newFixture(t)
	f.history(map[string]string{"delta.checkpointInterval": "5"}, 13)
	for v := range int64(7) {
		f.remove(filepath.Join(f.dir, commitName(v)))
	}
	f.remove(filepath.Join(f.dir, checkpointName(5)))
	if r := f.check(CheckOptions{}); !r.Clean() || r.Commits != 3 || r.Checkpoints != 1 {
		t.Errorf("%+v", r)
	}
}

// Rule: change files must be there as long as VACUUM keeps them.
func TestChangeFilesAreCheckedWhileTheyAreKept(t *testing.T) {
	f := newFixture(t)
	now := time.Now()
	f.commit(Commit{Schema: plain, Properties: map[string]string{"delta.enableChangeDataFeed": "true"}})
	f.commit(Commit{Read: f.snapshot(), Add: f.files(f.snapshot(), "a"), ChangeData: []CDCFile{{Path: "_change_data/gone.parquet", PartitionValues: map[string]*string{}, Size: 3}}})
	if got := codes(f.check(CheckOptions{})); got["_change_data/gone.parquet"] != "DELTA_FILE_NOT_FOUND" || len(got) != 1 {
		t.Errorf("%v", got)
	}
	later := Open(f.store, WithAllocator(f.mem), WithClock(func() time.Time { return now.Add(8 * 24 * time.Hour) }))
	if r, err := later.Check(background, CheckOptions{}); err != nil || !r.Clean() {
		t.Errorf("%+v, %v", r, err)
	}
}
