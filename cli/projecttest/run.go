package projecttest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/pipeline"
)

// State is how a script ended.
type State string

// The states.
const (
	Passed  State = "ok"
	Failed  State = "FAILED"
	Skipped State = "skipped"
)

// Result is what became of one script. Log is what it ran and saw.
type Result struct {
	Script string
	State  State
	Took   time.Duration
	Log    string
}

// Options say how scripts run.
type Options struct {
	CacheDir string // of compiled modules, shared with ordinary runs
	Update   bool   // write what cmp found different into the script
}

// Run runs the scripts in their order. The error says that they could not run,
// not that one of them failed.
func Run(ctx context.Context, spec *pipeline.Spec, scripts []string, opt Options) ([]Result, error) {
	if len(scripts) == 0 {
		return nil, fault.New("NO_TESTS", "the project has no test scripts").WithHint("Write one to %s, or name a file", filepath.Join(spec.Dir, "tests", "<name>.txtar"))
	}
	for _, s := range scripts {
		if _, err := os.Stat(s); err != nil {
			return nil, fault.Wrap(err, "INVALID_ARGUMENT", "the script cannot be read")
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fault.Wrap(err, "INTERNAL_ERROR", "the program does not know its own file")
	}
	project, err := projectFiles(spec)
	if err != nil {
		return nil, err
	}
	var out []Result
	for _, script := range scripts {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		t := &recorder{}
		start := time.Now()
		t.Run(script, func(t testscript.T) {
			testscript.RunT(t, testscript.Params{
				Files: []string{script}, UpdateScripts: opt.Update, RequireUniqueNames: true,
				Setup: func(env *testscript.Env) error {
					env.Setenv("WEIR_CACHE_DIR", opt.CacheDir)
					return project.copyTo(env.WorkDir)
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){"weir": weirCommand(self)},
			})
		})
		out = append(out, Result{Script: script, State: t.state(), Took: time.Since(start), Log: strings.TrimRight(t.log.String(), "\n")})
	}
	return out, nil
}

// weirCommand runs the program itself, as `exec` would.
func weirCommand(self string) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		err := ts.Exec(self, args...)
		switch {
		case err == nil && neg:
			ts.Fatalf("unexpected command success")
		case err != nil && !neg:
			ts.Fatalf("%v", err)
		}
	}
}

// files are the project's by their paths relative to its folder.
type files map[string]string

// projectFiles lists what a script's folder gets, and refuses a project whose
// tests would reach beyond it.
func projectFiles(spec *pipeline.Spec) (files, error) {
	at := fault.Where{File: spec.Path}
	if _, ok := within(spec.Dir, spec.Storage); !ok {
		return nil, fault.New("TEST_STORAGE_OUTSIDE", "the storage %s does not lie within the project: its tests would write to real tables", spec.Storage).At(at).
			WithHint("Write storage: ${env:LAKE:-./lake}, which tests take as ./lake")
	}
	paths, err := spec.SourceFiles()
	if err != nil {
		return nil, err
	}
	out := files{}
	for _, path := range paths {
		rel, ok := within(spec.Dir, path)
		if !ok {
			return nil, fault.New("TEST_FILE_OUTSIDE", "%s does not lie within the project, so a test cannot have a copy at the same place", path).At(at)
		}
		out[rel] = path
	}
	return out, nil
}

// within gives path relative to dir, when it lies below it.
func within(dir, path string) (string, bool) {
	if strings.Contains(path, "://") {
		return "", false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	rel, err := filepath.Rel(dir, path)
	return rel, err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// copyTo writes the files into dir, but for those that the script has itself.
func (f files) copyTo(dir string) error {
	for rel, from := range f {
		to := filepath.Join(dir, rel)
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		text, err := os.ReadFile(from)
		if os.IsNotExist(err) && strings.HasSuffix(from, ".wasm") {
			return fault.Wrap(err, "PLUGIN_NOT_FOUND", "the module is not built").WithHint("Run weir plugin build first")
		}
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, fs.FileMode(0o644)); err != nil {
			return fmt.Errorf("copying the project: %w", err)
		}
	}
	return nil
}
