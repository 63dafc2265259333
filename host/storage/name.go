package storage

import (
	"fmt"
	"strings"
)

// tempPrefix marks files in the making; names of objects must not use it.
const tempPrefix = ".tmp-"

// CheckName refuses names that could leave a store or clash with files in the
// making, with ErrInvalidName. It is for drivers.
func CheckName(name string) error {
	if name == "" || strings.HasPrefix(name, "/") || strings.ContainsRune(name, 0) {
		return fmt.Errorf("%w: %q", ErrInvalidName, name)
	}
	for element := range strings.SplitSeq(name, "/") {
		if element == "" || element == "." || element == ".." || strings.HasPrefix(element, tempPrefix) {
			return fmt.Errorf("%w: %q", ErrInvalidName, name)
		}
	}
	return nil
}

// CheckPrefix normalises the folder of a List: "" or a name without trailing
// slash. It is for drivers.
func CheckPrefix(prefix string) (string, error) {
	prefix = strings.TrimSuffix(prefix, "/")
	if prefix == "" {
		return "", nil
	}
	return prefix, CheckName(prefix)
}
