package embedsdk

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What the README promises: a plugin beside a written-out SDK builds and tests without a registry.
func TestTheFirstTransformOfTheReadmeBuildsAndPasses(t *testing.T) {
	dir := t.TempDir()
	if err := Write(filepath.Join(dir, "sdk")); err != nil {
		t.Fatal(err)
	}
	blocks := codeBlocks(t)
	for i, name := range []string{"go.mod", "main.go", "main_test.go"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(blocks[i]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "-ec", blocks[3])
	cmd.Dir, cmd.Env = dir, offline()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(filepath.Join(dir, "shop.wasm"))
	if err != nil || info.Size() > 2_500_000 {
		t.Errorf("%v %v", info, err)
	}
}

// codeBlocks gives the fenced blocks of the README, in order.
func codeBlocks(t *testing.T) (blocks []string) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range strings.Split(string(text), "```") {
		if i%2 == 1 {
			_, code, _ := strings.Cut(part, "\n")
			blocks = append(blocks, code)
		}
	}
	return blocks
}

func TestTestsAndEmbeddingStayBehind(t *testing.T) {
	seen := map[string]bool{}
	if err := Files(func(name string, content []byte) error {
		seen[name] = len(content) > 0
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "README.md", "doc.go", "exports_wasip1.go", "internal/host/imports_wasip1.go", "internal/seam/seam.go", "weirtest/run.go"} {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
	for _, name := range []string{"embed.go", "decimal_test.go", "weirtest/roundtrip_test.go", "embedsdk/embedsdk.go"} {
		if seen[name] {
			t.Errorf("%s is there", name)
		}
	}
}

// offline is an environment without a registry.
func offline() []string {
	return append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
}
