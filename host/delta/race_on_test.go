//go:build race

package delta

// raceDetector is true under -race, whose own memory and time make those of the package hard to tell.
const raceDetector = true
