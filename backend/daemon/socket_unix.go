//go:build unix

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"slipway/backend/peer"
	"slipway/backend/place"
	"slipway/backend/session"
)

const (
	// pathMost is the longest path that fits into a socket address on every system, in bytes.
	pathMost = 100
	// lookAgain is how often to check that a socket was not removed.
	lookAgain = 2 * time.Second
	// tellAgain is the shortest time between two log entries about refused connections.
	tellAgain = time.Minute
)

// Listen opens both sockets for users, the user of this process and root. The caller holds the folder's lock, so
// existing sockets are stale. Refused connections are logged. The sockets are in the home's runtime directory, and a
// link in the home leads to each, so programs find each other in any environment, also versions up to 0.1.0 with
// sockets in the home.
func Listen(home place.Home, users []int, log *slog.Logger) (*Sockets, error) {
	if err := home.Make(); err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	var open []*guarded
	var mender sync.WaitGroup
	s := &Sockets{close: func() error {
		end()
		mender.Wait()
		var errs []error
		for _, g := range open {
			errs = append(errs, g.Close())
		}
		return errors.Join(errs...)
	}}
	for _, name := range []string{tunnelSocket, controlSocket} {
		g := &guarded{home: home, name: name, users: append([]int{0, os.Getuid()}, users...), log: log}
		if err := g.open(); err != nil {
			return nil, errors.Join(session.WrapError(err, session.CodeServerFailed,
				"The socket "+name+" cannot be created.",
				"Check the permissions and the free space of "+home.Dir+" and of "+os.TempDir()+"."), s.Close())
		}
		open = append(open, g)
	}
	s.Tunnel, s.Control = open[0], open[1]
	mender.Go(func() { mend(ctx, open) })
	return s, nil
}

// mend restores removed sockets, since runtime directories and temporary files are removed after some time.
func mend(ctx context.Context, open []*guarded) {
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		for _, g := range open {
			if g.there() {
				continue
			}
			if err := g.open(); err != nil {
				g.log.Warn("a socket of the agent was removed and cannot be made again", "socket", g.name, "error", err)
			}
		}
	}
}

// guarded is a socket that accepts only connections of its users, as identified by the operating system, from this
// machine and its namespaces. The mode of the socket must allow them as well.
type guarded struct {
	home  place.Home
	name  string
	users []int
	log   *slog.Logger

	mu       sync.Mutex // guards the following fields
	listener *net.UnixListener
	path     string      // of the socket
	file     fs.FileInfo // of the socket
	closed   bool
	told     time.Time // when a refusal was last logged
}

// open creates the socket and the link to it, replacing an earlier one. It does nothing after Close.
func (g *guarded) open() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	dir, err := g.home.MakeRuntimeDir()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, g.name)
	listener, err := listenUnix(path)
	if err != nil {
		return err
	}
	file, err := os.Lstat(path)
	if link := g.home.Join(g.name); err == nil && link != path {
		err = point(link, path)
	}
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	before := g.listener
	g.listener, g.path, g.file = listener, path, file
	if before != nil {
		return before.Close()
	}
	return nil
}

// there reports whether the link leads to the socket.
func (g *guarded) there() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, err := os.Stat(g.home.Join(g.name))
	return err == nil && os.SameFile(now, g.file)
}

func (g *guarded) current() *net.UnixListener {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.listener
}

func (g *guarded) Addr() net.Addr { return g.current().Addr() }

// Accept returns the next connection of a permitted user.
func (g *guarded) Accept() (net.Conn, error) {
	for {
		listener := g.current()
		conn, err := listener.AcceptUnix()
		if err != nil {
			if listener != g.current() {
				continue // the socket was restored
			}
			return nil, err
		}
		if err = g.admit(conn); err == nil {
			return conn, nil
		}
		g.tell(err)
		_ = conn.Close() // without a reason: a stranger learns nothing
	}
}

// admit fails for a user who may not connect.
func (g *guarded) admit(conn *net.UnixConn) error {
	if !peer.Known {
		return nil
	}
	process, err := peer.Of(conn)
	if err != nil {
		return err
	}
	defer process.Close() //nolint:errcheck // only read
	if !slices.Contains(g.users, process.UID) {
		return fmt.Errorf("user %d may not connect", process.UID)
	}
	return process.Beside()
}

// tell logs a refusal, at most once per [tellAgain].
func (g *guarded) tell(err error) {
	g.mu.Lock()
	due := time.Since(g.told) >= tellAgain
	if due {
		g.told = time.Now()
	}
	g.mu.Unlock()
	if due {
		g.log.Warn("a program was not admitted", "socket", g.name, "error", err)
	}
}

// Close closes the socket and removes its files, and the directory if it is empty.
func (g *guarded) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	err := g.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	for _, path := range []string{g.path, g.home.Join(g.name)} {
		if gone := os.Remove(path); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	if dir := filepath.Dir(g.path); dir != g.home.Dir {
		_ = os.Remove(dir) // fails if other sockets are in it
	}
	return err
}

func listenUnix(path string) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	name, release, err := shortPath(path)
	if err != nil {
		return nil, err
	}
	defer release()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // its name may contain a descriptor
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// dial connects to a socket of the agent of a folder. In another container or sandbox: agent_connect_forbidden.
func dial(ctx context.Context, home place.Home, socket string) (net.Conn, error) {
	name, release, err := shortPath(home.Join(socket))
	if err != nil {
		return nil, err
	}
	defer release()
	dialled, err := new(net.Dialer).DialContext(ctx, "unix", name)
	if err != nil {
		return nil, err
	}
	conn := dialled.(*net.UnixConn)
	if !peer.Known {
		return conn, nil
	}
	process, err := peer.Of(conn)
	if err == nil {
		err = errors.Join(process.Beside(), process.Close())
	}
	if errors.Is(err, peer.ErrElsewhere) {
		err = session.WrapError(err, session.CodeConnectForbidden,
			"The agent of "+home.Dir+
				" cannot be reached from here: this program or the agent is in a container or sandbox.",
			"Use a terminal of the machine itself, not of a container, Snap or Flatpak.")
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// shortPath returns path, or one through a descriptor, valid until release, that fits into a socket address.
func shortPath(path string) (name string, release func(), err error) {
	if len(path) <= pathMost {
		return path, func() {}, nil
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	if runtime.GOOS != "linux" {
		return "", nil, errors.Join(session.NewError(session.CodeServerInvalid,
			"The path "+path+" is too long for a socket.", "Set SLIPWAY_HOME to a shorter one."), folder.Close())
	}
	name = fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), filepath.Base(path))
	return name, func() { _ = folder.Close() }, nil
}
