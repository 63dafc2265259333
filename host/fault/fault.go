package fault

import (
	"errors"
	"fmt"
	"strings"
)

// Error is one coded failure. The zero value of each field means "not known".
type Error struct {
	// Code is the upper-case name, such as UNKNOWN_FIELD.
	Code string
	// Message says what happened, without code and place.
	Message string
	// Hint says what the reader can do, in the imperative.
	Hint string
	// Where is the place, as far as it is known.
	Where Where
	// Retry is true when doing the same again can succeed.
	Retry bool
	// Err is the cause.
	Err error
}

// Where names the place of a failure. Line and Row count from 1; 0 is unknown.
type Where struct {
	Dataset string
	Flow    string
	File    string
	Line    int64
	Column  int64
	Row     int64
}

// New makes an error with a code and a formatted message.
func New(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an error with a code and a formatted message around a cause.
func Wrap(err error, code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: err}
}

// WithHint sets what the reader can do and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// At fills the parts of the place that are not known yet and returns e.
func (e *Error) At(w Where) *Error {
	e.Where = e.Where.or(w)
	return e
}

// Retryable marks e as a failure that a retry can cure and returns e.
func (e *Error) Retryable() *Error {
	e.Retry = true
	return e
}

// Error gives "[CODE] dataset: message (flow f, file x, line n, row m): cause. Hint".
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s] ", e.Code)
	if e.Where.Dataset != "" {
		b.WriteString(e.Where.Dataset + ": ")
	}
	b.WriteString(e.Message)
	if place := e.Where.String(); place != "" {
		b.WriteString(" (" + place + ")")
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Hint != "" {
		b.WriteString(". " + e.Hint)
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeName gives the code; it lets errors of other modules be read alike.
func (e *Error) CodeName() string { return e.Code }

// String lists the known parts of the place but the dataset, which leads the message.
func (w Where) String() string {
	var parts []string
	if w.Flow != "" {
		parts = append(parts, "flow "+w.Flow)
	}
	if w.File != "" {
		parts = append(parts, "file "+w.File)
	}
	for _, n := range []struct {
		name  string
		value int64
	}{{"line", w.Line}, {"column", w.Column}, {"row", w.Row}} {
		if n.value > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", n.name, n.value))
		}
	}
	return strings.Join(parts, ", ")
}

func (w Where) or(o Where) Where {
	if w.Dataset == "" {
		w.Dataset = o.Dataset
	}
	if w.Flow == "" {
		w.Flow = o.Flow
	}
	if w.File == "" {
		w.File = o.File
	}
	if w.Line == 0 {
		w.Line = o.Line
	}
	if w.Column == 0 {
		w.Column = o.Column
	}
	if w.Row == 0 {
		w.Row = o.Row
	}
	return w
}

// Coder is what a coded error of any package offers; runtime/plugin has its
// own error type because it must not import the host.
type Coder interface{ CodeName() string }

// CodeOf gives the outermost code in the chain of err, or "".
func CodeOf(err error) string {
	var c Coder
	if errors.As(err, &c) {
		return c.CodeName()
	}
	return ""
}

// Is reports whether any error in the chain of err carries the code.
func Is(err error, code string) bool {
	for err != nil {
		var c Coder
		if !errors.As(err, &c) {
			return false
		}
		if c.CodeName() == code {
			return true
		}
		next, ok := c.(error)
		if !ok {
			return false
		}
		err = errors.Unwrap(next)
	}
	return false
}

// Place fills in where err happened: on the outermost coded error of the
// chain when it is one of ours, else around it with the code given.
func Place(err error, code string, w Where) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		e.At(w)
		return err
	}
	if c := CodeOf(err); c != "" {
		code = c
	}
	return (&Error{Code: code, Message: "failed", Err: err}).At(w)
}
