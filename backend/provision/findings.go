package provision

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"slipway/backend/daemon"
	"slipway/backend/session"
	"slipway/gpu"
)

// Findings are what a probe found of a machine. What it could not find out is
// empty.
type Findings struct {
	System
	Room
	Engine
	Devices
	Logins
	Present
}

// System is the operating system and the person on it.
type System struct {
	OS, Arch     string // as Go names them, else as uname does
	Kernel, Host string
	UID          int
	User, Shell  string
	Groups       []string
	Home         string        // of the person
	Clock        time.Duration // how far its clock is ahead of this one
}

// Room is where Slipway's files are or would be.
type Room struct {
	Dir       string
	Folder    FolderState // whether programs can be put there
	DiskFree  gpu.Bytes   // of the file system of Dir
	DiskTotal gpu.Bytes   // 0: not known
	Gzip      bool        // what is sent there can be compressed
}

// Engine is Docker as it was found.
type Engine struct {
	DockerHost  string // what Docker was asked at
	Socket      SocketState
	Docker      string // version; empty: it did not answer, or nothing was there to ask with
	LiveRestore *bool
	Runtimes    []string
	Cgroup      int // 1 or 2; 0: not known
}

// Devices are the GPUs and what drives them.
type Devices struct {
	GPUs    []string // models
	NVIDIA  string   // version of the driver
	Toolkit string   // version of NVIDIA's container toolkit
}

// Logins says what becomes of programs when the person is logged out.
type Logins struct {
	Systemd bool // the person's own systemd answers
	Linger  bool // and goes on when they are logged out
	Killing bool // processes end with the last login
}

// Present is what there is of Slipway.
type Present struct {
	Installed *Version       // the program that is there
	Running   *daemon.Status // what rules its agent
	Program   string         // name of the program that is linked
	Held      []string       // names of the programs that are there
}

// Version is what a program says of itself.
type Version struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// FolderState is what a folder for programs allows.
type FolderState string

// The states of a folder.
const (
	FolderOK       FolderState = "ok"
	FolderNoexec   FolderState = "noexec"
	FolderReadonly FolderState = "readonly"
)

// SocketState is what is found where Docker listens.
type SocketState string

// The states of Docker's socket.
const (
	SocketOpen      SocketState = "open"
	SocketForbidden SocketState = "forbidden"
	SocketStopped   SocketState = "stopped" // Docker is installed and does not listen
	SocketMissing   SocketState = "missing" // no Docker
	SocketRemote    SocketState = "remote"  // not a socket of that machine
)

// Bounds of what a probe may print.
const (
	probeMost = 64 << 10
	factMost  = 8200
	listMost  = 64
)

const (
	probeHead = "slipway-probe 1"
	probeTail = "slipway-probe end"
)

// parse reads what the probe printed at the time now. Everything must be as the
// probe writes it: another program's output, half of one, or anything that a
// machine tries to slip in is refused.
func parse(out []byte, now time.Time) (Findings, error) {
	if len(out) > probeMost {
		return Findings{}, unreadable("it is longer than a probe's")
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, factMost+64)
	if !lines.Scan() || lines.Text() != probeHead {
		return Findings{}, unreadable("it does not begin as a probe's does")
	}
	f := Findings{}
	facts := f.facts(now)
	seen := map[string]int{}
	for lines.Scan() {
		line := lines.Text()
		if line == probeTail {
			if lines.Scan() {
				return Findings{}, unreadable("it goes on after its end")
			}
			return f, f.complete(seen)
		}
		key, value, ok := strings.Cut(line, "=")
		take, known := facts[key]
		if !ok || !known || !plain(value) {
			return Findings{}, unreadable("it has a line that no probe writes")
		}
		if seen[key]++; seen[key] > 1 && !repeated[key] || seen[key] > listMost {
			return Findings{}, unreadable("it says " + key + " too often")
		}
		if value == "" {
			continue
		}
		if err := take(value); err != nil {
			return Findings{}, unreadable(fmt.Sprintf("%s is %.60q", key, value))
		}
	}
	return Findings{}, unreadable("it breaks off")
}

// repeated are the facts that may be there more than once.
var repeated = map[string]bool{"gpu": true, "held": true}

// plain reports whether a value has only what say of the probe lets through.
func plain(value string) bool {
	return len(value) <= factMost && utf8.ValidString(value) &&
		!strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
}

func unreadable(why string) error {
	return session.NewError(session.CodeInstallFailed, "What the machine answered cannot be read: "+why+".",
		"Look at what its login shell prints when nobody is at a terminal; ~/.bashrc should print nothing then.")
}

