// Package sshstdio reaches another machine through the OpenSSH client of this one, with the person's own configuration:
// host names, jump hosts, keys, agent and second factors work as on the command line.
//
// A [Remote] is one destination. [Remote.Dial] starts a program there and makes its standard input and output a carrier
// of a tunnel; [Remote.Run] and [Remote.Upload] install that program. The questions of ssh go to an [askpass.Asker].
//
// Nothing is passed to a shell on this side. The far side needs sh, and any login shell that knows single quotes.
package sshstdio

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"slipway/tunnel"
	"slipway/tunnel/askpass"
)

// Config says how one machine is reached.
type Config struct {
	Host Host
	// Command is the program that Dial starts on the far side, with its arguments, for example
	// "~/.local/share/slipway/bin/slipway agent --stdio". "~/" at its beginning is the account's home.
	Command    []string
	Asker      askpass.Asker // answers the questions of ssh; nil: no person can be asked
	SSH        string        // the client; "ssh" if empty
	ConfigFile string        // of ssh's option -F; empty: the person's and the system's
	// Folder is where a Remote has a folder for its sockets. [Sweep] removes what a program that was killed has left
	// there. Empty: the system's folder for temporary files, which is not swept.
	Folder string
}

// Remote is one machine that is reached through ssh. All methods are safe for concurrent use. The connections that Dial
// returns stay open after Close.
type Remote struct {
	config  Config        // mu guards its Command
	folder  string        // 0700, for sockets; its path is short enough for them
	opening chan struct{} // holds one token, which is needed to log in with questions

	mu     sync.Mutex // guards the following
	master *master    // the connection that Run shares; nil if there is none
	closed bool
}

var _ tunnel.Dialer = (*Remote)(nil)

// Times of a connection that is being made.
const (
	connectTimeout = 15 * time.Second // of TCP and the banner, for each address
	rideTimeout    = 10 * time.Second // of a session over a connection that is up
	checkTimeout   = 10 * time.Second // of the local client
)

// Open prepares to reach a machine and connects to nothing yet.
func Open(config Config) (*Remote, error) {
	config.SSH = cmp.Or(config.SSH, "ssh")
	if _, err := ParseHost(config.Host.String()); err != nil {
		return nil, err
	}
	folder, err := MakeFolder(config.Folder)
	if err != nil {
		return nil, fmt.Errorf("sshstdio: make a folder for sockets: %w", err)
	}
	return &Remote{config: config, folder: folder, opening: make(chan struct{}, 1)}, nil
}

// SetCommand changes Config.Command, which may only be known after something was run on the machine.
func (r *Remote) SetCommand(command []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.config.Command = command
}

func (r *Remote) command() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.config.Command
}

// Close ends the connection that Run and Upload share.
func (r *Remote) Close() error {
	r.mu.Lock()
	m := r.master
	if m != nil && m.ridden {
		m = nil // its carrier closes it
	}
	r.master, r.closed = nil, true
	r.mu.Unlock()
	if m != nil {
		m.close()
	}
	return os.RemoveAll(r.folder)
}

// Dial starts the configured command on the far side and returns its standard input and output as a [tunnel.Carrier],
// once the command has been found and is about to start. Its errors are of type [tunnel.Fault].
//
// A carrier has a connection of its own, so that it does not wait for the old one after an outage. Two exceptions spare
// a person a question: a login that was made for Run, which one carrier may use, and a ControlMaster of the person that
// is up.
func (r *Remote) Dial(ctx context.Context, silent bool) (net.Conn, error) {
	if len(r.command()) == 0 {
		return nil, errors.New("sshstdio: no command to start")
	}
	if silent {
		return r.carry(ctx, way{silent: true}, nil, nil)
	}
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.leave()
	if m := r.takeMaster(); m != nil {
		if c, err := r.ride(ctx, way{socket: m.socket}, func() { r.drop(m) }); err == nil {
			return c, nil
		}
		r.drop(m)
	}
	known, err := r.inspect(ctx)
	if err != nil {
		return nil, err
	}
	if known.masterIsUp {
		c, err := r.carry(ctx, way{silent: true}, nil, nil)
		if errors.Is(err, tunnel.ErrWouldAsk) {
			c, err = r.ride(ctx, way{socket: known.controlPath}, nil)
		}
		if err == nil {
			return c, nil
		}
	}
	asking, err := askpass.Listen(ctx, r.folder, r.config.Asker)
	if err != nil {
		return nil, err
	}
	defer asking.Close()
	return r.carry(ctx, way{strict: known.strict}, asking, nil)
}

