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
	"cmp"
	"context"
	"crypto/rand"
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
type Version struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

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

// read returns what the shelf keeps, nothing where that cannot be read.
func read[T any](s *shared, key, trouble string) T {
	var value, none T
	if _, err := s.shelf.Load(key, &value); err != nil {
		s.log.Error(trouble, "error", err)
		return none
	}
	return value
}

// Hub is made of its rooms. What they do for others is done by Hub, too. It is
// safe for concurrent use.
type Hub struct {
	*operations
	*person
	*notices
	*watching

	*state
	*finder
	*follower
	*directory
	*administration
	*machines
	*placement
	*launches
	*images
	*folders
	*transfers
}

// Open reads what the shelf keeps. A value that cannot be read is reported and
// its default taken: a broken history must not keep anybody from working.
func Open(config Config) (*Hub, error) {
	common := newShared(config)
	state, operations := newState(common), newOperations(common)
	person := &person{shared: common, file: config.Settings, autostart: config.Autostart, settings: defaultSettings()}
	watching := &watching{state: state, person: person, operations: operations}
	finder, placement := &finder{state: state}, &placement{state: state}
	follower := newFollower(state, config.Members)
	images := &images{state: state, operations: operations, finder: finder, catalogue: config.Catalogue}
	folders := &folders{state: state, operations: operations}
	h := &Hub{
		operations: operations, person: person, watching: watching, state: state, finder: finder, follower: follower,
		notices: &notices{state: state, watching: watching, person: person, notifier: config.Notifier},
		directory: &directory{state: state, operations: operations, person: person, follower: follower,
			connector: config.Connector},
		administration: &administration{state: state, connector: config.Connector},
		machines:       &machines{state: state},
		placement:      placement, images: images, folders: folders,
		launches: &launches{state: state, placement: placement, finder: finder, person: person, images: images},
		transfers: &transfers{state: state, finder: finder, folders: folders,
			uploads: make(chan struct{}, uploadsAtOnce)},
	}
	person.load()
	h.directory.loadGroups()
	h.directory.loadEntries()
	return h, nil
}

// Run follows every agent until ctx ends. It returns when all of its
// goroutines have, and every operation.
func (h *Hub) Run(ctx context.Context) {
	var group sync.WaitGroup
	h.follower.start(ctx)
	group.Go(func() { h.flush(ctx) })
	group.Go(func() { h.saveMemoriesOften(ctx) })
	group.Go(func() { h.followSettings(ctx) })
	group.Go(func() { h.followNotices(ctx) })
	group.Wait()
	h.operations.close()
	h.follower.wait()
	h.saveMemories()
	h.watching.close()
}

// Version says what is running.
func (h *Hub) Version() Version { return h.state.version }

// Owner is the name written into every launch.
func (h *Hub) Owner() string { return h.state.owner }

// shared is what every room of the hub has in common. One lock guards what all of
// them know, together with the stream: a snapshot is exactly what the events up to
// its number have told.
type shared struct {
	shelf   Shelf
	owner   string
	version Version
	log     *slog.Logger
	now     func() time.Time
	began   time.Time

	// saving orders writes to the shelf; it is taken before mu, never after.
	saving sync.Mutex
	// mu guards the stream and what the rooms say it guards. No agent, shelf or
	// channel is touched with it held.
	mu     sync.Mutex
	stream stream
}

func newShared(config Config) *shared {
	s := &shared{shelf: config.Shelf, owner: config.Owner, version: config.Version, now: config.Now,
		log: cmp.Or(config.Log, slog.New(slog.DiscardHandler))}
	if s.now == nil {
		s.now = time.Now
	}
	s.began = s.now()
	s.stream.open(rand.Text())
	return s
}
