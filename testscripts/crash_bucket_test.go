package testscripts

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/storage/cloud/cloudtest"
)

// TestKillsOnAnObjectStore does with a storage in S3 what TestKillAtEveryFailpoint
// does on local disk, at some failpoints, at all of them with WEIR_SOAK_KILLS.
func TestKillsOnAnObjectStore(t *testing.T) {
	want, _ := undisturbed(t)
	fake := cloudtest.StartS3()
	t.Cleanup(fake.Close)
	var env []string
	for k, v := range cloudtest.S3Env(fake.URL) {
		env = append(env, k+"="+v)
	}
	names := failpoint.Names()
	if os.Getenv("WEIR_SOAK_KILLS") == "" {
		seed := uint64(envInt(t, "WEIR_SEED", int(time.Now().UnixNano()&0xffffffff)))
		t.Logf("WEIR_SEED=%d", seed)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		names = names[:8]
	}
	t.Run("kills", func(t *testing.T) {
		for i, name := range names {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				crashProject(t, dir)
				lake := fmt.Sprint("lake-", i)
				moveStorage(t, dir, "s3://"+cloudtest.Bucket+"/"+lake)
				cmd, out := weirProcess(t, dir, append(env, failpoint.Env+"="+name+"#2"), "run")
				killed(t, cmd.Run(), out)
				cmd, out = weirProcess(t, dir, env, "run")
				if err := cmd.Run(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				download(t, fake, lake+"/", filepath.Join(dir, "lake"))
				want.mustEqual(t, readState(t, dir), "after a kill at "+name)
			})
		}
	})
	if n := fake.Uploads(); n > 0 {
		t.Logf("%d uploads in parts were cut off", n)
	}
}

// TestAnUpdateOnAFaultyObjectStore lets one request in twelve fail, half of
// them after they were made: nothing is lost, and nothing comes twice.
func TestAnUpdateOnAFaultyObjectStore(t *testing.T) {
	want, wantAfterRefresh := undisturbed(t)
	fake := cloudtest.StartS3()
	t.Cleanup(fake.Close)
	var env []string
	for k, v := range cloudtest.S3Env(fake.URL) {
		env = append(env, k+"="+v)
	}
	dir := t.TempDir()
	crashProject(t, dir)
	moveStorage(t, dir, "s3://"+cloudtest.Bucket+"/lake")
	fake.OnRequest(func(r *http.Request) *cloudtest.Fault {
		done := r.Method != http.MethodGet && r.Method != http.MethodHead && rand.N(2) == 0
		switch rand.N(48) {
		case 0:
			return &cloudtest.Fault{Status: http.StatusInternalServerError, Code: "InternalError", Done: done}
		case 1:
			return &cloudtest.Fault{Status: http.StatusServiceUnavailable, Code: "SlowDown"}
		case 2:
			return &cloudtest.Fault{Done: done}
		case 3:
			if r.Header.Get("If-None-Match") != "" {
				return &cloudtest.Fault{Status: http.StatusConflict, Code: "ConditionalRequestConflict", Done: done}
			}
		}
		return nil
	})
	for _, c := range []struct {
		args []string
		want *state
	}{{[]string{"run"}, want}, {[]string{"run"}, want}, {[]string{"run", "--full-refresh-all", "--yes", "--accept-loss"}, wantAfterRefresh}} {
		if c.want == wantAfterRefresh {
			if err := os.Remove(filepath.Join(dir, "landing", "orders_002.json")); err != nil {
				t.Fatal(err)
			}
		}
		cmd, out := weirProcess(t, dir, env, c.args...)
		if err := cmd.Run(); err != nil {
			t.Fatalf("weir %v: %v\n%s", c.args, err, out)
		}
		if err := os.RemoveAll(filepath.Join(dir, "lake")); err != nil {
			t.Fatal(err)
		}
		download(t, fake, "lake/", filepath.Join(dir, "lake"))
		c.want.mustEqual(t, readState(t, dir), fmt.Sprint("after weir ", c.args))
	}
}

// moveStorage gives the project another storage.
func moveStorage(t *testing.T, dir, storage string) {
	t.Helper()
	path := filepath.Join(dir, "weir.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	moved := strings.Replace(string(text), "storage: ./lake", "storage: "+storage, 1)
	if err := os.WriteFile(path, []byte(moved), 0o644); err != nil {
		t.Fatal(err)
	}
}

// download writes the objects below a prefix into a folder.
func download(t *testing.T, fake *cloudtest.Server, prefix, dir string) {
	t.Helper()
	for _, key := range fake.Names() {
		name, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		data, _ := fake.Object(key)
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
