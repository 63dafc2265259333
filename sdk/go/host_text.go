package weir

import "github.com/weir-data/weir/sdk/go/internal/host"

// hostText calls an import that fills a buffer and gives the full length, or a negative number.
func hostText(read func([]byte) int32) (string, bool) {
	var small [256]byte
	n := read(small[:])
	if n < 0 {
		return "", false
	}
	if int(n) <= len(small) {
		return string(small[:n]), true
	}
	big := make([]byte, n)
	if n = read(big); n < 0 || int(n) > len(big) {
		return "", false
	}
	return string(big[:n]), true
}

// lastError gives the host's reason for the import that just failed.
func lastError(what string) error {
	if text, ok := hostText(host.LastError); ok && text != "" {
		return Error(text)
	}
	return errorf(what, " failed")
}
