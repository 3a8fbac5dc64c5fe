package python

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	esys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/sys"
)

// Files is the file system of a session. Paths are absolute, with slashes.
type Files interface {
	Open(path string, flag int, perm fs.FileMode) (io.ReadWriteCloser, error)
	Stat(path string) (fs.FileInfo, error)
	Lstat(path string) (fs.FileInfo, error)
	ReadDir(path string) ([]fs.DirEntry, error)
	Readlink(path string) (string, error)
	Mkdir(path string) error
	Remove(path string) error
	Rename(from, to string) error
	Link(from, to string) error
	Symlink(target, path string) error
	Chmod(path string, mode fs.FileMode) error
	Chtimes(path string, at time.Time) error
}

// fileSystem is [Files] as the interpreter sees it.
type fileSystem struct {
	esys.UnimplementedFS
	files Files
}

func (f *fileSystem) path(path string) string { return "/" + path }

func (f *fileSystem) OpenFile(path string, flag esys.Oflag, perm fs.FileMode) (esys.File, esys.Errno) {
	path = f.path(path)
	info, err := f.files.Stat(path)
	if err == nil && info.IsDir() {
		if flag&(esys.O_RDWR|esys.O_WRONLY|esys.O_CREAT) != 0 {
			return nil, esys.EISDIR
		}
		return &directory{files: f.files, path: path}, 0
	}
	if flag&esys.O_DIRECTORY != 0 {
		if err != nil {
			return nil, errno(err)
		}
		return nil, esys.ENOTDIR
	}
	if flag&esys.O_NOFOLLOW != 0 {
		if link, err := f.files.Lstat(path); err == nil && link.Mode()&fs.ModeSymlink != 0 {
			return nil, esys.ELOOP
		}
	}
	opened, err := f.files.Open(path, flags(flag), perm)
	if err != nil {
		return nil, errno(err)
	}
	if plain, ok := opened.(*os.File); ok {
		return newFile(plain, flag&esys.O_APPEND != 0)
	}
	return &device{ReadWriteCloser: opened}, 0
}

func flags(flag esys.Oflag) int {
	all := os.O_RDONLY
	for _, pair := range []struct {
		from esys.Oflag
		to   int
	}{
		{esys.O_RDWR, os.O_RDWR}, {esys.O_WRONLY, os.O_WRONLY}, {esys.O_APPEND, os.O_APPEND},
		{esys.O_CREAT, os.O_CREATE},
		{esys.O_EXCL, os.O_EXCL}, {esys.O_TRUNC, os.O_TRUNC},
	} {
		if flag&pair.from != 0 {
			all |= pair.to
		}
	}
	return all
}

func (f *fileSystem) Stat(path string) (sys.Stat_t, esys.Errno) {
	return stat(f.files.Stat(f.path(path)))
}

func (f *fileSystem) Lstat(path string) (sys.Stat_t, esys.Errno) {
	return stat(f.files.Lstat(f.path(path)))
}

func stat(info fs.FileInfo, err error) (sys.Stat_t, esys.Errno) {
	if err != nil {
		return sys.Stat_t{}, errno(err)
	}
	return sys.NewStat_t(info), 0
}

func (f *fileSystem) Mkdir(path string, _ fs.FileMode) esys.Errno {
	return errno(f.files.Mkdir(f.path(path)))
}

func (f *fileSystem) Chmod(path string, mode fs.FileMode) esys.Errno {
	return errno(f.files.Chmod(f.path(path), mode))
}

func (f *fileSystem) Rename(from, to string) esys.Errno {
	return errno(f.files.Rename(f.path(from), f.path(to)))
}

func (f *fileSystem) Rmdir(path string) esys.Errno { return f.remove(path, true) }

func (f *fileSystem) Unlink(path string) esys.Errno { return f.remove(path, false) }

func (f *fileSystem) remove(path string, dir bool) esys.Errno {
	info, err := f.files.Lstat(f.path(path))
	switch {
	case err != nil:
		return errno(err)
	case info.IsDir() && !dir:
		return esys.EISDIR
	case !info.IsDir() && dir:
		return esys.ENOTDIR
	}
	return errno(f.files.Remove(f.path(path)))
}

func (f *fileSystem) Link(from, to string) esys.Errno {
	return errno(f.files.Link(f.path(from), f.path(to)))
}

func (f *fileSystem) Symlink(target, path string) esys.Errno {
	return errno(f.files.Symlink(target, f.path(path)))
}

func (f *fileSystem) Readlink(path string) (string, esys.Errno) {
	target, err := f.files.Readlink(f.path(path))
	return target, errno(err)
}

