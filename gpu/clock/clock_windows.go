package clock

import (
	"time"

	"golang.org/x/sys/windows"
)

// sinceBoot cannot tell sleep from waking here.
func sinceBoot() (boot, awake time.Duration) {
	since := windows.DurationSinceBoot()
	return since, since
}
