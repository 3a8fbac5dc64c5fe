// Package offlimits knows the directories of a machine that sessions must not see: Slipway's own, the engine's and the
// system's. It decides which parts of a directory must be hidden before it is mounted, or why it cannot be mounted. The
// path does not matter: links are followed, and a file system that is mounted at several places counts at each.
package offlimits

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway/backend/hostfs"
	"slipway/backend/session"
)

// Places are the directories that are off limits.
type Places struct {
	Machine        hostfs.FS // a simulated one has neither Own nor Engine nor Socket on its disk
	Own            []string  // Slipway's; they need not exist
	Engine, Socket string    // the engine's data and its socket; empty: not on this machine
	Home           string    // of the agent's user, who alone may mount it
}

// system are the directories with the system's processes, devices and sockets.
var system = []string{"/proc", "/sys", "/dev", "/run/user"}

// room is a directory in one of them that people use for data.
const room = "/dev/shm"

// Found describes a directory.
type Found struct {
	Path          string // without links
	Source        string // where this computer has it
	Device, Inode uint64
	Hidden        []string // relative paths below it that must be hidden
}

// Look checks a directory for the agent's user, or for a stranger. It fails with session_create_forbidden or with the
// error of the system. Found is about one directory, even if the path leads to another one by now.
func (p Places) Look(path string, stranger bool) (Found, error) {
	found, err := p.find(path)
	if err == nil {
		err = p.judge(&found, stranger)
	}
	return found, err
}

func (p Places) find(path string) (Found, error) {
	if !p.Machine.Simulated() {
		found, err := identify(path)
		found.Source = found.Path
		return found, err
	}
	real, err := p.Machine.Resolve(path)
	if err != nil {
		return Found{}, err
	}
	found, err := identify(p.Machine.Host(real))
	found.Path, found.Source = real, p.Machine.Host(real)
	return found, err
}

func (p Places) judge(found *Found, stranger bool) error {
	if found.Path == "/" {
		return forbidden("The whole machine cannot be mounted.", "Mount only the directories that you need.")
	}
	for _, top := range system {
		if in(found.Path, top) && !strings.HasPrefix(found.Path, room+"/") {
			return forbidden(fmt.Sprintf("%s is a system directory and cannot be mounted.", found.Path), hintData)
		}
	}
	if p.Machine.Simulated() {
		return p.refuseStranger(*found, p.Home, nil, stranger)
	}
	known := readMounts()
	for _, private := range p.Own {
		if err := found.keepOut(known.names(resolved(private)), "Slipway itself"); err != nil {
			return err
		}
	}
	if err := found.keepOut(known.names(resolved(p.Engine)), "the engine itself"); err != nil {
		return err
	}
	if p.Socket != "" {
		if err := found.keepSocket(known.names(filepath.Dir(resolved(p.Socket)))); err != nil {
			return err
		}
	}
	return p.refuseStranger(*found, resolved(p.Home), known, stranger)
}

// keepOut hides a directory, of which names has every path, or fails if it contains the one that was found.
func (f *Found) keepOut(names []string, what string) error {
	for _, name := range names {
		if in(f.Path, name) {
			return forbidden(fmt.Sprintf("%s belongs to %s and cannot be mounted.", f.Path, what), hintData)
		}
		f.hide(name)
	}
	return nil
}

// keepSocket hides the directory of the engine's socket or fails for it. Directories in it may be mounted.
func (f *Found) keepSocket(names []string) error {
	for _, name := range names {
		if f.Path == name {
			return forbidden(fmt.Sprintf("%s holds the engine's socket, which gives full control of this machine.",
				f.Path), hintData)
		}
		f.hide(name)
	}
	return nil
}

// hide adds a path below the directory, unless one above it is hidden.
func (f *Found) hide(name string) {
	inside, below := strings.CutPrefix(name, f.Path+"/")
	if _, err := os.Lstat(name); !below || errors.Is(err, fs.ErrNotExist) {
		return
	}
	if slices.ContainsFunc(f.Hidden, func(h string) bool { return in(inside, h) }) {
		return
	}
	f.Hidden = append(slices.DeleteFunc(f.Hidden, func(h string) bool { return in(h, inside) }), inside)
}

// refuseStranger fails for a stranger if the directory must not be shared with other people.
func (p Places) refuseStranger(f Found, home string, known mounts, stranger bool) error {
	if !stranger {
		return nil
	}
	held := ""
	if len(f.Hidden) > 0 {
		held = filepath.Join(f.Path, f.Hidden[0])
	}
	for _, top := range append([]string{home}, system...) {
		for _, name := range known.names(top) {
			if held == "" && in(name, f.Path) {
				held = name
			}
		}
	}
	if held == "" {
		return nil
	}
	return forbidden(fmt.Sprintf("%s contains %s, which must not be shared with other people.", f.Path, held), hintData)
}

const hintData = "Choose a directory that contains only data."

func forbidden(message, hint string) error {
	return session.NewError(session.CodeMountForbidden, message, hint)
}

func in(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// resolved returns a path without links, or the path itself if it does not exist.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
