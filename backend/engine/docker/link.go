package docker

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"slipway/backend/engine/docker/daemon"
	"slipway/backend/guest/node"
	"slipway/backend/session"
)

// link is how the guest of a container is reached. The guest dials at its start and after each loss.
type link interface {
	// accept returns the next connection of the guest and closes the one before, so that a guest that still uses it
	// dials again. Connections of other processes are closed.
	accept(ctx context.Context) (net.Conn, error)
	close()
}

// opener makes the link of a container.
type opener func(k *kernel) (link, error)

// turn lets one caller at a time accept. It holds what was accepted last.
type turn chan net.Conn

func newTurn() turn {
	t := make(turn, 1)
	t <- nil
	return t
}

// take calls fn once the connection before is closed.
func (t turn) take(ctx context.Context, fn func() (net.Conn, error)) (conn net.Conn, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case last := <-t:
		defer func() { t <- conn }()
		if last != nil {
			last.Close() //nolint:errcheck // it is given up
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return fn()
}

// linkSocket is the name of the guest's socket in its link directory.
const linkSocket = "agent.sock"

// socketLink listens on a socket that is mounted into the container. The guest's connections wait in it.
type socketLink struct {
	listener *net.UnixListener
	turn     turn
}

// listenSocket binds the socket of a kernel again if it exists.
func listenSocket(k *kernel) (link, error) {
	listener, err := bindLink(k.linkPath())
	if err != nil {
		return nil, daemon.FileFailure("the guest's socket", err)
	}
	return &socketLink{listener: listener, turn: newTurn()}, nil
}

func (l *socketLink) accept(ctx context.Context) (net.Conn, error) {
	return l.turn.take(ctx, func() (net.Conn, error) { return l.next(ctx) })
}

func (l *socketLink) next(ctx context.Context) (net.Conn, error) {
	if err := l.listener.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		l.listener.SetDeadline(time.Unix(1, 0)) //nolint:errcheck // a closed listener needs no interruption
		close(interrupted)
	})
	defer func() {
		if !stop() {
			<-interrupted // so that it cannot interrupt the next caller
		}
	}()
	for {
		conn, err := l.listener.AcceptUnix()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, session.WrapError(err, session.CodeSessionUnavailable, "The container's link was closed.", "")
		case trusted(conn):
			return conn, nil
		}
		conn.Close() //nolint:errcheck // it is no trusted process
	}
}

func (l *socketLink) close() { l.listener.Close() } //nolint:errcheck // nothing to lose

// execLink runs a program in the container that the guest dials, and joins it through the daemon.
type execLink struct {
	daemon *daemon.Daemon
	name   string
	turn   turn
}

// execPause is how long execLink waits before it asks for the guest of a container again that does not run yet.
const execPause = 100 * time.Millisecond

func (l *execLink) accept(ctx context.Context) (net.Conn, error) {
	return l.turn.take(ctx, func() (net.Conn, error) {
		for {
			conn, err := l.answer(ctx)
			if err == nil || !errors.Is(err, errNoAnswer) {
				return conn, err
			}
			select {
			case <-time.After(execPause):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	})
}

// errNoAnswer says that the container does not run, or that its guest has not dialled.
var errNoAnswer = errors.New("the guest did not dial")

// answer waits for the guest once.
func (l *execLink) answer(ctx context.Context) (net.Conn, error) {
	made, err := l.daemon.API.ContainerExecCreate(ctx, l.name, container.ExecOptions{
		User: "0:0", WorkingDir: "/", AttachStdin: true, AttachStdout: true, AttachStderr: true,
		Cmd: []string{ownFolder + "/guest", "answer", ownFolder + "/link/" + linkSocket},
	})
	if errdefs.IsConflict(err) {
		return nil, errNoAnswer // it does not run
	}
	if err != nil {
		return nil, daemon.ContainerFailure(ctx, l.name, err)
	}
	stream, err := l.daemon.API.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{})
	if err != nil {
		return nil, daemon.ContainerFailure(ctx, l.name, err)
	}
	conn := &execConn{Conn: stream.Conn, from: stream.Reader}
	stop := context.AfterFunc(ctx, func() { conn.Close() }) //nolint:errcheck // it is given up
	first := make([]byte, 1)
	_, err = io.ReadFull(conn, first)
	if !stop() {
		return nil, ctx.Err()
	}
	if err != nil || first[0] != node.Answered {
		conn.Close() //nolint:errcheck // nothing was sent
		return nil, errNoAnswer
	}
	return conn, nil
}

func (l *execLink) close() {
	select {
	case last := <-l.turn:
		if last != nil {
			last.Close() //nolint:errcheck // nothing to lose
		}
		l.turn <- nil
	default: // whoever accepts has it
	}
}

// execConn is the standard input and output of a program in a container. The daemon puts a header before each piece of
// output: one byte that names the stream, three that are zero, and the size of the piece as four bytes, big-endian.
type execConn struct {
	net.Conn
	from *bufio.Reader
	left int64 // of the piece that is being read
}

const pieceHeader = 8

func (c *execConn) Read(p []byte) (int, error) {
	for c.left == 0 {
		header, err := c.from.Peek(pieceHeader) // which loses nothing if a deadline ends it
		if err != nil {
			if errors.Is(err, io.EOF) && len(header) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		if stdcopy.StdType(header[0]) != stdcopy.Stdout {
			return 0, errNoAnswer // it failed, and says why
		}
		c.left = int64(binary.BigEndian.Uint32(header[4:]))
		c.from.Discard(pieceHeader) //nolint:errcheck // it is in the buffer
	}
	n, err := c.from.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}
