package serving

import (
	"fmt"
	"time"
)

// count is a number of things, are the same with a verb.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func are(n int, thing string) string { return count(n, thing) + " " + verb(n) }

func verb(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// span is a length of time in words, such as "90 s" or "10 min".
func span(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= 2*time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}
