// Package faultstore is the twin of a store that fails on purpose, for tests.
package faultstore
