package service

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"

	"slipway/backend/api"
	"slipway/backend/autostart"
	"slipway/backend/environments"
	"slipway/backend/hub"
	"slipway/backend/local"
	"slipway/backend/notify"
	"slipway/backend/place"
	"slipway/backend/settings"
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
