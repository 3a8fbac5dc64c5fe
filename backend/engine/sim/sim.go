// Package sim is an engine without containers: sessions go through every state
// at a believable pace, their terminals and batch commands are interpreted in
// a directory that they cannot leave, and everything is there again after a
// restart. It is for machines without Docker, for demonstrations, and for tests
// of everything that stands on an engine.
package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"slipway/backend/engine"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/gpu"
)

// Config describes a simulated engine. Only Dir is required.
type Config struct {
	Dir      string    // holds everything: state, logs, homes. It is created where it is absent
	Instance string    // value of the instance label; other containers are not listed
	CPUs     int       // 0: 16
	Memory   gpu.Bytes // 0: 64 GiB
	// Speed divides every length of time that is simulated; 0: 1, as on a
	// usual machine with a usual network.
	Speed     float64
	Clock     *pace.Clock // what goes on in containers goes by; nil: the clock on the wall
	Catalogue []Image     // what can be had; nil: [Catalogue]
	Devices   Devices     // what containers compute on; nil: nothing
	Notebook  fs.FS       // the page of notebooks, and Python; nil: images have neither
	Log       *slog.Logger
}

// Sim is a simulated engine. All methods are safe for concurrent use.
type Sim struct {
	config Config
	ctx    context.Context //nolint:containedctx // it is the life of what this process runs, ended by Close
	cancel context.CancelFunc
	lives  sync.WaitGroup // one for each goroutine of a container

	saving sync.Mutex // held while the state is written; taken before mu

	mu         sync.Mutex // guards what follows
	changed    chan struct{}
	closed     bool
	containers map[string]*container // by id
	pulled     map[string]bool       // by reference: images that were not there from the beginning
	received   []session.ImageParts  // images that were brought and that the catalogue does not have
	committed  []session.Image       // images that were made of containers
	evicted    map[string]bool       // by reference: images that were there and were taken away
	watchers   map[*engine.Changes]struct{}
	networks   map[string]map[string]string // labels by name
}

var _ engine.Engine = (*Sim)(nil)

// container is one simulated container. Its fields are guarded by Sim.mu.
type container struct {
	record
	log      *logFile
	life     *life // nil unless it runs in this process
	starting bool
}

// Open opens the engine and takes up what an earlier process left: containers
// that ran run again, with new terminals; a batch command that was under way
// has ended with code 137.
func Open(config Config) (*Sim, error) {
	if config.CPUs == 0 {
		config.CPUs = 16
	}
	if config.Memory == 0 {
		config.Memory = 64 * gpu.GiB
	}
	if config.Speed == 0 {
		config.Speed = 1
	}
	if config.Catalogue == nil {
		config.Catalogue = Catalogue()
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(filepath.Join(config.Dir, "containers"), 0o700); err != nil {
		return nil, &session.Error{Code: "engine_open_no-space", Message: fmt.Sprintf("The folder %s cannot be made.",
			config.Dir), Hint: "Make it writable or choose another with SLIPWAY_HOME.", Err: err}
	}
	s := &Sim{config: config, changed: make(chan struct{}),
		containers: map[string]*container{}, pulled: map[string]bool{}, evicted: map[string]bool{},
		watchers: map[*engine.Changes]struct{}{}, networks: map[string]map[string]string{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.load(); err != nil {
		s.cancel()
		return nil, err
	}
	if err := s.adopt(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close lets go of everything. Containers count as running: the next Open
// takes them up again.
func (s *Sim) Close() error {
	s.mu.Lock()
	s.closed = true
	s.touch(nil)
	s.mu.Unlock()
	s.cancel()
	s.lives.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		w.End()
	}
	return nil
}

// adopt takes up the containers that ran when the last process ended.
func (s *Sim) adopt() error {
	for _, id := range slices.Sorted(maps.Keys(s.containers)) {
		c := s.containers[id]
		if !c.State.Running {
			continue
		}
		if c.Spec.Guest.Command == "" {
			if err := s.begin(id); err != nil {
				return err
			}
			continue
		}
		c.log.line("The command ended with the program that simulated it.")
		s.finish(id, 137)
	}
	return nil
}

func (s *Sim) Info(ctx context.Context) (engine.Info, error) {
	if err := s.check(ctx); err != nil {
		return engine.Info{}, err
	}
	return engine.Info{
		Name: "sim", Version: "1", CPUs: s.config.CPUs, Memory: s.config.Memory, OS: "linux", Arch: arch(),
		DataRoot: s.config.Dir, Cgroup: 2,
	}, nil
}

// check fails when ctx has ended or the engine is closed.
func (s *Sim) check(ctx context.Context) error {
	if ctx.Err() != nil {
		return cancelled(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return &session.Error{Code: "engine_connect_unavailable", Message: "The simulated engine is closed.",
			Hint: "Start Slipway again."}
	}
	return nil
}

func cancelled(ctx context.Context) error {
	return &session.Error{Code: "engine_call_timeout", Message: "The call was given up before it was done.",
		Err: errors.Join(ctx.Err(), context.Cause(ctx))}
}

// pause waits for a simulated length of time; it fails when ctx ends first.
func (s *Sim) pause(ctx context.Context, d time.Duration) error {
	timer := s.config.Clock.Timer(time.Duration(float64(d) / s.config.Speed))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return cancelled(ctx)
	case <-s.ctx.Done():
		return &session.Error{Code: "engine_connect_unavailable", Message: "The simulated engine is closed.",
			Hint: "Start Slipway again."}
	}
}

// touch wakes all who wait, and tells watchers of a container. The caller holds mu.
func (s *Sim) touch(c *container) {
	close(s.changed)
	s.changed = make(chan struct{})
	if c == nil || !s.ours(c) {
		return
	}
	for w := range s.watchers {
		w.Push(c.state())
	}
}

func (s *Sim) ours(c *container) bool {
	instance, ok := c.Spec.Labels[engine.LabelInstance]
	return ok && (s.config.Instance == "" || instance == s.config.Instance)
}

func (c *container) state() engine.State {
	state := c.State
	state.Labels = maps.Clone(c.Spec.Labels)
	return state
}

func notFound(id string) error {
	return &session.Error{Code: "engine_read_not-found", Message: fmt.Sprintf("There is no container %s.", id),
		Hint: "It may have been removed."}
}
