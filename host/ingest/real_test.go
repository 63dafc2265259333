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
				if got.stats.Rows != got.count || got.stats.Lost != 0 || got.stats.Dropped != 0 {
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
	got := readAs(t, s, schema, fs, ReadOptions{}, false)
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
				if got.stats.Rows != got.count || got.stats.Lost != 0 || got.stats.Dropped != 0 {
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
				if len(settings) == 1 && int(got.count) != lines-1 {
					t.Errorf("%v: %d rows of %d lines", settings, got.count, lines)
				}
			}
		})
	}
}

// covers A10: the rates of the ECB, in the dialects and with the drift of the real files.
func TestRealRatesOfTheECB(t *testing.T) {
	dir := shared(t, "ecb")
	hist, err := Parse(ReadFiles, dir, opts("format=csv", "nullValue=N/A", "pathGlobFilter=eurofxref-hist*.{csv,gz}"), Env{})
	if err != nil {
		t.Fatal(err)
	}
	fs := files(t, hist)
	schema, err := hist.Infer(context.Background(), fs)
	if err != nil {
		t.Fatal(err)
	}
	got := readAs(t, hist, schema, fs, ReadOptions{}, false)
	if got.err != nil || got.stats.Rescued != 0 || got.stats.Malformed != 0 {
		t.Fatal(got.err, got.stats)
	}
	rows := map[string]int64{"2012-08-02": 3482, "2017-04-13": 4684, "2024-10-11": 6603, "2025-05-09": 6747, "2026-04-13": 6983}
	for _, f := range got.stats.PerFile {
		for day, want := range rows {
			if strings.Contains(f.Path, day) && f.Rows != want {
				t.Errorf("%s: %d rows, want %d", f.Path, f.Rows, want)
			}
		}
	}
	byName := map[string]string{}
	for _, f := range schema.Fields {
		byName[f.Name] = typeName(f.Type)
	}
	// The trailing comma makes a column without a name or a value, as in Spark.
	for name, want := range map[string]string{"Date": "date", "USD": "double", "ILS": "double", "_c42": "string"} {
		if byName[name] != want {
			t.Errorf("%s is %q, want %s", name, byName[name], want)
		}
	}
	// The daily file is another dialect of the same feed; its columns are known, its nameless one is empty.
	daily, err := Parse(ReadFiles, dir, opts("format=csv", "pathGlobFilter=eurofxref_daily_2026*", "ignoreLeadingWhiteSpace=true", "ignoreTrailingWhiteSpace=true", "dateFormat=d MMMM yyyy"), Env{})
	if err != nil {
		t.Fatal(err)
	}
	one := read(t, daily, schema, files(t, daily), ReadOptions{})
	if one.err != nil || len(one.rows) != 1 || !strings.HasPrefix(one.rows[0], `{"Date":"2026-04-13","USD":1.1684,"JPY":186.75,"BGN":null,`) || one.stats.Rescued != 0 {
		t.Fatal(one.err, one.rows)
	}
	text := readAs(t, hist, schema, files(t, daily), ReadOptions{}, true)
	if fault.CodeOf(text.err) != "UNKNOWN_FIELD" {
		t.Fatal("the header with spaces has other names", text.err)
	}
}

func TestRealOrdersKeepEveryDocument(t *testing.T) {
	path := filepath.Join(shared(t, "orders_json"), "ecommerce_orders.ndjson.gz")
	got, err := loadPath(t, path, "format=json", "schemaHints=order_id STRING, order_date TIMESTAMP, taxful_total_price DECIMAL(18,2)")
	if err != nil || got.count != 4675 || got.stats.Rescued != 0 {
		t.Fatal(err, got.stats)
	}
}
