package sim

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/sim/notebook"
	"slipway/backend/engine/sim/shell"
	"slipway/backend/guest"
	"slipway/backend/session"
	"slipway/gpu"
)

// life is a container that runs in this process.
type life struct {
	world  *shell.World
	procs  *processes
	guest  *guest.Guest
	cancel context.CancelFunc
	ctx    context.Context //nolint:containedctx // the life itself
	conn   net.Conn        // engine's end of the guest connection; guarded by machine.mu
	gone   chan struct{}   // closed when all of it has ended
}

// adopt resumes the containers that ran when the last process ended. Servers start again, but a batch command cannot
// continue where it was, and a container whose mounts are gone ends.
func (s *containers) adopt() {
	for _, id := range slices.Sorted(maps.Keys(s.byID)) {
		c := s.byID[id]
		if !c.State.Running {
			continue
		}
		if c.Spec.Guest.Command == "" {
			if err := s.begin(id); err != nil {
				c.log.line(session.AsError(err, session.CodeStartFailed).Message)
				s.finish(id, 137)
			}
			continue
		}
		c.log.line("The command ended with the program that simulated it.")
		s.finish(id, 137)
	}
}

func (s *containers) begin(id string) error {
	s.mu.Lock()
	c, ok := s.byID[id]
	if !ok {
		s.mu.Unlock()
		return notFound(id)
	}
	spec, started := c.Spec, s.config.Clock.Now()
	if c.State.Running { // it is one of before
		started = c.State.StartedAt
	}
	s.mu.Unlock()
	world, err := s.world(id, spec, started)
	if err != nil {
		return session.WrapError(err, session.CodeStartFailed, "The files of the session cannot be opened.",
			"Look whether its folders are still there.")
	}
	spools := filepath.Join(s.containerDir(id), "spool")
	if err := os.MkdirAll(spools, 0o700); err != nil {
		return session.WrapError(err, session.CodeDiskFull, "The folder for the session's terminals cannot be created.",
			"Look whether the disk is full.")
	}
	l := &life{world: world, gone: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(s.ctx)
	l.procs = &processes{world: world, env: environment(spec), bare: session.IsEmptyImage(spec.Image)}
	l.guest = guest.New(guest.Config{Processes: l.procs, SpoolDir: spools, Log: c.log})
	s.mu.Lock()
	c.life = l
	c.State.Running, c.State.Created, c.State.StartedAt = true, false, started
	s.touch(c)
	s.mu.Unlock()
	s.lives.Go(func() { s.live(id, c, l) })
	return nil
}

// Home implements [engine.Containers].
func (s *containers) Home(ctx context.Context, id string) (io.ReadCloser, error) {
	if _, err := s.Inspect(ctx, id); err != nil {
		return nil, err
	}
	archive, to := io.Pipe()
	home := os.DirFS(filepath.Join(s.containerDir(id), "root", filepath.FromSlash(path.Dir(session.Home))))
	s.lives.Go(func() {
		writer := tar.NewWriter(to)
		_ = to.CloseWithError(errors.Join(writer.AddFS(home), writer.Close()))
	})
	return archive, nil
}

func (s *containers) world(id string, spec engine.Container, started time.Time) (*shell.World, error) {
	root := filepath.Join(s.containerDir(id), "root")
	files, err := shell.OpenFS(root)
	if err != nil {
		return nil, err
	}
	for _, m := range spec.Mounts {
		source, err := s.source(m.Source)
		if err == nil {
			err = files.Mount(source, session.MountTarget(m), m.ReadOnly)
		}
		if err != nil {
			return nil, errors.Join(err, files.Close())
		}
	}
	if spec.Guest.Admin {
		files.Administer()
	}
	return &shell.World{FS: files, Clock: s.config.Clock, Hostname: spec.Hostname, User: guest.UserOf(spec.Guest),
		CPUs: max(len(spec.CPUs), 1), Memory: int64(spec.Memory), GPUs: s.grantedTo(id, spec), Started: started,
		OutOfMemory: func() { s.oom(id) }, Servers: s.servers(spec.Image, files)}, nil
}

// servers are the programs of an image beside the shell: Jupyter images have a notebook with Python in the browser. A
// build without the notebook's page has nothing to serve.
func (s *containers) servers(ref string, files *shell.FS) map[string]http.Handler {
	if image, ok := s.images.find(ref); ok {
		ref = image.Refs[0]
		if image.Origin != nil {
			ref = image.Origin.Base
		}
	}
	if !strings.Contains(ref, "jupyter") {
		return nil
	}
	var pages http.Handler
	if s.config.Notebook != nil {
		pages = notebook.Handler(notebook.Config{Files: simulatedFS{files}, Home: session.Home, Page: s.config.Notebook,
			Clock: s.config.Clock})
	}
	return map[string]http.Handler{"jupyter-lab": pages, "jupyter-notebook": pages}
}

func environment(spec engine.Container) []string {
	env := []string{
		"HOME=" + session.Home, "USER=" + guest.UserOf(spec.Guest), "LOGNAME=" + guest.UserOf(spec.Guest),
		"SHELL=/bin/bash", "LANG=C.UTF-8", "HOSTNAME=" + spec.Hostname, "PATH=/usr/local/bin:/usr/bin:/bin",
		"UID=" + strconv.Itoa(spec.Guest.UID), "EUID=" + strconv.Itoa(spec.Guest.UID),
		"GID=" + strconv.Itoa(spec.Guest.GID),
	}
	for _, v := range slices.Concat(spec.Guest.Defaults, spec.Guest.Env) { // of two, the later one counts
		env = append(env, v.Name+"="+v.Value)
	}
	return env
}

// live runs a container: it becomes ready, runs its batch command if it has one, and ends with it or with l.ctx.
func (s *containers) live(id string, c *container, l *life) {
	defer close(l.gone)
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second) // for its programs
		defer cancel()
		if err := errors.Join(l.guest.Close(ctx), l.world.FS.Close()); err != nil {
			s.config.Log.Warn("a simulated container did not end cleanly", "container", id, "error", err)
		}
	}()
	if s.pause(l.ctx, readyTime) != nil {
		return
	}
	l.guest.Ready()
	config := shell.JobConfig{Script: c.Spec.Guest.Command, Env: environment(c.Spec), Output: c.log}
	server, setup := c.Spec.Guest.Server, c.Spec.Guest.Setup
	if server == nil && config.Script == "" {
		if _, err := guest.SetUp(l.ctx, l.procs, setup, c.log); err != nil {
			c.log.line("slipway: " + err.Message)
			l.guest.Trouble(err)
		}
		<-l.ctx.Done()
		return
	}
	var actions []session.StartAction
	if server != nil {
		actions, config.Argv = server.Actions, server.Argv
	}
	if !s.doFirst(id, c, l, actions) {
		return
	}
	job, err := shell.Start(l.world, config)
	if err != nil {
		c.log.line(err.Error())
		s.lives.Go(func() { s.Exit(id, 126) })
		return
	}
	stop := context.AfterFunc(l.ctx, job.Kill)
	defer stop()
	s.ended(id, l, job.Wait())
}

