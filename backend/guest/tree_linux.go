package guest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"slipway/backend/mountinfo"
	"slipway/backend/session"
)

// tree is how the guest, which is root, accesses the container's file system. The image is not trusted, and folders of
// the machine are mounted in it. So no link is followed, and no mount but the guest's own is read, written or changed:
// each step of a path is opened separately, and its type and its mount are checked.
type tree struct {
	top    *place
	mounts []mountinfo.Mount
}

// place is one entry of a tree, open without access to its content.
type place struct {
	file  *os.File // O_PATH
	path  string
	stat  unix.Stat_t
	mount int
}

// unsafeError is why the guest does not touch a place of the image.
type unsafeError struct{ path, why string }

func (e *unsafeError) Error() string { return e.path + " " + e.why }

// openTree opens the tree at root, which is "/" in a container.
func openTree(root string) (*tree, error) {
	proc, err := openAt(unix.AT_FDCWD, "/proc", unix.O_PATH|unix.O_NOFOLLOW|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer proc.Close()
	if !onFileSystem(proc, unix.PROC_SUPER_MAGIC) {
		return nil, &unsafeError{"/proc", "is not the kernel's"}
	}
	table, err := kernelFile("/proc/self/mountinfo", maxKernelTable)
	if err != nil {
		return nil, err
	}
	file, err := openAt(unix.AT_FDCWD, root, unix.O_PATH|unix.O_NOFOLLOW|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	top, err := placeOf(file, "/")
	if err != nil {
		return nil, err
	}
	return &tree{top: top, mounts: mountinfo.Parse(string(table))}, nil
}

// image opens a directory of the image, which is not on another mount.
func (t *tree) image(dir string, create bool) (*place, error) {
	p, err := t.find(dir, create)
	if err != nil {
		return nil, err
	}
	if p.mount != t.top.mount {
		p.close()
		return nil, &unsafeError{dir, "is a mount"}
	}
	return p, nil
}

// mounted opens what the engine has mounted at a place, or what the image has there if nothing is mounted. It refuses a
// place with two mounts: a link of the image has led one of them there, and either may be on top.
func (t *tree) mounted(at string, create bool) (*place, error) {
	p, err := t.find(at, create)
	if err != nil {
		return nil, err
	}
	if p.mount != t.top.mount && !t.alone(p.mount, at) && !t.delivered(p.mount, at) {
		p.close()
		return nil, &unsafeError{at, "is not what Slipway has mounted there"}
	}
	return p, nil
}

// delivered reports whether a place is in the volume that an engine on another machine has instead of mounts in
// Slipway's folder. Then nothing else is mounted on the folder or in it.
func (t *tree) delivered(mount int, at string) bool {
	return strings.HasPrefix(at, ownFolder+"/") && t.alone(mount, ownFolder) &&
		!slices.ContainsFunc(t.mounts, func(m mountinfo.Mount) bool {
			return strings.HasPrefix(filepath.Clean(m.Point), ownFolder+"/")
		})
}

// alone reports whether a mount is at a place and no other is.
func (t *tree) alone(mount int, at string) bool {
	var there []int
	for _, m := range t.mounts {
		if filepath.Clean(m.Point) == at {
			there = append(there, m.ID)
		}
	}
	return slices.Equal(there, []int{mount})
}

// find walks to a place. With create it makes missing directories, but only on the container's own file system.
func (t *tree) find(at string, create bool) (*place, error) {
	here := t.top
	for name := range strings.SplitSeq(strings.Trim(path.Clean(at), "/"), "/") {
		next, err := here.step(name)
		if create && errors.Is(err, fs.ErrNotExist) && here.mount == t.top.mount {
			if err = unix.Mkdirat(here.fd(), name, 0o755); err == nil || errors.Is(err, fs.ErrExist) {
				next, err = here.step(name)
			}
		}
		full := path.Join(here.path, name)
		if here != t.top {
			here.close()
		}
		if err != nil {
			return nil, err
		}
		if next.stat.Mode&unix.S_IFMT != unix.S_IFDIR && (create || full != path.Clean(at)) {
			next.close()
			return nil, &unsafeError{full, "is not a directory"}
		}
		here = next
	}
	return here, nil
}

// step opens an entry of a directory of any type except a link.
func (p *place) step(name string) (*place, error) {
	full := path.Join(p.path, name)
	file, err := openAt(p.fd(), name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: full, Err: err}
	}
	next, err := placeOf(file, full)
	if err != nil {
		return nil, err
	}
	if next.stat.Mode&unix.S_IFMT == unix.S_IFLNK {
		next.close()
		return nil, &unsafeError{full, "is a link"}
	}
	return next, nil
}

// placeOf returns the place of an open file, which it owns.
func placeOf(file *os.File, at string) (*place, error) {
	p := &place{file: file, path: at}
	err := unix.Fstat(p.fd(), &p.stat)
	if err == nil {
		p.mount, err = mountOf(file)
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("look at %s: %w", at, err)
	}
	return p, nil
}

func (p *place) fd() int { return int(p.file.Fd()) }
func (p *place) close()  { _ = p.file.Close() }

// held returns a path that leads to this place even if it is renamed or replaced.
func (p *place) held() string { return "/proc/self/fd/" + strconv.Itoa(p.fd()) }

// child opens an entry that is on the same mount as its directory.
func (p *place) child(name string) (*place, error) {
	c, err := p.step(name)
	if err != nil {
		return nil, err
	}
	if c.mount != p.mount {
		c.close()
		return nil, &unsafeError{c.path, "is a mount"}
	}
	return c, nil
}

// read reads a regular file of a directory, with a maximum size in bytes.
func (p *place) read(name string, most int64) ([]byte, fs.FileMode, error) {
	c, err := p.child(name)
	if err != nil {
		return nil, 0, err
	}
	defer c.close()
	data, err := c.content(most)
	return data, fs.FileMode(c.stat.Mode & 0o777), err
}

// content reads a regular file, with a maximum size in bytes.
func (p *place) content(most int64) ([]byte, error) {
	if p.stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, &unsafeError{p.path, "is not a file"}
	}
	if p.stat.Size > most {
		return nil, &unsafeError{p.path, "is too large"}
	}
	file, err := p.open(unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

// open opens this entry for access to its content.
func (p *place) open(flags int) (*os.File, error) {
	file, err := openAt(unix.AT_FDCWD, p.held(), flags|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: p.path, Err: err}
	}
	return file, nil
}

// names returns some names in a directory, with a maximum number.
func (p *place) names(most int) ([]string, error) {
	file, err := p.open(unix.O_RDONLY | unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	names, err := file.Readdirnames(most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.Sort(names)
	return names, err
}

// bare reports whether a directory holds nothing but mounts.
func (p *place) bare() bool {
	names, err := p.names(-1)
	return err == nil && !slices.ContainsFunc(names, func(name string) bool {
		entry, err := p.step(name)
		if err != nil {
			return true
		}
		defer entry.close()
		return entry.mount == p.mount
	})
}

// add creates a file. It fails with fs.ErrExist if the name exists.
func (p *place) add(name string, content []byte, mode fs.FileMode, uid, gid int) error {
	file, err := openAt(p.fd(), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW)
	if err != nil {
		return &fs.PathError{Op: "create", Path: path.Join(p.path, name), Err: err}
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Chown(uid, gid), file.Chmod(mode), file.Close())
	if err != nil {
		_ = unix.Unlinkat(p.fd(), name, 0)
	}
	return err
}

// markStartFile marks a file that was just added to a home. Without the mark it counts as the person's.
func (p *place) markStartFile(name string) {
	file, err := openAt(p.fd(), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil {
		at := strconv.FormatInt(info.ModTime().UnixNano(), 10)
		_ = unix.Fsetxattr(int(file.Fd()), session.StartFileMark, []byte(at), 0)
	}
}

// replace atomically replaces an entry by a file that belongs to the guest.
func (p *place) replace(name string, content []byte, mode fs.FileMode) error {
	const fresh = ".slipway-new"
	if err := unix.Unlinkat(p.fd(), fresh, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path.Join(p.path, fresh), err)
	}
	if err := p.add(fresh, content, mode, os.Geteuid(), os.Getegid()); err != nil {
		return err
	}
	if err := unix.Renameat(p.fd(), fresh, p.fd(), name); err != nil {
		_ = unix.Unlinkat(p.fd(), fresh, 0)
		return fmt.Errorf("replace %s: %w", path.Join(p.path, name), err)
	}
	return nil
}

func (p *place) link(name, target string) error {
	if err := unix.Symlinkat(target, p.fd(), name); err != nil {
		return &fs.PathError{Op: "link", Path: path.Join(p.path, name), Err: err}
	}
	return nil
}

// give changes the owner of a directory and its content, the directory last, and of links themselves. It skips mounts.
func (p *place) give(uid, gid int) error {
	names, _ := p.names(-1)
	for _, name := range names {
		file, err := openAt(p.fd(), name, unix.O_PATH|unix.O_NOFOLLOW)
		if err != nil {
			continue // it was removed meanwhile
		}
		c, err := placeOf(file, path.Join(p.path, name))
		if err != nil {
			return err
		}
		if c.mount == p.mount {
			if c.stat.Mode&unix.S_IFMT == unix.S_IFDIR {
				err = c.give(uid, gid)
			} else {
				err = c.chown(uid, gid)
			}
		}
		c.close()
		if err != nil {
			return err
		}
	}
	return p.chown(uid, gid)
}

// giveDirectories changes the owner of a directory and of those in it, the directory last. It skips mounts, and files,
// of which a container would get copies: who owns a directory may replace what is in it.
func (p *place) giveDirectories(uid, gid int) error {
	names, err := p.names(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		c, err := p.child(name)
		if err != nil {
			continue // a link, a mount, or removed meanwhile
		}
		if c.stat.Mode&unix.S_IFMT == unix.S_IFDIR {
			err = c.giveDirectories(uid, gid)
		}
		c.close()
		if err != nil {
			return err
		}
	}
	return p.chown(uid, gid)
}

// keep makes a directory the guest's, and inaccessible to others.
func (p *place) keep() error {
	return errors.Join(p.chown(os.Geteuid(), os.Getegid()), unix.Fchmodat(unix.AT_FDCWD, p.held(), 0o700, 0))
}

func (p *place) chown(uid, gid int) error {
	if err := unix.Fchownat(p.fd(), "", uid, gid, unix.AT_EMPTY_PATH); err != nil {
		return &fs.PathError{Op: "chown", Path: p.path, Err: err}
	}
	return nil
}

// openAt opens a file with O_CLOEXEC.
func openAt(dir int, name string, flags int) (*os.File, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_CLOEXEC, 0o600)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		return os.NewFile(uintptr(fd), name), nil
	}
}

func onFileSystem(file *os.File, magic int64) bool {
	var stat unix.Statfs_t
	return unix.Fstatfs(int(file.Fd()), &stat) == nil && stat.Type == magic
}

// mountOf returns the id of the mount that an open file is on. See proc(5): fdinfo.
func mountOf(file *os.File) (int, error) {
	data, err := kernelFile("/proc/self/fdinfo/"+strconv.Itoa(int(file.Fd())), maxKernelText)
	if err != nil {
		return 0, err
	}
	for line := range bytes.SplitSeq(data, []byte{'\n'}) {
		if id, ok := bytes.CutPrefix(line, []byte("mnt_id:")); ok {
			return strconv.Atoi(string(bytes.TrimSpace(id)))
		}
	}
	return 0, errors.New("the kernel reports no mount")
}

// lookAt describes a path, along the image's links. Only compare the result, and do not use the path.
func lookAt(at string) (stat unix.Stat_t, err error) {
	err = unix.Lstat(at, &stat)
	return stat, err
}
