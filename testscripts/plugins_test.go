package testscripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// pluginDir builds every plugin of the repository, its fixtures and every one
// below testdata/plugins, once, and gives the folder of the modules.
func pluginDir(t testing.TB) string {
	t.Helper()
	root := repoRoot(t)
	out := filepath.Join(root, "build", "testplugins")
	buildOnce.Do(func() { errBuild = buildPlugins(root, out) })
	if errBuild != nil {
		t.Fatal(errBuild)
	}
	return out
}

var (
	buildOnce sync.Once
	errBuild  error
)

func buildPlugins(root, out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, pattern := range []string{"plugins/*/main.go", "plugins/fixtures/*/main.go", "testscripts/testdata/plugins/*/main.go", "runtime/plugin/testdata/go/keeping/main.go"} {
		mains, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return err
		}
		for _, main := range mains {
			dir := filepath.Dir(main)
			cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w",
				"-o", filepath.Join(out, filepath.Base(dir)+".wasm"), ".")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "CGO_ENABLED=0")
			if text, err := cmd.CombinedOutput(); err != nil {
				return &buildError{dir, string(text), err}
			}
		}
	}
	return nil
}

type buildError struct {
	dir, output string
	err         error
}

func (e *buildError) Error() string { return "build " + e.dir + ": " + e.err.Error() + "\n" + e.output }
func (e *buildError) Unwrap() error { return e.err }

var goEnvOnce = sync.OnceValue(func() map[string]string {
	names := []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOSUMDB"}
	vars := map[string]string{}
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		return vars
	}
	for i, line := range strings.Split(strings.TrimRight(string(out), "\n"), "\n") {
		if i < len(names) {
			vars[names[i]] = line
		}
	}
	return vars
})

// goEnv gives a variable of the Go tool; scripts run in an environment of
// their own and would otherwise fill caches of their own.
func goEnv(name string) string { return goEnvOnce()[name] }
