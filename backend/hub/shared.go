package hub

import (
	"crypto/rand"
	"log/slog"
	"sync"
	"time"
)

// shared is what every room of the hub has in common. One lock guards what all of
// them know, together with the stream: a snapshot is exactly what the events up to
// its number have told.
type shared struct {
	shelf   Shelf
	owner   string
	version Version
	log     *slog.Logger
	now     func() time.Time
	began   time.Time

	// saving orders writes to the shelf; it is taken before mu, never after.
	saving sync.Mutex
	// mu guards the stream and what the rooms say it guards. No agent, shelf or
	// channel is touched with it held.
	mu     sync.Mutex
	stream stream
}

func newShared(config Config) *shared {
	s := &shared{shelf: config.Shelf, owner: config.Owner, version: config.Version, log: config.Log, now: config.Now}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.began = s.now()
	s.stream.open(rand.Text())
	return s
}
