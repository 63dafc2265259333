package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// packTable is what the manifest of the conformance pack says of a table.
type packTable struct {
	Table, Archive, Expect string
	PathInArchive          string `json:"path_in_archive"`
	Renames                []struct{ From, To string }
	PerVersionRows         map[string]int64 `json:"per_version_rows"`
	Changes                *changesSummary  `json:"cdf"`
}

// figures are the keys that describe and the manifest have alike.
var figures = []string{"version", "live_rows", "physical_rows", "dv_rows", "live_files", "min_reader", "min_writer", "txns", "domain_metadata"}

// The figures of the pack of other engines' tables come out of describe and changes.
func TestDescribeAndChangesGiveTheFiguresOfThePack(t *testing.T) {
	root := os.Getenv("WEIR_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "shared")
	}
	pack := filepath.Join(root, "delta-conformance")
	raw, err := os.ReadFile(filepath.Join(pack, "manifest.json"))
	if err != nil {
		t.Skipf("skipped, which is no pass: no real data in %s (set WEIR_SHARED)", pack)
	}
	var tables []packTable
	var wants []map[string]any
	if err := errors.Join(json.Unmarshal(raw, &tables), json.Unmarshal(raw, &wants)); err != nil {
		t.Fatal(err)
	}
	refused, compared := 0, 0
	for i, c := range tables {
		t.Run(c.Table, func(t *testing.T) {
			dir := t.TempDir()
			if err := untar(filepath.Join(pack, c.Archive), dir); err != nil {
				t.Fatal(err)
			}
			table := filepath.Join(dir, c.PathInArchive)
			for _, r := range c.Renames {
				if err := os.Rename(filepath.Join(table, r.From), filepath.Join(table, r.To)); err != nil {
					t.Fatal(err)
				}
			}
			var got map[string]any
			code, told := runJSON(t, &got, "delta", "describe", table)
			if c.Expect == "refuse" {
				refused++
				if code == 0 || !strings.HasPrefix(told, "[DELTA_") {
					t.Errorf("must be refused by name: %d, %s", code, told)
				}
				return
			}
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, told)
			}
			for _, key := range figures {
				if want := wants[i][key]; want != nil {
					compared++
					same(t, key, got[key], want)
				}
			}
			for version, want := range c.PerVersionRows {
				if n, err := strconv.Atoi(version); err != nil || n%10 != 0 {
					continue // the delta package counts them all
				}
				var then map[string]any
				if code, told := runJSON(t, &then, "delta", "describe", table, "--version", version); code != 0 {
					t.Errorf("version %s: %s", version, told)
				}
				compared++
				same(t, "rows of version "+version, then["live_rows"], want)
			}
			if c.Changes == nil {
				return
			}
			var sum changesSummary
			from, to := strconv.FormatInt(c.Changes.From, 10), strconv.FormatInt(c.Changes.To, 10)
			code, told = runJSON(t, &sum, "delta", "changes", table, "--from", from, "--to", to)
			compared++
			if code != 0 || sum.From != c.Changes.From || sum.To != c.Changes.To || sum.Rows != c.Changes.Rows || !maps.Equal(sum.ByChangeType, c.Changes.ByChangeType) {
				t.Errorf("changes: %v %s, want %v", sum, told, *c.Changes)
			}
			var out, stderr bytes.Buffer
			code = Main([]string{"weir", "delta", "changes", table, "--from", from, "--to", to, "--list"}, nil, &out, &stderr)
			if lines := strings.Count(out.String(), "\n"); code != 0 || int64(lines) != c.Changes.Rows {
				t.Errorf("--list prints %d lines (%s), want %d", lines, &stderr, c.Changes.Rows)
			}
		})
	}
	t.Logf("%d tables, %d refused, %d figures compared", len(tables), refused, compared)
}

// runJSON runs a command and decodes what it prints; told is standard error.
func runJSON(t *testing.T, into any, args ...string) (code int, told string) {
	t.Helper()
	var out, stderr bytes.Buffer
	code = Main(append(append([]string{"weir"}, args...), "--output", "json"), nil, &out, &stderr)
	if code == 0 {
		if err := json.Unmarshal(out.Bytes(), into); err != nil {
			t.Fatalf("%v: %s", err, &out)
		}
	}
	return code, stderr.String()
}

// same compares as JSON, where numbers have one type.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	g, err1 := json.Marshal(got)
	w, err2 := json.Marshal(want)
	if err := errors.Join(err1, err2); err != nil || !bytes.Equal(g, w) {
		t.Errorf("%s: %s, want %s (%v)", what, g, w, err)
	}
}

func untar(archive, into string) (err error) {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	gz, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for tr := tar.NewReader(gz); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.Join(into, h.Name)
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(name, 0o755); err != nil {
				return err
			}
			continue
		}
		data, err := io.ReadAll(tr)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, data, 0o644)); err != nil {
			return err
		}
	}
}
