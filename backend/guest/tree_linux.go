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
)

// tree is the container's file system as the guest, which is root in it, reaches it. An image is a stranger's work, and
// folders of the machine are mounted in it. So no link is ever followed, and nothing is read, written or given away on
// a mount that is not the guest's own: each step of a path is opened by itself and asked what it is and which mount it
// lies on.
type tree struct {
	top    *place
	mounts mountTable
}

// place is one entry of a tree, held open without being read or written.
type place struct {
	file  *os.File // O_PATH
	path  string
	stat  unix.Stat_t
	mount int
}

// unsafeError says why the guest does not touch a place of the image.
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
	return &tree{top: top, mounts: readMounts(table)}, nil
}

// image opens a directory of the image's own files.
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

// mounted opens what the engine has mounted at a place, or what the image has there if it has mounted nothing. A place
// with two mounts is refused: a link of the image has led one of them there, and who knows which is on top.
func (t *tree) mounted(at string, create bool) (*place, error) {
	p, err := t.find(at, create)
	if err != nil {
		return nil, err
	}
	if p.mount != t.top.mount && !t.mounts.alone(p.mount, at) {
		p.close()
		return nil, &unsafeError{at, "is not what Slipway has mounted there"}
	}
	return p, nil
}

// find walks to a place, making the directories that are missing where it may.
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

// step opens what a directory has under a name, whatever that is, unless it is a link.
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

// placeOf takes file over.
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

// held is a path to this place that leads nowhere else, whatever becomes of its name.
func (p *place) held() string { return "/proc/self/fd/" + strconv.Itoa(p.fd()) }

// child opens an entry that lies on the same mount as its directory.
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

// read reads a regular file of a directory, of at most so many bytes.
func (p *place) read(name string, most int64) ([]byte, fs.FileMode, error) {
	c, err := p.child(name)
	if err != nil {
		return nil, 0, err
	}
	defer c.close()
	data, err := c.content(most)
	return data, fs.FileMode(c.stat.Mode & 0o777), err
}

// content reads a regular file of at most so many bytes.
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

// open opens the very entry that is held.
func (p *place) open(flags int) (*os.File, error) {
	file, err := openAt(unix.AT_FDCWD, p.held(), flags|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: p.path, Err: err}
	}
	return file, nil
}

// names lists a directory, at most so many of its entries.
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

// add makes a file that was not there. One that is there stays, with fs.ErrExist.
func (p *place) add(name string, content []byte, mode fs.FileMode, uid, gid int) error {
	file, err := openAt(p.fd(), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW)
	if err != nil {
		return &fs.PathError{Op: "create", Path: path.Join(p.path, name), Err: err}
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Chown(uid, gid), file.Chmod(mode), file.Close())
	if err != nil {
		_ = unix.Unlinkat(p.fd(), name, 0) // the first failure is told
	}
	return err
}

// replace puts a file of root's under a name at once, whatever was there.
func (p *place) replace(name string, content []byte, mode fs.FileMode) error {
	const fresh = ".slipway-new"
	if err := unix.Unlinkat(p.fd(), fresh, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path.Join(p.path, fresh), err)
	}
	if err := p.add(fresh, content, mode, 0, 0); err != nil {
		return err
	}
	if err := unix.Renameat(p.fd(), fresh, p.fd(), name); err != nil {
		_ = unix.Unlinkat(p.fd(), fresh, 0) // the first failure is told
		return fmt.Errorf("replace %s: %w", path.Join(p.path, name), err)
	}
	return nil
}

// link makes a symbolic link.
func (p *place) link(name, target string) error {
	if err := unix.Symlinkat(target, p.fd(), name); err != nil {
		return &fs.PathError{Op: "link", Path: path.Join(p.path, name), Err: err}
	}
	return nil
}

// give makes a directory and what is in it a user's, the directory last. Links become the user's themselves, mounts
// stay as they are, and so does a corner that cannot be looked into.
func (p *place) give(uid, gid int) error {
	names, _ := p.names(-1) // an unreadable corner is no reason to stop
	for _, name := range names {
		file, err := openAt(p.fd(), name, unix.O_PATH|unix.O_NOFOLLOW)
		if err != nil {
			continue // it went meanwhile
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

// keep makes a directory root's, and closes it to everybody else.
func (p *place) keep() error {
	return errors.Join(p.chown(0, 0), unix.Fchmodat(unix.AT_FDCWD, p.held(), 0o700, 0))
}

func (p *place) chown(uid, gid int) error {
	if err := unix.Fchownat(p.fd(), "", uid, gid, unix.AT_EMPTY_PATH); err != nil {
		return &fs.PathError{Op: "chown", Path: p.path, Err: err}
	}
	return nil
}

// openAt opens a file that no program inherits.
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

// mountOf returns the id of the mount that an open file lies on. See proc(5): fdinfo.
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

// mountTable is where mounts lie, by their ids.
type mountTable map[int]string

// readMounts reads the kernel's table of mounts.
func readMounts(data []byte) mountTable {
	table := mountTable{}
	for _, mount := range mountinfo.Parse(string(data)) {
		table[mount.ID] = filepath.Clean(mount.Point)
	}
	return table
}

// alone reports whether a mount lies at a place, and no other does.
func (m mountTable) alone(id int, at string) bool {
	for other, where := range m {
		if other != id && where == at {
			return false
		}
	}
	return m[id] == at
}

// lookAt says what is at a path, along the image's links: who asks compares it with what must be there, and does
// nothing with it.
func lookAt(at string) (stat unix.Stat_t, err error) {
	err = unix.Lstat(at, &stat)
	return stat, err
}
