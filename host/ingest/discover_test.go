package ingest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/faultstore"
)

func names(t *testing.T, s *Source) string {
	t.Helper()
	var out []string
	for f, err := range s.List(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Size != -1 && s.config.after == 0 && s.config.before == 0 {
			t.Fatal("looked at a file without need", f)
		}
		out = append(out, strings.TrimPrefix(f.Path, s.place.root+"/"))
	}
	return strings.Join(out, " ")
}

// covers A7, A8, A17: what is found, ascending, and what is passed over.
func TestListFindsFilesInOrder(t *testing.T) {
	l := newLanding(t, map[string]string{
		"b.json": "{}", "a.json": "{}", "dt=2026-07-29/z.json": "{}", "dt=2026-07-28/x.json": "{}", "sub/deep/c.txt": "{}",
		"_schemas/0": "{}", ".hidden.json": "{}", "sub/_tmp.json": "{}", "sub/.x/y.json": "{}", "_p=1/in.json": "{}", "d.json._COPYING_": "{}",
	})
	if got, want := names(t, l.source(ReadFiles, "format=json")), "_p=1/in.json a.json b.json dt=2026-07-28/x.json dt=2026-07-29/z.json sub/deep/c.txt"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if got, want := names(t, l.source(ReadFiles, "format=json", "pathGlobFilter=[a-x].js{on,x}")), "a.json b.json dt=2026-07-28/x.json"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	for path, want := range map[string]string{
		"dt=*": "dt=2026-07-28/x.json dt=2026-07-29/z.json", "*.json": "a.json b.json", "dt=2026-07-2?/*.json": "dt=2026-07-28/x.json dt=2026-07-29/z.json",
		"a.json": "a.json", "sub": "deep/c.txt", "nothing*": "",
	} {
		s, err := Parse(ReadFiles, filepath.Join(escapeGlob(l.dir), path), opts("format=json"), Env{})
		if err != nil {
			t.Fatal(err)
		}
		if got := names(t, s); got != want {
			t.Errorf("%s\n got %s\nwant %s", path, got, want)
		}
	}
	rel, err := Parse(ReadFiles, "sub", opts("format=json"), Env{Dir: l.dir})
	if err != nil {
		t.Fatal(err)
	}
	for f := range rel.List(context.Background()) {
		if f.Path != filepath.Join(l.dir, "sub/deep/c.txt") {
			t.Error(f.Path)
		}
	}
}

func TestListByModificationTime(t *testing.T) {
	l := newLanding(t, map[string]string{"old.json": "{}", "mid.json": "{}", "new.json": "{}"})
	for name, at := range map[string]string{"old.json": "2026-01-01T00:00:00Z", "mid.json": "2026-02-01T00:00:00Z", "new.json": "2026-03-01T00:00:00Z"} {
		when, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(l.dir, name), when, when); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(t, l.source(ReadFiles, "format=json", "modifiedAfter=2026-01-01T00:00:00", "modifiedBefore=2026-03-01T00:00:00")); got != "mid.json" {
		t.Error(got)
	}
	if got := names(t, l.source(ReadFiles, "format=json", "modifiedAfter=2026-01-31T23:30:00", "timeZone=America/New_York")); got != "new.json" {
		t.Error(got)
	}
	fs := files(t, l.source(ReadFiles, "format=json", "pathGlobFilter=mid*"))
	if len(fs) != 1 || fs[0].Size != 2 || fs[0].ModTimeMicros != time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC).UnixMicro() {
		t.Error(fs)
	}
}

