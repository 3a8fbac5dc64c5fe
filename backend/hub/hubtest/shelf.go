package hubtest

import (
	"encoding/json"
	"sync"
)

// Shelf keeps values in memory, as JSON, so that what comes back is what a shelf on disk would give.
type Shelf struct {
	mu     sync.Mutex // guards everything below
	values map[string][]byte
	fault  error
}

// Fail makes every Save fail with err, until it is nil.
func (s *Shelf) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = err
}

// SetRaw stores JSON as it is, however wrong.
func (s *Shelf) SetRaw(key string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[string][]byte{}
	}
	s.values[key] = data
}

// Raw returns the JSON under key.
func (s *Shelf) Raw(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.values[key])
}

// Load implements the hub's Shelf.
func (s *Shelf) Load(key string, value any) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.values[key]
	if !ok {
		return false, nil
	}
	return true, json.Unmarshal(data, value)
}

// Save implements the hub's Shelf.
func (s *Shelf) Save(key string, value any) error {
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	if fault != nil {
		return fault
	}
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	s.SetRaw(key, data)
	return nil
}
