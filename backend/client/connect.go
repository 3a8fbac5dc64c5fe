package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"slipway/backend/api/route"
	"slipway/backend/place"
	"slipway/backend/session"
)

// StartOptions says how to start a control plane in the background.
type StartOptions struct {
	Executable string        // empty: this program
	Engine     string        // docker, sim or auto; empty: its own choice
	Port       int           // 0: its own choice
	Timeout    time.Duration // until it answers; 0: 30 s
	Starting   func()        // called before one is started; nil: nothing
}

var (
	// ErrNotServing means that no control plane answers.
	ErrNotServing = errors.New("no control plane is running")
	// ErrNotStarted means that one was started and did not come to answer.
	ErrNotStarted = errors.New("the control plane was started in vain")
)

const (
	probeTimeout = 2 * time.Second
	startTimeout = 30 * time.Second
	probePause   = 20 * time.Millisecond
)

// Connect finds the control plane of the folder; [ErrNotServing] where none
// answers.
func Connect(ctx context.Context, h place.Home) (*Client, error) {
	serving, err := h.Serving()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotServing
	}
	if err != nil {
		return nil, err
	}
	token, err := h.Token()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotServing
	}
	if err != nil {
		return nil, err
	}
	connection := New(serving.URL, token)
	connection.Serving = serving
	if err := probe(ctx, connection); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotServing, err)
	}
	// Whoever serves removes what a process that died has left before it listens,
	// often on the same port. So what is there no more was not of who answered.
	if now, err := h.Serving(); err != nil || now != serving {
		return nil, errors.Join(ErrNotServing, err)
	}
	return connection, nil
}

// probe asks a control plane for its version. An answer to the token of this
// folder is proof enough that it is the one that belongs to it.
func probe(ctx context.Context, c *Client) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	defer c.HTTP.CloseIdleConnections()
	return route.Version.Call(ctx, c, nil)
}

// ConnectOrStart finds the control plane of the folder, or starts one in the
// background and waits until it answers. Several callers at once start several
// processes of which the lock lets one stay; all of them connect to that one.
func ConnectOrStart(ctx context.Context, h place.Home, opts StartOptions) (*Client, error) {
	connection, err := Connect(ctx, h)
	if !errors.Is(err, ErrNotServing) {
		return connection, err
	}
	if opts.Starting != nil {
		opts.Starting()
	}
	started, err := start(h, opts)
	if err != nil {
		return nil, err
	}
	opts.Timeout = cmp.Or(opts.Timeout, startTimeout)
	ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	exited := started.Exited
	for {
		connection, err := Connect(ctx, h)
		if err == nil {
			connection.Started = connection.Serving.PID == started.PID()
			if !connection.Started { // another came first: this must not take the folder over when it is free again
				started.Kill()
			}
			return connection, nil
		}
		if !errors.Is(err, ErrNotServing) {
			return nil, err
		}
		select {
		case <-exited:
			exited = nil // unless another caller's process holds the folder, it will not come
			if lock, err := h.Lock(); err == nil {
				return nil, errors.Join(startFault(h, started, "it ended at once"), lock.Close())
			}
		case <-ctx.Done():
			return nil, startFault(h, started, fmt.Sprintf("it did not answer within %s", opts.Timeout))
		case <-time.After(probePause):
		}
	}
}

// start runs serve in the background with its output in the log file.
func start(h place.Home, opts StartOptions) (*place.Background, error) {
	program, err := place.Program(opts.Executable)
	if err != nil {
		return nil, err
	}
	return h.Start(h.LogFile(), os.Environ(), program, serveArgs(opts)...)
}

func serveArgs(opts StartOptions) []string {
	args := []string{"serve", "--quiet"} // its output is a log, where no login code may stand
	if opts.Engine != "" {
		args = append(args, "--engine", opts.Engine)
	}
	if opts.Port != 0 {
		args = append(args, "--port", fmt.Sprint(opts.Port))
	}
	return args
}

// startFault is the failure of a control plane that was started and did not come to
// answer, with the last line that it wrote.
func startFault(h place.Home, started *place.Background, what string) error {
	message := "The control plane was started but " + what + "."
	if said := started.Said(); said != "" {
		message += " It wrote: " + said[strings.LastIndexByte(said, '\n')+1:]
	}
	return session.WrapError(ErrNotStarted, session.CodeServerFailed, message,
		"Its log is "+h.LogFile()+"; slipway serve shows the failure here.")
}
