package meter

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// The samples of a session are in usage/ID.json.gz: at most those of its last hour, about 12 KiB. They are written now
// and then and at its end, and kept as long as its record.

func (m *Meter) path(id session.ID) string {
	return filepath.Join(m.config.Dir, "usage", string(id)+".json.gz")
}

// store writes the samples of a session. The caller holds mu.
func (m *Meter) store(id session.ID) {
	m.kept[id] = m.config.Clock.Now()
	var data bytes.Buffer
	to := gzip.NewWriter(&data)
	path := m.path(id)
	err := errors.Join(json.NewEncoder(to).Encode(m.samples[id]), to.Close(),
		os.MkdirAll(filepath.Dir(path), 0o700))
	if err == nil {
		err = engine.ReplaceFile(path, data.Bytes())
	}
	if err != nil {
		m.config.Log.Warn("the samples of a session could not be stored", "session", id, "err", err)
	}
}

// read returns the stored samples of a session, none if they cannot be read. The caller holds mu.
func (m *Meter) read(id session.ID) (samples []session.Usage) {
	file, err := os.Open(m.path(id))
	if err == nil {
		defer file.Close() //nolint:errcheck // only read
		var from *gzip.Reader
		if from, err = gzip.NewReader(file); err == nil {
			err = json.NewDecoder(from).Decode(&samples)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.config.Log.Warn("the samples of a session could not be read", "session", id, "err", err)
		return nil
	}
	return samples
}

// Ended stores the samples of a session that has ended, for as long as its record is kept.
func (m *Meter) Ended(id session.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.samples[id]) > 0 {
		m.store(id)
	}
	delete(m.samples, id)
	delete(m.last, id)
	delete(m.kept, id)
}

// Remove removes the samples of a session whose record was removed.
func (m *Meter) Remove(id session.ID) {
	if err := os.Remove(m.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.config.Log.Warn("the samples of a purged session could not be removed", "session", id, "err", err)
	}
}
