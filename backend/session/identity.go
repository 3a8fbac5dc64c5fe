package session

import (
	"crypto/rand"
	"fmt"
	"regexp"
)

const (
	idLength  = 12
	idLetters = "abcdefghijklmnopqrstuvwxyz0123456789"
)

var idRule = regexp.MustCompile(`^[a-z0-9]{12}$`)

// NewID returns a random id. It begins with a letter, so that it can stand
// alone as a host name.
func NewID() ID {
	id := make([]byte, idLength)
	for i := range id {
		letters := len(idLetters)
		if i == 0 {
			letters = 26
		}
		id[i] = idLetters[random(letters)]
	}
	return ID(id)
}

// ValidID reports whether text has the form of an id.
func ValidID(text string) bool { return idRule.MatchString(text) }

// random returns a uniform number below n, which is at most 256.
func random(n int) int {
	var b [1]byte
	for {
		_, _ = rand.Read(b[:]) // never fails: see the documentation of crypto/rand
		if int(b[0]) < 256-256%n {
			return int(b[0]) % n
		}
	}
}

var (
	nameFirst = []string{
		"amber", "ample", "azure", "bold", "brave", "bright", "brisk", "calm", "clear", "coral", "crisp", "deep",
		"eager", "early", "fair", "fleet", "fresh", "gentle", "golden", "grand", "green", "happy", "hardy", "ivory",
		"jolly", "keen", "kind", "light", "lively", "lucky", "mellow", "merry", "misty", "noble", "pearl", "plain",
		"polar", "proud", "quick", "quiet", "rapid", "ready", "royal", "sandy", "silver", "smooth", "snowy", "solid",
		"steady", "still", "sunny", "swift", "tidal", "tidy", "true", "vivid", "warm", "wide", "windy", "wise",
	}
	nameSecond = []string{
		"anchor", "bay", "beacon", "bow", "breeze", "brig", "buoy", "canoe", "cape", "cliff", "clipper", "cloud",
		"coast", "comet", "compass", "cove", "crane", "current", "cutter", "delta", "dock", "dolphin", "drift", "ferry",
		"fjord", "galley", "gull", "harbor", "heron", "island", "jetty", "keel", "kelp", "ketch", "lagoon", "lantern",
		"launch", "marina", "mast", "oar", "ocean", "otter", "pelican", "pier", "port", "raft", "reef", "rudder",
		"sail", "schooner", "seal", "shell", "shore", "skiff", "sloop", "sound", "star", "tern", "tide", "wave",
	}
)

// RandomName returns a readable name such as "calm-heron-42", which keeps the
// rule for names.
func RandomName() string {
	return fmt.Sprintf("%s-%s-%02d", nameFirst[random(len(nameFirst))], nameSecond[random(len(nameSecond))],
		random(100))
}
