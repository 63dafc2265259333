package plugins

import (
	"os"
	"strings"
	"testing"
)

// The page of snapshots shows the plugin as it is.
func TestThePageOfSnapshotsShowsThePlugin(t *testing.T) {
	page, err := os.ReadFile("../docs/snapshots.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("kna1/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```go\n")
	block, _, ok := strings.Cut(block, "```")
	if !ok || block == "" {
		t.Fatal("the page has no Go in it")
	}
	flat := func(text string) string {
		var lines []string
		for line := range strings.SplitSeq(text, "\n") {
			lines = append(lines, strings.TrimSpace(line))
		}
		return strings.Join(lines, "\n")
	}
	if !strings.Contains(flat(string(source)), strings.TrimSpace(flat(block))) {
		t.Errorf("kna1/main.go does not hold\n%s", block)
	}
}
