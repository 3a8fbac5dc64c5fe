package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/moby/sys/atomicwriter"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
)

// kernels manages the files that are mounted into each container, or copied into one of another machine, and the link
// to its guest:
//
//	guest/slipway-guest-<arch>-<hash>   one for each version in use
//	kernels/<name>/guest                a link to it
//	kernels/<name>/config.json          the guest's configuration
//	kernels/<name>/link/agent.sock      where the guest dials
//	kernels/<name>/daemon               the id of the daemon that has the container
//	kernels/<name>/waits                there while no session has the container
//	kernels/<name>/labels.json          those of the session that took it, as the daemon does not change them
type kernels struct {
	dir     string
	opening sync.Mutex // held while a name's socket is bound, so that it is bound once
	// writing is shared by those that write a container's files, until it is known, and held by who removes the files
	// of unknown ones.
	writing sync.RWMutex

	mu     sync.Mutex // guards everything below
	byName map[string]*kernel
	byID   map[string]*kernel
	guests map[string]string // path of the guest's binary by architecture
	closed bool
}

// kernel is one container of ours. Its fields do not change.
type kernel struct {
	name string
	dir  string
	link link
}

func (k *kernel) guestPath() string  { return filepath.Join(k.dir, "guest") }
func (k *kernel) configPath() string { return filepath.Join(k.dir, configFile) }
func (k *kernel) linkPath() string   { return filepath.Join(k.dir, "link") }

// session is the session of a kernel, "" if its files no longer exist.
func (k *kernel) session() string {
	var config engine.GuestConfig
	data, err := os.ReadFile(k.configPath())
	if err != nil || json.Unmarshal(data, &config) != nil {
		return ""
	}
	return string(config.Session)
}

// delivery is what is written into a container's directory.
type delivery struct {
	daemon string // id of the daemon that will have the container
	arch   string
	binary func(arch string) ([]byte, error)
	config engine.GuestConfig
	link   opener
}

const (
	configFile = "config.json"
	daemonFile = "daemon"
)

var errClosed = &session.Error{Code: session.CodeEngineUnavailable, Message: "The engine is closed."}

func openKernels(dir string) (*kernels, error) {
	if dir == "" {
		return nil, session.NewError(session.CodeServerInvalid,
			"The Docker engine needs a directory for its state.", "")
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, "kernels"), 0o700)
	}
	if err != nil {
		return nil, daemon.FileFailure("its data folder", err)
	}
	return &kernels{dir: dir, byName: map[string]*kernel{}, byID: map[string]*kernel{}, guests: map[string]string{}},
		nil
}

// path is the directory of a container. It refuses names that lead elsewhere.
func (ks *kernels) path(name string) (string, error) {
	if name == "" || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") || len(name) > 128 {
		return "", session.NewError(session.CodeEngineInvalid, "The container name \""+name+"\" cannot be used.", "")
	}
	return filepath.Join(ks.dir, "kernels", name), nil
}

// prepare writes a container's files and opens the link to its guest, again if need be. fresh: its directory is new.
func (ks *kernels) prepare(name string, files delivery) (k *kernel, fresh bool, err error) {
	dir, err := ks.path(name)
	if err != nil {
		return nil, false, err
	}
	ks.writing.RLock()
	defer ks.writing.RUnlock()
	_, err = os.Lstat(dir)
	fresh = errors.Is(err, fs.ErrNotExist)
	if err := ks.write(dir, files); err != nil {
		if fresh {
			os.RemoveAll(dir) //nolint:errcheck // the first failure is told
		}
		return nil, false, err
	}
	k, err = ks.open(name, files.link)
	return k, fresh, err
}

func (ks *kernels) write(dir string, files delivery) error {
	guest, err := ks.guest(files.arch, files.binary)
	if err != nil {
		return err
	}
	data, err := json.Marshal(files.config)
	if err != nil {
		return daemon.FileFailure("the guest's configuration", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "link"), 0o700); err != nil {
		return daemon.FileFailure("the container's files", err)
	}
	if err := engine.ReplaceFile(filepath.Join(dir, configFile), data); err != nil {
		return daemon.FileFailure("the guest's configuration", err)
	}
	if err := engine.LinkFile(guest, filepath.Join(dir, "guest"), 0o755); err != nil {
		return daemon.FileFailure("the guest", err)
	}
	contents := map[string]string{daemonFile: files.daemon}
	if files.config.Waits {
		contents[waitsFile] = ""
	}
	for name, content := range contents {
		if err := engine.ReplaceFile(filepath.Join(dir, name), []byte(content)); err != nil {
			return daemon.FileFailure("the container's files", err)
		}
	}
	return nil
}

