package testscripts

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// claimed are the lines of the checklist (semantics.md, parts A and B) that the
// product says it does; each has a test that names it in a comment: `covers A17`,
// `covers A96–A102, B4`.
var claimed = []string{
	"A1-A3", "A6-A12", "A14", "A16-A17", "A22-A23", "A29-A38", "A41", "A43-A44", "A47-A49",
	"A52-A129", "A141-A163", "A165-A173", "A189-A210", "B2-B6",
}

// TestEachLineOfTheChecklistHasATest counts the comments; what a test proves is
// for its reader to judge.
func TestEachLineOfTheChecklistHasATest(t *testing.T) {
	tests := map[string][]string{}
	root := repoRoot(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == ".git" || name == "build" || name == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".txtar") || strings.HasSuffix(path, "covers_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, line := range coveredBy(string(text)) {
			tests[line] = append(tests[line], path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, span := range claimed {
		for _, line := range expand(span) {
			if len(tests[line]) == 0 {
				t.Errorf("no test says that it covers %s", line)
			}
		}
	}
	t.Logf("%d lines of the checklist are named by tests", len(tests))
}

var (
	coversComment = regexp.MustCompile(`(?m)(?://|#).*?\bcovers ((?:[AB]\d+(?:[-–][AB]?\d+)?(?:, and |, | and | )?(?:\n(?://|#) )?)+)`)
	coversSpan    = regexp.MustCompile(`[AB]\d+(?:[-–][AB]?\d+)?`)
)

// coveredBy gives the lines that comments of a test file name.
func coveredBy(text string) []string {
	var out []string
	for _, m := range coversComment.FindAllStringSubmatch(text, -1) {
		for _, span := range coversSpan.FindAllString(m[1], -1) {
			out = append(out, expand(span)...)
		}
	}
	return out
}

// expand gives the lines of A17 or A96-A102.
func expand(span string) []string {
	from, to, isRange := strings.Cut(strings.ReplaceAll(span, "–", "-"), "-")
	if !isRange {
		return []string{from}
	}
	first, _ := strconv.Atoi(from[1:])
	last, _ := strconv.Atoi(strings.TrimLeft(to, "AB"))
	var out []string
	for n := first; n <= last; n++ {
		out = append(out, fmt.Sprintf("%c%d", from[0], n))
	}
	return out
}

func TestCommentsThatNameLinesAreRead(t *testing.T) {
	for text, want := range map[string]string{
		"// covers A17: a rule":                 "A17",
		"// What a table does. covers A1, B4":   "A1 B4",
		"# covers A96–A98 A104 and B5":          "A96 A97 A98 A104 B5",
		"// covers A73 A75 A130-A132\nfunc x()": "A73 A75 A130 A131 A132",
		"// covers nothing":                     "",
		"x := `covers A1`":                      "",
		"// covers A10 A11\n// A12: more":       "A10 A11 A12",
	} {
		if got := strings.Join(coveredBy(text), " "); got != want {
			t.Errorf("%q names %q, not %q", text, got, want)
		}
	}
}
