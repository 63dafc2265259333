//go:build !race

package delta

const raceDetector = false
