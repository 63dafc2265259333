package cli

import (
	"os"

	"golang.org/x/term"
)

// isTerminal reports whether a stream is a terminal; streams that are no files are none.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth is the width of a terminal stream, 80 when it cannot be told.
func terminalWidth(stream any) int {
	if f, ok := stream.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return 80
}
