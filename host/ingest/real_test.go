package ingest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/fault"
)

// shared gives a folder of the real input, or skips the test.
func shared(t testing.TB, set string) string {
	t.Helper()
	root := os.Getenv("WEIR_SHARED")
	if root == "" {
		root = "../../../shared"
	}
	dir, err := filepath.Abs(filepath.Join(root, "data", set))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("skipped: no real input at %s (set WEIR_SHARED)", dir)
	}
	return dir
}

func realFiles(t testing.TB, dir string, extensions ...string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && slices.Contains(extensions, filepath.Ext(strings.TrimSuffix(p, ".gz"))) {
			out = append(out, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func plain(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if b, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
}

// TestRealJSONIsAccountedFor reads every JSON file of the real input alone: each
// line that the standard library takes for an object gives a row that is not
// malformed, and every other line that is not blank gives a malformed row.
func TestRealJSONIsAccountedFor(t *testing.T) {
	var paths []string
	for _, set := range []string{"ndjson", "orders_json"} {
		paths = append(paths, realFiles(t, shared(t, set), ".json", ".ndjson", ".jsonl", ".log", ".geojsonl")...)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text := plain(t, path)
			for _, multi := range []bool{false, true} {
				settings := []string{"format=json"}
				if multi {
					settings = append(settings, "multiLine=true")
				}
				got, err := loadPath(t, path, settings...)
				if err != nil {
					if code := fault.CodeOf(err); code != "UNABLE_TO_INFER_SCHEMA" {
						t.Fatalf("multiLine=%v: %v", multi, err)
					}
					continue
				}
				if got.stats.Rows != int64(len(got.rows)) || got.stats.Lost != 0 || got.stats.Dropped != 0 {
					t.Fatalf("multiLine=%v: %+v", multi, got.stats)
				}
				if multi {
					continue
				}
				good, bad := jsonLines(text)
				if rows := int(got.stats.Rows - got.stats.Malformed); rows < good {
					t.Errorf("%d good rows of at least %d", rows, good)
				}
				if int(got.stats.Malformed) > bad {
					t.Errorf("%d malformed rows of at most %d", got.stats.Malformed, bad)
				}
			}
		})
	}
}

// jsonLines counts the lines that hold an object, and those that hold neither that nor nothing.
func jsonLines(text []byte) (good, bad int) {
	sc := bufio.NewScanner(bytes.NewReader(text))
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		line := bytes.TrimSpace(sc.Bytes())
		switch {
		case len(line) == 0:
		case line[0] == '{' && json.Valid(line):
			good++
		default:
			bad++
		}
	}
	return good, bad
}

func loadPath(t *testing.T, path string, settings ...string) (outcome, error) {
	t.Helper()
	s, err := Parse(ReadFiles, escapeGlob(path), opts(settings...), Env{})
	if err != nil {
		t.Fatal(err)
	}
	fs := files(t, s)
	if len(fs) != 1 {
		t.Fatalf("%d files", len(fs))
	}
	schema, err := s.Infer(context.Background(), fs)
	if err != nil {
		return outcome{}, err
	}
	got := read(t, s, schema, fs, ReadOptions{})
	return got, got.err
}

// TestRealCSVIsAccountedFor reads every CSV file of the real input alone: it is
// read with every record accounted for, or refused by name.
func TestRealCSVIsAccountedFor(t *testing.T) {
	named := []string{"UNABLE_TO_INFER_SCHEMA", "UNSUPPORTED_ENCODING", "MALFORMED_CSV_HEADER", "FAILED_READ_FILE.CORRUPT_FILE", "UNSUPPORTED_COMPRESSION"}
	for _, path := range realFiles(t, shared(t, "csv"), ".csv", ".tsv", ".txt", ".psv") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			for _, settings := range [][]string{{"format=csv"}, {"format=csv", "multiLine=true"}, {"format=csv", "header=false", "sep=;"}} {
				got, err := loadPath(t, path, settings...)
				if err != nil {
					if !slices.Contains(named, fault.CodeOf(err)) {
						t.Fatalf("%v: %v", settings, err)
					}
					continue
				}
				if got.stats.Rows != int64(len(got.rows)) || got.stats.Lost != 0 || got.stats.Dropped != 0 {
					t.Fatalf("%v: %+v", settings, got.stats)
				}
				if len(settings) == 3 {
					continue
				}
				lines := 0
				for _, line := range strings.FieldsFunc(string(plain(t, path)), func(r rune) bool { return r == '\n' || r == '\r' }) {
					if strings.TrimSpace(line) != "" {
						lines++
					}
				}
				if len(settings) == 1 && len(got.rows) != lines-1 {
					t.Errorf("%v: %d rows of %d lines", settings, len(got.rows), lines)
				}
			}
		})
	}
}
