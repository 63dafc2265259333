package testscripts

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocsShowWhatHappens runs every console block of the pages in docs and of
// the README: each line after "$ " is run, and what follows is compared with
// its standard output, or with standard error when the command fails. What
// differs from run to run stands there as <uuid>, <time> and the like.
// UPDATE_SCRIPTS=1 writes what happened into the page.
func TestDocsShowWhatHappens(t *testing.T) {
	root := repoRoot(t)
	for _, page := range []string{"README.md", "docs/cli.md"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(root, page)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, ran := runConsole(t, string(text))
			if ran == 0 {
				t.Fatal("the page has no console block")
			}
			if got == string(text) {
				return
			}
			if os.Getenv("UPDATE_SCRIPTS") != "" {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, have := strings.Split(string(text), "\n"), strings.Split(got, "\n")
			for i := range min(len(want), len(have)) {
				if want[i] != have[i] {
					t.Fatalf("%s:%d\n page %s\n  ran %s\n(UPDATE_SCRIPTS=1 go test ./testscripts -run Docs rewrites the page)", page, i+1, want[i], have[i])
				}
			}
			t.Fatalf("%s has %d lines, not %d", page, len(want), len(have))
		})
	}
}

// runConsole gives the page with what its commands printed.
func runConsole(t *testing.T, page string) (string, int) {
	t.Helper()
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, ran, inBlock := work, 0, false
	var out []string
	for line := range strings.SplitSeq(page, "\n") {
		switch {
		case line == "```console":
			inBlock = true
			out = append(out, line)
		case inBlock && line == "```":
			inBlock = false
			out = append(out, line)
		case inBlock:
			command, ok := strings.CutPrefix(line, "$ ")
			if !ok {
				continue // the output of before: written anew
			}
			out = append(out, line)
			ran++
			if to, ok := strings.CutPrefix(command, "cd "); ok {
				dir = filepath.Join(dir, to)
				continue
			}
			if printed := runShell(t, dir, work, command); printed != "" {
				out = append(out, strings.Split(printed, "\n")...)
			}
		default:
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n"), ran
}

func runShell(t *testing.T, dir, work, command string) string {
	t.Helper()
	if target, ok := strings.CutPrefix(command, "make "); ok {
		// make test would run this test again: that the target exists is enough.
		cmd := exec.Command("make", "-n", target)
		cmd.Dir = repoRoot(t)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, text)
		}
		return ""
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "WEIR_CACHE_DIR="+sharedCache())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	printed := &stdout
	if err := cmd.Run(); err != nil {
		t.Logf("%s: %v\n%s", command, err, stderr.String())
		printed = &stderr
	}
	text := strings.TrimRight(printed.String(), "\n")
	text = strings.ReplaceAll(text, work, "<dir>")
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.as)
	}
	return text
}

var varying = []struct {
	pattern *regexp.Regexp
	as      string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<uuid>"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "<sha256>"},
	{regexp.MustCompile(`20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`), "<time>"},
	{regexp.MustCompile(` in [0-9.]+(ms|s)\b`), " in <duration>"},
	{regexp.MustCompile(`\([0-9.]+(ms|s)\)`), "(<duration>)"},
	{regexp.MustCompile(`[0-9.]+ MiB`), "<size>"},
	{regexp.MustCompile(`("(size|bytes|size_bytes)"):[0-9]+`), "$1:<bytes>"},
	{regexp.MustCompile(`(numOutputBytes":"|output_bytes\\":)[0-9]+`), "$1<bytes>"},
	{regexp.MustCompile(`("fuel"):[0-9]+,("guest_us"):[0-9]+`), "$1:<fuel>,$2:<time>"},
	{regexp.MustCompile(`("lastUpdated"):[0-9]+`), "$1:<time>"},
	{regexp.MustCompile(`\([0-9]+ bytes\)`), "(<bytes> bytes)"},
	{regexp.MustCompile(`"(host|user_name)":"[^"]*"`), `"$1":"<$1>"`},
	{regexp.MustCompile(`go1\.[0-9.]+`), "<go>"},
	{regexp.MustCompile(`linux|darwin`), "<os>"},
	{regexp.MustCompile(`amd64|arm64`), "<arch>"},
	{regexp.MustCompile(`\+[0-9a-f]{12}\b`), ""},
}

// TestArchitectureNamesFilesThatExist holds the page that follows a batch
// through the code to the code: every file it names is there. A bare name
// belongs to a folder that its paragraph named before.
func TestArchitectureNamesFilesThatExist(t *testing.T) {
	root := repoRoot(t)
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("`([a-z][a-z_/]*\\.(?:go|md))`")
	checked := 0
	for paragraph := range strings.SplitSeq(string(text), "\n\n") {
		var folders []string
		for _, m := range name.FindAllStringSubmatch(paragraph, -1) {
			checked++
			candidates := []string{m[1]}
			for _, f := range folders {
				candidates = append(candidates, filepath.Join(f, m[1]))
			}
			found := false
			for _, c := range candidates {
				if _, err := os.Stat(filepath.Join(root, c)); err == nil {
					found = true
				}
			}
			if !found {
				t.Errorf("no file %s (paragraph %.40q)", m[1], paragraph)
			}
			if strings.Contains(m[1], "/") {
				folders = append(folders, filepath.Dir(m[1]))
			}
		}
	}
	if checked < 40 {
		t.Fatalf("only %d names found", checked)
	}
}

// TestTheFeaturesTableNamesTestsThatExist holds the page on Delta to the code:
// every feature names a test, and every test it names is there.
func TestTheFeaturesTableNamesTestsThatExist(t *testing.T) {
	root := repoRoot(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "delta.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| --- | --- | --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	name := regexp.MustCompile("`(?:([a-z/]+)\\.)?((?:Test|Fuzz)[A-Za-z0-9]+)`")
	for row := range strings.SplitSeq(strings.TrimSpace(table), "\n") {
		tests := name.FindAllStringSubmatch(row, -1)
		if len(tests) == 0 {
			t.Errorf("no test: %s", row)
		}
		for _, m := range tests {
			folder := "host/delta"
			if m[1] != "" {
				folder = m[1]
			}
			if !declares(t, filepath.Join(root, folder), "func "+m[2]+"(") {
				t.Errorf("no test %s in %s", m[2], folder)
			}
		}
	}
}

// TestNamedTestsExist holds pages and the Makefile to the code: a test that
// they name is there. A pattern of make soak that fits none would run nothing.
func TestNamedTestsExist(t *testing.T) {
	root := repoRoot(t)
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"} {
		pages = append(pages, filepath.Join(root, p))
	}
	var tests strings.Builder
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		tests.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("`(?:[a-z/]+\\.)?((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]+)`")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(tests.String(), "func "+m[1]+"(") {
				t.Errorf("%s names %s, which is no test", filepath.Base(page), m[1])
			}
		}
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	run := regexp.MustCompile(`-run '\^(Test[A-Za-z0-9]+)\$\$' (?:-[a-z]+ )*\./([a-z/]+)`)
	patterns := run.FindAllStringSubmatch(string(makefile), -1)
	for _, m := range patterns {
		if !declares(t, filepath.Join(root, m[2]), "func "+m[1]+"(") {
			t.Errorf("the Makefile runs %s of %s, which is no test", m[1], m[2])
		}
	}
	if len(patterns) < 9 {
		t.Errorf("only %d patterns are found in the Makefile", len(patterns))
	}
}

// declares tells whether a test file of a folder holds a text.
func declares(t *testing.T, folder, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(text)) {
			return true
		}
	}
	return false
}
