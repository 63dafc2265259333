package wire

import (
	"fmt"
	"strings"
)

// Codes of the errors of this package.
const (
	CodeMessage     = "INVALID_IPC_MESSAGE"    // framing or flatbuffer
	CodeData        = "INVALID_ARROW_DATA"     // a column that breaks a rule of its type
	CodeType        = "UNSUPPORTED_ARROW_TYPE" // outside the subset
	CodeLimit       = "IPC_LIMIT_EXCEEDED"
	CodeWrongSchema = "SCHEMA_MISMATCH"
)

// Error is a refused message or batch. Path names the column, "" for the message.
type Error struct {
	Code    string
	Path    string
	Message string
}

// Error gives "[CODE] column path: message".
func (e *Error) Error() string {
	if e.Path == "" {
		return "[" + e.Code + "] " + e.Message
	}
	return "[" + e.Code + "] column " + e.Path + ": " + e.Message
}

// CodeName gives the code, as every coded error of the project does.
func (e *Error) CodeName() string { return e.Code }

func errorf(code string, path []string, format string, args ...any) *Error {
	return &Error{Code: code, Path: strings.Join(path, "."), Message: fmt.Sprintf(format, args...)}
}
