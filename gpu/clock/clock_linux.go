package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot reads boot last, so that it is never less than awake.
func sinceBoot() (boot, awake time.Duration) {
	awake = read(unix.CLOCK_MONOTONIC)
	return read(unix.CLOCK_BOOTTIME), awake
}

// read reads a clock that every Linux has, so it cannot fail.
func read(id int32) time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(id, &at); err != nil {
		return 0
	}
	return time.Duration(at.Nano())
}
