package weir

import "runtime"

// panicText says what a function panicked with, and where, as far as a module without fmt can.
func panicText(v any) string {
	b := []byte("[PANIC] ")
	switch v := v.(type) {
	case error:
		b = append(b, v.Error()...)
	case string:
		b = append(b, v...)
	case interface{ String() string }:
		b = append(b, v.String()...)
	default:
		b = append(b, "a value that is no text"...)
	}
	return string(appendOrigin(b))
}

// appendOrigin adds the innermost frame outside this package and the runtime: the author's line.
func appendOrigin(b []byte) []byte {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		if f.Function != "" && !hasPrefix(f.Function, "runtime.") && !hasPrefix(f.Function, "github.com/weir-data/weir/sdk/go.") {
			b = append(append(b, ", in "...), f.Function...)
			b = append(append(b, " at "...), base(f.File)...)
			return appendInt(append(b, ':'), int64(f.Line))
		}
		if !more {
			return b
		}
	}
}

func hasPrefix(s, prefix string) bool { return len(s) >= len(prefix) && s[:len(prefix)] == prefix }

func base(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}