// guest returns the path of the guest's binary, which it writes if necessary.
func (ks *kernels) guest(arch string, binary func(string) ([]byte, error)) (string, error) {
	ks.mu.Lock()
	written := ks.guests[arch]
	ks.mu.Unlock()
	if _, err := os.Stat(written); written != "" && err == nil {
		return written, nil
	}
	data, err := binary(arch)
	if err != nil {
		return "", session.WrapError(err, session.CodeEngineUnsupported,
			"This Slipway has no guest for "+arch+" containers.", "Choose an image for another architecture.")
	}
	sum := sha256.Sum256(data)
	path := filepath.Join(ks.dir, "guest", "slipway-guest-"+arch+"-"+hex.EncodeToString(sum[:6]))
	if have, err := os.Stat(path); err != nil || have.Size() != int64(len(data)) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return "", daemon.FileFailure("the guest", err)
		}
		if err := atomicwriter.WriteFile(path, data, 0o755); err != nil {
			return "", daemon.FileFailure("the guest", err)
		}
	}
	ks.mu.Lock()
	ks.guests[arch] = path
	ks.mu.Unlock()
	return path, nil
}

// open returns the kernel of a name, with its link. The directory must exist.
func (ks *kernels) open(name string, answers opener) (*kernel, error) {
	dir, err := ks.path(name)
	if err != nil {
		return nil, err
	}
	ks.opening.Lock()
	defer ks.opening.Unlock()
	ks.mu.Lock()
	there, closed := ks.byName[name], ks.closed
	ks.mu.Unlock()
	switch {
	case closed:
		return nil, errClosed
	case there != nil:
		return there, nil
	}
	k := &kernel{name: name, dir: dir}
	if k.link, err = answers(k); err != nil {
		return nil, err
	}
	ks.mu.Lock()
	defer ks.mu.Unlock()
	if ks.closed {
		k.link.close()
		return nil, errClosed
	}
	ks.byName[name] = k
	return k, nil
}

// has reports whether this process has made or found a container with a name.
func (ks *kernels) has(name string) bool {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	return ks.byName[name] != nil
}

func (ks *kernels) bind(id string, k *kernel) {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	ks.byID[id] = k
}

// of returns the kernel of a container id, nil if it is unknown.
func (ks *kernels) of(id string) *kernel {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	return ks.byID[id]
}

// sweep removes the files of a container that no longer exists, unless one with this name was made again.
func (ks *kernels) sweep(name string) error {
	ks.writing.Lock()
	defer ks.writing.Unlock()
	if ks.has(name) {
		return nil
	}
	return ks.discard(name)
}

func (ks *kernels) discard(name string) error {
	dir, err := ks.path(name)
	if err != nil {
		return err
	}
	ks.mu.Lock()
	there := ks.byName[name]
	delete(ks.byName, name)
	maps.DeleteFunc(ks.byID, func(_ string, k *kernel) bool { return k.name == name })
	ks.mu.Unlock()
	if there != nil {
		there.link.close()
	}
	if err := os.RemoveAll(dir); err != nil {
		return daemon.FileFailure("the container's files", err)
	}
	return nil
}

// names lists the containers of a daemon that have a directory.
func (ks *kernels) names(owner string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(ks.dir, "kernels"))
	if err != nil {
		return nil, daemon.FileFailure("its data folder", err)
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		id, err := os.ReadFile(filepath.Join(ks.dir, "kernels", entry.Name(), daemonFile))
		if err == nil && string(id) == owner {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// close closes every link. The files stay for the next process.
func (ks *kernels) close() {
	ks.mu.Lock()
	ks.closed = true
	open := ks.byName
	ks.byName, ks.byID = map[string]*kernel{}, map[string]*kernel{}
	ks.mu.Unlock()
	for _, k := range open {
		k.link.close()
	}
}
