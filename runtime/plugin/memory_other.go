//go:build !unix

package plugin

func reserve(uint64) region { return &heap{} }
