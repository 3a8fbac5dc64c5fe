package router

import (
	"fmt"
	"time"
)

// caller limits the requests of one token.
type caller struct {
	under int       // requests, waiting or under way
	saved float64   // requests that may come at once
	at    time.Time // when saved was right; zero: it is full
}

func (c *caller) enter(token Token, now time.Time) *problem {
	if token.Concurrent > 0 && c.under >= token.Concurrent {
		return limited(fmt.Sprintf("This token permits %d requests at a time.", token.Concurrent), time.Second)
	}
	if token.Rate > 0 {
		most := max(token.Rate, 1)
		if c.saved += token.Rate * now.Sub(c.at).Minutes(); c.at.IsZero() || c.saved > most {
			c.saved = most
		}
		c.at = now
		if c.saved < 1 {
			wait := time.Duration((1 - c.saved) / token.Rate * float64(time.Minute))
			return limited(fmt.Sprintf("This token permits %g requests a minute.", token.Rate), wait)
		}
		c.saved--
	}
	c.under++
	return nil
}

// arrivals counts requests by the tenth of a second in which they came, for 30 s.
type arrivals struct {
	counts [301]int
	latest int64 // tenth of a second since 1970 of the newest count
}

const tenth = 100 * time.Millisecond

// move clears the counts that are too old.
func (a *arrivals) move(now time.Time) {
	to := now.UnixNano() / int64(tenth)
	if a.latest = max(a.latest, to-int64(len(a.counts))); a.latest < to {
		for ; a.latest < to; a.latest++ {
			a.counts[(a.latest+1)%int64(len(a.counts))] = 0
		}
	}
}

func (a *arrivals) add(now time.Time) {
	a.move(now)
	a.counts[a.latest%int64(len(a.counts))]++
}

// since counts the requests of a time up to now.
func (a *arrivals) since(now time.Time, span time.Duration) (sum int) {
	a.move(now)
	for i := range int64(span / tenth) {
		sum += a.counts[(a.latest-i)%int64(len(a.counts))]
	}
	return sum
}
