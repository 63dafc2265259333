package storage

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/weir-data/weir/host/fault"
)

// What went wrong, for errors.Is.
var (
	ErrNotExist    = fs.ErrNotExist
	ErrExist       = fs.ErrExist
	ErrPermission  = fs.ErrPermission
	ErrFull        = error(syscall.ENOSPC)
	ErrLocked      = errors.New("locked by another holder")
	ErrInvalidName = errors.New("invalid object name")
)

// Coded gives err the code of its kind, such as STORAGE_NOT_FOUND for
// ErrNotExist; op and name say what was tried. It is for drivers.
func Coded(err error, op, name string) error {
	if err == nil {
		return nil
	}
	code := "STORAGE_IO_ERROR"
	for _, k := range []struct {
		kind error
		code string
	}{
		{ErrNotExist, "STORAGE_NOT_FOUND"},
		{ErrExist, "STORAGE_ALREADY_EXISTS"},
		{ErrPermission, "STORAGE_PERMISSION_DENIED"},
		{ErrFull, "STORAGE_FULL"},
		{syscall.EDQUOT, "STORAGE_FULL"},
		{ErrLocked, "STORAGE_LOCKED"},
		{ErrInvalidName, "STORAGE_INVALID_NAME"},
	} {
		if errors.Is(err, k.kind) {
			code = k.code
			break
		}
	}
	return fault.Wrap(err, code, "%s %s", op, name)
}