// doFirst does what comes before the start of a program. It reports whether the program may start, and else ends the
// container.
func (s *containers) doFirst(id string, c *container, l *life, actions []session.StartAction) bool {
	setup := c.Spec.Guest.Setup
	if len(actions) == 0 && setup == "" {
		return true
	}
	select {
	case <-l.guest.Watched(): // else the reason for its end is lost
	case <-l.ctx.Done():
		return false
	}
	code, err := guest.Prepare(l.ctx, l.procs, actions, c.log)
	if err == nil {
		code, err = guest.SetUp(l.ctx, l.procs, setup, c.log)
	}
	if err != nil && l.ctx.Err() == nil {
		l.guest.Trouble(err)
		c.log.line(err.Message)
		s.ended(id, l, code)
	}
	return err == nil && l.ctx.Err() == nil
}

// ended ends a container with the code of its program, unless it is stopped.
func (s *containers) ended(id string, l *life, code int) {
	if l.ctx.Err() != nil {
		return
	}
	l.guest.Exit(code)
	ctx, cancel := context.WithTimeout(l.ctx, time.Second)
	defer cancel()
	if err := l.guest.Flush(ctx); err != nil {
		s.config.Log.Debug("nobody heard that a simulated command ended", "container", id, "error", err)
	}
	s.lives.Go(func() { s.Exit(id, code) })
}

// finish ends a running container with a code and waits until all of it has ended. It ignores one that does not run.
func (s *containers) finish(id string, code int) {
	s.mu.Lock()
	c, ok := s.byID[id]
	s.mu.Unlock()
	if ok {
		s.end(c, code)
	}
}

// end is finish for a container that may not be listed any more.
func (s *containers) end(c *container, code int) {
	s.mu.Lock()
	if !c.State.Running {
		s.mu.Unlock()
		return
	}
	l := c.life // nil: an earlier process ran it
	var conn net.Conn
	if l != nil {
		conn = l.conn
	}
	s.mu.Unlock()
	if l != nil {
		l.cancel()
		if conn != nil {
			conn.Close() //nolint:errcheck // a pipe cannot fail to close
		}
		<-l.gone
	}
	c.log.flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.State.Running { // another call was quicker
		return
	}
	c.life = nil
	c.State.Running, c.State.ExitCode, c.State.FinishedAt = false, code, s.config.Clock.Now()
	s.touch(c)
}

