//go:build race

package stream

// raceDetector is true under -race, which makes everything slower by ten: the
// tests that enumerate then take every stride-th case.
const raceDetector = true
