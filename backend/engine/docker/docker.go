// Package docker runs sessions in containers of a Docker Engine, 20.10 or newer.
//
// The daemon must share this machine's file system, because the guest reaches the container by bind mounts and its link
// is a Unix socket: see [Engine.Create]. Everything that belongs to one container lies in kernels/<name>/ below
// [Config.Dir] and goes with it.
package docker

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/engine/docker/devices"
	"slipway/backend/engine/docker/images"
	"slipway/backend/engine/docker/networks"
	"slipway/backend/engine/docker/stats"
)

// Engine is a Docker daemon seen as an [engine.Engine].
type Engine struct {
	*devices.Devices
	*images.Store
	*networks.Networks
	*stats.Reader

	config  Config
	daemon  *daemon.Daemon
	kernels *kernels

	mu       sync.Mutex // guards everything below
	listedAt time.Time  // when the last List began
	swept    bool
}

// Config says which daemon to use and for whom.
type Config struct {
	// Host is the daemon's address, such as unix:///var/run/docker.sock. Empty means what the docker command would
	// take: DOCKER_HOST, the current context, or the first default socket that answers.
	Host string
	// Dir is where the state of containers is kept; only the owner may read it.
	Dir string
	// Instance is the value of [engine.LabelInstance] of containers that are ours.
	Instance string
	// Guest returns the guest's binary for a Go architecture name.
	Guest func(arch string) ([]byte, error)
	// Attach is the way to hand in NVIDIA devices where a person has decided on one; none hands in nothing and counts
	// as success. Empty: the best that works.
	Attach engine.AttachWay
	// MPS is the pipe directory of CUDA's Multi-Process Service; empty: where CUDA_MPS_PIPE_DIRECTORY says, else CUDA's
	// own default.
	MPS string
	// Log gets what happens besides; nil: nothing.
	Log *slog.Logger
}

// Open prepares an engine. It does not ask the daemon anything, so that a daemon that is down now may come up later. It
// fails with server_start_invalid where the address makes no sense and with engine_create_unsupported where it is one
// that Slipway does not use.
func Open(config Config) (*Engine, error) {
	connection, err := daemon.Open(config.Host, config.Log)
	if err != nil {
		return nil, err
	}
	kernels, err := openKernels(config.Dir)
	if err != nil {
		return nil, err
	}
	return &Engine{
		config: config, daemon: connection, kernels: kernels,
		Devices: devices.New(connection, devices.Config{
			Instance: config.Instance, Way: config.Attach, MPS: config.MPS,
			Guest: func(arch string) (string, error) { return kernels.guest(arch, config.Guest) },
		}),
		Store:    images.New(connection, config.Instance, devices.IsTrialImage),
		Networks: networks.New(connection, config.Instance), Reader: stats.New(connection),
	}, nil
}

func (e *Engine) Close() error {
	e.Reader.Close()
	e.kernels.close()
	return e.daemon.Close()
}

// Info is what the daemon says now, and where it does not keep sessions apart.
func (e *Engine) Info(ctx context.Context) (engine.Info, error) {
	facts, err := e.daemon.AskFacts(ctx)
	if err != nil {
		return engine.Info{}, err
	}
	info := facts.Info
	info.Warnings = append(slices.Clone(info.Warnings), e.NetworkWarnings(facts)...)
	return info, nil
}
