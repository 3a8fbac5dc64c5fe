package hubtest

import (
	"encoding/json"
	"sync"
	"sync/atomic"
)

// Shelf is a [hub.Shelf] in memory. Like one on a disk, it stores values as JSON.
type Shelf struct {
	values sync.Map // []byte by key
	fault  atomic.Pointer[error]
}

// Fail makes every Save fail with err, until it is nil.
func (s *Shelf) Fail(err error) { s.fault.Store(&err) }

// SetRaw stores JSON, which may be invalid.
func (s *Shelf) SetRaw(key string, data []byte) { s.values.Store(key, data) }

func (s *Shelf) raw(key string) []byte {
	value, _ := s.values.Load(key)
	data, _ := value.([]byte)
	return data
}

func (s *Shelf) Raw(key string) string { return string(s.raw(key)) }

func (s *Shelf) Load(key string, value any) (bool, error) {
	data := s.raw(key)
	if data == nil {
		return false, nil
	}
	return true, json.Unmarshal(data, value)
}

func (s *Shelf) Save(key string, value any) error {
	if err := s.fault.Load(); err != nil && *err != nil {
		return *err
	}
	data, err := json.Marshal(value)
	s.SetRaw(key, data)
	return err
}
