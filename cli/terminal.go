package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// isTerminal reports whether a stream is a terminal; streams that are no files are none.
func isTerminal(stream any) bool {
	f, ok := file(stream)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth is the width of a terminal stream, 80 when it cannot be told.
func terminalWidth(stream any) int {
	if f, ok := file(stream); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return 80
}

// file gives the file below a stream that takes secrets out.
func file(stream any) (*os.File, bool) {
	if w, ok := stream.(interface{ Below() io.Writer }); ok {
		stream = w.Below()
	}
	f, ok := stream.(*os.File)
	return f, ok
}
