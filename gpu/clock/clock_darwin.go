package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot reads boot last, so that it is never less than awake. On macOS the monotonic clock runs while the machine
// sleeps.
func sinceBoot() (boot, awake time.Duration) {
	awake = read(unix.CLOCK_UPTIME_RAW)
	return max(awake, read(unix.CLOCK_MONOTONIC)), awake
}

// read reads a clock that every macOS has, so it cannot fail.
func read(id int32) time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(id, &at); err != nil {
		return 0
	}
	return time.Duration(at.Nano())
}
