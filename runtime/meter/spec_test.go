package meter

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// wide are limits that change nothing of what a test module can observe.
var wide = Limits{MemoryBytes: 1 << 32, TableElements: 1<<32 - 1, BranchTable: 1 << 20, FunctionTargets: 1 << 20}

// wazeroDir is where the module cache has the engine's own tests.
func wazeroDir(t testing.TB) string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Skipf("no module cache to take test modules from: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// twin runs the original in one runtime and the rewritten module in another.
type twin struct {
	hosts [2]*host
	last  [2]api.Module
	named map[string][2]api.Module
}

// TestSpecSuite runs the commands of the WebAssembly specification's suite on
// the original and on the rewritten modules: results, traps and refusals must
// be the same.
func TestSpecSuite(t *testing.T) {
	root := filepath.Join(wazeroDir(t), "internal", "integration_test", "spectest")
	var files []string
	for _, version := range []string{"v1", "v2"} {
		found, _ := filepath.Glob(filepath.Join(root, version, "testdata", "*.json"))
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Skip("the wazero module of the cache carries no spec suite")
	}
	spectest, err := os.ReadFile(filepath.Join(root, "testdata", "spectest.wasm"))
	if err != nil {
		t.Skip(err)
	}
	for i, file := range files {
		if raceDetector && i%10 != 0 {
			continue
		}
		version := filepath.Base(filepath.Dir(filepath.Dir(file)))
		t.Run(version+"/"+strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			config := wazero.NewRuntimeConfigInterpreter()
			if strings.HasPrefix(version, "v1") {
				config = wazero.NewRuntimeConfigCompiler()
			}
			runSpecFile(t, file, spectest, config)
		})
	}
}

type specCommand struct {
	Type       string
	Line       int
	Name       string
	Filename   string
	As         string
	ModuleType string `json:"module_type"`
	Action     struct {
		Type, Field, Module string
		Args                []specValue
	}
}

type specValue struct {
	Type     string
	LaneType string `json:"lane_type"`
	Value    any
}

func runSpecFile(t *testing.T, file string, spectest []byte, config wazero.RuntimeConfig) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var suite struct{ Commands []specCommand }
	if err := json.Unmarshal(text, &suite); err != nil {
		t.Fatal(err)
	}
	w := &twin{named: map[string][2]api.Module{}}
	for i := range w.hosts {
		w.hosts[i] = newHost(t, config)
	}
	if errs := w.instantiate(t, spectest, "spectest"); errs[0] != nil || errs[1] != nil {
		t.Fatal(errs)
	}
	for i, c := range suite.Commands {
		switch c.Type {
		case "module":
			name := ""
			if i+1 < len(suite.Commands) && suite.Commands[i+1].Type == "register" {
				name = suite.Commands[i+1].As
			}
			errs := w.instantiate(t, w.read(t, file, c), name)
			if errs[0] != nil || errs[1] != nil {
				t.Fatalf("line %d: original %v, rewritten %v", c.Line, errs[0], errs[1])
			}
			if c.Name != "" {
				w.named[c.Name] = w.last
			}
		case "assert_malformed", "assert_invalid", "assert_unlinkable", "assert_uninstantiable":
			if c.ModuleType == "text" {
				continue
			}
			kept := w.last
			errs := w.instantiate(t, w.read(t, file, c), "")
			if (errs[0] == nil) != (errs[1] == nil) {
				t.Errorf("line %d: %s: original %v, rewritten %v", c.Line, c.Type, errs[0], errs[1])
			}
			w.last = kept
		case "assert_return", "assert_trap", "assert_exhaustion", "action":
			w.act(t, c)
		}
	}
}

func (w *twin) read(t *testing.T, file string, c specCommand) []byte {
	wasm, err := os.ReadFile(filepath.Join(filepath.Dir(file), c.Filename))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// instantiate starts a module in both runtimes.
func (w *twin) instantiate(t *testing.T, wasm []byte, name string) (errs [2]error) {
	out, _, err := Rewrite(wasm, wide)
	for i, module := range [][]byte{wasm, out} {
		if i == 1 && err != nil {
			errs[1] = err
			continue
		}
		config := wazero.NewModuleConfig().WithName(name).WithStartFunctions()
		w.last[i], errs[i] = w.hosts[i].InstantiateWithConfig(context.Background(), module, config)
	}
	return errs
}

func (w *twin) act(t *testing.T, c specCommand) {
	modules := w.last
	if c.Action.Module != "" {
		modules = w.named[c.Action.Module]
	}
	if c.Action.Type == "get" {
		a, b := modules[0].ExportedGlobal(c.Action.Field).Get(), modules[1].ExportedGlobal(c.Action.Field).Get()
		if a != b {
			t.Errorf("line %d: global %s is %d and %d", c.Line, c.Action.Field, a, b)
		}
		return
	}
	var args []uint64
	for _, v := range c.Action.Args {
		args = append(args, v.bits()...)
	}
	var results [2][]uint64
	var traps [2]string
	f := modules[0].ExportedFunction(c.Action.Field)
	for i, m := range modules {
		got, err := m.ExportedFunction(c.Action.Field).Call(context.Background(), args...)
		results[i], traps[i] = got, trapOf(err)
	}
	for i, typ := range f.Definition().ResultTypes() {
		// A function reference is an address; only whether it is null can be compared.
		if typ == 0x70 && traps[0] == "" && traps[1] == "" && len(results[0]) == len(results[1]) && (results[0][i] == 0) == (results[1][i] == 0) {
			results[1][i] = results[0][i]
		}
	}
	if traps[0] != traps[1] || !slices.Equal(results[0], results[1]) {
		t.Errorf("line %d: %s(%d): original %x %s, rewritten %x %s", c.Line, c.Action.Field, args, results[0], traps[0], results[1], traps[1])
	}
}

// trapOf is an error without its stack trace.
func trapOf(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func (v specValue) bits() []uint64 {
	if v.Type != "v128" {
		text, _ := v.Value.(string)
		n := number(text, strings.Contains(v.Type, "32"))
		if v.Type == "externref" && text != "null" {
			n++ // 0 is null to wazero
		}
		return []uint64{n}
	}
	lanes := v.Value.([]any)
	var out [2]uint64
	width := 128 / len(lanes)
	for i, lane := range lanes {
		bit := i * width
		out[bit/64] |= number(lane.(string), width == 32) & (1<<width - 1) << (bit % 64)
	}
	return out[:]
}

func number(text string, short bool) uint64 {
	if strings.HasPrefix(text, "nan") {
		if short {
			return 0x7fc00000
		}
		return 0x7ff8000000000000
	}
	if strings.HasPrefix(text, "-") {
		n, _ := strconv.ParseInt(text, 10, 64)
		if short {
			return uint64(uint32(n))
		}
		return uint64(n)
	}
	n, _ := strconv.ParseUint(text, 10, 64)
	return n
}
