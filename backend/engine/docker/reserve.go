package docker

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/docker/docker/api/types/container"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
	"slipway/gpu"
)

// reservations are the containers that run before a session needs them. The guest of one is connected and waits. A
// session that takes it gives it its limits and labels, and at the start sends the guest its configuration.
//
// Until then, a file marks the container. A process that ends before leaves it to the next one as one that waits, which
// removes it; the session gets another.
type reservations struct {
	engine *Engine

	mu     sync.Mutex // guards byName
	byName map[string]*reserved
}

// reserved is a container whose guest waits. Its fields do not change, but for config.
type reserved struct {
	made  engine.Container // as it was asked for
	image string           // id
	id    string
	guest net.Conn
	// config is of the session that has taken it; nil: it waits; empty: it is being removed. Guarded by mu of the
	// reservations.
	config []byte
}

// The limits of a container that waits. Its guest needs less.
const (
	reservedMemory    = 64 * gpu.MiB
	reservedProcesses = 64
)

// Reserve implements [engine.Reservations]. Only guests with a socket wait: for another one, a program would run beside
// it.
func (r *reservations) Reserve(ctx context.Context, c engine.Container) error {
	facts, err := r.engine.daemon.Facts(ctx)
	if err != nil {
		return err
	}
	if !facts.Here || facts.Podman || len(c.Devices) > 0 || c.Guest.Cluster != nil {
		return engine.NoReservations{}.Reserve(ctx, c)
	}
	made := c
	c.CPUs, c.Memory, c.Processes = nil, reservedMemory, reservedProcesses
	c.Guest = engine.GuestConfig{Session: c.Guest.Session, Kernel: c.Guest.Kernel, Waits: true,
		GuestUser: engine.GuestUser{Admin: c.Guest.Admin}}
	id, err := r.engine.Create(ctx, c)
	if err != nil {
		return err
	}
	if err = r.await(ctx, id, made); err != nil {
		ctx, cancel := r.engine.daemon.Brief(context.WithoutCancel(ctx))
		defer cancel()
		err = errors.Join(err, r.engine.Remove(ctx, id))
	}
	return err
}

// await starts a container and keeps it once its guest waits.
func (r *reservations) await(ctx context.Context, id string, made engine.Container) error {
	if err := r.engine.Start(ctx, id); err != nil {
		return err
	}
	there, err := r.engine.daemon.API.ContainerInspect(ctx, id)
	if err != nil {
		return daemon.ContainerFailure(ctx, id, err)
	}
	guest, err := r.engine.Guest(ctx, id)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byName[made.Name] = &reserved{made: made, image: there.Image, id: id, guest: guest}
	return nil
}

// Release implements [engine.Reservations].
func (r *reservations) Release(ctx context.Context, name string) error {
	if one := r.claim(name, []byte{}); one != nil {
		return r.engine.Remove(ctx, one.id)
	}
	return nil
}

// take gives a session the container that waits under its name, if it can be made what the session needs. Otherwise it
// removes it.
func (r *reservations) take(ctx context.Context, c engine.Container, image string) (id string, taken bool) {
	config, err := json.Marshal(c.Guest)
	if err != nil {
		return "", false
	}
	one := r.claim(c.Name, config)
	if one == nil {
		return "", false
	}
	if err = r.fit(ctx, one, c, image); err == nil {
		return one.id, true
	}
	r.engine.daemon.Log.Info("a container that waited is not used", "container", c.Name, "why", err)
	r.remove(ctx, c.Name, one.id)
	return "", false
}

// remove removes a container that waited, also when ctx has ended.
func (r *reservations) remove(ctx context.Context, name, id string) {
	ctx, cancel := r.engine.daemon.Brief(context.WithoutCancel(ctx))
	defer cancel()
	if err := r.engine.Remove(ctx, id); err != nil {
		r.engine.daemon.Log.Warn("a container that waited stays", "container", name, "error", err)
	}
}

var errOther = errors.New("the session needs another one")

