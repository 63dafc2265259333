package keyindex

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/storage"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("KEYINDEX_CHILD"); dir != "" {
		if err := errors.Join(failpoint.ArmFromEnv(), buildIn(dir, os.Getenv("KEYINDEX_CACHE"))); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// buildIn builds the index of the table in dir.
func buildIn(dir, cache string) error {
	store, err := storage.OpenDir(dir)
	if err != nil {
		return err
	}
	snap, err := delta.Open(store).Snapshot(background)
	if err != nil {
		return err
	}
	x := Open(Options{Cache: cache, Table: snap.Metadata().ID, Keys: []string{"region", "id"}})
	return errors.Join(x.Build(background, snap), x.Close())
}

// TestABuilderIsKilledAnywhere: whatever it leaves behind, the next lookup is right.
func TestABuilderIsKilledAnywhere(t *testing.T) {
	for _, point := range []string{"keyindex.written", "keyindex.written#2", "keyindex.renamed", "keyindex.renamed#2"} {
		t.Run(point, func(t *testing.T) {
			f := newFixture(t, nil)
			f.insert(row{1, 0}, row{2, 0})
			f.insert(row{3, 0})
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "KEYINDEX_CHILD="+strings.TrimSuffix(f.cache, "cache")+"table", "KEYINDEX_CACHE="+f.cache, failpoint.Env+"="+point)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !exit.Sys().(syscall.WaitStatus).Signaled() {
				t.Fatalf("it was not killed: %v\n%s", err, out)
			}
			f.check(row{4, 0})
		})
	}
}
