// Package procs says whose a process is: when it started, what it is called, which user runs it and in which containers
// it lives. It reads /proc, needs no privilege, and knows nothing of devices or sessions.
package procs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// What Lookup answers for a process that it cannot describe.
var (
	ErrGone   = errors.New("the process is gone")
	ErrHidden = errors.New("the system hides the process from this user")
)

// Process is one process of the machine. PID and Start together name it for as long as the machine runs; a PID alone is
// used again.
type Process struct {
	PID   int
	Start uint64 // clock ticks after boot, field 22 of /proc/PID/stat
	Name  string // as the kernel shortens it, at most 15 bytes
	UID   int
	User  string // a name, or the number where the machine knows none
	// Containers are the 64-digit ids in the path of its control group, the outermost first: a container inside a
	// container has two.
	Containers []string
}

// Config of a Table.
type Config struct {
	Root string                       // where proc and etc are; empty: /
	Name func(uid int) (string, bool) // asks for a user that Root/etc/passwd lacks; nil: getent
}

// Table answers for processes and remembers what does not change about them. It may be used by several goroutines.
type Table struct {
	root  string
	users *users

	mu   sync.Mutex // guards seen
	seen map[int]Process
}

// NewTable returns a Table; it reads nothing yet.
func NewTable(c Config) *Table {
	c.Root = cmp.Or(c.Root, "/")
	if c.Name == nil {
		c.Name = askSystem
	}
	return &Table{root: c.Root, users: &users{file: filepath.Join(c.Root, "etc/passwd"), ask: c.Name},
		seen: map[int]Process{}}
}

// Lookup describes a process. It answers ErrGone, ErrHidden, or what reading failed with. One call costs one small file
// for a process that was seen before, three for a new one.
func (t *Table) Lookup(pid int) (Process, error) {
	dir := filepath.Join(t.root, "proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return Process{}, t.whyNot(dir, err)
	}
	name, start, err := parseStat(stat)
	if err != nil {
		return Process{}, err
	}
	t.mu.Lock()
	p, ok := t.seen[pid]
	t.mu.Unlock()
	if ok && p.Start == start {
		p.Name = name // a program may replace itself
		p.Containers = slices.Clone(p.Containers)
		return p, nil
	}
	p = Process{PID: pid, Start: start, Name: name}
	if p.UID, err = readUID(dir); err != nil {
		return Process{}, t.whyNot(dir, err)
	}
	groups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	if err != nil {
		return Process{}, t.whyNot(dir, err)
	}
	p.Containers = ContainerIDs(groups)
	p.User = t.users.name(p.UID)
	t.mu.Lock()
	t.seen[pid] = p
	t.mu.Unlock()
	p.Containers = slices.Clone(p.Containers)
	return p, nil
}

// Recall describes a process as it was when it was looked up last, which may have ended since. It answers ErrGone for
// one that was not, or is forgotten.
func (t *Table) Recall(pid int) (Process, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.seen[pid]
	if !ok {
		return Process{}, ErrGone
	}
	p.Containers = slices.Clone(p.Containers)
	return p, nil
}

// Keep forgets every process but those, so that the table does not grow.
func (t *Table) Keep(pids []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for pid := range t.seen {
		if !slices.Contains(pids, pid) {
			delete(t.seen, pid)
		}
	}
}

// whyNot tells a process that ended from one that /proc hides (hidepid).
func (t *Table) whyNot(dir string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return ErrHidden
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errGoneWhileRead):
		if t.hides() {
			return ErrHidden
		}
		return ErrGone
	}
	return fmt.Errorf("%s: %w", dir, err)
}

// hides reports whether this user sees only its own processes: then the system's first process is not to be seen
// either.
func (t *Table) hides() bool {
	_, err := os.ReadFile(filepath.Join(t.root, "proc/1/stat"))
	return err != nil
}

// parseStat reads the name and the start of a process from its stat file. The name may hold spaces and brackets, so the
// last bracket ends it.
func parseStat(stat []byte) (name string, start uint64, err error) {
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return "", 0, fmt.Errorf("%q is not the state of a process", stat)
	}
	fields := strings.Fields(string(stat[end+1:]))
	const startField = 22 - 3 // fields are counted from 1 and two come before the bracket
	if len(fields) <= startField {
		return "", 0, fmt.Errorf("%q is not the state of a process", stat)
	}
	start, err = strconv.ParseUint(fields[startField], 10, 64)
	if err != nil {
		return "", 0, fmt.Errorf("%q is not the state of a process: %w", stat, err)
	}
	return string(stat[open+1 : end]), start, nil
}

// readUID returns the real user of a process. The owner of its directory would be root for a process that may not be
// traced.
func readUID(dir string) (int, error) {
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "Uid:"); ok {
			if fields := strings.Fields(rest); len(fields) > 0 {
				return strconv.Atoi(fields[0])
			}
		}
	}
	return 0, errGoneWhileRead
}

var errGoneWhileRead = errors.New("the process ended while it was read")

var hexRun = regexp.MustCompile(`[0-9a-f]+`)

// ContainerIDs finds the container ids in the contents of a cgroup file, of the first or the second version and of any
// engine: the runs of exactly 64 hexadecimal digits, the outermost first, each once.
func ContainerIDs(cgroup []byte) []string {
	var ids []string
	for _, run := range hexRun.FindAll(cgroup, -1) {
		if id := string(run); len(id) == 64 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// End asks a process to end, as its PID and Start name it, so that none is asked that was given the number since. It
// answers ErrGone where the process has ended, and fs.ErrPermission where it is another user's.
func (t *Table) End(pid int, start uint64) error {
	process, err := os.FindProcess(pid) // on Linux it stays the process that it is now
	if err != nil {
		return err
	}
	defer process.Release() //nolint:errcheck // it only gives a handle back
	now, err := t.Lookup(pid)
	if err != nil {
		return err
	}
	if now.Start != start {
		return ErrGone
	}
	if err := process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		return ErrGone
	} else if err != nil {
		return err
	}
	return nil
}

// ModuleLoad names one loading of a kernel module: the number that the kernel gives to the module's directory under
// root, another each time. It is empty where there is no such module.
func ModuleLoad(root, module string) string {
	info, err := os.Stat(filepath.Join(root, "sys/module", module))
	if err != nil {
		return ""
	}
	return "/" + fileNumber(info)
}
