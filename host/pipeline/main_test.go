package pipeline

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// cache is the cache folder that the tests of one run share: compiling a
// module once is enough.
var cache string

func cacheDir() string { return cache }

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "weir-pipeline-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cache = dir
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(dir); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}))
}
