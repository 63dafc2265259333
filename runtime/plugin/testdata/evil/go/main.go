// Command evil is harm done by a guest in Go, whose runtime has a stack, a heap
// and a scheduler of its own. What the host must make of each function stands in
// evil_test.go.
package main

import (
	"os"
	"runtime"
	"time"

	"github.com/weir-data/weir/sdk/go"
)

func init() { weir.Module("evil_go", "1.0.0", pipeline) }

func main() {}

func pipeline() {
	for name, f := range map[string]func(*weir.Call) error{
		"recursion": recursion, "memory_bomb": memoryBomb, "goroutines": goroutines, "spin": spin,
		"sleeps": sleeps, "deadlock": deadlock, "panics": panics, "outside": outside, "nil_pointer": nilPointer,
	} {
		weir.TemporaryView(name, weir.ReadStream("a").Columns("v"), f, weir.Output(weir.Col("v", "bigint")))
	}
}

var sink int

//go:noinline
func deeper(n int) int { return deeper(n+1) + sink }

func recursion(*weir.Call) error {
	sink = deeper(0)
	return nil
}

var hoard [][]byte

func memoryBomb(*weir.Call) error {
	for {
		hoard = append(hoard, make([]byte, 1<<20))
	}
}

func goroutines(*weir.Call) error {
	for {
		go func() { select {} }()
		runtime.Gosched()
	}
}

func spin(*weir.Call) error {
	for {
		sink++
	}
}

func sleeps(*weir.Call) error {
	start := time.Now()
	time.Sleep(24 * time.Hour)
	if time.Since(start) < 24*time.Hour {
		return weir.Error("woken early")
	}
	return weir.Error("slept a day")
}

func deadlock(*weir.Call) error {
	<-make(chan int)
	return nil
}

func panics(*weir.Call) error { panic("on purpose") }

func nilPointer(*weir.Call) error {
	var p *int
	sink = *p
	return nil
}

func outside(*weir.Call) error {
	if _, err := os.ReadFile("/etc/passwd"); err == nil {
		return weir.Error("read a file")
	}
	if err := os.WriteFile("/tmp/weir-canary", []byte("x"), 0o600); err == nil {
		return weir.Error("wrote a file")
	}
	if len(os.Environ()) > 0 || len(os.Args) > 0 {
		return weir.Error("saw the environment")
	}
	return weir.Error("saw nothing")
}
