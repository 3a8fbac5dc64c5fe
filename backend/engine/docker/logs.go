package docker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/docker/docker/api/types/container"

	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
)

func (e *Engine) Logs(ctx context.Context, id string, opts session.LogOptions) (io.ReadCloser, error) {
	options := container.LogsOptions{ShowStdout: true, ShowStderr: true, Follow: opts.Follow,
		Timestamps: opts.Timestamps}
	if opts.Tail > 0 {
		options.Tail = strconv.Itoa(opts.Tail)
	}
	facts, err := e.daemon.Facts(ctx)
	if err != nil {
		return nil, err
	}
	read := func(ctx context.Context) (io.ReadCloser, error) {
		frames, err := e.daemon.API.ContainerLogs(ctx, id, options)
		if err != nil {
			return nil, daemon.ContainerFailure(ctx, id, err)
		}
		return frames, nil
	}
	var frames io.ReadCloser
	if opts.Follow && facts.Podman {
		_, err = e.Inspect(ctx, id)
		frames = newLateFrames(ctx, read)
	} else {
		frames, err = read(ctx)
	}
	if err != nil {
		return nil, err
	}
	fail := func(err error) error { return daemon.Failure(ctx, cmp.Or(err, ctx.Err())) }
	return &logReader{frames: frames, fail: fail, timestamps: opts.Timestamps}, nil
}

// logReader extracts the text from Docker's frames. Docker splits lines of more than 16 KiB into several frames, each
// with a time; the reader drops the times in the middle of a line.
type logReader struct {
	frames     io.ReadCloser
	fail       func(error) error // makes the error that a reader gets
	timestamps bool
	midLine    [frameDaemon]bool // for each stream: the last frame did not end its line
	pending    []byte            // of the frame under way
}

// frameDaemon is the stream of the daemon's own errors.
const frameDaemon = 3

// longestFrame is larger than any frame of Docker, in bytes.
const longestFrame = 1 << 20

func (r *logReader) Read(p []byte) (int, error) {
	for len(r.pending) == 0 && len(p) > 0 {
		switch err := r.next(); {
		case err == io.EOF: //nolint:errorlint // only the plain one says that the log is complete
			return 0, err
		case err != nil:
			return 0, r.fail(err)
		}
	}
	n := copy(p, r.pending)
	r.pending = r.pending[n:]
	return n, nil
}

func (r *logReader) next() error {
	var head [8]byte
	if _, err := io.ReadFull(r.frames, head[:]); err != nil {
		return err
	}
	stream, size := head[0], binary.BigEndian.Uint32(head[4:])
	if stream > frameDaemon || size > longestFrame {
		return errors.New("not a log stream of Docker's")
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r.frames, text); err != nil {
		return fmt.Errorf("a log that was cut off: %w", err)
	}
	if stream == frameDaemon {
		return errors.New(string(text))
	}
	if r.timestamps && r.midLine[stream] {
		if _, after, ok := bytes.Cut(text, []byte{' '}); ok {
			text = after
		}
	}
	if len(text) > 0 {
		r.midLine[stream] = text[len(text)-1] != '\n'
	}
	r.pending = text
	return nil
}

func (r *logReader) Close() error { return r.frames.Close() }

// lateFrames are frames that are asked for when they are first read: Podman answers a request to follow a log only once
// there is something in it.
type lateFrames struct {
	stop context.CancelFunc
	open func() (io.ReadCloser, error)
}

func newLateFrames(ctx context.Context, read func(context.Context) (io.ReadCloser, error)) *lateFrames {
	ctx, stop := context.WithCancel(ctx)
	return &lateFrames{stop: stop, open: sync.OnceValues(func() (io.ReadCloser, error) { return read(ctx) })}
}

func (l *lateFrames) Read(p []byte) (int, error) {
	frames, err := l.open()
	if err != nil {
		return 0, err
	}
	return frames.Read(p)
}

// Close also ends a Read, and with it the request.
func (l *lateFrames) Close() error {
	l.stop()
	return nil
}