func (f *fileSystem) Utimens(path string, _, mtim int64) esys.Errno {
	if mtim == esys.UTIME_OMIT {
		return 0
	}
	return errno(f.files.Chtimes(f.path(path), time.Unix(0, mtim)))
}

// errno is what the interpreter makes of an error.
func errno(err error) esys.Errno {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, syscall.EXDEV):
		return esys.ENOTSUP // WASI's own number for it is not to be had; shutil.move copies then
	case errors.Is(err, syscall.EBUSY):
		return esys.EPERM
	}
	return esys.UnwrapOSError(err)
}

// file is a regular file.
type file struct {
	esys.File // seeks
	on        *os.File
	append    bool
}

func newFile(on *os.File, appends bool) (esys.File, esys.Errno) {
	seeker, no := (&sysfs.AdaptFS{FS: alone{on}}).OpenFile("file", esys.O_RDONLY, 0)
	if no != 0 {
		return nil, no
	}
	return &file{File: seeker, on: on, append: appends}, 0
}

// alone is a file system with one file, under any name.
type alone struct{ *os.File }

func (a alone) Open(string) (fs.File, error) { return a.File, nil }

func (f *file) IsAppend() bool                   { return f.append }
func (f *file) Read(p []byte) (int, esys.Errno)  { return count(f.on.Read(p)) }
func (f *file) Write(p []byte) (int, esys.Errno) { return count(f.on.Write(p)) }

func (f *file) Pread(p []byte, at int64) (int, esys.Errno)  { return count(f.on.ReadAt(p, at)) }
func (f *file) Pwrite(p []byte, at int64) (int, esys.Errno) { return count(f.on.WriteAt(p, at)) }
func (f *file) Truncate(size int64) esys.Errno              { return errno(f.on.Truncate(size)) }
func (f *file) Sync() esys.Errno                            { return errno(f.on.Sync()) }
func (f *file) Datasync() esys.Errno                        { return f.Sync() }

func count(n int, err error) (int, esys.Errno) {
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, errno(err)
}

// device is /dev/null and its like.
type device struct {
	esys.UnimplementedFile
	io.ReadWriteCloser
}

func (d *device) IsAppend() bool                  { return false }
func (d *device) SetAppend(bool) esys.Errno       { return 0 }
func (d *device) IsDir() (bool, esys.Errno)       { return false, 0 }
func (d *device) Dev() (uint64, esys.Errno)       { return 0, 0 }
func (d *device) Ino() (sys.Inode, esys.Errno)    { return 0, 0 }
func (d *device) Sync() esys.Errno                { return 0 }
func (d *device) Datasync() esys.Errno            { return 0 }
func (d *device) Read(p []byte) (int, esys.Errno) { return count(d.ReadWriteCloser.Read(p)) }
func (d *device) Write(p []byte) (int, esys.Errno) {
	return count(d.ReadWriteCloser.Write(p))
}
func (d *device) Close() esys.Errno { return errno(d.ReadWriteCloser.Close()) }
func (d *device) Stat() (sys.Stat_t, esys.Errno) {
	return sys.Stat_t{Mode: fs.ModeDevice | fs.ModeCharDevice | 0o666, Nlink: 1}, 0
}

// directory is read once it is asked for.
type directory struct {
	esys.UnimplementedFile
	files   Files
	path    string
	entries []esys.Dirent
	read    bool
}

func (d *directory) IsDir() (bool, esys.Errno)       { return true, 0 }
func (d *directory) Read([]byte) (int, esys.Errno)   { return 0, esys.EISDIR }
func (d *directory) Dev() (uint64, esys.Errno)       { return 0, 0 }
func (d *directory) Ino() (sys.Inode, esys.Errno)    { return 0, 0 }
func (d *directory) Stat() (sys.Stat_t, esys.Errno)  { return stat(d.files.Stat(d.path)) }
func (d *directory) Sync() esys.Errno                { return 0 }
func (d *directory) Datasync() esys.Errno            { return 0 }
func (d *directory) Utimens(int64, int64) esys.Errno { return esys.ENOSYS }
func (d *directory) Close() esys.Errno               { return 0 }

func (d *directory) Readdir(n int) ([]esys.Dirent, esys.Errno) {
	if !d.read {
		entries, err := d.files.ReadDir(d.path)
		if err != nil {
			return nil, errno(err)
		}
		for _, entry := range entries {
			d.entries = append(d.entries, esys.Dirent{Name: entry.Name(), Type: entry.Type()})
		}
		d.read = true
	}
	if n <= 0 || n > len(d.entries) {
		n = len(d.entries)
	}
	some := d.entries[:n]
	d.entries = d.entries[n:]
	return some, 0
}
