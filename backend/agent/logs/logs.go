// Package logs keeps what sessions write, and reads it back.
package logs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"slipway/backend/agent/host"
	"slipway/backend/session"
	"slipway/gpu"
)

// DefaultCap is how much of one log is kept where nothing else is asked for.
const DefaultCap = 64 * gpu.MiB

// Config says whose logs these are and where they are kept.
type Config struct {
	host.Host
	Dir string    // that holds a folder for each session
	Cap gpu.Bytes // of one kept log
	// Changed returns a channel that is closed when a session changes.
	Changed func() <-chan struct{}
}

// Logs are the logs of a machine's sessions.
type Logs struct{ config Config }

// Open returns the logs of a machine.
func Open(config Config) (*Logs, error) {
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, session.WrapError(err, session.CodeAgentInternal, "The folder for logs cannot be made.",
			"Check the permissions of "+filepath.Dir(config.Dir)+".")
	}
	return &Logs{config: config}, nil
}

// A kept log is one or two files of lines with timestamps: NAME.log and, where
// the log was longer than half of the cap, NAME.log.1 before it.

func (l *Logs) dir(id session.ID) string { return filepath.Join(l.config.Dir, string(id)) }

// Remove removes the logs of a session that is purged.
func (l *Logs) Remove(id session.ID) {
	if err := os.RemoveAll(l.dir(id)); err != nil {
		l.config.Log.Warn("the logs of a purged session could not be removed", "session", id, "err", err)
	}
}

// Copy copies what a container wrote. Of a long log the end is kept.
func (l *Logs) Copy(ctx context.Context, id session.ID, kernel, container string) (err error) {
	source, err := l.config.Engine.Logs(ctx, container, session.LogOptions{Timestamps: true})
	if session.CodeOf(err) == session.CodeNoContainer {
		return nil
	}
	if err != nil {
		return err
	}
	defer source.Close() //nolint:errcheck // only read
	return write(l.config.Dir, id, kernel, l.config.Cap, source)
}

// write keeps a log with timestamps among the logs that lie in dir.
func write(dir string, id session.ID, kernel string, limit gpu.Bytes, source io.Reader) error {
	dir = filepath.Join(dir, string(id))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return logError(err)
	}
	final := filepath.Join(dir, kernel+".log")
	w := &rotating{path: final + ".part", cap: int64(limit) / 2}
	defer w.discard()
	if _, err := io.Copy(w, source); err != nil {
		return logError(err)
	}
	return logError(w.commit(final))
}

func logError(err error) error {
	if err == nil || session.CodeOf(err) != "" || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled) {
		return err
	}
	return session.WrapError(err, session.CodeStepFailed, "The session's log could not be kept whole.",
		"Check the room on the disk that holds Slipway's files.")
}

// Read reads a log, as [session.Sessions] says: from the engine while the container is
// there, from the kept files afterwards. A log that is followed before the
// session runs begins when it does. session_use_not-found where there is no such kernel.
func (l *Logs) Read(ctx context.Context, id session.ID, opts session.LogOptions) (io.ReadCloser, error) {
	if opts.Kernel == "" {
		opts.Kernel = session.MainKernel
	}
	s, err := l.config.Records.Get(id)
	if err != nil {
		return nil, err
	}
	if !session.ValidKernel(opts.Kernel) || !hasKernel(s, opts.Kernel) {
		return nil, session.NewError(session.CodeUseNotFound, fmt.Sprintf("The session has no kernel %q.", opts.Kernel),
			"Leave the kernel out, or use main1.")
	}
	if log, err := l.openLog(ctx, s, opts); log != nil || err != nil || !opts.Follow || s.Status.Terminal() {
		if log == nil && err == nil {
			log = io.NopCloser(bytes.NewReader(nil))
		}
		return log, err
	}
	ctx, cancel := context.WithCancel(ctx)
	reader, writer := io.Pipe()
	go func() {
		writer.CloseWithError(l.followLog(ctx, id, opts, writer)) //nolint:errcheck // always nil
	}()
	return &followed{PipeReader: reader, cancel: cancel}, nil
}

// hasKernel reports whether a session has, or will have, a kernel of a name.
func hasKernel(s session.Session, name string) bool {
	for number := range max(1, s.Spec.Cluster) {
		if session.KernelName(number) == name {
			return true
		}
	}
	_, known := s.Kernel(name)
	return known
}

// followed is a log that may not have begun.
type followed struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (f *followed) Close() error {
	f.cancel()
	return f.PipeReader.Close()
}

// followLog waits until a session has a log and copies it.
func (l *Logs) followLog(ctx context.Context, id session.ID, opts session.LogOptions, w io.Writer) error {
	for {
		changed := l.config.Changed()
		s, err := l.config.Records.Get(id)
		if err != nil {
			return err
		}
		log, err := l.openLog(ctx, s, opts)
		if err != nil {
			return err
		}
		if log != nil {
			defer log.Close() //nolint:errcheck // only read
			_, err := io.Copy(w, log)
			return err
		}
		if s.Status.Terminal() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// openLog opens the kept log or the container's. It returns nil where there is
// neither yet, or never was.
func (l *Logs) openLog(ctx context.Context, s session.Session, opts session.LogOptions) (io.ReadCloser, error) {
	if log, err := l.openKept(s.ID, opts); log != nil || err != nil {
		return log, err
	}
	kernel, _ := s.Kernel(opts.Kernel)
	container := kernel.Container
	if container == "" || s.Status.Terminal() {
		return nil, nil
	}
	log, err := l.config.Engine.Logs(ctx, container, opts)
	if session.CodeOf(err) == session.CodeNoContainer {
		return l.openKept(s.ID, opts) // it was removed this moment
	}
	return log, l.config.Health.Heed(err)
}

// openKept opens the kept log, or returns nil where there is none.
func (l *Logs) openKept(id session.ID, opts session.LogOptions) (io.ReadCloser, error) {
	path := filepath.Join(l.dir(id), opts.Kernel+".log")
	newer, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, logError(err)
	}
	kept := &keptLog{files: []*os.File{newer}, stamps: opts.Timestamps}
	readers := []io.Reader{newer}
	if older, err := os.Open(path + ".1"); err == nil {
		kept.files, readers = []*os.File{older, newer}, []io.Reader{older, newer}
	}
	if dropped, err := os.ReadFile(path + ".dropped"); err == nil && opts.Tail == 0 {
		note := fmt.Sprintf("- [slipway: %s bytes of this output were not kept]\n", dropped)
		readers = append([]io.Reader{strings.NewReader(note)}, readers...)
	}
	if opts.Tail > 0 {
		lines, err := countLines(kept.files)
		if err != nil {
			kept.Close() //nolint:errcheck // the first error says more
			return nil, logError(err)
		}
		kept.skip = max(0, lines-opts.Tail)
	}
	kept.lines = bufio.NewReaderSize(io.MultiReader(readers...), 64<<10)
	return kept, nil
}
