package sshstdio

import (
	"bytes"
	"context"
	"errors"
	"io"

	"slipway/tunnel"
)

// Result is what a command on the far side left. Exit is its exit code.
type Result struct {
	Stdout []byte
	Stderr []byte // the last 16 KiB, with what ssh and the login shell said
	Exit   int
}

// maxOutput is how much a command of Run may print, in bytes.
const maxOutput = 4 << 20

var errOutput = errors.New("sshstdio: the command prints more than 4 MiB")

// Run runs a command on the far side to its end. The arguments arrive as they
// are, whatever is in them; a first one that begins with "~/" is in the
// account's home. Stdin may be nil. A command that ends with another code than 0
// is no error of Run. Errors are of type [tunnel.Fault]; when ctx ends, the
// connection to the command is cut, and most commands then end by themselves.
func (r *Remote) Run(ctx context.Context, command []string, stdin io.Reader) (Result, error) {
	out := &limited{most: maxOutput}
	stderr, exit, err := r.stream(ctx, command, stdin, out)
	if err != nil {
		return Result{}, err
	}
	return Result{Stdout: out.Bytes(), Stderr: []byte(stderr), Exit: exit}, nil
}

// limited is a buffer with a bound.
type limited struct {
	bytes.Buffer
	most int
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > l.most {
		return 0, errOutput
	}
	return l.Buffer.Write(p)
}

// stream is Run with any amount of output.
func (r *Remote) stream(ctx context.Context, command []string, stdin io.Reader,
	stdout io.Writer) (stderr string, exit int, err error) {
	if len(command) == 0 {
		return "", 0, errors.New("sshstdio: no command to run")
	}
	shared, err := r.shared(ctx)
	if err != nil {
		return "", 0, err
	}
	mark := newMark()
	args := append(r.options(shared), runScript(mark, command))
	inner := &between{to: stdout, mark: mark}
	asking, err := r.askingFor(ctx, shared)
	if err != nil {
		return "", 0, err
	}
	defer asking.close()
	c, socket, err := r.spawn(args, asking)
	if err != nil {
		return "", 0, err
	}
	defer func() {
		_ = socket.Close()
		c.end(ctx.Err() != nil)
	}()
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() })
	defer stop()
	feeding := make(chan error, 1)
	go func() { feeding <- feed(socket, stdin) }()
	_, err = io.Copy(inner, socket)
	_ = socket.Close() // lets feed end, unless stdin blocks
	if ctxErr := ctx.Err(); ctxErr != nil {
		return "", 0, explainTimeout(c, ctxErr)
	}
	// A command that leaves input unread makes the end a reset.
	tooMuch := errors.Is(err, errNoise) || errors.Is(err, errOutput)
	if exit, ok := inner.end(); ok && !tooMuch {
		c.settle(lastWords) // for its messages
		select {
		case err := <-feeding:
			if reading, ok := errors.AsType[*readError](err); ok {
				return "", 0, reading.err
			}
		default: // the command did not want all of it
		}
		return c.messages.String(), exit, nil
	}
	if tooMuch {
		return "", 0, &tunnel.Fault{Code: tunnel.CodeInstallFailed, Message: "The host printed too much output.",
			Hint: "Check what its login shell prints in sessions without a terminal.", Err: err}
	}
	return "", 0, explain(ctx, c, asking, io.ErrUnexpectedEOF)
}

// askingFor returns what answers questions on the way of a command, nil where it
// rides on a connection that stands.
func (r *Remote) askingFor(ctx context.Context, w way) (*questions, error) {
	if w.socket != "" {
		return nil, nil
	}
	return r.listenForQuestions(ctx)
}

// readError is the failure of what feeds a command.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// feed copies stdin to a command and ends its input.
func feed(socket io.Writer, stdin io.Reader) error {
	var err error
	if stdin != nil {
		reader := &tracked{Reader: stdin}
		_, err = io.Copy(socket, reader)
		if reader.err != nil {
			err = &readError{reader.err}
		}
	}
	if half, ok := socket.(interface{ CloseWrite() error }); ok {
		return errors.Join(err, half.CloseWrite())
	}
	return err
}

// tracked remembers why reading failed.
type tracked struct {
	io.Reader
	err error
}

// Read implements io.Reader.
func (t *tracked) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		t.err = err
	}
	return n, err
}
