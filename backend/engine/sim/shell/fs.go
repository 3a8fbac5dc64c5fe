package shell

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// FS is the file system of a simulated container: directories of the host, each opened as an [os.Root], so that no path
// or link leads out of them. Paths are absolute, with slashes.
type FS struct {
	mounts []mount // the longest target first; the last one is "/"
}

type mount struct {
	target   string
	root     *os.Root
	readOnly bool
	whole    bool // all of it may be written, not only the places of [writable]
}

// OpenFS makes dir the root of a file system. The caller closes it.
func OpenFS(dir string) (*FS, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &FS{mounts: []mount{{target: "/", root: root}}}, nil
}

// Mount shows a directory at target, before anything uses the file system. Close closes it.
func (f *FS) Mount(source *os.Root, target string, readOnly bool) error {
	inner := strings.TrimPrefix(path.Clean("/"+target), "/")
	f.mounts = append(f.mounts, mount{target: "/" + inner, root: source, readOnly: readOnly, whole: true})
	slices.SortStableFunc(f.mounts, func(a, b mount) int { return len(b.target) - len(a.target) })
	return f.mounts[len(f.mounts)-1].root.MkdirAll(inner, 0o755)
}

// Administer lets the session's user change all files, as root may.
func (f *FS) Administer() { f.mounts[len(f.mounts)-1].whole = true }

func (f *FS) Close() error {
	var errs []error
	for _, m := range f.mounts {
		errs = append(errs, m.root.Close())
	}
	return errors.Join(errs...)
}

// Clean returns p as an absolute path with slashes, without the volume and backslashes of a host.
func Clean(p string) string {
	return path.Clean("/" + filepath.ToSlash(strings.TrimPrefix(p, filepath.VolumeName(p))))
}

func (f *FS) resolve(p string) (m mount, rel string) {
	p = Clean(p)
	for _, m := range f.mounts {
		if m.target == "/" || p == m.target || strings.HasPrefix(p, m.target+"/") {
			rel = strings.Trim(strings.TrimPrefix(p, m.target), "/")
			if rel == "" {
				rel = "."
			}
			return m, rel
		}
	}
	return f.mounts[len(f.mounts)-1], "."
}

// writable fails if the session's user may not change p, with the permissions of an ordinary image.
func (f *FS) writable(p string) error {
	m, rel := f.resolve(p)
	switch {
	case m.readOnly:
		return syscall.EROFS
	case m.whole:
		if rel == "." {
			return syscall.EBUSY
		}
		return nil
	}
	p = Clean(p)
	for _, place := range []string{"/home/work/", "/tmp/", "/dev/shm/"} {
		if strings.HasPrefix(p, place) {
			return nil
		}
	}
	return syscall.EACCES
}

// owner is the user for files that it may change, else root.
func (f *FS) owner(p, user string) string {
	if m, _ := f.resolve(p); Clean(p) == "/home/work" || m.whole || f.writable(p) == nil {
		return user
	}
	return "root"
}

// wrap makes an error with the session's path.
func wrap(op, p string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: p, Err: cause(err)}
}

// cause is an error without its operation and path.
func cause(err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		return inner.Err
	}
	if inner, ok := errors.AsType[*os.LinkError](err); ok {
		return inner.Err
	}
	return err
}

// errText is the text of an error in the C library.
func errText(err error) string {
	text := cause(err).Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

// Open opens a file as [os.OpenFile] does, or one of the devices null and zero.
func (f *FS) Open(p string, flag int, perm fs.FileMode) (io.ReadWriteCloser, error) {
	if p := Clean(p); p == "/dev/null" || p == "/dev/zero" {
		return device{endless: p == "/dev/zero"}, nil
	}
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND) != 0 {
		if err := f.writable(p); err != nil {
			return nil, wrap("open", p, err)
		}
	}
	m, rel := f.resolve(p)
	file, err := m.root.OpenFile(rel, flag, perm)
	if err != nil {
		return nil, wrap("open", p, err)
	}
	return file, nil
}

func read[T any](f *FS, op, p string, ask func(root *os.Root, rel string) (T, error)) (T, error) {
	m, rel := f.resolve(p)
	answer, err := ask(m.root, rel)
	return answer, wrap(op, p, err)
}

// These are the methods of [os.Root].

func (f *FS) Stat(p string) (fs.FileInfo, error)  { return read(f, "stat", p, (*os.Root).Stat) }
func (f *FS) Lstat(p string) (fs.FileInfo, error) { return read(f, "lstat", p, (*os.Root).Lstat) }
func (f *FS) ReadFile(p string) ([]byte, error)   { return read(f, "open", p, (*os.Root).ReadFile) }
func (f *FS) Readlink(p string) (string, error)   { return read(f, "readlink", p, (*os.Root).Readlink) }
func (f *FS) ReadDir(p string) ([]fs.DirEntry, error) {
	return read(f, "open", p, func(r *os.Root, rel string) ([]fs.DirEntry, error) { return fs.ReadDir(r.FS(), rel) })
}

// change changes p if the user may.
func (f *FS) change(op, p string, do func(root *os.Root, rel string) error) error {
	if err := f.writable(p); err != nil {
		return wrap(op, p, err)
	}
	m, rel := f.resolve(p)
	return wrap(op, p, do(m.root, rel))
}

