package embedsdk

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A plugin beside a written-out SDK must build and test without a registry.
func TestAPluginBuildsBesideTheWrittenSDK(t *testing.T) {
	dir := t.TempDir()
	if err := Write(filepath.Join(dir, "sdk")); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"go.mod": "module example.com/mine\n\ngo 1.26\n\nrequire " + ModulePath + " v0.0.0\n\nreplace " + ModulePath + " => ./sdk\n",
		"main.go": `package main

import "github.com/weir-data/weir/sdk/go"

func init() { weir.Module("mine", "0.1.0", pipeline) }

func main() {}

func pipeline() {
	weir.TemporaryView("doubled", weir.ReadStream("numbers").Columns("n"), double,
		weir.Output(weir.Col("n", "bigint")))
}

func double(c *weir.Call) error {
	in, out := c.Input(0), c.Output()
	for in.Next() {
		n, to := in.Batch().Column("n").Int64(), out.Column("n").Int64()
		for i := range n.Len() {
			to.Append(2 * n.At(i))
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}
`,
		"main_test.go": `package main

import (
	"testing"

	"github.com/weir-data/weir/sdk/go/weirtest"
)

func TestDouble(t *testing.T) {
	weirtest.Load(t, nil).Run("doubled", weirtest.Table("n bigint", weirtest.Row{21})).Equal(t, weirtest.Row{int64(42)})
}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, nil, "test", "./...")
	run(t, dir, []string{"GOOS=wasip1", "GOARCH=wasm"}, "build", "-buildmode=c-shared", "-o", "mine.wasm", ".")
}

func run(t *testing.T, dir string, env []string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
}
