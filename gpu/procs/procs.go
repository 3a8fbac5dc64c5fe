// Package procs describes processes: when they started, their names, users and containers. It reads /proc, needs no
// privilege, and knows nothing of devices or sessions.
package procs

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Why Lookup cannot describe a process.
var (
	ErrGone   = errors.New("the process is gone")
	ErrHidden = errors.New("the system hides the process from this user")
)

// Process is one process. PID and Start together name it until the machine restarts; a PID alone is reused.
type Process struct {
	PID   int
	Start uint64 // clock ticks after boot, field 22 of /proc/PID/stat
	Name  string // as the kernel shortens it, at most 15 bytes
	UID   int
	User  string // a name, or the number where the machine knows none
	// Containers are the 64-digit ids in its cgroup path, the outermost first of nested ones.
	Containers []string
}

// Config of a Table.
type Config struct {
	Root string                       // where proc and etc are; empty: /
	Name func(uid int) (string, bool) // names a user that Root/etc/passwd lacks; nil: getent
}

// Table describes processes and remembers what does not change about them. It may be used by several goroutines.
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

// Lookup describes a process. It fails with ErrGone, ErrHidden, or a read error. It reads one small file of a process
// that was seen before, three of a new one.
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

// Recall describes a process, which may have ended, as in its last Lookup; ErrGone if there was none.
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

// Keep forgets every other process, so that the table does not grow.
func (t *Table) Keep(pids []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for pid := range t.seen {
		if !slices.Contains(pids, pid) {
			delete(t.seen, pid)
		}
	}
}

// whyNot distinguishes a process that ended from one that /proc hides (hidepid).
func (t *Table) whyNot(dir string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return ErrHidden
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errGoneWhileRead):
		// A user who sees only their own processes does not see the first one either.
		if _, err := os.ReadFile(filepath.Join(t.root, "proc/1/stat")); err != nil {
			return ErrHidden
		}
		return ErrGone
	}
	return fmt.Errorf("%s: %w", dir, err)
}

// parseStat reads the name and the start of a process from its stat file. The name may contain spaces and brackets; the
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

// readUID returns the real user of a process. Its directory would belong to root if it may not be traced.
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

// ContainerIDs finds the container ids in a cgroup file of either version and of any engine: the runs of exactly 64
// hexadecimal digits, outermost first, each once.
func ContainerIDs(cgroup []byte) []string {
	var ids []string
	for _, run := range hexRun.FindAll(cgroup, -1) {
		if id := string(run); len(id) == 64 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// End asks a process to end. Start ensures that it is not another one that got the PID since. ErrGone: the process has
// ended; fs.ErrPermission: it belongs to another user.
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
	if err = process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		return ErrGone
	}
	return err
}

// ModuleLoad identifies one loading of a kernel module by the inode of the module's directory under root, which is new
// each time. It is empty if there is no such module.
func ModuleLoad(root, module string) string {
	info, err := os.Stat(filepath.Join(root, "sys/module", module))
	if err != nil {
		return ""
	}
	return "/" + fileNumber(info)
}

// users gives names to user numbers: from the machine's own file, else from its directory service. Each number is
// looked up at most once an hour.
type users struct {
	file string
	ask  func(uid int) (string, bool)

	mu    sync.Mutex // guards known
	known map[int]knownUser
}

type knownUser struct {
	name  string
	until time.Time
}

const userLife = time.Hour

func (u *users) name(uid int) string {
	now := time.Now()
	u.mu.Lock()
	k, ok := u.known[uid]
	u.mu.Unlock()
	if ok && now.Before(k.until) {
		return k.name
	}
	name, ok := u.inFile(uid)
	if !ok {
		name, ok = u.ask(uid)
	}
	if !ok || name == "" {
		name = strconv.Itoa(uid)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.known == nil {
		u.known = map[int]knownUser{}
	}
	u.known[uid] = knownUser{name: name, until: now.Add(userLife)}
	return name
}

func (u *users) inFile(uid int) (string, bool) {
	f, err := os.Open(u.file)
	if err != nil {
		return "", false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Split(lines.Text(), ":"); len(fields) > 2 && fields[2] == strconv.Itoa(uid) {
			return fields[0], true
		}
	}
	return "", false
}

// askSystem asks getent, which knows LDAP and the like. A program without C libraries cannot ask them itself, and one
// with them could hang in them.
func askSystem(uid int) (string, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "getent", "passwd", strconv.Itoa(uid)).Output()
	name, _, found := strings.Cut(string(out), ":")
	return name, err == nil && found
}
