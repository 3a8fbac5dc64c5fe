package store

import (
	"sync"

	"slipway/backend/session"
)

// liveCache holds the live sessions as they were at a change of the store.
type liveCache struct {
	mu    sync.Mutex // guards everything below
	list  []session.Session
	at    uint64 // count of changes before the list was read
	known bool
}

// LiveSessions are the live sessions. While the store does not change they are read only once. The caller must not
// change the list or what its records point to.
func (s *Store) LiveSessions() ([]session.Session, error) {
	changes := s.Changes()
	c := &s.live
	c.mu.Lock()
	if c.known && c.at == changes {
		defer c.mu.Unlock()
		return c.list, nil
	}
	c.mu.Unlock()
	live, _, err := s.Live()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list, c.at, c.known = live, changes, true
	return live, nil
}
