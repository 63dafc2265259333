//go:build race

package meter

// raceDetector says that every instruction of an interpreter costs ten: the
// long comparisons, which are of one thread, then take a sample.
const raceDetector = true
