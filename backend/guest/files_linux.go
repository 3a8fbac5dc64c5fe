package guest

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/sys/unix"

	"slipway/backend/files"
	"slipway/backend/terminal"
	"slipway/tunnel"
)

// fileIdle is how long the helper for files runs without a call.
const fileIdle = 2 * time.Minute

// fileHelper is "guest files", which accesses files as the work user without capabilities. Each call is one stream.
type fileHelper struct {
	mu    sync.Mutex // guards the fields below
	mux   *tunnel.Mux
	calls int
	idle  *time.Timer // ends the helper; nil: it has not been idle yet
}

func (c *container) Files(ctx context.Context) (net.Conn, error) {
	h := &c.helper
	h.mu.Lock()
	if h.mux == nil || closed(h.mux.Done()) {
		if err := c.startHelper(); err != nil {
			h.mu.Unlock()
			return nil, err
		}
	}
	mux := h.mux
	h.calls++
	if h.idle != nil {
		h.idle.Stop()
	}
	h.mu.Unlock()
	conn, err := mux.Open(ctx)
	if err != nil {
		h.left()
		return nil, err
	}
	return &fileConn{Conn: conn, left: sync.OnceFunc(h.left)}, nil
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func (h *fileHelper) left() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calls--; h.calls == 0 {
		h.idle = time.AfterFunc(fileIdle, h.rest) // the call had stopped the last one
	}
}

func (h *fileHelper) rest() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calls == 0 && h.mux != nil {
		_ = h.mux.Close() // the process ends with its connection
		h.mux = nil
	}
}

// startHelper starts the helper. The caller holds the helper's mu.
func (c *container) startHelper() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("connect the helper for files: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "files"), os.NewFile(uintptr(pair[1]), "files")
	defer ours.Close()
	defer theirs.Close()
	cmd := Command{Argv: []string{selfPath, "files", c.home}, Dir: "/"}
	started, err := c.startChild(cmd, c.env, [3]*os.File{theirs, c.held.null, c.held.null}, false)
	if err != nil {
		return err
	}
	conn, err := net.FileConn(ours)
	if err == nil {
		c.helper.mux, err = tunnel.NewMux(conn, tunnel.Opener)
	}
	if err != nil {
		c.helper.mux = nil
		started.Kill()
	}
	return err
}

type fileConn struct {
	net.Conn
	left func()
}

func (c *fileConn) Close() error {
	defer c.left()
	return c.Conn.Close()
}

// filesMain is the helper. It answers calls over its standard input until that ends.
func filesMain(args []string) int {
	if len(args) != 1 {
		return 2
	}
	unix.Umask(0o022)
	conn, err := net.FileConn(os.Stdin)
	if err != nil {
		return 1
	}
	mux, err := tunnel.NewMux(conn, tunnel.Accepter)
	if err != nil {
		return 1
	}
	tree := files.Tree{FS: files.Of(realFS{}), Home: args[0], Sums: new(files.Sums)}
	for {
		stream, err := mux.Accept()
		if err != nil {
			return 0
		}
		go ServeFiles(stream, tree)
	}
}

type realFS struct{}

// OpenFile does not block on a pipe, and does not make a terminal the controlling one.
func (realFS) OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag|unix.O_NONBLOCK|unix.O_NOCTTY, perm)
}
func (realFS) Stat(path string) (fs.FileInfo, error)      { return os.Stat(path) }
func (realFS) Lstat(path string) (fs.FileInfo, error)     { return os.Lstat(path) }
func (realFS) ReadDir(path string) ([]fs.DirEntry, error) { return os.ReadDir(path) }
func (realFS) Mkdir(path string) error                    { return os.Mkdir(path, 0o755) }
func (realFS) Rename(from, to string) error               { return os.Rename(from, to) }
func (realFS) Link(from, to string) error                 { return os.Link(from, to) }
func (realFS) Readlink(path string) (string, error)       { return os.Readlink(path) }
func (realFS) Symlink(target, path string) error          { return os.Symlink(target, path) }
func (realFS) Remove(path string) error                   { return os.Remove(path) }
func (realFS) RemoveAll(path string) error                { return os.RemoveAll(path) }

func (realFS) SetAttributes(path string, mode fs.FileMode, modified time.Time) error {
	if err := os.Chmod(path, mode); err != nil {
		return err
	}
	return os.Chtimes(path, time.Time{}, modified)
}

var (
	_ SFTPServer = (*container)(nil)
	_ Network    = (*container)(nil)
)

// SFTP implements [SFTPServer] with "guest sftp", which is the work user without any capability.
func (c *container) SFTP() (terminal.Process, error) {
	return c.Start(Command{Argv: []string{selfPath, "sftp"}, Stdin: true})
}

// sftpMain is that process. It speaks sftp over its standard streams.
func sftpMain([]string) int {
	unix.Umask(0o022)
	streams := struct {
		io.Reader
		io.WriteCloser
	}{os.Stdin, os.Stdout}
	server, err := sftp.NewServer(streams, sftp.WithServerWorkingDirectory(homePath))
	if err != nil {
		return 1
	}
	if err := server.Serve(); err != nil && err != io.EOF { //nolint:errorlint // it is returned as it is
		return 1
	}
	return 0
}
