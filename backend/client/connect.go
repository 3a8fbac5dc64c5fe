package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"slipway/backend/api/route"
	"slipway/backend/place"
)

// StartOptions says how to start a control plane in the background.
type StartOptions struct {
	Executable string        // empty: this program
	Engine     string        // docker, sim or auto; empty: its own choice
	Port       int           // 0: its own choice
	Timeout    time.Duration // until it answers; 0: 10 s
	Starting   func()        // called before one is started; nil: nothing
}

// ErrNotServing means that no control plane answers.
var ErrNotServing = errors.New("no control plane is running")

const (
	probeTimeout = 2 * time.Second
	startTimeout = 30 * time.Second
	probePause   = 20 * time.Millisecond
	logExcerpt   = 2 << 10
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
	if opts.Timeout == 0 {
		opts.Timeout = startTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	for {
		connection, err := Connect(ctx, h)
		if err == nil {
			started.leaveTo(connection.Serving)
			connection.Started = connection.Serving.PID == started.process.Pid
			return connection, nil
		}
		if !errors.Is(err, ErrNotServing) {
			return nil, err
		}
		select {
		case <-started.exited:
			started.exited = nil // unless another caller's process holds the folder, it will not come
			if lock, err := h.Lock(); err == nil {
				return nil, errors.Join(startFailure(h, started.logStart, "it ended at once"), lock.Close())
			}
		case <-ctx.Done():
			return nil, startFailure(h, started.logStart,
				fmt.Sprintf("it did not answer within %s", opts.Timeout))
		case <-time.After(probePause):
		}
	}
}

// background is a control plane that was started in the background.
type background struct {
	process  *os.Process
	logStart int64         // length of the log before
	exited   chan struct{} // closed when the process has ended; nil once that is known
}

// leaveTo ends the process if another one came first, before it finds the
// folder free again and serves although nobody asks for it any more.
func (b *background) leaveTo(serving place.Serving) {
	if b.exited == nil || serving.PID == b.process.Pid {
		return
	}
	_ = b.process.Kill() // it fails where the process has ended already
	<-b.exited
}

// start runs serve in the background with its output in the log file.
func start(h place.Home, opts StartOptions) (*background, error) {
	executable := opts.Executable
	if executable == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		executable = self
	}
	if err := h.Make(); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(h.LogFile(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	end, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(executable, serveArgs(opts)...)
	cmd.Dir = h.Dir
	cmd.Env = append(os.Environ(), "SLIPWAY_HOME="+h.Dir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = detached()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // how it ended is in its log
	}()
	return &background{process: cmd.Process, logStart: end, exited: exited}, nil
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

// StartError means that a control plane was started and did not come to answer.
type StartError struct {
	Text    string // what was seen of it
	LogFile string
	Log     string // what it wrote, at most the last 2 KiB
}

func (e *StartError) Error() string {
	return fmt.Sprintf("the control plane was started but %s; see %s", e.Text, e.LogFile)
}

func startFailure(h place.Home, logStart int64, text string) error {
	failure := &StartError{Text: text, LogFile: h.LogFile()}
	data, err := os.ReadFile(h.LogFile())
	if err != nil || int64(len(data)) < logStart {
		return failure
	}
	data = data[logStart:]
	if len(data) > logExcerpt {
		data = data[len(data)-logExcerpt:]
	}
	failure.Log = strings.TrimSpace(string(bytes.ToValidUTF8(data, nil)))
	return failure
}