// facts says how each fact is taken.
func (f *Findings) facts(now time.Time) map[string]func(string) error {
	text := func(into *string) func(string) error {
		return func(value string) error { *into = value; return nil }
	}
	yes := func(into *bool) func(string) error {
		return func(value string) error { *into = value == "yes"; return nil }
	}
	return map[string]func(string) error{
		"os":     func(v string) error { f.OS = strings.ToLower(v); return nil },
		"arch":   func(v string) error { f.Arch = goArch(v); return nil },
		"kernel": text(&f.Kernel),
		"host":   text(&f.Host),
		"uid":    func(v string) (err error) { f.UID, err = natural(v, math.MaxUint32); return err },
		"user":   text(&f.User),
		"groups": func(v string) error { f.Groups = strings.Fields(v); return nil },
		"shell":  text(&f.Shell),
		"now":    func(v string) error { return f.takeClock(v, now) },
		"home":   text(&f.Home),
		"dir":    func(v string) error { f.Dir = v; return absolute(v) },
		"disk":   f.takeDisk,
		"folder": func(v string) error {
			f.Folder = FolderState(v)
			return oneOf(f.Folder, FolderOK, FolderNoexec, FolderReadonly)
		},
		"gzip":      yes(&f.Gzip),
		"docker":    text(&f.DockerHost),
		"socket":    f.takeSocket,
		"engine":    f.takeEngine,
		"cgroup":    func(v string) (err error) { f.Cgroup, err = natural(v, 2); return err },
		"nvidia":    text(&f.NVIDIA),
		"toolkit":   text(&f.Toolkit),
		"gpu":       func(v string) error { f.GPUs = append(f.GPUs, v); return nil },
		"systemd":   yes(&f.Systemd),
		"linger":    yes(&f.Linger),
		"killing":   func(v string) error { f.Killing = v == "b true"; return nil },
		"program":   text(&f.Program),
		"held":      func(v string) error { f.Held = append(f.Held, v); return nil },
		"installed": func(v string) error { f.Installed = &Version{}; return json.Unmarshal([]byte(v), f.Installed) },
		"running":   func(v string) error { f.Running = &daemon.Status{}; return json.Unmarshal([]byte(v), f.Running) },
	}
}

// complete checks that nothing is missing that every machine says.
func (f *Findings) complete(seen map[string]int) error {
	for _, key := range []string{"os", "arch", "uid", "now", "dir", "folder", "docker", "socket"} {
		if seen[key] == 0 {
			return unreadable("it does not say " + key)
		}
	}
	if f.Dir == "" {
		return session.NewError(session.CodeInstallFailed,
			"The home folder there has a name that Slipway cannot work with.",
			"slipway agent add … --dir /var/tmp/slipway")
	}
	if f.OS == "" || f.Arch == "" || f.Folder == "" || f.Socket == "" {
		return unreadable("it leaves out what every machine has")
	}
	return nil
}

func (f *Findings) takeClock(value string, now time.Time) error {
	seconds, err := natural(value, math.MaxInt32*4)
	if err == nil {
		f.Clock = time.Unix(int64(seconds), 0).Sub(now.Truncate(time.Second))
	}
	return err
}

func (f *Findings) takeDisk(value string) error {
	total, free, ok := strings.Cut(value, " ")
	if !ok {
		return strconv.ErrSyntax
	}
	t, err := natural(total, math.MaxInt64/1024)
	if err != nil {
		return err
	}
	n, err := natural(free, math.MaxInt64/1024)
	f.DiskTotal, f.DiskFree = gpu.Bytes(t)*gpu.KiB, gpu.Bytes(n)*gpu.KiB
	return err
}

func (f *Findings) takeSocket(value string) error {
	f.Socket = SocketState(value)
	return oneOf(f.Socket, SocketOpen, SocketForbidden, SocketStopped, SocketMissing, SocketRemote)
}

// takeEngine reads "version|live-restore|cgroup|runtime,runtime,", or the
// version alone where only that could be asked.
func (f *Findings) takeEngine(value string) error {
	parts := strings.Split(value, "|")
	f.Docker = parts[0]
	if len(parts) == 1 {
		return nil
	}
	if len(parts) != 4 {
		return strconv.ErrSyntax
	}
	if live, err := strconv.ParseBool(parts[1]); err == nil {
		f.LiveRestore = &live
	}
	f.Runtimes = strings.FieldsFunc(parts[3], func(r rune) bool { return r == ',' })
	return nil
}

func natural(value string, most int) (int, error) {
	n, err := strconv.Atoi(value)
	if err == nil && (n < 0 || n > most) {
		err = strconv.ErrRange
	}
	return n, err
}

func absolute(value string) error {
	if !path.IsAbs(value) || path.Clean(value) != value {
		return strconv.ErrSyntax
	}
	return nil
}

func oneOf[T comparable](value T, all ...T) error {
	if !slices.Contains(all, value) {
		return strconv.ErrSyntax
	}
	return nil
}

// goArch names an architecture of uname as Go does.
func goArch(machine string) string {
	switch machine {
	case "x86_64", "amd64":
		return "amd64"
	case "aarch64", "arm64":
		return "arm64"
	}
	return machine
}
