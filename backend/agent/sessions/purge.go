package sessions

import (
	"slipway/backend/session"
	"slipway/backend/store"
)

// PurgeSlack is how many more records of ended sessions there may be than are
// kept, so that removing them happens seldom. At most purgeMost go at a time.
const (
	PurgeSlack = 100
	purgeMost  = 1000
)

// Purge removes the records of ended sessions that are too many.
func (m *Sessions) Purge() error {
	count, err := m.config.Records.Finished()
	if err != nil || count < m.config.KeepFinished+PurgeSlack {
		return err
	}
	surplus, err := m.config.Records.Surplus(m.config.KeepFinished, purgeMost)
	if err != nil || len(surplus) == 0 {
		return err
	}
	var removed []session.Session
	err = m.config.Records.Update(func(tx *store.Tx) (err error) {
		removed, err = tx.Purge(surplus)
		return err
	})
	if err != nil {
		return err
	}
	for _, s := range removed {
		m.config.Removed(s)
	}
	return nil
}
