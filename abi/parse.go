package abi

// ParseManifest reads and checks a manifest. Errors are *Error.
func ParseManifest(data []byte) (*Manifest, error) {
	return nil, &Error{Code: "NOT_SUPPORTED", Message: "the manifest parser is being written"}
}
