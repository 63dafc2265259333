package failpoint

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

var point = New("failpoint.test")

func TestMain(m *testing.M) {
	if os.Getenv("FAILPOINT_CHILD") == "1" {
		if err := ArmFromEnv(); err != nil {
			os.Exit(3)
		}
		point.Hit()
		point.Hit()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestArmedPointKillsAtItsCount(t *testing.T) {
	for env, want := range map[string]string{
		"": "exit", "failpoint.test": "killed", "failpoint.test#2": "killed", "failpoint.test#3": "exit",
		"failpoint.tset": "refused", "failpoint.test#0": "refused", "failpoint.test#x": "refused",
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "FAILPOINT_CHILD=1", Env+"="+env)
		err := cmd.Run()
		var exit *exec.ExitError
		got := "exit"
		if errors.As(err, &exit) {
			got = "refused"
			if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL {
				got = "killed"
			}
		}
		if got != want {
			t.Errorf("%s=%q: %s, want %s", Env, env, got, want)
		}
	}
}
