// Package cgroup reads the control groups of a process, of both versions, and what the kernel counts in them. That
// takes microseconds.
package cgroup

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Tree is where a machine shows its processes and control groups.
type Tree struct{ Proc, Root string }

// Machine is this machine.
func Machine() Tree { return Tree{"/proc", "/sys/fs/cgroup"} }

// Groups are the control groups of a process. A machine that mounts version 1 for some controllers counts memory there.
type Groups struct {
	tree  Tree
	paths map[string]string // by controller; "" is version 2
}

// Of reads the control groups of a process, a number or "self", see cgroups(7).
func (t Tree) Of(process string) (Groups, error) {
	data, err := os.ReadFile(filepath.Join(t.Proc, process, "cgroup"))
	if err != nil {
		return Groups{}, err
	}
	g := Groups{t, map[string]string{}}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		below := path.Clean("/" + parts[2])
		for controller := range strings.SplitSeq(parts[1], ",") {
			g.paths[controller] = below
		}
	}
	if _, ok := g.paths["memory"]; !ok {
		if _, ok := g.paths[""]; !ok {
			return Groups{}, fmt.Errorf("process %s has no memory cgroup", process)
		}
	}
	return g, nil
}

// Named reports whether the group that counts memory is named after a container, as Docker and Podman name them. One
// that is not has other processes, too.
func (g Groups) Named(container string) bool { return strings.Contains(g.dir("memory"), container) }

// version is that of the group that counts memory.
func (g Groups) version() int {
	if _, ok := g.paths["memory"]; ok {
		return 1
	}
	return 2
}

// top is where the groups of a controller are mounted.
func (g Groups) top(controller string) string {
	if g.version() == 2 {
		return g.tree.Root
	}
	return filepath.Join(g.tree.Root, controller)
}

// dir returns the folder of a controller's group, "" if there is none. With version 2 all controllers have one.
func (g Groups) dir(controller string) string {
	named := controller
	if g.version() == 2 {
		named = ""
	}
	below, ok := g.paths[named]
	if !ok {
		return ""
	}
	return filepath.Join(g.top(controller), below)
}

// shown are the controllers of version 1 whose groups a container is shown.
var shown = []string{"memory", "cpu", "cpuacct", "cpuset", "pids", "blkio"}

// Folders returns the folders of the groups that this process can read, by where they are mounted. That of memory is
// the one with the limit, because Slurm limits a group above that of the task.
func (g Groups) Folders() map[string]string {
	folders := map[string]string{}
	for _, controller := range shown {
		dir := g.dir(controller)
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); dir != "" && err == nil {
			folders[g.top(controller)] = dir
		}
	}
	if at := g.top("memory"); folders[at] != "" {
		folders[at] = g.limiting(folders[at])
	}
	return folders
}

// limiting returns the group with the least limit of memory: the closest to a group, or that group if none has a limit.
func (g Groups) limiting(dir string) string {
	least, found := int64(unlimited), dir
	for _, at := range g.upward(dir) {
		file, err := os.Open(filepath.Join(at, g.limit()))
		if err != nil {
			continue
		}
		p := &Page{}
		if limit := p.number(file); p.err == nil && limit < least {
			least, found = limit, at
		}
		file.Close() //nolint:errcheck // it was only read
	}
	return found
}

// limit is the name of the file with the limit of memory.
func (g Groups) limit() string {
	if g.version() == 1 {
		return "memory.limit_in_bytes"
	}
	return "memory.max"
}

// upward returns a group of memory and those above it.
func (g Groups) upward(dir string) (all []string) {
	for at := dir; len(at) >= len(g.top("memory")); at = filepath.Dir(at) {
		all = append(all, at)
	}
	return all
}

// Has reports whether a controller has a group that this process can read.
func (g Groups) Has(controller string) bool { return g.Folders()[g.top(controller)] != "" }
