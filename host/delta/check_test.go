package delta

import (
	"os"
	"path/filepath"
	"testing"
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
