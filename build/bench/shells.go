package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/creack/pty"
	"github.com/gorilla/websocket"

	"slipway/backend/api/route"
	"slipway/backend/session"
)

// shell is a terminal that is typed into and read, of either side.
type shell interface {
	// send types text.
	send(text []byte) error
	// receive returns the next output; io.EOF at the shell's end.
	receive() ([]byte, error)
	close() error
}

const patience = 30 * time.Second

// attached is a shell of a session, over the WebSocket.
type attached struct {
	conn *websocket.Conn
	sent uint64 // input bytes
	next uint64 // output bytes
	ack  uint64 // output bytes acknowledged
}

var viewers atomic.Int64

// open starts a shell in a session and joins it.
func (p *plane) open(ctx context.Context, id string, command ...string) (*attached, error) {
	t, err := route.TerminalOpen.At(id).Body(session.TerminalRequest{Command: command, Cols: 80, Rows: 24}).Ask(ctx, p)
	if err != nil {
		return nil, err
	}
	conn, err := p.Dial(ctx, route.TerminalAttach.At(id, t.ID).With("offset", "0").
		With("client", fmt.Sprint("bench-", viewers.Add(1))).Target())
	if err != nil {
		return nil, err
	}
	return &attached{conn: conn}, nil
}

func (a *attached) send(text []byte) error {
	frame := binary.BigEndian.AppendUint64([]byte{'I'}, a.sent)
	a.sent += uint64(len(text))
	return a.conn.WriteMessage(websocket.BinaryMessage, append(frame, text...))
}

func (a *attached) receive() ([]byte, error) {
	for {
		if err := a.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return nil, err
		}
		_, frame, err := a.conn.ReadMessage()
		if err != nil {
			return nil, err
		}
		if len(frame) == 0 {
			return nil, errors.New("an empty message came")
		}
		switch frame[0] {
		case 'X':
			return nil, io.EOF
		case 'G':
			return nil, errors.New("output is missing")
		case 'D':
			if offset := binary.BigEndian.Uint64(frame[1:9]); offset != a.next {
				return nil, fmt.Errorf("output goes on at %d, not at %d", offset, a.next)
			}
			a.next += uint64(len(frame) - 9)
			if a.next-a.ack >= 64<<10 {
				a.ack = a.next
				if err := a.conn.WriteMessage(websocket.BinaryMessage,
					binary.BigEndian.AppendUint64([]byte{'A'}, a.ack)); err != nil {
					return nil, err
				}
			}
			return frame[9:], nil
		}
	}
}

func (a *attached) close() error { return a.conn.Close() }

// local is the docker command line on a pseudo terminal.
type local struct {
	command *exec.Cmd
	tty     *os.File
	buffer  []byte
}

// docker starts the docker command line on a pseudo terminal.
func (p *plane) docker(ctx context.Context, args ...string) (*local, error) {
	command := exec.CommandContext(ctx, "docker", args...)
	command.Env = p.env
	tty, err := pty.StartWithSize(command, &pty.Winsize{Cols: 80, Rows: 24})
	if err != nil {
		return nil, err
	}
	return &local{command: command, tty: tty, buffer: make([]byte, 64<<10)}, nil
}

func (l *local) send(text []byte) error {
	_, err := l.tty.Write(text)
	return err
}

func (l *local) receive() ([]byte, error) {
	if err := l.tty.SetReadDeadline(time.Now().Add(patience)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return nil, err
	}
	n, err := l.tty.Read(l.buffer)
	if n > 0 {
		return l.buffer[:n], nil
	}
	return nil, errors.Join(io.EOF, err)
}

func (l *local) close() error {
	l.tty.Close()            //nolint:errcheck // hanging up is all that is meant
	l.command.Process.Kill() //nolint:errcheck // it may have ended by itself
	l.command.Wait()         //nolint:errcheck // how it ended does not matter
	return nil
}

// echo types one byte and returns how long its echo took.
func echo(s shell, char byte) (time.Duration, error) {
	begin := time.Now()
	if err := s.send([]byte{char}); err != nil {
		return 0, err
	}
	for {
		text, err := s.receive()
		if err != nil {
			return 0, err
		}
		for _, got := range text {
			if got == char {
				return time.Since(begin), nil
			}
		}
	}
}

// rawEcho is a program whose terminal echoes every byte at once.
var rawEcho = []string{"sh", "-c", "stty raw echo; echo ready; exec cat > /dev/null"}

// until reads up to and including text.
func until(s shell, text string) error {
	seen := ""
	for {
		got, err := s.receive()
		if err != nil {
			return fmt.Errorf("waiting for %q, saw %q: %w", text, seen, err)
		}
		seen += string(got)
		if strings.Contains(seen, text) {
			return nil
		}
	}
}
