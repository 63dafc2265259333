package meter

import "fmt"

// Codes of the errors that leave this package.
const (
	CodeInvalidModule      = "PLUGIN_INVALID_MODULE"      // damaged, or breaks a rule of the format
	CodeUnsupportedFeature = "PLUGIN_UNSUPPORTED_FEATURE" // of WebAssembly, but not of this sandbox
	CodeLimit              = "PLUGIN_LIMIT_EXCEEDED"      // of Limits, named with its value
	CodeReservedName       = "PLUGIN_RESERVED_NAME"       // imports or exports a name of the meter
)

// Error says why a module was refused.
type Error struct {
	Code    string
	Feature string // the proposal, of CodeUnsupportedFeature
	Limit   string // the field of Limits, of CodeLimit
	Value   int64  // the value of that field
	Message string
}

// Error gives "[CODE] message".
func (e *Error) Error() string { return "[" + e.Code + "] " + e.Message }

// CodeName gives the code, as every coded error of the project does.
func (e *Error) CodeName() string { return e.Code }

func invalid(format string, args ...any) *Error {
	return &Error{Code: CodeInvalidModule, Message: fmt.Sprintf(format, args...)}
}

func unsupported(feature, format string, args ...any) *Error {
	return &Error{Code: CodeUnsupportedFeature, Feature: feature, Message: fmt.Sprintf(format, args...) + " (" + feature + "), which this sandbox does not run"}
}

func reserved(format string, args ...any) *Error {
	return &Error{Code: CodeReservedName, Message: fmt.Sprintf(format, args...) + ", a name that belongs to the host"}
}

// over says that got things of a kind are more than a limit allows.
func over(what string, got uint64, field string, limit int64) *Error {
	return &Error{Code: CodeLimit, Limit: field, Value: limit, Message: fmt.Sprintf("%s: %d, over the limit %s = %d", what, got, field, limit)}
}
