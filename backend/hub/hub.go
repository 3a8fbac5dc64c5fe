// Package hub is the desktop's control plane without its wire: it knows the
// agents, merges what they tell into one stream of events, chooses the agent
// for a launch, and keeps what belongs to a person rather than to a machine:
// recent launches, settings, presets and the catalogue of environments.
//
// The hub has authority over nothing. Everything it says of a session was told
// by an agent, and whatever it holds in memory can be thrown away and asked for
// again; only recents and the like are kept, through a [Shelf], and the settings, in their file.
package hub

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Shelf keeps a few small values for ever. Load leaves value untouched and
// reports false when nothing was saved under key.
type Shelf interface {
	Load(key string, value any) (bool, error)
	Save(key string, value any) error
}

// Version says what is running.
type Version struct{ Version, Commit, Go, OS, Arch string }

// Config is what a hub is made of. Members are always there; Connector reaches
// those that a person adds, and is nil where there can be none. Log and Now may
// be nil.
type Config struct {
	Members   []Member
	Connector Connector
	Shelf     Shelf
	Settings  SettingsFile
	// Catalogue is what is offered before anything is installed; nil: nothing.
	Catalogue Catalogue
	Notifier  Notifier    // nil: there is no desktop
	Autostart Autostarter // nil: nothing starts Slipway at login
	Owner     string      // name of the person, written into every launch
	Version   Version
	Log       *slog.Logger
	Now       func() time.Time
}

// Hub is safe for concurrent use.
type Hub struct {
	*shared
	*operations
	*person
	*state
	*watching
	*finder
	*follower
	*notices
	*directory
	*administration
	*machines
	catalogue Catalogue

	uploads chan struct{} // one token for each upload under way
}

// Open reads what the shelf keeps. A value that cannot be read is reported and
// its default taken: a broken history must not keep anybody from working.
func Open(config Config) (*Hub, error) {
	common := newShared(config)
	state, operations := newState(common), newOperations(common)
	person := &person{shared: common, file: config.Settings, autostart: config.Autostart, settings: DefaultSettings()}
	watching := &watching{state: state, person: person, operations: operations}
	follower := &follower{state: state, heard: make(chan struct{})}
	h := &Hub{
		shared: common, operations: operations, person: person, state: state,
		watching: watching,
		follower: follower,
		directory: &directory{state: state, operations: operations, person: person, follower: follower,
			connector: config.Connector},
		administration: &administration{state: state, connector: config.Connector},
		machines:       &machines{state: state},
		notices:        &notices{state: state, watching: watching, person: person, notifier: config.Notifier},
		finder:         &finder{state: state},
		catalogue:      config.Catalogue,
		uploads:        make(chan struct{}, uploadsAtOnce),
	}
	for _, m := range config.Members {
		h.first = append(h.first, newMember(m.Name, m.Local, m.Agent))
	}
	h.members = append(h.members, h.first...)
	h.load()
	h.loadGroups()
	h.loadDirectory()
	return h, nil
}

// Run follows every agent until ctx ends. It returns when all of its
// goroutines have, and every operation.
func (h *Hub) Run(ctx context.Context) {
	var group sync.WaitGroup
	h.mu.Lock()
	h.follower.running = func() context.Context { return ctx }
	for _, m := range h.state.members {
		h.follower.begin(m)
	}
	h.mu.Unlock()
	group.Go(func() { h.watching.flush(ctx) })
	group.Go(func() { h.follower.keepMemories(ctx) })
	group.Go(func() { h.person.followSettings(ctx) })
	group.Go(func() { h.notices.followNotices(ctx) })
	group.Wait()
	h.operations.close()
	h.mu.Lock()
	h.follower.running = nil
	members := h.state.members
	h.mu.Unlock()
	for _, m := range members {
		m.done.Wait()
	}
	h.follower.keepAll()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stream.close()
}

// Version says what is running.
func (h *Hub) Version() Version { return h.version }

// Owner is the name written into every launch.
func (h *Hub) Owner() string { return h.owner }

// Local returns the name of the agent on this machine, or "" if there is none.
func (st *state) Local() string {
	for _, m := range st.list() {
		if m.Local {
			return m.Name()
		}
	}
	return ""
}
