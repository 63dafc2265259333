package plugin

import "fmt"

// Codes of the errors that leave this package.
const (
	CodeInvalidModule  = "PLUGIN_INVALID_MODULE"  // not a module, or without the exports
	CodeUnknownImport  = "PLUGIN_UNKNOWN_IMPORT"  // wants something no host gives
	CodeManifest       = "PLUGIN_MANIFEST"        // weir_describe failed, or its manifest is refused
	CodeTrap           = "PLUGIN_TRAP"            // the guest trapped or left
	CodeFailed         = "PLUGIN_FAILED"          // the guest said so, by fail or its result
	CodeOutputInvalid  = "PLUGIN_OUTPUT_INVALID"  // bytes that are no valid output
	CodeSchemaMismatch = "PLUGIN_SCHEMA_MISMATCH" // output or input not of the declared schema
	CodeLimit          = "PLUGIN_LIMIT_EXCEEDED"  // a limit, named with its value
	CodeNoFunction     = "PLUGIN_FUNCTION_NOT_FOUND"
	CodeNotSupported   = "NOT_SUPPORTED"        // of the ABI, but not yet of this host
	CodeInternal       = "PLUGIN_HOST_INTERNAL" // a fault of the host itself
)

// Error is a failure of, or around, a module.
type Error struct {
	Code     string
	Module   string // the configured name
	Function string // "" outside of a call
	Message  string
	Limit    string // the limit's name in a spec, of CodeLimit
	Value    int64  // and its value; times in nanoseconds
	Err      error  // the cause, if any
}

// Error gives "[CODE] module.function: message: cause".
func (e *Error) Error() string {
	where := e.Module
	if e.Function != "" {
		where += "." + e.Function
	}
	if where != "" {
		where += ": "
	}
	s := "[" + e.Code + "] " + where + e.Message
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeName gives the code, as every coded error of the project does.
func (e *Error) CodeName() string { return e.Code }

func errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// because is errorf around a cause.
func because(err error, code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: err}
}
