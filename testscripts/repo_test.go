package testscripts

import (
	"os"
	"path/filepath"
	"testing"
)

// repoRoot is the folder of the root go.mod.
func repoRoot(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// sharedDir is the folder of real data; a test that needs it skips without it and says so.
func sharedDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("WEIR_SHARED")
	if dir == "" {
		dir = filepath.Join(repoRoot(t), "..", "shared")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("SKIPPED: real data is not at %s (set WEIR_SHARED)", dir)
	}
	return dir
}
