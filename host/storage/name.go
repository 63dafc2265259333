package storage

import (
	"fmt"
	"strings"
)

// tempPrefix marks files in the making; names of objects must not use it.
const tempPrefix = ".tmp-"

// checkName refuses names that could leave the store or clash with files in the making.
func checkName(name string) error {
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

// checkPrefix normalises the folder of a List: "" or a name without trailing slash.
func checkPrefix(prefix string) (string, error) {
	prefix = strings.TrimSuffix(prefix, "/")
	if prefix == "" {
		return "", nil
	}
	return prefix, checkName(prefix)
}
