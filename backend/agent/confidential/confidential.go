// Package confidential keeps what travels beside launches: the values of secrets and registry logins. Each session has
// a file that only the agent's person can read, from its launch to its end, so that a restart of the agent loses
// nothing. The values are in no record, and reach a container only in the configuration of its guest.
package confidential

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// Files are those of a machine's sessions.
type Files struct {
	dir string
	log *slog.Logger
}

// Open opens the files in dir. Those of sessions that are not live are removed: a crash left them.
func Open(dir string, live []session.Session, log *slog.Logger) (*Files, error) {
	f := &Files{dir: dir, log: log}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, failure(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, failure(err)
	}
	kept := map[string]bool{}
	for _, s := range live {
		kept[string(s.ID)] = true
	}
	for _, entry := range entries {
		if !kept[entry.Name()] {
			f.Drop(session.ID(entry.Name()))
		}
	}
	return f, nil
}

func failure(err error) error {
	return session.WrapError(err, session.CodeStoreWrite, "The secrets of sessions cannot be kept on this machine.",
		"Check the free space and the permissions of Slipway's directory there.")
}

func (f *Files) path(id session.ID) string { return filepath.Join(f.dir, filepath.Base(string(id))) }

// Put keeps what came with the launch of a session.
func (f *Files) Put(id session.ID, c session.Confidential) error {
	if c.IsZero() {
		return nil
	}
	data, err := json.Marshal(c)
	if err == nil {
		err = engine.ReplaceFile(f.path(id), data)
	}
	if err != nil {
		return failure(err)
	}
	return nil
}

// Get returns what is kept for a session. It fails with session_create_invalid if the value of a secret is lost.
func (f *Files) Get(s session.Session) (c session.Confidential, err error) {
	data, err := os.ReadFile(f.path(s.ID))
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.log.Error("the secrets of a session cannot be read", "session", s.ID, "err", err)
	}
	if len(c.Check(s.Spec)) > 0 {
		return c, session.NewError(session.CodeInvalid, "The values of the session's secrets are lost.",
			"Launch it again.")
	}
	return c, nil
}

// Drop forgets what is kept for a session.
func (f *Files) Drop(id session.ID) {
	if err := os.Remove(f.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.log.Error("the secrets of a session that has ended stay", "session", id, "err", err)
	}
}
