// Package clock reads the moments that accounts are kept by: time since boot with and without the time that the machine
// was suspended, and the wall clock, which only says what to call a moment.
package clock

import (
	"os"
	"strings"
	"time"

	"slipway/gpu"
)

// Now reads all clocks at once. On a system that cannot say how long it was suspended Boot and Awake are equal.
func Now() gpu.Moment {
	id := bootID() // a file: not between the clocks
	m := together(sinceBoot, time.Now)
	m.BootID = id
	return m
}

const (
	// tries is how often the clocks are read at most until they are close.
	tries = 5
	// near is how far apart they may have been read.
	near = 200 * time.Microsecond
)

// together reads the clocks as close to one another as it can. On a busy machine others may run for tens of
// milliseconds between two readings; a session that starts by the wall clock would then be counted for that much more
// or less than it ran.
func together(sinceBoot func() (boot, awake time.Duration), wall func() time.Time) (m gpu.Moment) {
	var least time.Duration
	for i := range tries {
		boot, awake := sinceBoot()
		now := wall().Round(0)
		after, _ := sinceBoot()
		if apart := after - boot; i == 0 || apart < least {
			least, m = apart, gpu.Moment{Boot: boot, Awake: awake, Wall: now}
		}
		if least <= near {
			break
		}
	}
	return m
}

// bootIDFile is a random number that the kernel draws at every boot.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

func bootID() string {
	id, err := os.ReadFile(bootIDFile)
	if err != nil {
		return otherBootID
	}
	return strings.TrimSpace(string(id))
}

// otherBootID stands for a boot that has no name; counters of devices that need one are not kept on such a system.
const otherBootID = "unnamed"