// ride starts the command over a connection that is up. ended, unless nil, is called when the carrier has ended.
func (r *Remote) ride(ctx context.Context, w way, ended func()) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, rideTimeout)
	defer cancel()
	return r.carry(ctx, w, nil, ended)
}

// carry starts the command over a connection of its own.
func (r *Remote) carry(ctx context.Context, w way, asking *askpass.Questions, ended func()) (net.Conn, error) {
	c, err := r.start(ctx, r.options(w), r.command(), asking)
	if err != nil {
		return nil, err
	}
	c.ended = ended
	host := r.config.Host.String()
	return tunnel.Carrier{Conn: c, Peer: tunnel.Peer{Transport: "ssh", Name: host, Address: host}}, nil
}

// start runs ssh with a socket as its input and output and waits until the far side is about to start the command.
func (r *Remote) start(ctx context.Context, options, command []string, asking *askpass.Questions) (*carrier, error) {
	mark := newMark()
	child, socket, err := r.spawn(append(options, dialScript(mark, command)), asking)
	if err != nil {
		return nil, err
	}
	c := &carrier{Conn: socket, child: child}
	if err := c.awaitMark(ctx, mark, asking); err != nil {
		defer c.Close()
		return nil, explain(ctx, child, asking, err)
	}
	return c, nil
}

// enter waits until the caller is the only one that may ask a person.
func (r *Remote) enter(ctx context.Context) error {
	select {
	case r.opening <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		<-r.opening
		return net.ErrClosed
	}
	return nil
}

func (r *Remote) leave() { <-r.opening }

// longestFolder is the longest path of a folder for sockets, in bytes. A socket's path may have 103 on every system,
// and ssh temporarily makes one with a name of 10 and 17 more.
const longestFolder = 103 - len("/") - 10 - 17

// temporaryPrefix begins the names of folders among the temporary files.
const temporaryPrefix = "slipway-ssh-"

// foldersOf returns where the folders for sockets of parent are, and how their names begin: in parent, or if its path
// is too long for sockets among the temporary files, named after it.
func foldersOf(parent string) (dir, prefix string) {
	const random = len("4294967295") // as os.MkdirTemp adds
	switch {
	case parent == "":
		return os.TempDir(), temporaryPrefix
	case len(parent)+len("/s")+random <= longestFolder:
		return parent, "s"
	}
	sum := sha256.Sum256([]byte(parent))
	return os.TempDir(), fmt.Sprintf("%s%x-", temporaryPrefix, sum[:6])
}

// Fits reports whether a Config.Folder is short enough to have the sockets itself, not among the temporary files.
func Fits(folder string) bool {
	dir, _ := foldersOf(folder)
	return dir == folder
}

// MakeFolder makes a folder in a Config.Folder that only this account may enter. The caller removes it.
func MakeFolder(parent string) (string, error) {
	dir, prefix := foldersOf(parent)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(dir, prefix)
}

// Sweep removes the sockets that killed programs have left in a Config.Folder. No Remote may be open with that Folder.
func Sweep(folder string) error {
	if folder == "" {
		return errors.New("sshstdio: the system's temporary files are not swept")
	}
	dir, prefix := foldersOf(folder)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, entry := range entries {
		if entry.IsDir() && strings.HasPrefix(entry.Name(), prefix) {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return errors.Join(errs...)
}
