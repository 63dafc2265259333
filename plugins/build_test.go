package plugins

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// maxSize is what a module of the Go SDK may weigh.
const maxSize = 2_500_000

var builds struct {
	sync.Mutex
	dir  string
	wasm map[string][]byte
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "weir-plugins")
	if err != nil {
		panic(err)
	}
	builds.dir, builds.wasm = dir, map[string][]byte{}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// build compiles a plugin as its README says.
func build(t testing.TB, name string) []byte {
	t.Helper()
	builds.Lock()
	defer builds.Unlock()
	if wasm, ok := builds.wasm[name]; ok {
		return wasm
	}
	out := filepath.Join(builds.dir, filepath.Base(name)+".wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, "./"+name)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", name, err, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	builds.wasm[name] = wasm
	return wasm
}

var all = []string{"sap", "webshop", "kna1", "fixtures/currencymix", "fixtures/nondet", "fixtures/canary", "fixtures/failing", "fixtures/echo", "fixtures/fanout", "fixtures/extracts"}

func TestModulesStaySmall(t *testing.T) {
	for _, name := range all {
		size := len(build(t, name))
		t.Logf("%s: %.2f MB", name, float64(size)/1e6)
		if size > maxSize {
			t.Errorf("%s has %d bytes, over %d", name, size, maxSize)
		}
	}
}

// The SDK must not pull in what makes modules large or what TinyGo cannot compile.
func TestTheSDKImportsNothing(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "github.com/weir-data/weir/sdk/go")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{"unsafe": true, "math": true, "math/bits": true, "runtime": true, "structs": true,
		"errors": true, "strconv": true, "unicode/utf8": true,
		"github.com/weir-data/weir/sdk/go": true, "github.com/weir-data/weir/sdk/go/internal/flatbuf": true, "github.com/weir-data/weir/sdk/go/internal/host": true}
	for _, dep := range strings.Fields(string(out)) {
		if !allowed[dep] && !isInternal(dep) {
			t.Errorf("the SDK imports %s", dep)
		}
	}
}

// isInternal tells what package runtime consists of.
func isInternal(dep string) bool { return strings.HasPrefix(dep, "internal/") }
