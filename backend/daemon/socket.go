package daemon

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"

	"slipway/backend/place"
	"slipway/backend/session"
)

// pathMost is the longest path that a socket's address holds everywhere, in bytes.
const pathMost = 100

// Sockets are where one folder's agent is reached on its machine.
type Sockets struct {
	Tunnel  net.Listener // takes carriers
	Control net.Listener // takes requests for [Serve]
	paths   []string
}

// Listen opens both sockets for users, the owner of this process among them.
// The caller holds the folder's lock, so whatever lies there is left over.
func Listen(home place.Home, users []int) (*Sockets, error) {
	if err := home.Make(); err != nil {
		return nil, err
	}
	s := &Sockets{}
	for _, one := range []struct {
		name string
		into *net.Listener
	}{{tunnelSocket, &s.Tunnel}, {controlSocket, &s.Control}} {
		path := home.Join(one.name)
		listener, err := listenUnix(path)
		if err != nil {
			return nil, errors.Join(&session.Error{Code: "agent_start_failed", Message: "The socket " + path + " cannot be made.", Hint: "Check the permissions and the free space of " + home.Dir + ".", Err: err}, s.Close())
		}
		*one.into = &guarded{UnixListener: listener, users: append([]int{0, os.Getuid()}, users...)}
		s.paths = append(s.paths, path)
	}
	return s, nil
}

// Close closes both and removes their files.
func (s *Sockets) Close() error {
	var errs []error
	for _, listener := range []net.Listener{s.Tunnel, s.Control} {
		if listener == nil {
			continue
		}
		if err := listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	for _, path := range s.paths {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// guarded lets in connections of its users only, as the operating system tells
// who they are. The mode of the socket says the same; both must agree.
type guarded struct {
	*net.UnixListener
	users []int
}

// Accept returns the next connection of a user who may connect.
func (g *guarded) Accept() (net.Conn, error) {
	for {
		conn, err := g.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if uid, known := peerUser(conn); !known || slices.Contains(g.users, uid) {
			return conn, nil
		}
		_ = conn.Close() // a stranger learns nothing, not even why
	}
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
	listener.SetUnlinkOnClose(false) // the name may have been that of a descriptor
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

func dialUnix(ctx context.Context, path string) (*net.UnixConn, error) {
	name, release, err := shortPath(path)
	if err != nil {
		return nil, err
	}
	defer release()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", name)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

// shortPath returns a name for path that an address of a socket holds: path
// itself, or one by way of a descriptor of its folder until release is called.
func shortPath(path string) (name string, release func(), err error) {
	if len(path) <= pathMost {
		return path, func() {}, nil
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	name, ok := descriptorPath(folder, filepath.Base(path))
	if !ok {
		return "", nil, errors.Join(&session.Error{Code: "agent_start_invalid", Message: "The path " + path + " is too long for a socket.", Hint: "Set SLIPWAY_HOME to a shorter one."}, folder.Close())
	}
	return name, func() { _ = folder.Close() }, nil
}
