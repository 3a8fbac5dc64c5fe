// Package hub is the desktop's control plane without its wire. It knows the agents, merges their events into one
// stream, chooses the agent for a launch, and stores what belongs to a person rather than to a machine: recent
// launches and projects, settings, presets and the catalogue of environments.
//
// The hub has authority over nothing. Agents report everything that it knows of sessions, and what it has in memory can
// be requested again. Only recents and the like are stored, through a [Shelf], and the settings, in their file.
package hub

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"slipway/backend/lend"
	"slipway/backend/session"
)

// Shelf stores a few small values permanently. Load returns false and leaves value unchanged if key has none.
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

// Config configures a hub. Connector is nil if the hub reaches no other machines. Log and Now may be nil.
type Config struct {
	Members   []Member
	Connector Connector
	Cloner    Cloner    // nil: repositories are not cloned
	Dial      lend.Dial // with which builds elsewhere reach the internet through this computer; nil: [lend.Outward]
	Shelf     Shelf
	Settings  SettingsFile
	Vault     Vault
	Author    func(context.Context) session.GitAuthor // of the person's commits; nil: unknown
	Catalogue Catalogue                               // nil: nothing is offered before it is installed
	Notifier  Notifier                                // nil: no desktop
	Autostart Autostarter                             // nil: Slipway is not started at login
	Owner     string                                  // the person, written into every launch
	Version   Version
	Log       *slog.Logger
	Now       func() time.Time
}

// read returns what the shelf has under key, or the zero value if that cannot be read.
func read[T any](s *shared, key, trouble string) T {
	var value, none T
	if _, err := s.shelf.Load(key, &value); err != nil {
		s.log.Error(trouble, "error", err)
		return none
	}
	return value
}

// Hub consists of the parts that it embeds. It is safe for concurrent use.
type Hub struct {
	*operations
	*person
	*secrets
	*notices
	*watching

	*state
	*finder
	*endings
	*follower
	*directory
	*machines
	moves
	*images
	*projects
	*transfers
}

// Open loads what the shelf has. It logs a value that cannot be read and uses the default instead.
func Open(config Config) (*Hub, error) {
	common := newShared(config)
	state, operations := newState(common), newOperations(common)
	person := &person{shared: common, file: config.Settings, autostart: config.Autostart, settings: defaultSettings()}
	watching := &watching{state: state, person: person, operations: operations}
	finder := &finder{state: state}
	follower := newFollower(state, config.Members)
	follower.pinned, person.pins = person.pinnedSessions, follower.pinsChanged
	secrets := &secrets{shared: common, vault: config.Vault, author: config.Author}
	images := &images{finder: finder, operations: operations, secrets: secrets, catalogue: config.Catalogue}
	folders := &folders{state: state, operations: operations}
	launches := &launches{finder: finder, person: person, secrets: secrets, images: images, folders: folders}
	endings := &endings{finder}
	transfers := &transfers{finder: finder, folders: folders, uploads: make(chan struct{}, uploadsAtOnce)}
	h := &Hub{
		operations: operations, person: person, secrets: secrets, watching: watching, state: state,
		finder: finder, follower: follower, endings: endings,
		notices: &notices{finder: finder, watching: watching, person: person, notifier: config.Notifier},
		directory: &directory{state: state, operations: operations, person: person, follower: follower,
			connector: config.Connector},
		machines: &machines{state, services{state}}, images: images,
		projects: &projects{folders: folders, person: person, images: images, transfers: transfers,
			cloner: config.Cloner, dial: config.Dial},
		moves: moves{launches: launches, relocations: &relocations{launches: launches, endings: endings,
			transfers: transfers, operations: operations}},
		transfers: transfers,
	}
	person.load()
	h.loadReminders()
	secrets.load()
	h.directory.loadGroups()
	h.directory.loadEntries()
	return h, nil
}

// Run follows every agent until ctx ends. It returns when all of its goroutines and operations have.
func (h *Hub) Run(ctx context.Context) {
	var group sync.WaitGroup
	ctx, stop := h.outlive(ctx)
	defer stop()
	h.follower.start(ctx)
	h.resumeRelocations()
	group.Go(func() { h.flush(ctx) })
	group.Go(func() { h.saveMemoriesOften(ctx) })
	group.Go(func() { h.followSettings(ctx) })
	group.Go(func() { h.followNotices(ctx) })
	group.Go(func() { h.followQueues(ctx) })
	group.Wait()
	h.operations.close()
	h.follower.wait()
	h.saveMemories()
	h.watching.close()
}

// outlive returns a context that ends when ctx has ended and the sessions that were to be terminated are.
func (h *Hub) outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		h.endings.close()
		stop()
	})
	return life, stop
}

func (h *Hub) Version() Version { return h.state.version }

// Owner returns the name that is written into every launch.
func (h *Hub) Owner() string { return h.state.owner }

// shared is what all parts of the hub have in common. A snapshot of their state equals the events up to its number.
type shared struct {
	shelf   Shelf
	owner   string
	version Version
	log     *slog.Logger
	now     func() time.Time
	began   time.Time

	saving sync.Mutex // orders writes to the shelf; locked before mu, never after
	mu     sync.Mutex // guards the stream and the fields that say so; no agent, shelf or channel is used with it held
	stream stream
}

// locked returns what get returns, and calls it with mu held.
func locked[T any](s *shared, get func() T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return get()
}

func newShared(config Config) *shared {
	s := &shared{shelf: config.Shelf, owner: config.Owner, version: config.Version, now: config.Now,
		log: cmp.Or(config.Log, slog.New(slog.DiscardHandler)), stream: newStream()}
	if s.now == nil {
		s.now = time.Now
	}
	s.began = s.now()
	return s
}
