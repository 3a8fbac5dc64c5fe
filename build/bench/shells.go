package main

import (
	"bytes"
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

	"slipway/backend/api/route"
	"slipway/backend/session"
	"slipway/backend/terminal"
	"slipway/build/bench/measure"
)

// shell is a terminal of a session, of Docker or of ssh.
type shell interface {
	send(text []byte) error
	// receive returns the next output; io.EOF at the shell's end.
	receive() ([]byte, error)
	close()
}

const patience = 30 * time.Second

// attached is a shell of a session, over the WebSocket.
type attached struct {
	conn terminal.Conn
	sent uint64 // input bytes
	next uint64 // output bytes
	ack  uint64 // output bytes acknowledged
}

var viewers atomic.Int64

func (p *plane) open(id session.ID, command ...string) *attached {
	t := measure.Get(route.TerminalOpen.At(string(id)).
		Body(session.TerminalRequest{Command: command, Cols: 80, Rows: 24}).Ask(p.ctx, p))
	to := route.TerminalAttach.At(string(id), t.ID).With("offset", "0").
		With("client", fmt.Sprint("bench-", viewers.Add(1))).Target()
	return &attached{conn: measure.Get(p.Frames(p.ctx, to, nil))}
}

func (a *attached) send(text []byte) error {
	frame := terminal.Frame{Type: terminal.FrameInput,
		Payload: append(binary.BigEndian.AppendUint64(nil, a.sent), text...)}
	a.sent += uint64(len(text))
	return a.conn.WriteFrame(frame)
}

func (a *attached) receive() ([]byte, error) {
	late := time.AfterFunc(patience, a.close)
	defer late.Stop()
	for {
		frame, err := a.conn.ReadFrame()
		if err != nil {
			return nil, err
		}
		switch frame.Type {
		case terminal.FrameExit:
			return nil, io.EOF
		case terminal.FrameGap:
			return nil, errors.New("output is missing")
		case terminal.FrameData:
			offset, text, err := frame.Data()
			if err == nil && offset != a.next {
				err = fmt.Errorf("output goes on at %d, not at %d", offset, a.next)
			}
			a.next += uint64(len(text))
			if err == nil && a.next-a.ack >= 64<<10 {
				a.ack = a.next
				err = a.conn.WriteFrame(terminal.Ack(a.ack))
			}
			return text, err
		}
	}
}

func (a *attached) close() { _ = a.conn.Close() } // nothing more is wanted of it

// local is a command of this computer on a pseudo terminal.
type local struct {
	command *exec.Cmd
	tty     *os.File
	buffer  []byte
}

func (p *plane) docker(args ...string) *local { return p.local("docker", args...) }

func (p *plane) local(name string, args ...string) *local {
	command := exec.CommandContext(p.ctx, name, args...)
	command.Env = p.env
	tty := measure.Get(pty.StartWithSize(command, &pty.Winsize{Cols: 80, Rows: 24}))
	return &local{command: command, tty: tty, buffer: make([]byte, 64<<10)}
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

func (l *local) close() {
	l.tty.Close()            //nolint:errcheck // hanging up is all that is meant
	l.command.Process.Kill() //nolint:errcheck // it may have ended by itself
	l.command.Wait()         //nolint:errcheck // how it ended does not matter
}

// echo types one byte and returns the time to its echo.
func echo(s shell, char byte) time.Duration {
	begin := time.Now()
	measure.OK(s.send([]byte{char}))
	for bytes.IndexByte(measure.Get(s.receive()), char) < 0 {
		continue
	}
	return time.Since(begin)
}

// rawEcho has a terminal that echoes every byte at once.
var rawEcho = []string{"sh", "-c", "stty raw echo; echo ready; exec cat > /dev/null"}

func until(s shell, text string) {
	for seen := ""; !strings.Contains(seen, text); {
		got, err := s.receive()
		if err != nil {
			measure.Fail("waiting for %q, saw %q: %w", text, seen, err)
		}
		seen += string(got)
	}
}
