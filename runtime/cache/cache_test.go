package cache

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) (*Cache, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cache")
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c, dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyTheOwnerReadsTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestKeysOfDifferentPartsDiffer(t *testing.T) {
	if Key("a", "bc") == Key("ab", "c") || Key("a") == Key("a", "") {
		t.Error("two lists of parts share a key")
	}
}

func TestADamagedManifestIsNone(t *testing.T) {
	c, dir := open(t)
	key := Key("x")
	if _, ok := c.Manifest(key); ok {
		t.Fatal("a manifest out of nowhere")
	}
	if err := c.PutManifest(key, []byte("{}\nmore")); err != nil {
		t.Fatal(err)
	}
	if got, ok := c.Manifest(key); !ok || string(got) != "{}\nmore" {
		t.Fatalf("%q, %v", got, ok)
	}
	path := filepath.Join(dir, "manifest", key)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	write(t, path, string(data))
	if _, ok := c.Manifest(key); ok {
		t.Error("a damaged manifest was given out")
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("a damaged manifest was kept")
	}
}

func TestCodeIsCheckedBeforeUse(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, dir string){
		"a bit":         func(t *testing.T, dir string) { write(t, filepath.Join(dir, "sub", "code"), "machine cod3") },
		"an added file": func(t *testing.T, dir string) { write(t, filepath.Join(dir, "other"), "") },
		"a lost file": func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "sub", "code")); err != nil {
				t.Fatal(err)
			}
		},
		"a link": func(t *testing.T, dir string) {
			if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
		},
		"no seal": func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, sums)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := open(t)
			k, err := c.Code(Key("k"))
			if err != nil {
				t.Fatal(err)
			}
			if k.Sealed() {
				t.Fatal("a new entry is sealed")
			}
			write(t, filepath.Join(k.Dir(), "sub", "code"), "machine code")
			if err := k.Seal(); err != nil {
				t.Fatal(err)
			}
			if k, err = c.Code(Key("k")); err != nil || !k.Sealed() {
				t.Fatalf("an intact entry was dropped: %v", err)
			}
			damage(t, k.Dir())
			if k, err = c.Code(Key("k")); err != nil || k.Sealed() {
				t.Fatalf("a damaged entry was given out: %v", err)
			}
			if files, _ := os.ReadDir(k.Dir()); len(files) != 0 {
				t.Errorf("the entry was not emptied: %v", files)
			}
		})
	}
}
