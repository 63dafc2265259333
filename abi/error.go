package abi

import "fmt"

// Codes of the errors of this package.
const (
	CodeInvalidManifest = "INVALID_MANIFEST"
	CodeUnsupportedABI  = "UNSUPPORTED_ABI_VERSION"
	CodeInvalidRowError = "INVALID_ROW_ERROR"
	CodeInvalidQuery    = "INVALID_QUERY_REQUEST"
)

// Error is a refused document of a guest, with the path of the field.
type Error struct {
	Code    string
	Path    string // such as functions[0].inputs[1].mode; "" for the document
	Message string
}

// Error gives "[CODE] path: message".
func (e *Error) Error() string {
	if e.Path == "" {
		return "[" + e.Code + "] " + e.Message
	}
	return "[" + e.Code + "] " + e.Path + ": " + e.Message
}

// CodeName gives the code, as every coded error of the project does.
func (e *Error) CodeName() string { return e.Code }

func invalid(path, format string, args ...any) *Error {
	return &Error{Code: CodeInvalidManifest, Path: path, Message: fmt.Sprintf(format, args...)}
}
