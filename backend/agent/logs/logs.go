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

// DefaultCap is the default size of what is kept of one log.
const DefaultCap = 64 * gpu.MiB

// Config says where logs are kept.
type Config struct {
	host.Host
	Dir string    // with a folder for each session
	Cap gpu.Bytes // of one kept log
	// Changed returns a channel that is closed when a session changes.
	Changed func() <-chan struct{}
}

// Logs are the logs of a machine's sessions.
type Logs struct{ config Config }

// Open returns the logs of a machine.
func Open(config Config) (*Logs, error) {
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, session.WrapError(err, session.CodeAgentInternal, "The folder for logs cannot be created.",
			"Check the permissions of "+filepath.Dir(config.Dir)+".")
	}
	return &Logs{config: config}, nil
}

// A kept log is NAME.log, with timestamps, and, if the log was longer than half of the cap, NAME.log.1 before it.

func (l *Logs) dir(id session.ID) string { return filepath.Join(l.config.Dir, string(id)) }

func (l *Logs) Remove(id session.ID) {
	if err := os.RemoveAll(l.dir(id)); err != nil {
		l.config.Log.Warn("the logs of a purged session could not be removed", "session", id, "err", err)
	}
}

// Copy keeps what a container wrote, of a long log the end.
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

// Read implements [session.Sessions]: it reads from the engine while the container exists, and the kept files
// afterwards. A log that is followed before the session runs begins when it does. It fails with session_use_not-found
// if there is no such kernel.
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

// followLog waits until a session has a log, and copies it.
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

// openLog opens the kept log or the container's. It returns nil if there is neither yet, or never was.
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
		return l.openKept(s.ID, opts) // it was just removed
	}
	return log, l.config.Health.Heed(err)
}

// openKept opens the kept log, or returns nil if there is none.
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

// rotating writes to a file and, when that is full, renames it at the end of a line and continues in a new one.
type rotating struct {
	path    string
	cap     int64 // of one file, in bytes
	file    *os.File
	written int64
	dropped int64 // bytes that are no longer in either file
	older   int64 // bytes in the file before
}

func (r *rotating) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		if err := r.makeRoom(); err != nil {
			return total - len(p), err
		}
		// A file ends with the line that crosses the cap, of which at most a quarter of the cap is kept.
		chunk, rest := p, []byte(nil)
		if room := max(0, r.cap-r.written-1); int64(len(p)) > room {
			if end := bytes.IndexByte(p[room:], '\n'); end >= 0 {
				chunk, rest = p[:room+int64(end)+1], p[room+int64(end)+1:]
			}
		}
		p = rest
		ends := chunk[len(chunk)-1] == '\n'
		if excess := r.written + int64(len(chunk)) - r.cap - r.cap/4; excess > 0 {
			excess = min(excess, int64(len(chunk)))
			chunk = chunk[:int64(len(chunk))-excess]
			r.dropped += excess
			if ends {
				chunk = append(bytes.Clone(chunk), '\n')
			}
		}
		n, err := r.file.Write(chunk)
		r.written += int64(n)
		if err != nil {
			return total - len(p), err
		}
		if r.written >= r.cap && ends {
			if err := r.rotate(); err != nil {
				return total - len(p), err
			}
		}
	}
	return total, nil
}

func (r *rotating) makeRoom() (err error) {
	if r.file == nil {
		r.file, err = os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	}
	return err
}

func (r *rotating) rotate() error {
	if err := r.file.Close(); err != nil {
		return err
	}
	r.file = nil
	r.dropped += r.older
	r.older, r.written = r.written, 0
	return os.Rename(r.path, r.path+".1")
}

// commit gives the files their names, the older first, so that a reader never sees the newer one alone.
func (r *rotating) commit(final string) error {
	if err := r.makeRoom(); err != nil {
		return err
	}
	if err := errors.Join(r.file.Sync(), r.file.Close()); err != nil {
		return err
	}
	r.file = nil
	if r.dropped > 0 {
		if err := os.WriteFile(final+".dropped", fmt.Appendf(nil, "%d", r.dropped), 0o600); err != nil {
			return err
		}
	}
	if r.older > 0 {
		if err := os.Rename(r.path+".1", final+".1"); err != nil {
			return err
		}
	}
	return os.Rename(r.path, final)
}

func (r *rotating) discard() {
	if r.file != nil {
		r.file.Close() //nolint:errcheck // it is removed
	}
	os.Remove(r.path)        //nolint:errcheck // usually it is not there
	os.Remove(r.path + ".1") //nolint:errcheck // usually it is not there
}

// keptLog reads a kept log, with or without its timestamps.
type keptLog struct {
	files  []*os.File // oldest first
	lines  *bufio.Reader
	skip   int
	stamps bool
	rest   []byte // of the line being read
	inLine bool   // the next piece continues a line
}

func (k *keptLog) Read(p []byte) (int, error) {
	for len(k.rest) == 0 {
		piece, err := k.lines.ReadSlice('\n')
		if len(piece) == 0 && err != nil {
			return 0, err
		}
		begins := !k.inLine
		k.inLine = piece[len(piece)-1] != '\n'
		if k.skip > 0 {
			if !k.inLine {
				k.skip--
			}
			continue
		}
		if begins && !k.stamps {
			if _, text, ok := bytes.Cut(piece, []byte{' '}); ok {
				piece = text
			}
		}
		k.rest = piece
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

func (k *keptLog) Close() error {
	var err error
	for _, file := range k.files {
		err = errors.Join(err, file.Close())
	}
	return err
}

// countLines counts the lines of files, including a last one without an end, and rewinds the files.
func countLines(files []*os.File) (lines int, err error) {
	piece, last := make([]byte, 64<<10), byte('\n')
	for _, file := range files {
		for err == nil {
			var n int
			if n, err = file.Read(piece); n > 0 {
				lines, last = lines+bytes.Count(piece[:n], []byte{'\n'}), piece[n-1]
			}
		}
		if !errors.Is(err, io.EOF) {
			return 0, err
		}
		if _, err = file.Seek(0, io.SeekStart); err != nil {
			return 0, err
		}
	}
	if last != '\n' {
		lines++
	}
	return lines, nil
}
