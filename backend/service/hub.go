package service

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"

	"slipway/backend/api"
	"slipway/backend/autostart"
	"slipway/backend/environments"
	"slipway/backend/hub"
	"slipway/backend/local"
	"slipway/backend/notify"
	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/backend/settings"
	"slipway/backend/sshclient"
	"slipway/backend/store"
)

// openHub opens the hub over the agent of this machine and those that the
// connector connects to. The shelf that it returns holds what the hub keeps and is
// closed after it.
func openHub(home place.Home, machine *local.Machine, connector hub.Connector,
	log *slog.Logger) (*hub.Hub, *store.Shelf, error) {
	shelf, err := store.OpenShelf(filepath.Join(machine.Dir, "hub.db"))
	if err != nil {
		return nil, nil, err
	}
	h, err := hub.Open(hub.Config{
		Members:   []hub.Member{{Name: machine.Name, Local: true, Agent: machine.Agent.Agent()}},
		Connector: connector, Shelf: shelf, Catalogue: environments.In(home.Dir), Now: machine.Clock.Now,
		Settings: settings.New(home.Dir, nil), Notifier: notify.NewDesktop(nil),
		Autostart: autostartEntry(home, machine), Owner: machine.Owner, Version: hub.Version(BuildVersion()),
		Log: log.With("part", "hub"),
	})
	if err != nil {
		return nil, nil, errors.Join(err, shelf.Close())
	}
	return h, shelf, nil
}

// autostartEntry is what starts this program at login; nil for a demo, which is
// over when it ends, and where the program does not know its own file.
func autostartEntry(home place.Home, machine *local.Machine) hub.Autostarter {
	program, err := os.Executable()
	if err != nil || machine.Name != local.AgentName {
		return nil
	}
	return autostart.New(autostart.Config{System: runtime.GOOS, Program: program, Home: home})
}

// BuildVersion says what is running.
func BuildVersion() api.Version {
	return api.Version{Version: place.Version, Commit: place.Commit, Go: runtime.Version(), OS: runtime.GOOS,
		Arch: runtime.GOARCH}
}

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
