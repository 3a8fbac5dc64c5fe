package hubtest

import (
	"encoding/json"
	"sync"
)

// Shelf is a [hub.Shelf] in memory. Like one on a disk, it stores values as JSON.
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

// SetRaw stores JSON, which may be invalid.
func (s *Shelf) SetRaw(key string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[string][]byte{}
	}
	s.values[key] = data
}

func (s *Shelf) Raw(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.values[key])
}

func (s *Shelf) Load(key string, value any) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.values[key]
	if !ok {
		return false, nil
	}
	return true, json.Unmarshal(data, value)
}

func (s *Shelf) Save(key string, value any) error {
	s.mu.Lock()
	err := s.fault
	s.mu.Unlock()
	if err != nil {
		return err
	}
	data, err := json.Marshal(value)
	s.SetRaw(key, data)
	return err
}
