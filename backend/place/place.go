// Package place knows where Slipway's files are and how its programs find one another: the folder that holds
// everything, the file by which a running control plane is found, the lock that keeps it the only one, and how it is
// started in the background ([Home.Start]). The command line, the desktop shell and the control plane itself agree by
// using it.
package place

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/moby/sys/atomicwriter"
)

// Home is the folder that holds all of Slipway's files for one person.
type Home struct {
	Dir string // absolute
}

// FindHome returns the folder that SLIPWAY_HOME names, or else the one that the habits of the operating system give:
// $XDG_DATA_HOME/slipway or ~/.local/share/slipway, ~/Library/Application Support/Slipway, or %LocalAppData%\Slipway.
// It creates nothing. env is os.Getenv if nil.
func FindHome(env func(string) string) (Home, error) {
	if env == nil {
		env = os.Getenv
	}
	if dir := env("SLIPWAY_HOME"); dir != "" {
		abs, err := filepath.Abs(dir)
		return Home{abs}, err
	}
	if runtime.GOOS == "windows" {
		if dir := env("LocalAppData"); dir != "" {
			return Home{filepath.Join(dir, "Slipway")}, nil
		}
		return Home{}, errors.New("neither SLIPWAY_HOME nor LocalAppData is set")
	}
	// The XDG specification says that a relative path is to be ignored.
	if dir := env("XDG_DATA_HOME"); filepath.IsAbs(dir) && runtime.GOOS != "darwin" {
		return Home{filepath.Join(dir, "slipway")}, nil
	}
	person := env("HOME")
	if person == "" {
		return Home{}, errors.New("neither SLIPWAY_HOME nor HOME is set")
	}
	if runtime.GOOS == "darwin" {
		return Home{filepath.Join(person, "Library", "Application Support", "Slipway")}, nil
	}
	return Home{filepath.Join(person, ".local", "share", "slipway")}, nil
}

// IsUsual reports whether h is the folder that is used without SLIPWAY_HOME.
func (h Home) IsUsual(env func(string) string) bool {
	usual, err := FindHome(func(name string) string {
		if name == "SLIPWAY_HOME" {
			return ""
		}
		return env(name)
	})
	return err == nil && usual == h
}

// Make creates the folder for its owner alone.
func (h Home) Make() error { return os.MkdirAll(h.Dir, 0o700) }

// Join is a path inside the folder.
func (h Home) Join(elem ...string) string {
	return filepath.Join(append([]string{h.Dir}, elem...)...)
}

// The files that several programs know. The rest is the control plane's own.
func (h Home) tokenFile() string   { return h.Join("token") }
func (h Home) servingFile() string { return h.Join("serve.json") }
func (h Home) lockFile() string    { return h.Join("lock") }

// LogFile is where a control plane that was started in the background writes.
func (h Home) LogFile() string { return h.Join("slipway.log") }

// Token reads the bearer token of the API. It is fs.ErrNotExist before the first start of a control plane.
func (h Home) Token() (string, error) {
	data, err := os.ReadFile(h.tokenFile())
	return strings.TrimSpace(string(data)), err
}

// SaveToken writes the token for its owner alone.
func (h Home) SaveToken(token string) error {
	return atomicwriter.WriteFile(h.tokenFile(), []byte(token+"\n"), 0o600)
}

// Version and Commit are set by the linker: -ldflags
// "-X slipway/backend/place.Version=… -X slipway/backend/place.Commit=…".
var (
	Version = "dev"
	Commit  = "unknown"
)

// Serving says where a control plane answers. It is the content of serve.json, written when it begins to answer and
// removed when it stops in good order.
type Serving struct {
	PID     int    `json:"pid"`
	Port    int    `json:"port"`
	URL     string `json:"url"` // http://127.0.0.1:PORT
	Engine  string `json:"engine"`
	Version string `json:"version"`
	Demo    bool   `json:"demo,omitempty"` // nothing of it is real
	// Speed is how much faster than on the wall the time of a demo goes by, and Shown what its clock showed at the
	// moment Real.
	Speed float64   `json:"speed,omitempty"`
	Real  time.Time `json:"real,omitzero"`
	Shown time.Time `json:"shown,omitzero"`
}

// Serving reads serve.json; fs.ErrNotExist where no control plane has run since the last one stopped in good order. It
// may tell of one that was killed.
func (h Home) Serving() (Serving, error) {
	var s Serving
	data, err := os.ReadFile(h.servingFile())
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("%s: %w", h.servingFile(), err)
	}
	return s, nil
}

// SaveServing writes serve.json.
func (h Home) SaveServing(s Serving) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return atomicwriter.WriteFile(h.servingFile(), append(data, '\n'), 0o600)
}

// RemoveServing removes serve.json. It is no error that there is none.
func (h Home) RemoveServing() error {
	if err := os.Remove(h.servingFile()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ErrLocked means that another control plane holds the folder.
var ErrLocked = errors.New("another control plane holds this folder")

// Lock makes the caller the only control plane of the folder until it is closed or the process ends, however it ends.
// It fails with [ErrLocked].
func (h Home) Lock() (*Lock, error) { return h.lock((*flock.Flock).TryLock) }

// unlockedPause is how often it is looked whether a folder is free.
const unlockedPause = 20 * time.Millisecond

// WaitUnlocked waits until nobody holds the folder, or fails as ctx does.
func (h Home) WaitUnlocked(ctx context.Context) error {
	lock, err := h.lock(func(file *flock.Flock) (bool, error) { return file.TryLockContext(ctx, unlockedPause) })
	if err != nil {
		return err
	}
	return lock.Close()
}

func (h Home) lock(take func(*flock.Flock) (bool, error)) (*Lock, error) {
	if err := h.Make(); err != nil {
		return nil, err
	}
	lock := flock.New(h.lockFile(), flock.SetPermissions(0o600))
	taken, err := take(lock)
	if err == nil && !taken {
		err = ErrLocked
	}
	if err != nil {
		return nil, err
	}
	return &Lock{lock}, nil
}

// Lock is a held folder.
type Lock struct{ file *flock.Flock }

// Close gives the folder up. The file stays: removing it would let two hold locks on two files of one name.
func (l *Lock) Close() error { return l.file.Close() }
