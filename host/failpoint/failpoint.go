package failpoint

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Env is the variable ArmFromEnv reads: "name", or "name#3" for the third hit.
const Env = "WEIR_FAILPOINT"

// Point is one named instant.
type Point struct{ name string }

type armed struct {
	name string
	left atomic.Int64
}

var (
	mu     sync.Mutex
	names  []string
	target atomic.Pointer[armed]
)

// New declares a failpoint; packages call it once, for a package variable.
func New(name string) *Point {
	mu.Lock()
	defer mu.Unlock()
	if slices.Contains(names, name) {
		panic("failpoint: declared twice: " + name)
	}
	names = append(names, name)
	return &Point{name: name}
}

// Names lists the failpoints that the linked packages declare, sorted.
func Names() []string {
	mu.Lock()
	defer mu.Unlock()
	out := slices.Clone(names)
	slices.Sort(out)
	return out
}

// Hit kills the process with SIGKILL if this point is the armed one and its count has come.
func (p *Point) Hit() {
	a := target.Load()
	if a == nil || a.name != p.name {
		return
	}
	if a.left.Add(-1) == 0 {
		kill()
	}
}

// ArmFromEnv arms the point that the environment names. An unknown name or a
// bad count is an error, so that a test cannot pass by misspelling.
func ArmFromEnv() error {
	v := os.Getenv(Env)
	if v == "" {
		return nil
	}
	name, count, found := strings.Cut(v, "#")
	n := int64(1)
	if found {
		var err error
		if n, err = strconv.ParseInt(count, 10, 64); err != nil || n < 1 {
			return fmt.Errorf("failpoint: bad count in %s=%q", Env, v)
		}
	}
	if !slices.Contains(Names(), name) {
		return fmt.Errorf("failpoint: %s=%q names no failpoint", Env, v)
	}
	a := &armed{name: name}
	a.left.Store(n)
	target.Store(a)
	return nil
}

func kill() {
	// Cannot fail for the own process; the loop holds the goroutine until the signal lands.
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