func TestMissingAndForbiddenPlacesAreNamed(t *testing.T) {
	s, err := Parse(ReadFiles, "/nowhere/at/all", opts("format=json"), Env{})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range s.List(context.Background()) {
		if !fault.Is(err, "PATH_NOT_FOUND") {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat("/nowhere"); err == nil {
		t.Fatal("a misspelt folder was created")
	}
	if os.Geteuid() == 0 {
		t.Log("as root: permissions are tested through the storage twin only")
		return
	}
	l := newLanding(t, map[string]string{"a.json": "{}", "shut/b.json": "{}"})
	if err := os.Chmod(filepath.Join(l.dir, "shut"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(l.dir, "shut"), 0o755) })
	for _, err := range l.source(ReadFiles, "format=json").List(context.Background()) {
		if err != nil && !fault.Is(err, "PERMISSION_DENIED") {
			t.Fatal(err)
		}
	}
}

// A file that vanishes between listing and reading, or may not be read, fails
// the read by name, or is passed over when the options say so.
func TestFilesThatVanishOrAreForbidden(t *testing.T) {
	for _, c := range []struct {
		name  string
		cause error
		set   string
		code  string
		state FileState
	}{
		{"gone", storage.ErrNotExist, "ignoreCorruptFiles=true", "FAILED_READ_FILE.FILE_NOT_EXIST", ""},
		{"gone, ignored", storage.ErrNotExist, "ignoreMissingFiles=true", "", FileSkippedMissing},
		{"forbidden", storage.ErrPermission, "ignoreMissingFiles=true", "FAILED_READ_FILE.PERMISSION_DENIED", ""},
		{"forbidden is not corrupt", storage.ErrPermission, "ignoreCorruptFiles=true", "FAILED_READ_FILE.PERMISSION_DENIED", ""},
		{"a disk error", os.ErrDeadlineExceeded, "ignoreMissingFiles=true", "FAILED_READ_FILE.CORRUPT_FILE", ""},
		{"a disk error in the middle", os.ErrClosed, "ignoreMissingFiles=true", "FAILED_READ_FILE.CORRUPT_FILE", ""},
		{"a disk error, ignored", os.ErrDeadlineExceeded, "ignoreCorruptFiles=true", "", FileSkippedCorrupted},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLanding(t, map[string]string{"a.json": `{"a":1}`, "b.json": `{"a":2}`, "c.json": `{"a":3}`})
			env := Env{Open: func(root string) (storage.Store, error) {
				dir, err := storage.OpenDir(root, storage.NoSync)
				if err != nil {
					return nil, err
				}
				op := faultstore.OpOpen
				if errors.Is(c.cause, os.ErrClosed) {
					op = faultstore.OpRead
				}
				return faultstore.New(dir, faultstore.Rule{Op: op, Name: "b.json", Effect: faultstore.Fail(c.cause)}), nil
			}}
			s, err := Parse(ReadFiles, escapeGlob(l.dir), opts("format=json", "schema=a INT, _rescued_data STRING", c.set), env)
			if err != nil {
				t.Fatal(err)
			}
			schema, err := s.Infer(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			got := read(t, s, schema, files(t, s), ReadOptions{})
			if c.code != "" {
				if !fault.Is(got.err, c.code) || !strings.Contains(got.err.Error(), "b.json") {
					t.Fatal(got.err)
				}
				return
			}
			wantRows(t, got, `{"a":1,"_rescued_data":null}`, `{"a":3,"_rescued_data":null}`)
			if got.stats.PerFile[1].State != c.state || got.stats.PerFile[0].State != FileIngested || got.stats.PerFile[2].Rows != 1 {
				t.Fatalf("%+v", got.stats)
			}
		})
	}
}

func TestCompleteLooksUpWhatIsMissing(t *testing.T) {
	l := newLanding(t, map[string]string{"a.json": "{}"})
	s := l.source(ReadFiles, "format=json", "ignoreMissingFiles=true")
	ghost := File{Path: filepath.Join(l.dir, "ghost.json"), Size: -1}
	known := File{Path: filepath.Join(l.dir, "known.json"), Size: 7, ModTimeMicros: 9}
	got, err := s.Complete(context.Background(), []File{ghost, {Path: filepath.Join(l.dir, "a.json"), Size: -1}, known})
	if err != nil || len(got) != 2 || got[0].Size != 2 || got[1] != known {
		t.Fatal(got, err)
	}
	_, err = l.source(ReadFiles, "format=json").Complete(context.Background(), []File{ghost})
	if !fault.Is(err, "FAILED_READ_FILE.FILE_NOT_EXIST") || !strings.Contains(err.Error(), "ghost.json") {
		t.Fatal(err)
	}
}

