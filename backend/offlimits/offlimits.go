// Package offlimits knows the directories of a machine that sessions may not see: Slipway's own, the engine's, and
// those by which the system shows itself. Whoever mounts a directory asks here what of it must be hidden, or why it
// cannot be mounted at all. What a directory is does not depend on the path by which it is named: links are followed,
// and a file system that is mounted at several places counts at each.
package offlimits

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway/backend/session"
)

// Places says what is off limits.
type Places struct {
	// Own are Slipway's directories. What is not there yet is left out.
	Own []string
	// Engine is where the engine keeps its data, and Socket how it is driven; empty: nowhere on this machine.
	Engine, Socket string
	// Home is that of the person whose agent this is. They may mount it, and nobody else.
	Home string
}

// system are the directories by which the system shows its processes, devices and sockets. All that lies in them is off
// limits, except what room says.
var system = []string{"/proc", "/sys", "/dev", "/run/user"}

// room is a place for data of people in a directory of the system.
const room = "/dev/shm"

// Found is what was found out about a directory.
type Found struct {
	// Path is the directory's own, without links.
	Path string
	// Device and Inode are what the directory is, whatever path leads to it.
	Device, Inode uint64
	// Hidden are the paths below it, relative, that must not be seen.
	Hidden []string
}

// Look judges a directory. stranger says that it is for somebody else than the
// person whose agent this is. It fails with [CodeForbidden], and with
// the error of the system where the directory cannot be looked at. What it finds
// is all of the one directory that path led to, though path may lead to another by
// now.
func (p Places) Look(path string, stranger bool) (Found, error) {
	found, err := identify(path)
	if err == nil {
		err = p.judge(&found, stranger)
	}
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
	known := readMounts()
	socketDir := ""
	if p.Socket != "" {
		socketDir = filepath.Dir(resolved(p.Socket))
	}
	for _, private := range p.Own {
		if err := found.keepOut(known.names(resolved(private)), "Slipway itself"); err != nil {
			return err
		}
	}
	if p.Engine != "" {
		if err := found.keepOut(known.names(resolved(p.Engine)), "the engine itself"); err != nil {
			return err
		}
	}
	if err := found.keepSocket(known.names(socketDir)); err != nil {
		return err
	}
	if stranger {
		return p.refuseStranger(*found, known)
	}
	return nil
}

// keepOut hides a directory, of which names has every path, or fails where it holds the one that was found.
func (f *Found) keepOut(names []string, what string) error {
	for _, name := range names {
		if in(f.Path, name) {
			return forbidden(fmt.Sprintf("%s belongs to %s and cannot be mounted.", f.Path, what), hintData)
		}
		f.hide(name)
	}
	return nil
}

// keepSocket hides the directory of the engine's socket, or fails where it is the one that was found: what is beside
// the socket may be mounted.
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

// hide adds a path that lies below the directory, unless one above it is hidden.
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

// refuseStranger fails where the directory is not one to be given to other people.
func (p Places) refuseStranger(f Found, known mounts) error {
	held := ""
	if len(f.Hidden) > 0 {
		held = filepath.Join(f.Path, f.Hidden[0])
	}
	for _, top := range append([]string{resolved(p.Home)}, system...) {
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

// in reports whether a clean path is dir or lies in it.
func in(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// resolved is a path without links, or as it is where it leads nowhere.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
