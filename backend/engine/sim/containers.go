package sim

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/sim/shell"
	"slipway/backend/session"
	"slipway/gpu"
)

// How long things take at speed 1.
const (
	createTime = 180 * time.Millisecond
	startTime  = 320 * time.Millisecond
	readyTime  = 150 * time.Millisecond
	stopTime   = 120 * time.Millisecond
)

type containers struct {
	*machine
	images   *images
	networks *networks

	byID     map[string]*container // guarded by mu, as what follows
	watchers map[*watcher]struct{}
}

// container is one simulated container. machine.mu guards its fields.
type container struct {
	record
	log      *logFile
	life     *life // nil unless it runs in this process
	starting bool
	lost     bool // nobody is told what becomes of it
}

func (s *containers) Create(ctx context.Context, c engine.Container) (string, error) {
	id, err := locked(ctx, s.machine, func() (string, error) { return s.named(c) })
	if id != "" || err != nil {
		return id, err
	}
	if err := s.creatable(c); err != nil {
		return "", err
	}
	if err := s.pause(ctx, createTime); err != nil {
		return "", err
	}
	var raw [32]byte
	_, _ = rand.Read(raw[:])        // never fails: see the documentation of crypto/rand
	id = hex.EncodeToString(raw[:]) // like Docker's
	log, err := s.prepare(id, c)
	if err != nil {
		err = session.WrapError(err, session.CodeDiskFull, "The files of the session cannot be written.",
			"Make room on the disk.")
		return "", errors.Join(err, os.RemoveAll(s.containerDir(id)))
	}
	c.Labels, c.CPUs, c.Mounts = maps.Clone(c.Labels), slices.Clone(c.CPUs), slices.Clone(c.Mounts)
	made := &container{record: record{Spec: c, State: engine.State{ID: id, Name: c.Name, Created: true,
		CreatedAt: s.config.Clock.Now()}}, log: log}
	s.mu.Lock()
	if other, err := s.named(c); other != "" || err != nil { // another call was quicker
		s.mu.Unlock()
		return other, errors.Join(err, os.RemoveAll(s.containerDir(id)))
	}
	s.byID[id] = made
	s.touch(made)
	s.mu.Unlock()
	return id, s.save()
}

// named returns the container with the name and labels of c. It needs mu.
func (s *containers) named(c engine.Container) (string, error) {
	for id, other := range s.byID {
		switch {
		case other.Spec.Name != c.Name || c.Name == "":
		case maps.Equal(other.Spec.Labels, c.Labels):
			return id, nil
		default:
			return "", session.NewError(session.CodeEngineConflict,
				fmt.Sprintf("Another container is named %s.", c.Name),
				"End the session that has it, or choose another name.")
		}
	}
	return "", nil
}

func (s *containers) creatable(c engine.Container) error {
	invalid := func(format string, args ...any) error {
		return session.NewError(session.CodeEngineInvalid, fmt.Sprintf(format, args...), "Change it and launch again.")
	}
	switch {
	case c.Name == "" || c.Image == "":
		return invalid("A container needs a name and an image.")
	case c.Memory < session.MinMemory:
		return invalid("A session needs %s of memory at least.", session.MinMemory)
	}
	if c.Guest.Admin && len(c.Mounts) > 0 {
		return invalid("A container whose person is root cannot have mounts.")
	}
	for _, m := range c.Mounts {
		source, err := s.source(m.Source)
		if err != nil {
			return invalid("The directory to mount at %s is not on this machine.", session.MountTarget(m))
		}
		if err := source.Close(); err != nil {
			return err
		}
	}
	if len(c.Hidden) > 0 { // links inside of a mount would lead to it
		return invalid("A simulated session cannot have a directory mounted that holds Slipway's own files.")
	}
	if _, ok := s.images.find(c.Image); !ok {
		return session.NewError(session.CodeNoImage, fmt.Sprintf("The image %s is not on this machine.", c.Image),
			"Pull it first.")
	}
	if !s.networks.has(c.Network) {
		return session.NewError(session.CodeEngineConflict, fmt.Sprintf("The network %s does not exist.", c.Network),
			"Launch the session again.")
	}
	return nil
}

func (s *containers) prepare(id string, c engine.Container) (*logFile, error) {
	root := filepath.Join(s.containerDir(id), "root")
	if err := errors.Join(os.MkdirAll(s.containerDir(id), 0o700), os.Mkdir(root, 0o755)); err != nil {
		return nil, err
	}
	if err := shell.Furnish(root, c.Hostname, c.Guest.UID, c.Guest.GID, int64(c.Memory), c.CPUs); err != nil {
		return nil, err
	}
	return openLog(filepath.Join(s.containerDir(id), "log"), s.config.Clock)
}

func (s *containers) Start(ctx context.Context, id string) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	c, ok := s.byID[id]
	busy := ok && (c.State.Running || c.starting)
	if ok && !busy {
		c.starting = true
	}
	s.mu.Unlock()
	if !ok {
		return notFound(id)
	}
	if busy { // another call has begun it
		return s.await(ctx, func() bool { c, ok := s.byID[id]; return !ok || !c.starting })
	}
	err := s.pause(ctx, startTime)
	if err == nil {
		err = s.begin(id)
	}
	s.mu.Lock()
	c.starting = false
	s.wake()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.save()
}