// covers B1: a truncated gzip fails whole; ignored, none of its rows are kept.
func TestGzipFiles(t *testing.T) {
	body := strings.Repeat("{\"a\":1}\n", 1000)
	whole := zipped(body)
	member := zipped("{\"a\":2}\n")
	for _, c := range []struct {
		name, file, body string
		rows             int
	}{
		{"one member", "a.json.gz", whole, 1000},
		{"two members", "a.json.gz", whole + member, 1001},
		{"by content", "a.json", whole, 1000},
		{"truncated", "a.json.gz", whole[:len(whole)-6], -1},
		{"truncated early", "a.json.gz", whole[:20], -1},
		{"a second member that is truncated", "a.json.gz", whole + member[:len(member)-3], -1},
		{"garbage behind", "a.json.gz", whole + "garbage", -1},
		{"a flipped bit", "a.json.gz", whole[:30] + "\xff\xff" + whole[32:], -1},
		{"no gzip at all", "a.json.gz", "\x1f\x8b", -1},
		{"an empty file", "a.json", "", 0},
		{"an empty member", "a.json.gz", zipped(""), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLanding(t, map[string]string{"0.json": `{"a":0}`, c.file: c.body, "z.json": `{"a":9}`})
			got := l.load(ReadFiles, "format=json", "schema=a INT, _rescued_data STRING")
			if c.rows >= 0 {
				if got.err != nil || len(got.rows) != c.rows+2 {
					t.Fatalf("%d rows, %v", len(got.rows), got.err)
				}
				return
			}
			if !fault.Is(got.err, "FAILED_READ_FILE.CORRUPT_FILE") || !strings.Contains(got.err.Error(), c.file) {
				t.Fatal(got.err)
			}
			skipped := l.load(ReadFiles, "format=json", "schema=a INT, _rescued_data STRING", "ignoreCorruptFiles=true")
			wantRows(t, skipped, `{"a":0,"_rescued_data":null}`, `{"a":9,"_rescued_data":null}`)
			if st := skipped.stats.PerFile[1]; st.State != FileSkippedCorrupted || st.Rows != 0 {
				t.Fatalf("%+v", skipped.stats)
			}
		})
	}
	l := newLanding(t, map[string]string{"a.json.zst": "x"})
	if got := l.load(ReadFiles, "format=json", "schema=a INT"); !fault.Is(got.err, "UNSUPPORTED_COMPRESSION") {
		t.Fatal(got.err)
	}
	l = newLanding(t, nil)
	l.put("a.json.gz", "\x1f\x8b\x00plain")
	if got := l.load(ReadFiles, "format=json", "schema=a INT"); !fault.Is(got.err, "FAILED_READ_FILE.CORRUPT_FILE") {
		t.Fatal(got.err)
	}
}

// covers B1: partition columns come from k=v folders; declared ones only those of the schema.
func TestPartitionColumns(t *testing.T) {
	l := newLanding(t, map[string]string{
		"dt=2026-07-28/region=eu/a.json":                                         `{"id":1}`,
		"dt=2026-07-29/region=us%20east/b.json":                                  `{"id":2,"dt":"2026-07-29","region":"other"}`,
		"dt=__HIVE_DEFAULT_PARTITION__/region=__HIVE_DEFAULT_PARTITION__/c.json": `{"id":3}`,
		"d.json": `{"id":4}`,
	})
	wantRows(t, l.load(ReadFiles, "format=json"),
		`{"id":4,"dt":null,"region":null,"_rescued_data":null}`,
		`{"id":1,"dt":"2026-07-28","region":"eu","_rescued_data":null}`,
		`{"id":2,"dt":"2026-07-29","region":"us east","_rescued_data":"{\"region\":\"other\",\"_file_path\":\"DIR/dt=2026-07-29/region=us%20east/b.json\"}"}`,
		`{"id":3,"dt":null,"region":null,"_rescued_data":null}`)
	got := l.load(CloudFiles, "cloudFiles.format=json")
	if f := got.schema.Fields[1]; f.Name != "dt" || typeName(f.Type) != "string" || f.Origin != Partition {
		t.Fatalf("%+v", got.schema.Fields)
	}
	for set, want := range map[string]string{
		"partitionColumns=": "dt id region", "partitionColumns=dt": "id region dt", "partitionColumns=dt,year": "id region dt year", "recursiveFileLookup=true": "dt id region",
	} {
		got := l.load(ReadFiles, "format=json", set)
		if got.err != nil {
			t.Fatal(got.err)
		}
		var names []string
		for _, f := range got.schema.Fields {
			names = append(names, f.Name)
		}
		if strings.Join(names, " ") != want {
			t.Errorf("%s: %v, want %s", set, names, want)
		}
	}
	got = l.load(ReadFiles, "format=json", "schema=id INT, dt DATE, _rescued_data STRING")
	if got.err != nil || got.rows[1] != `{"id":1,"dt":"2026-07-28","_rescued_data":null}` {
		t.Fatal(got.rows, got.err)
	}
	got = l.load(ReadFiles, "format=json", "schema=id INT, region STRING, _rescued_data STRING")
	if got.err != nil || got.rows[2] != `{"id":2,"region":"other","_rescued_data":"{\"dt\":\"2026-07-29\",\"_file_path\":\"DIR/dt=2026-07-29/region=us%20east/b.json\"}"}` {
		t.Fatal(got.rows, got.err)
	}
	got = l.load(ReadFiles, "format=json", "schema=id INT, region INT, _rescued_data STRING")
	if got.err != nil || got.rows[1] != `{"id":1,"region":null,"_rescued_data":"{\"region\":\"eu\",\"_file_path\":\"DIR/dt=2026-07-28/region=eu/a.json\"}"}` {
		t.Fatal(got.rows, got.err)
	}
}

