package cache

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// put makes a sealed entry of so many bytes that was last used so long ago.
func put(t *testing.T, c *Cache, key string, bytes int, age time.Duration) {
	t.Helper()
	k, err := c.Code(Key(key))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(k.Dir(), "code"), strings.Repeat("x", bytes))
	if err := k.Seal(); err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-age)
	if err := os.Chtimes(filepath.Join(k.Dir(), sums), then, then); err != nil {
		t.Fatal(err)
	}
}

func has(c *Cache, key string) bool {
	k, err := c.Code(Key(key))
	if err != nil {
		return false
	}
	if !k.Sealed() {
		_ = k.Discard()
	}
	return k.Sealed()
}

func TestWhatWasUsedLongestAgoGoesFirst(t *testing.T) {
	c, dir := open(t)
	c.Bound(3500)
	put(t, c, "old", 1000, 3*time.Hour)
	put(t, c, "older but used", 1000, 4*time.Hour)
	put(t, c, "new", 1000, time.Hour)
	if !has(c, "older but used") { // which is a use
		t.Fatal("gone before the bound was reached")
	}
	put(t, c, "newest", 1000, 0)
	for key, want := range map[string]bool{"old": false, "older but used": true, "new": true, "newest": true} {
		if has(c, key) != want {
			t.Errorf("%s: there %v", key, !want)
		}
	}
	put(t, c, "larger than the whole", 10_000, 0)
	if !has(c, "larger than the whole") || has(c, "newest") {
		t.Error("the newest entry went, or an older one stayed beside it")
	}
	if err := c.PutManifest(Key("m"), []byte(strings.Repeat("y", 100))); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Manifest(Key("m")); !ok || has(c, "larger than the whole") {
		t.Error("a manifest does not count")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", unfinished+"*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestManyWritersOfOneEntry(t *testing.T) {
	_, dir := open(t)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			c, err := Open(dir) // as a process of its own
			if err != nil {
				t.Error(err)
				return
			}
			c.Bound(5000)
			for i := range 20 {
				key := Key(fmt.Sprint(i % 4))
				k, err := c.Code(key)
				if err != nil {
					t.Error(err)
					return
				}
				if k.Sealed() {
					if text, err := os.ReadFile(filepath.Join(k.Dir(), "code")); err == nil && len(text) != 1000 {
						t.Errorf("a sealed entry of %d bytes", len(text))
					}
					continue
				}
				if err := os.WriteFile(filepath.Join(k.Dir(), "code"), make([]byte, 1000), 0o600); err != nil {
					t.Error(err)
				}
				if err := k.Seal(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if !has(c, fmt.Sprint(i)) {
			t.Errorf("entry %d is not there", i)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "code", unfinished+"*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWhatADeadProcessLeftIsCleared(t *testing.T) {
	_, dir := open(t)
	old, recent := filepath.Join(dir, "code", unfinished+"1"), filepath.Join(dir, "code", unfinished+"2")
	write(t, filepath.Join(old, "code"), "half of it")
	write(t, filepath.Join(recent, "code"), "of somebody at work")
	then := time.Now().Add(-2 * abandoned)
	if err := os.Chtimes(old, then, then); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Error("an abandoned entry stays")
	}
	if _, err := os.Stat(recent); err != nil {
		t.Error("an entry that is being written was deleted")
	}
}
