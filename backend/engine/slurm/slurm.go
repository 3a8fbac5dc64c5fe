// Package slurm runs sessions as jobs of a Slurm cluster, as the agent's person on a login node.
//
// Each attempt of a session is one run: one job with one kernel on each node. Everything of a run is in runs/<session>-
// <attempt>/ of [Config.Dir], in the home that the nodes share: what the job reads, what the part of it that makes the
// containers writes (package guest/node), and what the engine has to remember. A run is there before its job and goes
// after it. The name of the job is that of the run, so a job is found again whatever was lost.
//
// A container is a kernel that Create was called for, and its id is its name. A run may have a job earlier: where jobs
// wait in the queue of Slurm, [Planner] submits them, and the agent adopts a run when its job has nodes.
package slurm

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/slurm/images"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/slurm"
	"slipway/gpu"
)

// Config describes an engine.
type Config struct {
	Dir      string                            // in the home that all nodes share; only the owner may read it
	Instance string                            // value of [engine.LabelInstance] of our containers
	Guest    func(arch string) ([]byte, error) // the guest's binary for a Go architecture name
	Commands *slurm.Client
	Clock    *pace.Clock   // that Commands have; nil: the clock on the wall
	Local    string        // folder on each node in which containers are made; empty: one below /tmp
	Devices  []string      // device nodes below /dev that jobs get if Slurm allows them; nil: [Devices]
	Look     time.Duration // between two looks at the files of runs; 0: 1 s
	Relay    Relayer       // nil: [Relay]
	Explore  bool          // a job tries what works on the nodes, unless that is known
	Log      *slog.Logger  // may be nil
}

// Relayer runs a program in a job, on the node of that name, and returns the connection to its standard input and
// output, whose end ends it.
type Relayer func(ctx context.Context, job slurm.JobID, host string, argv []string) (net.Conn, error)

// Engine is a Slurm cluster as an [engine.Engine].
type Engine struct {
	*images.Store
	without

	config  Config
	jobs    *jobs
	runs    *runs
	nodes   *nodes
	ctx     context.Context //nolint:containedctx // of what the engine does by itself, until Close
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
	planned atomic.Bool // a [Planner] submits the jobs
	offer   offer

	mu      sync.Mutex              // guards everything below
	changed chan struct{}           // closed and replaced when Slurm has answered or a container has changed
	listed  map[string]engine.State // what the last List returned
}

// Open opens the runs and images of a folder. It calls Slurm from then on, until Close.
func Open(config Config) (*Engine, error) {
	config.Log = cmp.Or(config.Log, slog.New(slog.DiscardHandler))
	config.Look = cmp.Or(config.Look, time.Second)
	if config.Relay == nil {
		config.Relay = Relay
	}
	if config.Devices == nil {
		config.Devices = Devices()
	}
	dir, err := filepath.Abs(config.Dir)
	if err != nil || config.Dir == "" {
		return nil, session.WrapError(err, session.CodeServerInvalid, "The Slurm engine needs a folder for its state.",
			"Choose one in your home with SLIPWAY_HOME.")
	}
	config.Dir = dir
	e := &Engine{config: config, changed: make(chan struct{})}
	e.nodes = &nodes{engine: e}
	if e.runs, err = openRuns(config); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(config.Dir, checkFile), []byte("#!/bin/sh\n"), 0o600); err != nil {
		return nil, fileFailure("the folder of the engine", err)
	}
	if e.Store, err = images.Open(config.Dir, e.runs.using); err != nil {
		return nil, err
	}
	e.jobs = &jobs{commands: config.Commands, poller: slurm.NewPoller(config.Commands, e.wake), clock: config.Clock,
		ends: map[slurm.JobName]ending{}, exits: map[slurm.JobName]time.Time{}}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.tasks.Go(func() { e.jobs.poller.Run(e.ctx) })
	if config.Explore {
		e.tasks.Go(e.nodes.explore)
	}
	return e, nil
}

// Close stops following the jobs, which go on.
func (e *Engine) Close() error {
	e.cancel()
	e.tasks.Wait()
	return nil
}

// wake wakes everybody who waits for news of Slurm or of a container.
func (e *Engine) wake() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.changed)
	e.changed = make(chan struct{})
}

// news is closed by the next wake.
func (e *Engine) news() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.changed
}

// pause waits for news, but no longer than until files are looked at again. It fails when ctx ends.
func (e *Engine) pause(ctx context.Context) error {
	changed := e.news()
	timer := time.NewTimer(e.config.Look)
	defer timer.Stop()
	select {
	case <-changed:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	case <-e.ctx.Done():
		return errClosed
	}
}