func (s *containers) Stop(ctx context.Context, id string, grace time.Duration) error {
	state, err := s.Inspect(ctx, id)
	if session.CodeOf(err) == session.CodeNoContainer || err == nil && !state.Running {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.pause(ctx, min(stopTime, grace)); err != nil {
		return err
	}
	s.finish(id, 143)
	return s.save()
}

func (s *containers) Remove(ctx context.Context, id string) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	s.finish(id, 137)
	s.mu.Lock()
	c, ok := s.byID[id]
	delete(s.byID, id)
	if ok {
		s.touch(c)
	}
	s.mu.Unlock()
	if !ok {
		return nil
	}
	return s.forget(c)
}

// forget removes what is stored of a container that is no more.
func (s *containers) forget(c *container) error {
	return errors.Join(c.log.file.Close(), s.save(), os.RemoveAll(s.containerDir(c.State.ID)))
}

// Others implements [engine.Monitor]: a simulated machine has no other users.
func (s *containers) Others(context.Context) ([]engine.State, error) { return nil, nil }

func (s *containers) List(ctx context.Context) ([]engine.State, error) {
	return locked(ctx, s.machine, func() ([]engine.State, error) {
		states := []engine.State{}
		for _, c := range s.byID {
			if s.ours(c) {
				states = append(states, c.state())
			}
		}
		slices.SortFunc(states, func(x, y engine.State) int { return cmp.Compare(x.Name, y.Name) })
		return states, nil
	})
}

func (s *containers) Inspect(ctx context.Context, id string) (engine.State, error) {
	return locked(ctx, s.machine, func() (engine.State, error) {
		c, ok := s.byID[id]
		if !ok {
			return engine.State{}, notFound(id)
		}
		return c.state(), nil
	})
}

// touch wakes all who wait and reports a container to watchers. It needs mu.
func (s *containers) touch(c *container) {
	s.wake()
	if c.lost || !s.ours(c) {
		return
	}
	for w := range s.watchers {
		w.states = append(w.states, c.state())
	}
}

// watcher is one Watch, with the states that it has not reported yet.
type watcher struct{ states []engine.State }

func (s *containers) Watch(ctx context.Context, fn func(engine.State)) error {
	w, err := locked(ctx, s.machine, func() (*watcher, error) {
		w := &watcher{}
		s.watchers[w] = struct{}{}
		return w, nil
	})
	if err != nil {
		return err
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, w)
	}()
	for {
		s.mu.Lock()
		states, ended, changed := w.states, s.closed, s.changed
		w.states = nil
		s.mu.Unlock()
		for _, state := range states {
			fn(state)
		}
		if ended {
			return closed()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return cancelled(ctx)
		}
	}
}

func (s *containers) ours(c *container) bool {
	instance, ok := c.Spec.Labels[engine.LabelInstance]
	return ok && (s.config.Instance == "" || instance == s.config.Instance)
}

func (c *container) state() engine.State {
	state := c.State
	state.Labels = maps.Clone(c.Spec.Labels)
	return state
}

func notFound(id string) error {
	return session.NewError(session.CodeNoContainer, fmt.Sprintf("There is no container %s.", id),
		"It may have been removed.")
}

// using returns the names of containers that use an image. It needs mu.
func (s *containers) using(image session.Image) []string {
	var names []string
	for _, c := range s.byID {
		if used, ok := s.images.resolve(c.Spec.Image); ok && used.ID == image.ID {
			names = append(names, c.Spec.Name)
		}
	}
	return names
}

// runsIn reports whether a container runs in a network. It needs mu.
func (s *containers) runsIn(network string) bool {
	for _, c := range s.byID {
		if c.Spec.Network == network && c.State.Running {
			return true
		}
	}
	return false
}

const guestMemory = 9 * gpu.MiB

// Stats implements [engine.Monitor]. CPU and memory follow the process table; network and disk are made up.
func (s *containers) Stats(ctx context.Context, ids []string) (map[string]engine.Stats, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	now := s.config.Clock.Now()
	samples := map[string]engine.Stats{}
	for _, id := range ids {
		s.mu.Lock()
		c, ok := s.byID[id]
		if !ok || !c.State.Running || c.life == nil {
			s.mu.Unlock()
			continue
		}
		limit, kills, world := c.Spec.Memory, c.OOMKills, c.life.world
		s.mu.Unlock()
		use := world.Usage()
		up := now.Sub(world.Started).Seconds()
		// Caches and heaps vary by a few percent.
		sway := 1 + 0.04*math.Sin(up/7) + 0.02*math.Sin(up/1.9)
		busy := use.CPU.Seconds()
		samples[id] = engine.Stats{
			At: now, CPU: use.CPU, MemLimit: limit, Pids: use.Processes + 1, OOMKills: kills,
			Memory: min(limit, gpu.Bytes(float64(guestMemory+gpu.Bytes(use.Memory))*sway)),
			NetRx:  gpu.Bytes(900 + 40*up), NetTx: gpu.Bytes(600 + 25*up),
			DiskRead:  gpu.Bytes(2*float64(gpu.MiB) + busy*64*1024),
			DiskWrite: gpu.Bytes(64*1024 + busy*256*1024),
		}
	}
	return samples, nil
}
