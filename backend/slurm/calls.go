package slurm

import (
	"sync"
	"time"
)

// calls counts the commands of the last 60 minutes, of which this one is not over.
type calls struct {
	mu      sync.Mutex // guards everything below
	minutes [60]int
	last    int64 // the minute, since 1970, up to which minutes is right
}

func (c *calls) count(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.minutes[c.pass(now)]++
}

// pass clears the minutes since the last call and returns the index of this one. Callers hold mu.
func (c *calls) pass(now time.Time) int64 {
	minute := now.Unix() / 60
	for m := max(c.last+1, minute-int64(len(c.minutes))+1); m <= minute; m++ {
		c.minutes[m%int64(len(c.minutes))] = 0
	}
	c.last = max(c.last, minute)
	return minute % int64(len(c.minutes))
}

func (c *calls) hour(now time.Time) (sum int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass(now)
	for _, n := range c.minutes {
		sum += n
	}
	return sum
}

// CallsPerHour is how many commands were called during the last hour.
func (c *Client) CallsPerHour() int { return c.calls.hour(c.config.Clock.Now()) }
