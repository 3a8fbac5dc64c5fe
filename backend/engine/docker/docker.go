// Package docker runs sessions in containers of a Docker Engine, 20.10 or newer.
//
// Where the daemon shares this machine's file system, the guest is bind-mounted and its link is a Unix socket. On
// another machine, such as the virtual one of Docker Desktop, the guest is copied into a volume of the container, and
// its link is a program that the daemon runs beside it. Everything of a container is in kernels/<name>/ below
// [Config.Dir] and is removed with it.
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
	*reservations

	config  Config
	daemon  *daemon.Daemon
	kernels *kernels
	places  places

	mu       sync.Mutex // guards everything below
	listedAt time.Time  // when the last List began
	swept    bool
}

// Config describes an engine.
type Config struct {
	// Host is the daemon's address, such as unix:///var/run/docker.sock. Empty: DOCKER_HOST, the current context, or
	// the first default socket that answers.
	Host     string
	Dir      string                            // for the state of containers; only the owner may read it
	Instance string                            // value of [engine.LabelInstance] of our containers
	Guest    func(arch string) ([]byte, error) // the guest's binary for a Go architecture name
	Attach   engine.AttachWay                  // for NVIDIA devices; none attaches nothing; empty: the best that works
	MPS      string                            // CUDA's MPS pipe directory; empty: where CUDA looks
	Log      *slog.Logger                      // may be nil
}

// Open prepares an engine without connecting, so that a daemon that is down now may start later. It fails with
// server_start_invalid for an invalid address and with engine_create_unsupported for one that Slipway does not use.
func Open(config Config) (*Engine, error) {
	connection, err := daemon.Open(config.Host, config.Log)
	if err != nil {
		return nil, err
	}
	kernels, err := openKernels(config.Dir)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		config: config, daemon: connection, kernels: kernels,
		Devices: devices.New(connection, devices.Config{
			Instance: config.Instance, Way: config.Attach, MPS: config.MPS,
			Guest: func(arch string) (string, error) { return kernels.guest(arch, config.Guest) },
		}),
		Store:    images.New(connection, config.Instance),
		Networks: networks.New(connection, config.Instance), Reader: stats.New(connection),
	}
	e.reservations = &reservations{engine: e, byName: map[string]*reserved{}}
	return e, nil
}

func (e *Engine) Close() error {
	e.Reader.Close()
	e.kernels.close()
	return e.daemon.Close()
}

// Info is what the daemon reports now, and where it does not isolate sessions.
func (e *Engine) Info(ctx context.Context) (engine.Info, error) {
	facts, err := e.daemon.AskFacts(ctx)
	if err != nil {
		return engine.Info{}, err
	}
	info := facts.Info
	info.Warnings = append(slices.Clone(info.Warnings), e.NetworkWarnings(facts)...)
	return info, nil
}