// covers A22: what _metadata says of a file.
func TestMetadataOfRows(t *testing.T) {
	l := newLanding(t, map[string]string{"a.json": "{\"a\":1}\n{\"a\":2}", "sub/b.json": `{"a":3}`})
	got := l.load(ReadFiles, "format=json")
	if got.err != nil {
		t.Fatal(got.err)
	}
	for i, want := range []string{"a.json", "a.json", "sub/b.json"} {
		if got.paths[i] != filepath.Join(l.dir, want) || got.places[i].File != got.paths[i] {
			t.Errorf("row %d: %s, %+v", i, got.paths[i], got.places[i])
		}
	}
	s := l.source(ReadFiles, "format=json")
	fs := files(t, s)
	r, err := s.Read(context.Background(), got.schema, fs, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() {
		t.Fatal(r.Err())
	}
	rec := r.RecordBatch()
	meta := rec.Column(int(rec.NumCols()) - 2)
	text := meta.ValueStr(2)
	when := time.UnixMicro(fs[1].ModTimeMicros).UTC()
	for _, want := range []string{`"file_name":"b.json"`, `"file_size":7`, `"file_block_start":0`, `"file_block_length":7`, when.Format("2006-01-02T15:04:05")} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	if r.Locate(99) != (Position{Byte: -1}) || r.Locate(-1) != (Position{Byte: -1}) {
		t.Error("rows that are not there have no place")
	}
}

func TestGlobs(t *testing.T) {
	for _, c := range []struct {
		glob, name string
		want       bool
	}{
		{"*.json", "a.json", true}, {"*.json", "a/b.json", false}, {"*.json", ".json", true}, {"?.json", "ä.json", true}, {"?.json", "ab.json", false},
		{"[a-c]x", "bx", true}, {"[^a-c]x", "bx", false}, {"[!a]x", "bx", true}, {"{a,b}{1,2}", "b2", true}, {"{a,b}", "ab", false}, {`\*`, "*", true}, {`\*`, "a", false},
		{"a.b", "axb", false}, {"ä*", "äé", true}, {"a,b", "a,b", true}, {"{a,{b,c}}d", "cd", true}, {"a+(b)", "a+(b)", true},
	} {
		g, err := parseGlob(c.glob)
		if err != nil || g.match(c.name) != c.want {
			t.Errorf("%s %s: %v %v", c.glob, c.name, err, !c.want)
		}
	}
	for _, bad := range []string{"[", "[]", "{a", "a}", `a\`, "[z-a]"} {
		if _, err := parseGlob(bad); fault.CodeOf(err) != "INVALID_GLOB" {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// A project may lie in a folder whose name looks like a glob.
func TestTheFolderOfAProjectIsNoGlob(t *testing.T) {
	l := newLanding(t, map[string]string{"we{ir}[1]*/in/a.json": "{\"a\":1}"})
	s, err := Parse(ReadFiles, "i?/*.json", map[string]string{"format": "json"}, Env{Dir: filepath.Join(l.dir, "we{ir}[1]*")})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for f, err := range s.List(t.Context()) {
		if err != nil || !strings.HasSuffix(f.Path, "/we{ir}[1]*/in/a.json") {
			t.Error(f.Path, err)
		}
		found++
	}
	if found != 1 {
		t.Errorf("%d files", found)
	}
}
