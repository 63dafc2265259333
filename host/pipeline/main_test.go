package pipeline

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// cache is the cache folder that the tests of one run share, and those of other
// runs where WEIR_TEST_CACHE names one: compiling a module once is enough.
var cache string

// modulesDir is where this run builds modules.
var modulesDir string

func cacheDir() string { return cache }

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "weir-pipeline-test-")
	modulesDir = dir
	if cache = os.Getenv("WEIR_TEST_CACHE"); cache == "" {
		cache = dir
	}
	if err := errors.Join(err, os.MkdirAll(cache, 0o700)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(dir); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}))
}
