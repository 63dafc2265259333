package main

import (
	"runtime"
	"syscall"
	"time"
)

// side is one of the two things that a figure compares.
type side struct {
	prepare func() error // before each run, unmeasured; may be nil
	run     func() error
}

// cost is what a run took, in seconds.
type cost struct {
	wall float64
	cpu  float64 // of all threads, the peer's native ones too
}

// race runs both sides in turn, several times, and gives the least that each
// took: on a machine that does other things as well, the least is what the work
// needs and the rest is waiting.
func race(repeats int, ours, theirs side) (a, b cost, err error) {
	for i := range max(1, repeats) {
		for _, s := range []struct {
			side
			least *cost
		}{{ours, &a}, {theirs, &b}} {
			got, err := s.measure()
			if err != nil {
				return a, b, err
			}
			if i == 0 {
				*s.least = got
			}
			s.least.wall, s.least.cpu = min(s.least.wall, got.wall), min(s.least.cpu, got.cpu)
		}
	}
	return a, b, nil
}

// measure runs a side once. The garbage of what ran before is not its business.
func (s side) measure() (cost, error) {
	if s.prepare != nil {
		if err := s.prepare(); err != nil {
			return cost{}, err
		}
	}
	runtime.GC()
	start, used := time.Now(), cpuTime()
	err := s.run()
	return cost{time.Since(start).Seconds(), cpuTime() - used}, err
}

// cpuTime is what all threads of the process used.
func cpuTime() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// faster makes the figure of a ratio of speeds: theirs over ours.
func (f figure) faster(ours, theirs cost) figure {
	f.Better, f.Unit = "higher", "s"
	f.Ours, f.Theirs, f.Value = ours.wall, theirs.wall, theirs.wall/ours.wall
	f.CPU = theirs.cpu / ours.cpu
	return f
}

// slower makes the figure of a ratio of times: ours over theirs.
func (f figure) slower(ours, theirs cost) figure {
	f.Better, f.Unit = "lower", "s"
	f.Ours, f.Theirs, f.Value = ours.wall, theirs.wall, ours.wall/theirs.wall
	f.CPU = ours.cpu / theirs.cpu
	return f
}
