package service

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"

	"slipway/backend/hub"
	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/backend/sshclient"
)

// openSSH opens what ssh needs to connect to sessions, with the folder of the
// person's own configuration; empty: theirs.
func openSSH(home place.Home, person string) (*sshclient.Client, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if person == "" {
		person = personSSH(os.Getenv)
	}
	return sshclient.Open(sshclient.Config{Dir: home.Join("ssh"), Person: person, Program: program, Home: home.Dir})
}

// personSSH is the folder of the person's own configuration: SLIPWAY_SSH_DIR, or
// ~/.ssh as ssh itself finds it, which does not ask HOME.
func personSSH(env func(string) string) string {
	if dir := env("SLIPWAY_SSH_DIR"); dir != "" {
		return dir
	}
	if person, err := user.Current(); err == nil && person.HomeDir != "" {
		return filepath.Join(person.HomeDir, ".ssh")
	}
	return filepath.Join(env("HOME"), ".ssh")
}

// followSessions has the configuration for ssh follow the hub's sessions until ctx ends.
func followSessions(ctx context.Context, h *hub.Hub, client *sshclient.Client, log *slog.Logger) {
	watcher := h.Watch(hub.Cursor{}, false)
	defer watcher.Close()
	live := map[session.ID]session.Session{}
	for {
		event, err := watcher.Next(ctx)
		if err != nil {
			return
		}
		switch {
		case event.Snapshot != nil:
			clear(live)
			for _, s := range event.Snapshot.Sessions {
				note(live, s)
			}
		case event.Session != nil:
			note(live, *event.Session)
		case event.Removed != nil:
			delete(live, *event.Removed)
		default:
			continue
		}
		if err := client.Keep(reachable(live)); err != nil {
			log.Warn("ssh does not know of the sessions", "error", err)
		}
	}
}

// note keeps a session that can be reached by ssh now or, once it is ready, will be.
func note(live map[session.ID]session.Session, s session.Session) {
	if !s.Status.Live() || s.Spec.NoSSH {
		delete(live, s.ID)
		return
	}
	live[s.ID] = s
}

// reachable are the sessions in the order of their creation.
func reachable(live map[session.ID]session.Session) []sshclient.Session {
	all := slices.SortedFunc(maps.Values(live), func(a, b session.Session) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	list := make([]sshclient.Session, len(all))
	for i, s := range all {
		list[i] = sshclient.Session{ID: s.ID, Name: s.Name, Agent: s.Agent}
		for _, k := range s.Kernels {
			if k.Name != session.MainKernel {
				list[i].Kernels = append(list[i].Kernels, k.Name)
			}
		}
	}
	return list
}
