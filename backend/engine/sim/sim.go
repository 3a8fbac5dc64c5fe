// Package sim is an engine without containers: sessions pass every state at a realistic pace, their terminals and batch
// commands are interpreted in a confined directory, and all of it survives a restart. It serves machines without
// Docker, demonstrations and tests.
package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

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
	// Speed divides every simulated duration; 0: 1, like a usual machine and network.
	Speed     float64
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
	writing sync.Mutex // held while the state is written; taken before mu
}

// Open opens the engine. Containers that ran in an earlier process run again with new terminals; interrupted batch
// commands end with code 137.
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
		return nil, session.WrapError(err, session.CodeDiskFull,
			fmt.Sprintf("The folder %s cannot be made.", config.Dir),
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
	if err := s.adopt(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
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
