package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// signaled is why a command was canceled.
type signaled struct{ signal syscall.Signal }

func (s *signaled) Error() string { return "canceled by " + s.signal.String() }

// cancelOnSignal gives a context that ends with the first interrupt or
// termination. The second one ends the process, as it would have without us.
func cancelOnSignal(parent context.Context, stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-signals:
			signal.Stop(signals)
			fmt.Fprintln(stderr, "canceling; once more ends the process at once")
			number, _ := s.(syscall.Signal)
			cancel(&signaled{number})
		case <-ctx.Done():
			signal.Stop(signals)
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}
