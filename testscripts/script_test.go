package testscripts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weir-data/weir/cli"
	"github.com/weir-data/weir/host/failpoint"
)

// TestMain makes the test binary stand in for weir: a script's `weir` is this
// process again, with failpoints that the environment can arm.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"weir": func() {
			if err := failpoint.ArmFromEnv(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(3)
			}
			os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

func TestScript(t *testing.T) {
	testscript.Run(t, scriptParams(t, "testdata/script"))
}

func scriptParams(t *testing.T, dir string) testscript.Params {
	modules := pluginDir(t)
	return testscript.Params{
		Dir:                dir,
		UpdateScripts:      os.Getenv("UPDATE_SCRIPTS") != "",
		RequireUniqueNames: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"landing": cmdLanding,
			"await":   cmdAwait,
			"rows":    cmdRows,
			"lines":   cmdLines,
			"jsonl":   cmdJSONLines,
			"append":  cmdAppend,
			"bucket":  cmdBucket,
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "clang":
				_, err := exec.LookPath("clang")
				return err == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("PLUGINS", modules)
			env.Setenv("ROOT", repoRoot(t))
			env.Setenv("WEIR_CACHE_DIR", sharedCache())
			for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOFLAGS", "GOSUMDB"} {
				if v := goEnv(name); v != "" {
					env.Setenv(name, v)
				}
			}
			return nil
		},
	}
}

// sharedCache is one cache of compiled modules for all scripts.
func sharedCache() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("weir-test-cache-%d", os.Getuid()))
}