// These are the methods of [os.Root], where the user may change p.

func (f *FS) Remove(p string) error    { return f.change("remove", p, (*os.Root).Remove) }
func (f *FS) RemoveAll(p string) error { return f.change("remove", p, (*os.Root).RemoveAll) }
func (f *FS) Mkdir(p string) error {
	return f.change("mkdir", p, func(r *os.Root, rel string) error { return r.Mkdir(rel, 0o755) })
}
func (f *FS) Chtimes(p string, at time.Time) error {
	return f.change("touch", p, func(r *os.Root, rel string) error { return r.Chtimes(rel, at, at) })
}
func (f *FS) Chmod(p string, mode fs.FileMode) error {
	return f.change("chmod", p, func(r *os.Root, rel string) error { return r.Chmod(rel, mode) })
}
func (f *FS) SetAttributes(p string, mode fs.FileMode, modified time.Time) error {
	return errors.Join(f.Chmod(p, mode), f.Chtimes(p, modified))
}

func (f *FS) MkdirAll(p string) error {
	if info, err := f.Stat(p); err == nil && info.IsDir() {
		return nil
	}
	return f.change("mkdir", p, func(r *os.Root, rel string) error { return r.MkdirAll(rel, 0o755) })
}

func (f *FS) Symlink(target, p string) error {
	return f.change("symlink", p, func(r *os.Root, rel string) error { return r.Symlink(target, rel) })
}

// Rename moves from to to. Between mounts it fails with EXDEV.
func (f *FS) Rename(from, to string) error {
	if err := f.writable(from); err != nil {
		return wrap("rename", from, err)
	}
	return f.pair("rename", from, to, (*os.Root).Rename)
}

// Link gives a file a second name, which must be free.
func (f *FS) Link(from, to string) error { return f.pair("link", from, to, (*os.Root).Link) }

// pair calls do for two paths in the same mount.
func (f *FS) pair(op, from, to string, do func(root *os.Root, from, to string) error) error {
	if err := f.writable(to); err != nil {
		return wrap(op, to, err)
	}
	a, relA := f.resolve(from)
	b, relB := f.resolve(to)
	if a.root != b.root {
		return wrap(op, to, syscall.EXDEV)
	}
	return wrap(op, to, do(a.root, relA, relB))
}

// device is /dev/null, or the endless /dev/zero.
type device struct{ endless bool }

func (d device) Read(p []byte) (int, error) {
	if !d.endless {
		return 0, io.EOF
	}
	clear(p)
	return len(p), nil
}

func (d device) Write(p []byte) (int, error) { return len(p), nil }
func (d device) Close() error                { return nil }

// Furnish fills an empty directory like an ordinary image: a home, programs, files in /etc, and the limits of the
// session where programs look for them.
func Furnish(dir, hostname string, uid, gid int, memory int64, cpus []int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	for _, d := range []string{"bin", "dev/shm", "etc", "home/work", "mnt", "opt", "proc", "sys/fs/cgroup", "tmp",
		"usr/bin", "usr/local/bin", "var/log"} {
		err = errors.Join(err, root.MkdirAll(d, 0o755))
	}
	set, info := strings.Trim(strings.ReplaceAll(fmt.Sprint(cpus), " ", ","), "[]"), ""
	for i := range cpus {
		info += fmt.Sprintf("processor\t: %d\nmodel name\t: Simulated CPU\n\n", i)
	}
	files := map[string]string{
		"etc/hostname":   hostname,
		"etc/passwd":     fmt.Sprintf("root:x:0:0:root:/root:/bin/bash\nwork:x:%d:%d::/home/work:/bin/bash", uid, gid),
		"etc/group":      fmt.Sprintf("root:x:0:\nwork:x:%d:", gid),
		"etc/hosts":      "127.0.0.1\tlocalhost\n127.0.1.1\t" + hostname,
		"etc/os-release": "PRETTY_NAME=\"Slipway simulated session\"\nNAME=\"Slipway\"\nID=slipway-sim",
		"proc/version":   "Linux version 6.12.0-slipway-sim",
		"proc/cpuinfo":   strings.TrimSuffix(info, "\n"),
		"proc/meminfo": fmt.Sprintf(
			"MemTotal:  %8[1]d kB\nMemFree:  %8[2]d kB\nMemAvailable:  %8[2]d kB\nSwapTotal:  0 kB", memory>>10,
			(memory-baseMemory)>>10),
		"sys/fs/cgroup/memory.max":            fmt.Sprint(memory),
		"sys/fs/cgroup/memory.swap.max":       "0",
		"sys/fs/cgroup/memory.current":        fmt.Sprint(baseMemory),
		"sys/fs/cgroup/cpu.max":               fmt.Sprintf("%d 100000", max(1, len(cpus))*100000),
		"sys/fs/cgroup/cpuset.cpus.effective": set,
	}
	for _, name := range programs(utilities()) {
		files["usr/bin/"+name] = "#!/bin/sh\n# " + name + " is part of the simulated session's shell."
	}
	for name, text := range files {
		mode := os.FileMode(0o644)
		if strings.HasPrefix(name, "usr/bin/") {
			mode = 0o755
		}
		err = errors.Join(err, root.WriteFile(name, []byte(text+"\n"), mode))
	}
	return errors.Join(err, root.Close())
}
