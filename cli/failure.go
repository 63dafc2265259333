package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/pipeline"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	// A canceled update ends as its signal would have ended it.
	exitSignal = 128
)

// exitError gives an error its exit code. A silent one has been told already.
type exitError struct {
	code   int
	silent bool
	err    error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// wrongUsage marks err as a fault of the command line or of the project.
func wrongUsage(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code: exitUsage, err: err}
}

// toldFailure marks err as a failed update whose errors the summary has shown.
func toldFailure(err error) error {
	return &exitError{code: exitFailed, silent: true, err: err}
}

// canceled gives a canceled update the exit code of the signal.
func canceled(ctx context.Context, r *pipeline.Result) error {
	code := exitFailed
	var s *signaled
	if errors.As(context.Cause(ctx), &s) {
		code = exitSignal + int(s.signal)
	}
	return &exitError{code: code, silent: true, err: fault.New("UPDATE_CANCELED", "update %s was canceled", r.UpdateID)}
}

// report prints err and gives the exit code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	code, silent := exitFailed, false
	var e *exitError
	if errors.As(err, &e) {
		code, silent, err = e.code, e.silent, e.err
	}
	if !silent {
		for _, e := range pipeline.Flaws(err) {
			printError(stderr, e)
		}
	}
	return code
}

// printError prints one line that begins with the error's code.
func printError(w io.Writer, err error) { printFailure(w, "", err) }

// printFailure prints the failure of a dataset's flow as one line that begins
// with the error's code and names the dataset.
func printFailure(w io.Writer, dataset string, err error) {
	code := fault.CodeOf(err)
	if code == "" {
		code = "INTERNAL_ERROR"
	}
	text := strings.TrimPrefix(err.Error(), "["+code+"] ")
	if !strings.Contains(text, dataset) {
		text = dataset + ": " + text
	}
	fmt.Fprintln(w, printable("["+code+"] "+text))
}
