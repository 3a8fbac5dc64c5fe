// Package sim is an engine without containers: sessions pass every state at a realistic pace, their terminals and batch
// commands are interpreted in a confined directory, and all of it survives a restart. It serves machines without
// Docker, demonstrations and tests.
package sim

import (
	"cmp"
	"context"
	"encoding/json"
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
	Dir       string      // holds everything: state, logs, homes. It is created where it is absent
	Data      string      // a directory that every mounted one lies in; empty: Dir
	Instance  string      // value of the instance label; other containers are not listed
	CPUs      int         // 0: 16
	Memory    gpu.Bytes   // 0: 64 GiB
	Speed     float64     // divides every simulated duration; 0: 1, like a usual machine
	Clock     *pace.Clock // what goes on in containers goes by; nil: the clock on the wall
	Catalogue []Image     // what can be had; nil: [Catalogue]
	Devices   Devices     // what containers compute on; nil: nothing
	Notebook  fs.FS       // the page of notebooks, and Python; nil: images have neither
	Log       *slog.Logger
}

// Sim is a simulated engine. All methods are safe for concurrent use.
type Sim struct {
	*machine
	*containers
	*images
	*networks
	engine.NoReservations
	writing sync.Mutex // held while the state is written; taken before mu
}

// Open opens the engine. Containers that ran in an earlier process run again with new terminals; interrupted batch
// commands end with code 137.
func Open(config Config) (*Sim, error) {
	config.CPUs, config.Memory = cmp.Or(config.CPUs, 16), cmp.Or(config.Memory, 64*gpu.GiB)
	config.Speed, config.Data = cmp.Or(config.Speed, 1), cmp.Or(config.Data, config.Dir)
	if config.Catalogue == nil {
		config.Catalogue = Catalogue()
	}
	config.Log = cmp.Or(config.Log, slog.New(slog.DiscardHandler))
	if err := os.MkdirAll(filepath.Join(config.Dir, "containers"), 0o700); err != nil {
		return nil, session.WrapError(err, session.CodeDiskFull,
			fmt.Sprintf("The folder %s cannot be created.", config.Dir),
			"Make it writable or choose another with SLIPWAY_HOME.")
	}
	m := &machine{config: config, changed: make(chan struct{})}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	s := &Sim{
		machine:  m,
		images:   &images{machine: m},
		networks: &networks{machine: m, here: map[string]engine.Network{}},
	}
	s.containers = &containers{machine: m, images: s.images, networks: s.networks, byID: map[string]*container{},
		watchers: map[*watcher]struct{}{}}
	s.images.users, s.networks.busy, m.save = s.using, s.runsIn, s.write
	if err := s.load(); err != nil {
		s.cancel()
		return nil, err
	}
	s.adopt()
	return s, nil
}

