// Command testlog reads `go test -json` from standard input and prints what a
// person looks for: a line a package, the whole output of what failed, and
// every test that was skipped with its reason, which `go test` alone keeps to
// itself. A skip is no pass; the log must say what was not tried.
//
// It decides nothing: the exit code that counts is that of `go test`.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	if err := report(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testlog:", err)
		os.Exit(1)
	}
}

// event is a line of `go test -json` (go doc test2json).
type event struct {
	Action, Package, Test, Output string
}

// report prints the packages as they end and the skipped tests at the end.
func report(in io.Reader, out io.Writer) error {
	texts := map[event]*strings.Builder{} // by package and test
	text := func(e event) *strings.Builder {
		key := event{Package: e.Package, Test: e.Test}
		if texts[key] == nil {
			texts[key] = &strings.Builder{}
		}
		return texts[key]
	}
	var skipped []string
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				fmt.Fprint(out, line) // what the compiler says comes as it is
				continue
			}
			switch {
			case e.Action == "build-output" || e.Action == "output" && e.Test == "" && isResult(e.Output):
				fmt.Fprint(out, e.Output)
			case e.Action == "output":
				text(e).WriteString(e.Output)
			case e.Action == "skip" && e.Test != "":
				skipped = append(skipped, fmt.Sprintf("SKIPPED %s %s: %s", e.Package, e.Test, reason(text(e).String())))
			case e.Action == "fail":
				if e.Test == "" {
					unfinished(out, texts, e.Package)
				}
				fmt.Fprint(out, text(e).String())
			}
			if e.Action == "pass" || e.Action == "skip" || e.Action == "fail" {
				delete(texts, event{Package: e.Package, Test: e.Test})
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	for _, s := range skipped {
		fmt.Fprintln(out, s)
	}
	return nil
}

// unfinished prints what the tests of a package said that never came to an end:
// the process died in one of them, and its last words stand there.
func unfinished(out io.Writer, texts map[event]*strings.Builder, pkg string) {
	for _, key := range slices.SortedFunc(maps.Keys(texts), func(a, b event) int { return strings.Compare(a.Test, b.Test) }) {
		if key.Package == pkg && key.Test != "" {
			fmt.Fprint(out, texts[key].String())
			delete(texts, key)
		}
	}
}

// isResult tells whether a line is go test's own about a package.
func isResult(line string) bool {
	for _, start := range []string{"ok  \t", "FAIL\t", "?   \t"} {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	return false
}

// reason is what the test said, on one line, without the runner's own lines.
func reason(text string) string {
	var said []string
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}