// fit makes a container that waited what the session needs.
func (r *reservations) fit(ctx context.Context, one *reserved, c engine.Container, image string) error {
	there, err := r.engine.daemon.API.ContainerInspect(ctx, one.id)
	if err != nil {
		return err
	}
	if one.image != image || !one.fits(c) || there.State == nil || !there.State.Running {
		return errOther
	}
	if err := r.engine.kernels.label(c); err != nil {
		return err
	}
	_, err = r.engine.daemon.API.ContainerUpdate(ctx, one.id, container.UpdateConfig{Resources: resources(c)})
	return err
}

// fits reports whether a container differs from the reserved one in nothing that Docker cannot change.
func (one *reserved) fits(c engine.Container) bool {
	changes := func(name, _ string) bool { return name == engine.LabelGrants || name == engine.LabelName }
	had, has := maps.Clone(one.made.Labels), maps.Clone(c.Labels)
	maps.DeleteFunc(had, changes)
	maps.DeleteFunc(has, changes)
	return maps.Equal(had, has) && len(c.Devices) == 0 && c.Guest.Cluster == nil &&
		one.made.Hostname == c.Hostname && one.made.Shm == c.Shm && one.made.Network == c.Network &&
		one.made.Guest.Admin == c.Guest.Admin && slices.Equal(one.made.Mounts, c.Mounts) &&
		slices.Equal(one.made.Hidden, c.Hidden)
}

// start sends the guest of a container that was taken the configuration of its session. It reports false for any other
// container.
func (r *reservations) start(id string) (started bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, one := range r.byName {
		if one.id != id || one.config == nil {
			continue
		}
		_, err := one.guest.Write(one.config)
		if err := errors.Join(err, one.guest.Close()); err != nil {
			return true, session.WrapError(err, session.CodeEngineConflict,
				"The container that waited for this session has ended.", "Launch it again.")
		}
		delete(r.byName, name)
		return true, r.engine.kernels.unmark(name)
	}
	return false, nil
}

// sweep removes the containers that waited when the process before this one ended.
func (r *reservations) sweep(ctx context.Context, states []engine.State) {
	for _, s := range states {
		if s.Labels[engine.LabelInstance] == r.engine.config.Instance && r.has(s.Name) &&
			!r.engine.kernels.has(s.Name) {
			r.remove(ctx, s.Name, s.ID)
		}
	}
}

// claim returns a container that waits and gives it to a session with that configuration. nil: none waits.
func (r *reservations) claim(name string, config []byte) *reserved {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.byName[name]
	if one == nil || one.config != nil {
		return nil
	}
	one.config = config
	return one
}

// has reports whether a container waits, until it is removed, or waited when the process before this one ended.
func (r *reservations) has(name string) bool {
	r.mu.Lock()
	one := r.byName[name]
	r.mu.Unlock()
	return (one == nil || len(one.config) == 0) && r.engine.kernels.marked(name)
}

func (r *reservations) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byName, name)
}

const (
	waitsFile  = "waits"
	labelsFile = "labels.json"
)

// marked reports whether the guest of a container has no configuration of a session yet.
func (ks *kernels) marked(name string) bool {
	dir, err := ks.path(name)
	if err != nil {
		return false
	}
	_, err = os.Lstat(filepath.Join(dir, waitsFile))
	return err == nil
}

func (ks *kernels) unmark(name string) error {
	dir, err := ks.path(name)
	if err == nil {
		err = os.Remove(filepath.Join(dir, waitsFile))
	}
	if err != nil {
		return daemon.FileFailure("the container's files", err)
	}
	return nil
}

// label writes the labels and the configuration of the session that takes a container.
func (ks *kernels) label(c engine.Container) error {
	dir, err := ks.path(c.Name)
	if err != nil {
		return err
	}
	for name, value := range map[string]any{labelsFile: daemon.OwnLabels(c.Labels), configFile: c.Guest} {
		data, err := json.Marshal(value)
		if err == nil {
			err = engine.ReplaceFile(filepath.Join(dir, name), data)
		}
		if err != nil {
			return daemon.FileFailure("the container's files", err)
		}
	}
	return nil
}

// labels returns those of the session that took a container, nil if none did.
func (ks *kernels) labels(name string) (labels map[string]string) {
	dir, err := ks.path(name)
	if err != nil {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(dir, labelsFile))
	if err != nil || json.Unmarshal(data, &labels) != nil {
		return nil
	}
	return labels
}
