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

// Findings are the results of a probe. What is unknown is empty.
type Findings struct {
	System
	Room
	Engine
	Devices
	Logins
	Present
}

// System is the operating system and its user.
type System struct {
	OS, Arch     string // in Go's names if known, else those of uname
	Kernel, Host string
	UID          int
	User, Home   string
	Clock        time.Duration // how far its clock is ahead of this one
}

// Room is the folder for Slipway's files.
type Room struct {
	Dir       string
	Folder    FolderState // whether programs can be installed there
	DiskFree  gpu.Bytes   // of the file system of Dir
	DiskTotal gpu.Bytes   // 0: unknown
	Gzip      bool        // it can unpack gzip
}

// Engine is the state of Docker, and of Slurm where that is.
type Engine struct {
	DockerHost  string // address of Docker
	Socket      SocketState
	Docker      string // version; empty: unknown
	LiveRestore *bool
	Runtimes    []string
	Cgroup      int // 1 or 2; 0: unknown
	Slurm       Slurm
}

// Slurm says whether a machine is a login node of Slurm.
type Slurm struct {
	Wanted  bool   // sessions run as its jobs, whatever else is there
	Here    bool   // its commands are there
	Version string // empty: unknown
}

// Devices are the GPUs and their software.
type Devices struct {
	GPUs    []string // models
	NVIDIA  string   // version of the driver
	Toolkit string   // version of NVIDIA's container toolkit
}

// Logins says what happens to processes after a logout.
type Logins struct {
	Systemd bool // a systemd user instance answers
	Linger  bool // and keeps running after a logout
	Killing bool // processes are killed after the last logout
}

// Present is what is there of Slipway.
type Present struct {
	Installed *Version       // of the linked program
	Running   *daemon.Status // of the running agent
	Held      []string       // names of all programs
}

// Version is what a program reports about itself.
type Version struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// FolderState says whether programs can be installed in a folder.
type FolderState string

// SocketState is the state of Docker's socket.
type SocketState string

// The states of a folder and of Docker's socket.
const (
	FolderOK       FolderState = "ok"
	FolderNoexec   FolderState = "noexec"
	FolderReadonly FolderState = "readonly"

	SocketOpen      SocketState = "open"
	SocketForbidden SocketState = "forbidden"
	SocketStopped   SocketState = "stopped" // Docker is installed but not running
	SocketMissing   SocketState = "missing" // Docker is not installed
	SocketRemote    SocketState = "remote"  // not a socket of that machine
)

// The first and last line of a probe, and its limits: bytes in total, bytes of a fact, lines of one kind.
const (
	probeHead = "slipway-probe 1"
	probeTail = "slipway-probe end"
	probeMost = 64 << 10
	factMost  = 8200
	listMost  = 64
)

// parse reads the output of a probe, and refuses everything that the probe does not print.
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
				return Findings{}, unreadable("it continues after its end")
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

// repeated are the facts that may occur several times.
var repeated = map[string]bool{"gpu": true, "held": true}

// plain reports whether a value has only characters that the probe prints.
func plain(value string) bool {
	return len(value) <= factMost && utf8.ValidString(value) &&
		!strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
}

func unreadable(why string) error {
	return session.NewError(session.CodeInstallFailed, "What the machine answered cannot be read: "+why+".",
		"Look at what its login shell prints without a terminal; ~/.bashrc should print nothing then.")
}

func (f *Findings) facts(now time.Time) map[string]func(string) error {
	text := func(into *string) func(string) error {
		return func(value string) error { *into = value; return nil }
	}
	yes := func(into *bool) func(string) error {
		return func(value string) error { *into = value == "yes"; return nil }
	}
	return map[string]func(string) error{
		"os":        func(v string) error { f.OS = strings.ToLower(v); return nil },
		"arch":      func(v string) error { f.Arch = goArch(v); return nil },
		"kernel":    text(&f.Kernel),
		"host":      text(&f.Host),
		"uid":       func(v string) (err error) { f.UID, err = natural(v, math.MaxUint32); return err },
		"user":      text(&f.User),
		"now":       func(v string) error { return f.takeClock(v, now) },
		"home":      text(&f.Home),
		"dir":       func(v string) error { f.Dir = v; return absolute(v) },
		"disk":      f.takeDisk,
		"folder":    oneOf(&f.Folder, FolderOK, FolderNoexec, FolderReadonly),
		"gzip":      yes(&f.Gzip),
		"docker":    text(&f.DockerHost),
		"socket":    oneOf(&f.Socket, SocketOpen, SocketForbidden, SocketStopped, SocketMissing, SocketRemote),
		"engine":    f.takeEngine,
		"slurm":     func(v string) error { f.Slurm = Slurm{Here: true, Version: v}; return nil },
		"cgroup":    func(v string) (err error) { f.Cgroup, err = natural(v, 2); return err },
		"nvidia":    text(&f.NVIDIA),
		"toolkit":   text(&f.Toolkit),
		"gpu":       func(v string) error { f.GPUs = append(f.GPUs, v); return nil },
		"systemd":   yes(&f.Systemd),
		"linger":    yes(&f.Linger),
		"killing":   func(v string) error { f.Killing = v == "b true"; return nil },
		"held":      func(v string) error { f.Held = append(f.Held, v); return nil },
		"installed": func(v string) error { f.Installed = &Version{}; return json.Unmarshal([]byte(v), f.Installed) },
		"running":   func(v string) error { f.Running = &daemon.Status{}; return json.Unmarshal([]byte(v), f.Running) },
	}
}

// complete checks that no required fact is missing.
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

// takeEngine parses "version|live-restore|cgroup|runtime,runtime,", or only a version.
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

// oneOf returns the parser of a fact that is one of several words.
func oneOf[T ~string](into *T, all ...T) func(string) error {
	return func(value string) error {
		if *into = T(value); !slices.Contains(all, *into) {
			return strconv.ErrSyntax
		}
		return nil
	}
}

func goArch(machine string) string {
	switch machine {
	case "x86_64", "amd64":
		return "amd64"
	case "aarch64", "arm64":
		return "arm64"
	}
	return machine
}