// Close keeps containers marked as running, so that the next Open resumes them.
func (s *Sim) Close() error {
	s.mu.Lock()
	s.closed = true
	s.wake()
	s.mu.Unlock()
	s.cancel()
	s.lives.Wait()
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

// Attachment implements [engine.Host]: simulated devices need no attaching.
func (s *Sim) Attachment(ctx context.Context, _ bool) (engine.Attachment, error) {
	if err := s.check(ctx); err != nil {
		return engine.Attachment{}, err
	}
	return engine.Attachment{Way: engine.AttachSim}, nil
}

// machine is what the parts of the engine share. One lock guards all of them, because they are stored in one file.
type machine struct {
	config Config
	ctx    context.Context //nolint:containedctx // it is the life of what this process runs, ended by Close
	cancel context.CancelFunc
	lives  sync.WaitGroup // one for each goroutine of a container
	save   func() error   // writes what the rooms hold

	mu      sync.Mutex    // guards what the rooms hold, and what follows
	changed chan struct{} // closed and replaced by every change
	closed  bool
}

// check fails when ctx has ended or the engine is closed.
func (m *machine) check(ctx context.Context) error {
	_, err := locked(ctx, m, func() (struct{}, error) { return struct{}{}, nil })
	return err
}

// locked calls fn with mu held, unless check fails.
func locked[T any](ctx context.Context, m *machine, fn func() (T, error)) (result T, err error) {
	if ctx.Err() != nil {
		return result, cancelled(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return result, closed()
	}
	return fn()
}

func closed() error {
	return session.NewError(session.CodeEngineUnavailable, "The simulated engine is closed.", "Start Slipway again.")
}

func cancelled(ctx context.Context) error {
	return session.WrapError(errors.Join(ctx.Err(), context.Cause(ctx)), session.CodeEngineTimeout,
		"The call was given up before it was done.", "")
}

// pause waits for a simulated duration; it fails if ctx ends first.
func (m *machine) pause(ctx context.Context, d time.Duration) error {
	d = time.Duration(float64(d) / m.config.Speed)
	if d == 0 { // the speed says at once
		return nil
	}
	timer := m.config.Clock.Timer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return cancelled(ctx)
	case <-m.ctx.Done():
		return closed()
	}
}

// await waits until done, called with mu held, returns true.
func (m *machine) await(ctx context.Context, done func() bool) error {
	for {
		m.mu.Lock()
		ended, changed := done(), m.changed
		m.mu.Unlock()
		if ended {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return cancelled(ctx)
		}
	}
}

// wake wakes all who wait. It needs mu.
func (m *machine) wake() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// record is what is stored of a container.
type record struct {
	Spec     engine.Container `json:"spec"`
	State    engine.State     `json:"state"`
	OOMKills int              `json:"oomKills,omitempty"`
}

// source opens a directory to be mounted. No path or link leads out of the data folder.
func (m *machine) source(dir string) (*os.Root, error) {
	rel, err := filepath.Rel(m.config.Data, dir)
	if err != nil {
		return nil, err
	}
	data, err := os.OpenRoot(m.config.Data)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	return data.OpenRoot(rel)
}

type savedState struct {
	Version    int                       `json:"version"`
	Containers []record                  `json:"containers"`
	Images     []session.Image           `json:"images"`             // null: those that the catalogue installs
	Received   []session.ImageParts      `json:"received,omitempty"` // what images are made of that were brought
	Networks   map[string]engine.Network `json:"networks,omitempty"`
}

const stateVersion = 1

func (s *Sim) statePath() string { return filepath.Join(s.config.Dir, "engine.json") }

func (m *machine) containerDir(id string) string {
	return filepath.Join(m.config.Dir, "containers", id)
}

func (s *Sim) load() error {
	data, err := os.ReadFile(s.statePath())
	saved := savedState{Version: stateVersion}
	if err == nil {
		err = json.Unmarshal(data, &saved)
	}
	if err == nil && saved.Version != stateVersion {
		err = fmt.Errorf("version %d of the file is not known", saved.Version)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return session.WrapError(err, session.CodeServerInvalid,
			fmt.Sprintf("The simulated engine's file %s cannot be read.", s.statePath()), "Move it away to start over.")
	}
	for _, r := range saved.Containers {
		log, err := openLog(filepath.Join(s.containerDir(r.State.ID), "log"), s.config.Clock)
		if err != nil {
			return fmt.Errorf("open log: %w", err)
		}
		s.byID[r.State.ID] = &container{record: r, log: log}
	}
	maps.Copy(s.networks.here, saved.Networks)
	s.images.here, s.parts = saved.Images, saved.Received
	for _, image := range s.config.Catalogue {
		if saved.Images == nil && image.Installed {
			s.keep(image.describe())
		}
	}
	return nil
}

// write stores the state. A crash leaves the old file or the new one.
func (s *Sim) write() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	saved := savedState{Version: stateVersion, Images: s.images.here, Received: s.parts, Networks: s.networks.here}
	for _, id := range slices.Sorted(maps.Keys(s.byID)) {
		saved.Containers = append(saved.Containers, s.byID[id].record)
	}
	data, err := json.Marshal(saved)
	s.mu.Unlock()
	if err == nil {
		err = engine.ReplaceFile(s.statePath(), data)
	}
	if err != nil {
		return session.WrapError(err, session.CodeDiskFull, "The simulated engine cannot write its state.",
			"Make room on the disk.")
	}
	return nil
}
