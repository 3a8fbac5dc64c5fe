package serving

import (
	"fmt"
	"time"

	"slipway/backend/session"
)

// count is a phrase with a count.
func count(key string, n int, holes ...session.Phrase) session.Phrase {
	return session.Phrase{Say: key, Count: n, With: holes}
}

// as is a phrase for a hole of another one.
func as(hole string, phrase session.Phrase) session.Phrase {
	phrase.Hole = hole
	return phrase
}

// number fills a hole with a number.
func number(hole string, n int) session.Phrase { return session.Fill(hole, fmt.Sprint(n)) }

// span fills the hole for a length of time.
func span(d time.Duration) session.Phrase { return session.Fill("span", session.Duration(d).Words()) }