var errClosed = &session.Error{Code: session.CodeEngineUnavailable, Message: "The engine is closed."}

// ended fails if ctx has ended.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return session.WrapError(errors.Join(ctx.Err(), context.Cause(ctx)), session.CodeEngineTimeout,
		"The call was cancelled.", "")
}

// silent is how long Slurm may not answer before that is a problem: a controller is restarted in less.
const silent = 3 * time.Minute

// Info describes the cluster. Its CPUs and memory are those of all nodes that the person may use.
func (e *Engine) Info(ctx context.Context) (engine.Info, error) {
	known := engine.Info{Name: "slurm", Elsewhere: true}
	site, err := e.Site(ctx)
	if err != nil {
		return known, err
	}
	if said := e.jobs.poller.Snapshot(); said.Err != nil && e.config.Clock.Since(said.At) > silent {
		return known, failure(ctx, said.Err)
	}
	info := engine.Info{Name: "slurm", Version: site.Version, OS: "linux", Arch: runtime.GOARCH,
		DataRoot: e.config.Dir, LiveRestore: true, Elsewhere: true, Slurm: siteOf(site), Lacks: []session.Feature{
			session.FeatureDevices, session.FeatureGuard, session.FeatureMPS, session.FeatureCommit,
			session.FeatureBuild, session.FeatureRaise}}
	if e.config.Explore {
		info.Checks = append(e.nodes.checks(), deviceCheck(site))
	}
	info.Slurm.Calls = e.config.Commands.CallsPerHour()
	for _, partition := range site.Partitions {
		cpus, memory := 0, gpu.Bytes(0)
		for _, shape := range partition.Shapes {
			cpus, memory = cpus+shape.Nodes*shape.CPUs, memory+gpu.Bytes(shape.Nodes)*shape.Memory
		}
		// Partitions share nodes, so their sum would count some twice.
		info.CPUs, info.Memory = max(info.CPUs, cpus), max(info.Memory, memory)
	}
	return info, nil
}

// Attachment implements [engine.Host]: Slurm hands devices to jobs.
func (e *Engine) Attachment(ctx context.Context, _ bool) (engine.Attachment, error) {
	return engine.Attachment{Way: engine.AttachSlurm}, ended(ctx)
}

// Others implements [engine.Monitor]: Slurm does not give to two jobs what each has alone.
func (e *Engine) Others(ctx context.Context) ([]engine.State, error) { return nil, ended(ctx) }

// CreateNetwork implements [engine.Networks]. Every single kernel has a network of its own, and the kernels of a
// cluster have those of their nodes.
func (e *Engine) CreateNetwork(ctx context.Context, _ engine.Network) error { return ended(ctx) }

func (e *Engine) RemoveNetwork(ctx context.Context, _ string) error { return ended(ctx) }

func (e *Engine) Changed(ctx context.Context, _ string) (gpu.Bytes, error) {
	return 0, cmp.Or(ended(ctx), noCommit())
}

func (e *Engine) Commit(ctx context.Context, _ string, _ engine.Commit) (session.Image, error) {
	return session.Image{}, cmp.Or(ended(ctx), noCommit())
}

// without has what there is not on a cluster. No home is read: one is a folder, or ends with its job.
type without struct {
	engine.NoBuilder
	engine.NoReservations
}

func (without) Home(ctx context.Context, _ string) (io.ReadCloser, error) {
	return nil, cmp.Or(ended(ctx), noCommit())
}

func noCommit() error {
	return session.NewError(session.CodeEngineUnsupported, "No image can be made of a session on a Slurm cluster.",
		"Keep what you install in a folder, or make the image on a machine with Docker and send it.")
}

// failure is the error of a call of Slurm. Without an answer it is engine_connect_unavailable.
func failure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ended := ended(ctx); ended != nil {
		return ended
	}
	return session.AsError(err, session.CodeEngineUnavailable)
}

// fileFailure is the error of a file in the shared home.
func fileFailure(what string, err error) error {
	code, failed, hint := session.CodeEngineInternal, "cannot read or write", "The log of the agent says more."
	switch {
	case errors.Is(err, os.ErrPermission):
		failed, hint = "may not write", "Check who owns Slipway's folder."
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		code, hint = session.CodeDiskFull, "Check that your home has free space and that its quota is not used up."
	}
	return session.WrapError(err, code, "Slipway "+failed+" "+what+".", hint)
}

// Devices are the device nodes of GPUs, below /dev, which jobs get as far as Slurm allows them.
func Devices() []string {
	list := []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset",
		"/dev/nvidia-caps", "/dev/kfd", "/dev/dri"}
	for i := range 16 {
		list = append(list, "/dev/nvidia"+strconv.Itoa(i))
	}
	return list
}
