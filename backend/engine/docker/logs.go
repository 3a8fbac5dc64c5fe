package docker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strconv"

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
	frames, err := e.daemon.API.ContainerLogs(ctx, id, options)
	if err != nil {
		return nil, daemon.ContainerFailure(ctx, id, err)
	}
	fail := func(err error) error { return daemon.Failure(ctx, cmp.Or(err, ctx.Err())) }
	return &logReader{frames: frames, fail: fail, timestamps: opts.Timestamps}, nil
}

// logReader takes the text out of Docker's frames of stdout and stderr. Docker
// cuts lines of more than 16 KiB into several frames and gives each a time; the
// reader leaves out those in the middle of a line.
type logReader struct {
	frames     io.ReadCloser
	fail       func(error) error // makes the error that a reader gets
	timestamps bool
	left       int     // bytes of the frame that are not read yet
	midLine    [3]bool // for each stream: the last frame did not end its line
	stream     byte
	pending    []byte // text that was read ahead
}

// frameDaemon is the stream number of an error that the daemon met on the way.
const frameDaemon = 3

// maxStamp is more than the longest time that Docker writes, in bytes.
const maxStamp = 40

func (r *logReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(r.pending) == 0 && r.left == 0 {
		if err := r.next(); err != nil {
			return 0, r.end(err)
		}
	}
	if len(r.pending) > 0 {
		n := copy(p, r.pending)
		r.note(p[:n])
		r.pending = r.pending[n:]
		return n, nil
	}
	n, err := r.frames.Read(p[:min(len(p), r.left)])
	r.left -= n
	r.note(p[:n])
	if err != nil && n == 0 {
		return 0, r.end(err)
	}
	return n, nil
}

// next reads the head of the next frame.
func (r *logReader) next() error {
	var head [8]byte
	if _, err := io.ReadFull(r.frames, head[:]); err != nil {
		return err
	}
	r.stream, r.left = head[0], int(binary.BigEndian.Uint32(head[4:]))
	switch {
	case r.stream == frameDaemon:
		text, err := io.ReadAll(io.LimitReader(r.frames, int64(min(r.left, 1<<16))))
		return errors.Join(errors.New(string(text)), err)
	case r.stream > frameDaemon:
		return errors.New("not a log stream of Docker's")
	case r.timestamps && r.midLine[r.stream]:
		return r.dropStamp()
	}
	return nil
}

// dropStamp leaves out the time at the beginning of a frame.
func (r *logReader) dropStamp() error {
	start := make([]byte, min(r.left, maxStamp))
	if _, err := io.ReadFull(r.frames, start); err != nil {
		return err
	}
	r.left -= len(start)
	if at := bytes.IndexByte(start, ' '); at >= 0 {
		start = start[at+1:]
	}
	r.pending = start
	return nil
}

// note remembers whether the stream stands in the middle of a line.
func (r *logReader) note(text []byte) {
	if len(text) > 0 {
		r.midLine[r.stream] = text[len(text)-1] != '\n'
	}
}

// end is what Read returns at the end: EOF where the log is complete.
func (r *logReader) end(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return r.fail(err)
}

func (r *logReader) Close() error { return r.frames.Close() }
