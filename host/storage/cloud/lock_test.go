package cloud_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/cloud"
	"github.com/weir-data/weir/host/storage/cloud/cloudtest"
)

// silence makes writes to a lock fail, as for a holder that has died or is cut off.
func silence(fake *cloudtest.Server) {
	fake.OnRequest(func(r *http.Request) *cloudtest.Fault {
		if strings.Contains(r.URL.RequestURI(), "lock") && (r.Method == http.MethodPut || r.Method == http.MethodPost) {
			return &cloudtest.Fault{Status: 403, Code: "AccessDenied"}
		}
		return nil
	})
}

func TestALockOfADeadHolderIsTakenAfterItsLease(t *testing.T) {
	fake := cloudtest.S3(t)
	s := open(t, "s3://lake/t")
	cloud.SetLease(s, 2*time.Second)
	unlock, err := s.TryLock(ctx, "lock")
	if err != nil {
		t.Fatal(err)
	}
	silence(fake)
	if _, err := s.TryLock(ctx, "lock"); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("within the lease: %v", err)
	}
	time.Sleep(3100 * time.Millisecond) // times are told in whole seconds
	fake.OnRequest(nil)
	other, err := s.TryLock(ctx, "lock")
	if err != nil {
		t.Fatalf("after the lease: %v", err)
	}
	if err := unlock(); fault.CodeOf(err) != "STORAGE_LOCK_LOST" && !errors.Is(err, storage.ErrPermission) {
		t.Errorf("the first holder: %v", err)
	}
	if _, err := s.TryLock(ctx, "lock"); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("the second holder lost it: %v", err)
	}
	if err := other(); err != nil {
		t.Error(err)
	}
}

func TestALockThatIsRenewedIsKept(t *testing.T) {
	cloudtest.S3(t)
	s := open(t, "s3://lake/t")
	cloud.SetLease(s, 4*time.Second) // times are told in whole seconds, and the machine may be busy
	unlock, err := s.TryLock(ctx, "lock")
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		time.Sleep(1500 * time.Millisecond)
		if _, err := s.TryLock(ctx, "lock"); !errors.Is(err, storage.ErrLocked) || !strings.Contains(err.Error(), "held by") {
			t.Errorf("%v", err)
		}
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}

// One of many takes a lock that is free, and one that has expired.
func TestALockHasOneHolder(t *testing.T) {
	each(t, func(t *testing.T, fake *cloudtest.Server, s *cloud.Store) {
		for _, name := range []string{"new", "released"} {
			const racers = 8
			got := make(chan func() error, racers)
			done := make(chan bool)
			for range racers {
				go func() {
					defer func() { done <- true }()
					unlock, err := s.TryLock(ctx, "lock")
					if err == nil {
						got <- unlock
					} else if !errors.Is(err, storage.ErrLocked) {
						t.Error(err)
					}
				}()
			}
			for range racers {
				<-done
			}
			if len(got) != 1 {
				t.Errorf("%s: %d holders", name, len(got))
			}
			for len(got) > 0 {
				if err := (<-got)(); err != nil {
					t.Error(err)
				}
			}
		}
		for _, name := range fake.Names() {
			if name != "t/lock" {
				t.Errorf("left %s", name)
			}
		}
	})
}

func TestAStoreThatIgnoresVersionsHoldsNoLocks(t *testing.T) {
	fake := cloudtest.S3(t)
	fake.OnRequest(func(r *http.Request) *cloudtest.Fault {
		r.Header.Del("If-Match")
		return nil
	})
	s := open(t, "s3://lake/t")
	if _, err := s.TryLock(ctx, "lock"); fault.CodeOf(err) != "STORE_WITHOUT_CONDITIONAL_PUT" {
		t.Errorf("%v", err)
	}
	if err := s.PutIfAbsent(ctx, "x", nil); err != nil {
		t.Errorf("put-if-absent needs less: %v", err)
	}
}

// A process of this machine that was killed holds nothing back.
func TestALockOfAProcessKilledHereIsFree(t *testing.T) {
	cloudtest.S3(t)
	s := open(t, "s3://lake/t")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lockChild+"=s3://lake/t")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "locked" {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := s.TryLock(ctx, "lock"); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("beside a living process: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as it should be
	unlock, err := s.TryLock(ctx, "lock")
	if err != nil {
		t.Fatalf("after its death: %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}

const lockChild = "CLOUD_LOCK_CHILD"

// holdLock takes the lock, says so and waits to be killed.
func holdLock(url string) {
	s, err := cloud.Open(ctx, url)
	if err == nil {
		_, err = s.TryLock(ctx, "lock")
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("locked")
	select {}
}
