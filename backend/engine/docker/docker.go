// Package docker runs sessions in containers of a Docker Engine, 20.10 or newer.
//
// The daemon must share this machine's file system, because the guest reaches
// the container by bind mounts and its link is a Unix socket: see [Engine.Create].
// Everything that belongs to one container lies in kernels/<name>/ below
// [Config.Dir] and goes with it.
package docker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/docker/docker/client"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// Engine is a Docker daemon seen as an [engine.Engine].
type Engine struct {
	config   Config
	api      *client.Client
	log      *slog.Logger
	kernels  *kernels
	creds    credentials
	sampler  sampler
	gauges   gauges
	networks networks
	// attachments are what is known of handing in devices.
	attachments *attachments
	// answerTime is [answerTime] but for tests.
	answerTime time.Duration

	mu       sync.Mutex               // guards everything below
	facts    *facts                   // what the daemon said of itself last; nil before
	images   map[string]session.Image // by id, which names one content for ever
	listedAt time.Time                // when the last List began
	swept    bool
}

var _ engine.Engine = (*Engine)(nil)

// Config says which daemon to use and for whom.
type Config struct {
	// Host is the daemon's address, such as unix:///var/run/docker.sock. Empty
	// means what the docker command would take: DOCKER_HOST, the current
	// context, or the first default socket that answers.
	Host string
	// Dir is where the state of containers is kept; only the owner may read it.
	Dir string
	// Instance is the value of [engine.LabelInstance] of containers that are ours.
	Instance string
	// Guest returns the guest's binary for a Go architecture name.
	Guest func(arch string) ([]byte, error)
	// Attach is the way to hand in NVIDIA devices where a person has decided on
	// one; none hands in nothing and counts as success. Empty: the best that works.
	Attach engine.AttachWay
	// MPS is the pipe directory of CUDA's Multi-Process Service; empty: where
	// CUDA_MPS_PIPE_DIRECTORY says, else CUDA's own default.
	MPS string
	// Log gets what happens besides; nil: nothing.
	Log *slog.Logger
}

// answerTime is how long a daemon may take to answer a question that costs it
// nothing. A daemon that takes longer counts as not answering.
const answerTime = 20 * time.Second

// Open prepares an engine. It does not ask the daemon anything, so that a
// daemon that is down now may come up later. It fails with
// engine_open_invalid where the address makes no sense and with
// engine_open_remote-engine where it is one that Slipway does not use.
func Open(config Config) (*Engine, error) {
	endpoint, err := resolveHost(config.Host, hostEnvironment())
	if err != nil {
		return nil, err
	}
	api, err := client.NewClientWithOpts(endpoint.options()...)
	if err != nil {
		return nil, &session.Error{
			Code: "engine_open_invalid", Message: "The address of the Docker daemon, " + endpoint.host +
				", cannot be used.",
			Hint: "Check DOCKER_HOST and `docker context ls`.", Err: err,
		}
	}
	log := config.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	kernels, err := openKernels(config.Dir)
	if err != nil {
		return nil, err
	}
	if config.MPS == "" {
		config.MPS = orDefault(os.Getenv(envPipe), mpsDefault)
	}
	return &Engine{
		config: config, api: api, log: log, kernels: kernels,
		creds: dockerCredentials(), sampler: newSampler("/proc", "/sys/fs/cgroup"),
		images: map[string]session.Image{}, answerTime: answerTime, attachments: newAttachments(),
	}, nil
}

// Host is the address of the daemon in use.
func (e *Engine) Host() string { return e.api.DaemonHost() }

func (e *Engine) Close() error {
	e.gauges.close()
	return errors.Join(e.kernels.close(), e.api.Close())
}

// brief bounds a call whose answer costs the daemon nothing.
func (e *Engine) brief(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, e.answerTime, errSilent)
}