// oom records that the kernel killed a process for lack of memory.
func (s *containers) oom(id string) {
	s.mu.Lock()
	c, ok := s.byID[id]
	if !ok || !c.State.Running {
		s.mu.Unlock()
		return
	}
	c.OOMKills++
	c.State.OOMKilled = true
	kills, l := c.OOMKills, c.life
	s.mu.Unlock()
	if l != nil {
		l.guest.OOM(kills)
	}
}

// Guest implements [engine.Containers]. A new connection replaces the previous one.
func (s *containers) Guest(ctx context.Context, id string) (conn net.Conn, err error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	waited := s.await(ctx, func() bool {
		c, ok := s.byID[id]
		switch {
		case s.closed:
			err = closed()
		case !ok:
			err = notFound(id)
		case !c.State.Created && !c.State.Running:
			err = session.NewError(session.CodeGuestExited, "The container ended before its guest could be reached.",
				"Read the session's log.")
		case c.life != nil:
			conn = s.serve(c.life)
		}
		return conn != nil || err != nil
	})
	if waited != nil {
		return nil, waited
	}
	return conn, err
}

// serve connects to the guest of a life. It needs mu.
func (s *containers) serve(l *life) net.Conn {
	near, far := net.Pipe()
	if l.conn != nil {
		l.conn.Close() //nolint:errcheck // a pipe cannot fail to close
	}
	l.conn = near
	s.lives.Go(func() {
		if err := l.guest.Serve(l.ctx, far); err != nil {
			s.config.Log.Debug("the link to a simulated guest broke", "error", err)
		}
		far.Close() //nolint:errcheck // a pipe cannot fail to close
	})
	return near
}

// Inside is what goes on in a container that runs.
type Inside struct {
	Guest *guest.Guest
	World *shell.World
}

// Inside returns what goes on in a container; ok is false if it does not run.
func (s *containers) Inside(id string) (in Inside, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byID[id]
	if c == nil || c.life == nil {
		return Inside{}, false
	}
	return Inside{c.life.guest, c.life.world}, true
}

// Exit ends a running container with a code, like a program that ends by itself or is killed.
func (s *containers) Exit(id string, code int) {
	s.finish(id, code)
	if err := s.save(); err != nil {
		s.config.Log.Error("the state of the simulated engine was not written", "error", err)
	}
}

// OOM ends a container like the kernel when memory runs out.
func (s *containers) OOM(id string) {
	s.oom(id)
	s.Exit(id, 137)
}

// Lose removes a container without telling watchers, as when somebody removes it while the event stream is broken.
func (s *containers) Lose(id string) error {
	s.mu.Lock()
	c, ok := s.byID[id]
	if !ok {
		s.mu.Unlock()
		return nil
	}
	c.lost = true
	delete(s.byID, id) // before it ends, so that it is never seen as one that did
	s.mu.Unlock()
	s.end(c, 137)
	return s.forget(c)
}

func (s *containers) WriteLog(id string, lines ...string) {
	s.mu.Lock()
	c, ok := s.byID[id]
	s.mu.Unlock()
	for _, line := range lines {
		if ok {
			c.log.line(line)
		}
	}
}

// Devices are those of the simulated machine.
type Devices interface {
	// Look returns the devices and a sample, without affecting other readers.
	Look(ctx context.Context) ([]gpu.Device, gpu.Sample, error)
	// Compute runs a program of a container on what was granted, in place of its default load, until end is called.
	Compute(container, name string, grants []gpu.Grant) (pids []int, end func())
}

type granted struct {
	devices   Devices
	container string
	grants    []gpu.Grant
}

// grantedTo returns the granted devices of a container, nil if there are none.
func (s *containers) grantedTo(id string, spec engine.Container) shell.GPUs {
	var grants session.Grants
	if s.config.Devices == nil || json.Unmarshal([]byte(spec.Labels[engine.LabelGrants]), &grants) != nil ||
		len(grants.GPUs) == 0 {
		return nil
	}
	return &granted{devices: s.config.Devices, container: id, grants: grants.GPUs}
}

func (g *granted) Read(ctx context.Context) ([]gpu.Device, gpu.Sample, error) {
	devices, sample, err := g.devices.Look(ctx)
	if err != nil {
		return nil, sample, err
	}
	devices = slices.DeleteFunc(devices, func(d gpu.Device) bool {
		return !slices.ContainsFunc(g.grants, func(grant gpu.Grant) bool { return grant.Device == d.UUID })
	})
	for i := range devices {
		devices[i].Index = i // a container counts its own
	}
	sample.Processes = slices.DeleteFunc(sample.Processes,
		func(p gpu.ProcessSample) bool { return p.Container != g.container })
	return devices, sample, nil
}

func (g *granted) Compute(name string) ([]int, func()) {
	return g.devices.Compute(g.container, name, g.grants)
}
