package testscripts

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const nobody = 65534

// TestForbiddenInputIsNamed runs weir as an ordinary user, also where the tests
// run as root, whom no permission stops: a folder or a file that may not be
// read fails the flow by name, keeps nothing of the batch, and is read once it may be.
func TestForbiddenInputIsNamed(t *testing.T) {
	for _, c := range []struct{ name, shut, code string }{
		{"a folder", "landing/shut", "PERMISSION_DENIED"},
		{"a file", "landing/shut/order_000002.json", "PERMISSION_DENIED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := ordinaryProject(t)
			asOrdinaryUser(t, dir, true, "run")
			before := asOrdinaryUser(t, dir, true, "query", "SELECT count(*) FROM orders", "--output", "csv")
			if !strings.Contains(before, "\n2\n") {
				t.Fatalf("rows before: %s", before)
			}
			if err := writeOrders(filepath.Join(dir, "landing", "shut"), 2, 3); err != nil {
				t.Fatal(err)
			}
			giveAway(t, dir)
			shut := filepath.Join(dir, c.shut)
			if err := os.Chmod(shut, 0); err != nil {
				t.Fatal(err)
			}
			out := asOrdinaryUser(t, dir, false, "run")
			if !strings.Contains(out, c.code) || !strings.Contains(out, c.shut) {
				t.Fatalf("the error names neither code nor place:\n%s", out)
			}
			if after := asOrdinaryUser(t, dir, true, "query", "SELECT count(*) FROM orders", "--output", "csv"); after != before {
				t.Fatalf("rows after: %s", after)
			}
			if err := os.Chmod(shut, 0o755); err != nil {
				t.Fatal(err)
			}
			asOrdinaryUser(t, dir, true, "run")
			if after := asOrdinaryUser(t, dir, true, "query", "SELECT count(*) FROM orders", "--output", "csv"); !strings.Contains(after, "\n5\n") {
				t.Fatalf("rows at the end: %s", after)
			}
		})
	}
}

// ordinaryProject is a pipeline with two files landed, in a folder that an
// ordinary user can reach; t.TempDir is shut to others.
func ordinaryProject(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-ordinary-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"weir.yaml":  "name: ordinary\ncatalog: dev\nschema: bronze\nstorage: ./lake\nlibraries:\n  - glob: {include: orders.sql}\n",
		"orders.sql": "CREATE OR REFRESH STREAMING TABLE orders AS SELECT * FROM STREAM read_files('./landing', format => 'json');\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeOrders(filepath.Join(dir, "landing"), 0, 2); err != nil {
		t.Fatal(err)
	}
	copyProgram(t, filepath.Join(dir, "weir"))
	giveAway(t, dir)
	return dir
}

// copyProgram copies this test binary, which is weir when it is called so.
func copyProgram(t *testing.T, to string) {
	t.Helper()
	path, err := exec.LookPath("weir")
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// giveAway makes the ordinary user the owner of everything in dir.
func giveAway(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// asOrdinaryUser runs weir in dir, gives what it printed, and fails the test
// when it does not end as it should.
func asOrdinaryUser(t *testing.T, dir string, ok bool, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(dir, "weir"), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "WEIR_CACHE_DIR="+filepath.Join(dir, "cache"), "HOME="+dir, "TMPDIR="+dir)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); (err == nil) != ok {
		t.Fatalf("weir %s: %s\n%s", strings.Join(args, " "), fmt.Sprint(err), &out)
	}
	return out.String()
}
