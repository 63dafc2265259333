package coltype

import "fmt"

// Codes of the errors of this package; Spark's or Delta's own where one exists.
const (
	CodeSyntax      = "PARSE_SYNTAX_ERROR"
	CodeUnsupported = "UNSUPPORTED_DATATYPE"
	CodePrecision   = "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION"
	CodeNotDelta    = "DELTA_UNSUPPORTED_DATA_TYPES"
)

// Error is a refused type or schema text.
type Error struct {
	Code    string
	Message string
}

// Error gives "[CODE] message".
func (e *Error) Error() string { return "[" + e.Code + "] " + e.Message }

// CodeName gives the code, as every coded error of the project does.
func (e *Error) CodeName() string { return e.Code }

func errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
