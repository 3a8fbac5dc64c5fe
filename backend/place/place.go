// Package place defines where Slipway's files are and how its programs find each other: the folder with everything, the
// file that describes a running control plane, the lock that keeps it the only one, and its start in the background
// ([Home.Start]).
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

// Home is the folder with all of Slipway's files for one user.
type Home struct {
	Dir string // absolute
}

// FindHome returns the folder in SLIPWAY_HOME, or the usual one of the operating system: $XDG_DATA_HOME/slipway or
// ~/.local/share/slipway, ~/Library/Application Support/Slipway, or %LocalAppData%\Slipway. It does not create it. env
// is os.Getenv if nil.
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
	// The XDG specification says to ignore a relative path.
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

// IsUsual reports whether h is the folder that [FindHome] returns without SLIPWAY_HOME.
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

// Join returns a path in the folder.
func (h Home) Join(elem ...string) string { return filepath.Join(h.Dir, filepath.Join(elem...)) }

// The files that several programs use. Only the control plane uses the others.
func (h Home) tokenFile() string   { return h.Join("token") }
func (h Home) servingFile() string { return h.Join("serve.json") }
func (h Home) lockFile() string    { return h.Join("lock") }

// LogFile returns the log of a control plane in the background.
func (h Home) LogFile() string { return h.Join("slipway.log") }

// Token reads the bearer token of the API. It fails with fs.ErrNotExist before the first start of a control plane.
func (h Home) Token() (string, error) {
	data, err := os.ReadFile(h.tokenFile())
	return strings.TrimSpace(string(data)), err
}

// SaveToken writes the token, for its owner alone.
func (h Home) SaveToken(token string) error {
	return atomicwriter.WriteFile(h.tokenFile(), []byte(token+"\n"), 0o600)
}

// Version and Commit are set by the linker: -ldflags
// "-X slipway/backend/place.Version=… -X slipway/backend/place.Commit=…".
var (
	Version = "dev"
	Commit  = "unknown"
)

// Serving is the content of serve.json, which a control plane writes when it is ready and removes when it stops.
type Serving struct {
	PID     int    `json:"pid"`
	Port    int    `json:"port"`
	URL     string `json:"url"` // http://127.0.0.1:PORT
	Engine  string `json:"engine"`
	Version string `json:"version"`
	Demo    bool   `json:"demo,omitempty"`
	// Speed is the factor of the speed of time in a demo. Its clock showed Shown at the time Real.
	Speed float64   `json:"speed,omitempty"`
	Real  time.Time `json:"real,omitzero"`
	Shown time.Time `json:"shown,omitzero"`
}

// Serving reads serve.json, which may be of a control plane that was killed. It fails with fs.ErrNotExist if none runs.
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

// RemoveServing removes serve.json, if it exists.
func (h Home) RemoveServing() error {
	if err := os.Remove(h.servingFile()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ErrLocked means that another control plane uses the folder.
var ErrLocked = errors.New("another control plane holds this folder")

// Lock makes the caller the only control plane of the folder until the lock is closed or the process ends. It fails
// with [ErrLocked].
func (h Home) Lock() (*Lock, error) { return h.lock((*flock.Flock).TryLock) }

// unlockedPause is the time between two attempts to lock a folder.
const unlockedPause = 20 * time.Millisecond

// WaitUnlocked waits until the folder is not in use, or fails as ctx does.
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

// Lock is the lock of a folder.
type Lock struct{ file *flock.Flock }

// Close unlocks the folder. The file stays: if it were removed, two processes could lock two files of this name.
func (l *Lock) Close() error { return l.file.Close() }
