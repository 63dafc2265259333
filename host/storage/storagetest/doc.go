// Package storagetest holds every driver of package storage to the same rules.
// Run is called by the tests of a driver, and may be by those of somebody
// else's.
package storagetest
