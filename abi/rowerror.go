package abi

import (
	"errors"
	"regexp"
	"strings"
)

// RowError is why an input row could not be transformed.
type RowError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

var rowErrorCode = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

// ParseRowError reads the JSON of row_error, strictly. Errors are *Error.
func ParseRowError(data []byte) (RowError, error) {
	n, err := parseJSON(data)
	if err == nil {
		o := n.object("")
		e := RowError{Code: o.required("code"), Message: o.text("message")}
		if o.err == nil && !rowErrorCode.MatchString(e.Code) {
			o.refuse("code", "%q is not an upper-case name of up to 64 letters, digits and underscores", clip(e.Code, 80))
		}
		if err = o.end(); err == nil {
			return e, nil
		}
	}
	var e *Error
	if errors.As(err, &e) {
		e.Code = CodeInvalidRowError
	}
	return RowError{}, err
}

// clip cuts a text for a message, between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
