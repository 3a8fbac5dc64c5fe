package hubtest

import (
	"context"

	"slipway/backend/session"
)

// Doctor implements [session.Agent]; everything is well. Where Probe is set it is
// part of that.
func (a *Agent) Doctor(ctx context.Context) ([]session.Check, error) {
	if a.Probe != nil {
		if err := a.Probe(ctx); err != nil {
			return nil, err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return nil, a.unavailable()
	}
	return []session.Check{{ID: "engine", Title: "Container engine", Result: session.CheckOK,
		Text: a.Name + " answers."}}, nil
}

// ListDirectories implements [session.Agent]: its machine has /data alone.
func (a *Agent) ListDirectories(_ context.Context, path string) (session.DirectoryListing, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.down:
		return session.DirectoryListing{}, a.unavailable()
	case path == "/":
		return session.DirectoryListing{Path: "/", Entries: []session.DirectoryEntry{{Name: "data", Writable: true}}},
			nil
	case path == "" || path == "/data":
		return session.DirectoryListing{Path: "/data", Parent: "/", Entries: []session.DirectoryEntry{}}, nil
	}
	return session.DirectoryListing{}, &session.Error{Code: "directory_read_not-found",
		Message: "There is no directory " + path + ".", Hint: "Choose another directory."}
}
