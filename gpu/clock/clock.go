// Package clock reads the moments of accounts: the time since boot with and without the time that the machine was
// suspended, and the wall clock.
package clock

import (
	"os"
	"strings"
	"time"

	"slipway/gpu"
)

// Now reads all clocks. If the system cannot tell how long it was suspended, Boot and Awake are equal.
func Now() gpu.Moment {
	id, err := os.ReadFile(bootIDFile) // before the clocks, because it takes time
	if err != nil {
		id = []byte(otherBootID)
	}
	m := together(sinceBoot, time.Now)
	m.BootID = strings.TrimSpace(string(id))
	return m
}

const (
	// tries is how often the clocks are read at most until they are close.
	tries = 5
	// near is how far apart they may have been read.
	near = 200 * time.Microsecond
)

// together reads the clocks as close to each other as it can. On a busy machine other programs may run for tens of
// milliseconds between two readings; a session would then be charged that much more or less than it ran.
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

const bootIDFile = "/proc/sys/kernel/random/boot_id"

// otherBootID is the id where the system has none; counters of devices that need one are not kept there.
const otherBootID = "unnamed"
