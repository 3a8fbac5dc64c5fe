// Package sshstdio reaches another machine through the OpenSSH client of this one, with the person's own configuration:
// host names, jump hosts, keys, agent and second factors are what they are on the command line.
//
// A [Remote] is one destination. [Remote.Dial] starts a program there and makes its standard input and output a carrier
// of a tunnel; [Remote.Run] and [Remote.Upload] are for setting that program up. What ssh wants to ask goes to an
// [Asker] by way of this program itself, which ssh starts as its askpass program and which calls back over a private
// socket ([AskpassMain]). Answers never appear in an argument, an environment or a log.
//
// Nothing is passed to a shell on this side. On the far side only sh is expected, and whatever login shell the account
// has may be any that knows single quotes.
package sshstdio

import (
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
)

// Config says how one machine is reached.
type Config struct {
	Host Host
	// Command is the program that Dial starts on the far side, with its arguments, for example
	// "~/.local/share/slipway/bin/slipway agent --stdio". A first element that begins with "~/" is in the account's
	// home.
	Command []string
	// Asker answers what ssh asks. Nil means that nobody can be asked.
	Asker Asker
	// Askpass is the absolute path of a program that calls AskpassMain first of all. Empty means this program.
	Askpass string
	// SSH is the client, "ssh" if empty.
	SSH string
	// ConfigFile stands in for the person's ~/.ssh/config and the system's file, as ssh's option -F. Empty means those.
	ConfigFile string
	// Folder is where a Remote keeps its sockets, each in a folder of its own. [Sweep] removes what a program that was
	// killed has left there. Empty means the system's folder for temporary files, which is not swept.
	Folder string
}

// Remote is one machine that is reached through ssh. All methods are safe for concurrent use. The connections that Dial
// returns live on after Close.
type Remote struct {
	config  Config        // mu guards its Command
	folder  string        // 0700, for sockets; its path is short enough for them
	opening chan struct{} // holds one token; who has it may log in with questions

	mu     sync.Mutex // guards the following
	master *master    // the connection that Run shares; nil if there is none
	closed bool
}

var _ tunnel.Dialer = (*Remote)(nil)

// Times of a connection that is being made.
const (
	connectTimeout = 15 * time.Second // of TCP and the banner, for each address
	rideTimeout    = 10 * time.Second // of a session over a connection that stands
	checkTimeout   = 10 * time.Second // of questions to the local client
)

// Open prepares to reach a machine and connects to nothing yet.
func Open(config Config) (*Remote, error) {
	if config.SSH == "" {
		config.SSH = "ssh"
	}
	if config.Askpass == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("sshstdio: find this program: %w", err)
		}
		config.Askpass = self
	}
	if !filepath.IsAbs(config.Askpass) {
		return nil, fmt.Errorf("sshstdio: the askpass program %q has no absolute path", config.Askpass)
	}
	if _, err := ParseHost(config.Host.String()); err != nil {
		return nil, err
	}
	folder, err := makeFolder(config.Folder)
	if err != nil {
		return nil, fmt.Errorf("sshstdio: make a folder for sockets: %w", err)
	}
	return &Remote{config: config, folder: folder, opening: make(chan struct{}, 1)}, nil
}

// SetCommand says what Dial starts from now on, where that was not known before something had been run on the machine.
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
	ridden := m != nil && m.ridden // it ends with the carrier
	r.master, r.closed = nil, true
	r.mu.Unlock()
	if m != nil && !ridden {
		m.close()
	}
	return os.RemoveAll(r.folder)
}

// Dial starts the configured command on the far side and returns its standard input and output as a connection, a
// [tunnel.Carrier], once the command has been found and is about to start. Its errors are of type [tunnel.Fault].
//
// A carrier has a connection of its own, so that after an outage nothing waits for the old one. The exceptions spare a
// person a question: a login just made for Run, which is ridden on once and not again after it has failed, and a
// ControlMaster of the person's own that is up.
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
	asking, err := r.listenForQuestions(ctx)
	if err != nil {
		return nil, err
	}
	defer asking.close()
	return r.carry(ctx, way{strict: known.strict}, asking, nil)
}

// ride starts the command over a connection that stands already. ended is called when the carrier has ended, if it is
// not nil.
func (r *Remote) ride(ctx context.Context, w way, ended func()) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, rideTimeout)
	defer cancel()
	return r.carry(ctx, w, nil, ended)
}

// carry starts the command over a connection of its own, and says whom it leads to, as far as ssh vouches for that.
func (r *Remote) carry(ctx context.Context, w way, asking *questions, ended func()) (net.Conn, error) {
	c, err := r.start(ctx, r.options(w), r.command(), asking)
	if err != nil {
		return nil, err
	}
	c.ended = ended
	host := r.config.Host.String()
	return tunnel.Carrier{Conn: c, Peer: tunnel.Peer{Transport: "ssh", Name: host, Address: host}}, nil
}

// start runs ssh with a socket as its input and output and waits until the far side says that the command is there.
func (r *Remote) start(ctx context.Context, options, command []string, asking *questions) (*carrier, error) {
	mark := newMark()
	child, socket, err := r.spawn(append(options, dialScript(mark, command)), asking)
	if err != nil {
		return nil, err
	}
	c := &carrier{Conn: socket, child: child}
	err = c.awaitMark(ctx, mark, asking)
	if err == nil {
		return c, nil
	}
	fault := explain(ctx, child, asking, err)
	_ = c.Close()
	return nil, fault
}

// enter makes a caller the only one that may ask a person.
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

// longestFolder is how many bytes the path of a folder for sockets may have. A socket's path may have 103 on every
// system, and ssh makes one with a name of 10 and 17 more for a moment.
const longestFolder = 103 - len("/") - 10 - 17

// temporaryPrefix begins the names of folders where there is no other place.
const temporaryPrefix = "slipway-ssh-"

// foldersOf is where the folders for sockets are that belong to parent, and how their names begin: in parent, or where
// its path is too long for sockets among the temporary files, named after it.
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

// Fits reports whether sockets can be in a folder itself, as [Config] names it, rather than among the temporary files.
func Fits(folder string) bool {
	dir, _ := foldersOf(folder)
	return dir == folder
}

// makeFolder makes a folder that only this account may enter.
func makeFolder(parent string) (string, error) {
	dir, prefix := foldersOf(parent)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(dir, prefix)
}

// Sweep removes what programs that were killed have left of the connections whose [Config] has this Folder. Nobody may
// have one open.
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
