package meter

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the processor time of this thread: a busy machine does not
// change it.
func threadTime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano())
}
