package node

import (
	"archive/tar"
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The names by which an archive of a layer says that something of the layers below is gone.
const (
	whiteoutPrefix = ".wh."
	opaqueMark     = ".wh..wh..opq"
)

// opaque is the attribute of a directory that hides those below it, for overlays without privileges.
const opaque = "user.overlay.opaque"

// unpackBuffer is how much of an archive is read at once, in bytes: the shared file system may be far away.
const unpackBuffer = 1 << 20

// layerPause is how often a runner looks whether another has unpacked a layer.
const layerPause = 20 * time.Millisecond

// layer returns the folder of an unpacked layer, which stays while the lock is open. It waits while another runner of
// this node unpacks it. Closing stop interrupts it.
func (l *local) layer(stop <-chan struct{}, store, digest string) (dir string, lock *os.File, err error) {
	name := strings.TrimPrefix(digest, "sha256:")
	dir = filepath.Join(l.layers(), name)
	for {
		lock, err = lockLayer(dir, func() error {
			return unpackLayer(stop, filepath.Join(store, name+".tar"), name, dir)
		})
		if err == nil {
			return dir, lock, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return "", nil, fmt.Errorf("layer %.12s: %w", name, err)
		}
		select {
		case <-time.After(layerPause):
		case <-stop:
			return "", nil, errAsked
		}
	}
}

// lockLayer locks the folder of a layer, which it makes if it is missing. It fails with EWOULDBLOCK while others do so.
func lockLayer(dir string, unpack func() error) (*os.File, error) {
	how := unix.LOCK_SH
	if !exists(dir) {
		how = unix.LOCK_EX // which only one has, and nobody has the other
	}
	lock, err := lockFile(dir+".lock", how|unix.LOCK_NB)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	err = os.Chtimes(lock.Name(), now, now) // it was used
	switch {
	case err != nil:
	case exists(dir):
	case how == unix.LOCK_SH:
		err = unix.EWOULDBLOCK // it was removed meanwhile
	default:
		err = unpack()
	}
	if err == nil {
		err = flock(lock, unix.LOCK_SH|unix.LOCK_NB)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// unpackLayer unpacks an archive with the given SHA-256 to a new folder.
func unpackLayer(stop <-chan struct{}, archive, sum, to string) error {
	file, err := os.OpenFile(archive, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", archive)
	}
	part := to + ".part"
	if err := removeAll(part); err != nil {
		return err
	}
	if err := os.Mkdir(part, 0o755); err != nil {
		return err
	}
	hash := sha256.New()
	content := io.TeeReader(bufio.NewReaderSize(interrupted{stop, file}, unpackBuffer), hash)
	err = unpack(content, part, info.Size())
	if err == nil {
		_, err = io.Copy(io.Discard, content)
	}
	if err == nil && hex.EncodeToString(hash.Sum(nil)) != sum {
		err = fmt.Errorf("%s is damaged", archive)
	}
	if err == nil {
		err = os.Rename(part, to)
	}
	if err != nil {
		return errors.Join(err, removeAll(part))
	}
	return nil
}

// interrupted reads until stop is closed.
type interrupted struct {
	stop <-chan struct{}
	io.Reader
}

func (i interrupted) Read(p []byte) (int, error) {
	select {
	case <-i.stop:
		return 0, errAsked
	default:
		return i.Reader.Read(p)
	}
}

// unpack unpacks an archive of a layer, whose files have at most the given bytes, to an empty folder. Everything in it
// becomes the caller's and is accessible to them. No entry leaves the folder, and there are no devices, no programs
// that run as their owner and no attributes of the archive's.
func unpack(archive io.Reader, to string, most int64) error {
	root, err := openFolder(to)
	if err != nil {
		return err
	}
	defer root.close()
	u := &unpacker{root: root, left: most, buffer: make([]byte, 128<<10)}
	entries := tar.NewReader(archive)
	for {
		entry, err := entries.Next()
		if err == io.EOF { //nolint:errorlint // only the plain one says that the archive has ended
			return u.finish()
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		if err := u.add(entry, entries); err != nil {
			return fmt.Errorf("unpack %.200q: %w", entry.Name, err)
		}
	}
}

// unpacker unpacks one layer.
type unpacker struct {
	root        *folder
	left        int64       // bytes that files may still have
	directories []directory // that were made, with what is set last
	buffer      []byte
}

type directory struct {
	path string
	mode uint32
	time time.Time
}

func (u *unpacker) add(entry *tar.Header, content io.Reader) error {
	at := inside(entry.Name)
	mode := uint32(entry.Mode) & 0o1777
	if at == "." {
		u.directories = append(u.directories, directory{at, mode, entry.ModTime})
		return nil
	}
	parent, err := u.root.directory(path.Dir(at), 0o755)
	if err != nil {
		return err
	}
	defer parent.Close()
	name := path.Base(at)
	if name == opaqueMark {
		return hideBelow(parent)
	}
	if gone, ok := strings.CutPrefix(name, whiteoutPrefix); ok {
		return whiteout(parent, gone)
	}
	switch entry.Typeflag {
	case tar.TypeDir:
		u.directories = append(u.directories, directory{at, mode, entry.ModTime})
		return addDirectory(parent, name)
	case tar.TypeReg:
		return u.addFile(parent, name, entry, content)
	case tar.TypeSymlink:
		if err := clear(parent, name); err != nil {
			return err
		}
		return unix.Symlinkat(entry.Linkname, int(parent.Fd()), name)
	case tar.TypeLink:
		return u.addLink(parent, name, entry.Linkname)
	case tar.TypeFifo:
		if err := clear(parent, name); err != nil {
			return err
		}
		return unix.Mknodat(int(parent.Fd()), name, unix.S_IFIFO|mode&0o777, 0)
	}
	return nil // devices are the runner's
}

// addDirectory makes a directory or uses the one that is there. One in place of a whiteout hides those below it.
func addDirectory(parent *os.File, name string) error {
	err := makeDirectory(parent, name, 0o755)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	var stat unix.Stat_t
	if err := unix.Fstatat(int(parent.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		return nil
	}
	if err := errors.Join(clear(parent, name), makeDirectory(parent, name, 0o755)); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFCHR {
		return nil
	}
	return hideIn(parent, name)
}

func (u *unpacker) addFile(parent *os.File, name string, entry *tar.Header, content io.Reader) error {
	if u.left -= entry.Size; u.left < 0 {
		return errors.New("its files are larger than the archive")
	}
	file, err := createAt(parent, name, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{file}, content, u.buffer) // without the file's own, larger buffer
	return errors.Join(err, unix.Fchmod(int(file.Fd()), uint32(entry.Mode)&0o1777),
		setTime(parent, name, entry.ModTime), file.Close())
}

// addLink makes another name for a file of this layer.
func (u *unpacker) addLink(parent *os.File, name, to string) error {
	from, err := u.root.open(path.Dir("/"+inside(to)), unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := clear(parent, name); err != nil {
		return err
	}
	return unix.Linkat(int(from.Fd()), path.Base(inside(to)), int(parent.Fd()), name, 0)
}

// clear removes what has a name, unless it is a directory.
func clear(parent *os.File, name string) error {
	err := unix.Unlinkat(int(parent.Fd()), name, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// whiteout hides what the layers below have by a name. A directory of this layer hides those below it.
func whiteout(parent *os.File, name string) error {
	if name == "" || name == "." || name == ".." {
		return errors.New("it hides nothing")
	}
	if strings.HasPrefix(name, whiteoutPrefix) {
		return nil // other marks of the union file system that invented the names
	}
	err := unix.Mknodat(int(parent.Fd()), name, unix.S_IFCHR, 0)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	var stat unix.Stat_t
	if err := unix.Fstatat(int(parent.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil // the file hides what is below
	}
	return hideIn(parent, name)
}

func hideIn(parent *os.File, name string) error {
	fd, err := unix.Openat(int(parent.Fd()), name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	return hideBelow(dir)
}

func hideBelow(dir *os.File) error { return unix.Setxattr(held(dir), opaque, []byte("y"), 0) }

// finish sets the modes and times of directories, which adding to them changes. Their owner can always access them.
func (u *unpacker) finish() error {
	for i := len(u.directories) - 1; i >= 0; i-- {
		d := u.directories[i]
		parent, err := u.root.open(path.Dir("/"+d.path), unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		name := path.Base(d.path)
		var stat unix.Stat_t
		err = unix.Fstatat(int(parent.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil && stat.Mode&unix.S_IFMT == unix.S_IFDIR {
			err = errors.Join(unix.Fchmodat(int(parent.Fd()), name, d.mode|0o700, 0), setTime(parent, name, d.time))
		}
		if err := errors.Join(err, parent.Close()); err != nil {
			return err
		}
	}
	return nil
}

func setTime(parent *os.File, name string, at time.Time) error {
	if at.IsZero() || at.Unix() < 0 {
		return nil
	}
	times := []unix.Timespec{unix.NsecToTimespec(at.UnixNano()), unix.NsecToTimespec(at.UnixNano())}
	return unix.UtimesNanoAt(int(parent.Fd()), name, times, unix.AT_SYMLINK_NOFOLLOW)
}
