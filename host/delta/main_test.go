package delta

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"go.uber.org/goleak"

	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/storage"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("DELTA_CRASH_CHILD"); dir != "" {
		if err := errors.Join(failpoint.ArmFromEnv(), commitTwelve(dir)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if spec := os.Getenv(crashKill); spec != "" {
		if err := runKilled(spec); err != nil {
			fmt.Println(err)
		}
		os.Exit(1) // it should be dead
	}
	goleak.VerifyTestMain(m)
}

// commitTwelve creates a table and commits eleven batches to it, each once, however often it is run.
func commitTwelve(dir string) error {
	store, err := storage.OpenDir(dir)
	if err != nil {
		return err
	}
	table := Open(store)
	for i := range 12 {
		txn := &Txn{AppID: "crash", Version: int64(i)}
		c := Commit{Schema: plain, Txn: txn}
		if i > 0 {
			if c.Read, err = table.Snapshot(background); err != nil {
				return err
			}
			if have, ok := c.Read.Txn(txn.AppID); ok && have >= txn.Version {
				continue
			}
			w, err := table.Write(background, WriteOptions{Snapshot: c.Read, Name: fmt.Sprint("batch-", i)})
			if err != nil {
				return err
			}
			if err := writeRow(w, i); err != nil {
				return errors.Join(err, w.Abort(background))
			}
			if c.Add, err = w.Close(background); err != nil {
				return err
			}
		}
		res, err := table.Commit(background, c)
		var done *AlreadyCommitted
		if err = errors.Join(err, res.CheckpointError); err != nil && !errors.As(err, &done) {
			return err
		}
	}
	return nil
}

func writeRow(w *FileWriter, i int) error {
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, plain, strings.NewReader(fmt.Sprintf(`[{"id":%d,"s":"r%d"}]`, i, i)))
	if err != nil {
		return err
	}
	defer rec.Release()
	return w.Write(background, rec)
}

// covers A17: killed at any failpoint and started again, the table holds each batch once.
func TestAKilledWriterIsFinishedByTheNext(t *testing.T) {
	for _, name := range failpoint.Names() {
		if !strings.HasPrefix(name, "delta.") {
			continue
		}
		for _, hit := range []string{"", "#2", "#11"} {
			t.Run(name+hit, func(t *testing.T) {
				f := newFixture(t)
				killed := crashChild(t, f.dir, name+hit)
				if !killed && hit == "" {
					t.Error("the failpoint was not hit")
				}
				if crashChild(t, f.dir, "") {
					t.Fatal("killed without a failpoint")
				}
				s, err := f.reopen().Snapshot(background)
				if err != nil || s.Version() != 11 {
					t.Fatalf("version %v, %v", s, err)
				}
				if got := f.cells(); got != "r1 r10 r11 r2 r3 r4 r5 r6 r7 r8 r9" {
					t.Errorf("%s", got)
				}
			})
		}
	}
}

// crashChild runs commitTwelve in a process of its own and tells whether it was killed.
func crashChild(t *testing.T, dir, point string) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "DELTA_CRASH_CHILD="+dir, failpoint.Env+"="+point)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL {
			return true
		}
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}
