package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot reads boot last, so that it is never less than awake. On macOS it is the monotonic clock that goes on while
// the machine sleeps.
func sinceBoot() (boot, awake time.Duration) {
	awake = read(unix.CLOCK_UPTIME_RAW)
	return max(awake, read(unix.CLOCK_MONOTONIC)), awake
}

// read returns a clock that every macOS has, so that its error cannot occur.
func read(id int32) time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(id, &at); err != nil {
		return 0
	}
	return time.Duration(at.Nano())
}
