package notebook

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The disk is the notebook's directory as the page's Python uses it: one request for each system call. It keeps no
// state between requests, so the session sees every change at once.

// mostAtOnce limits what one request reads, in bytes.
const mostAtOnce = 4 << 20

// Kinds of files in Unix modes.
const (
	kindDirectory = 0o040000
	kindFile      = 0o100000
	kindLink      = 0o120000
)

// node is the result of stat.
type node struct {
	Mode     uint32 `json:"mode"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"` // milliseconds since 1970
}

func nodeOf(info fs.FileInfo) node {
	n := node{Mode: uint32(info.Mode().Perm()), Modified: info.ModTime().UnixMilli()}
	switch {
	case info.IsDir():
		n.Mode |= kindDirectory
	case info.Mode()&fs.ModeSymlink != 0:
		n.Mode |= kindLink
	default:
		n.Mode |= kindFile
		n.Size = info.Size()
	}
	return n
}

// ask handles requests that change nothing: stat, list, readlink and read.
func (s *server) ask(w http.ResponseWriter, r *http.Request) {
	at := string(s.inside(r.URL.Query().Get("path")))
	var answer any
	var err error
	switch r.PathValue("op") {
	case "stat":
		var info fs.FileInfo
		if info, err = s.config.Files.Lstat(at); err == nil {
			answer = nodeOf(info)
		}
	case "list":
		var entries []fs.DirEntry
		entries, err = s.config.Files.ReadDir(at)
		names := make([]string, len(entries))
		for i, e := range entries {
			names[i] = e.Name()
		}
		answer = names
	case "readlink":
		answer, err = s.config.Files.Readlink(at)
	case "read":
		answer, err = s.readPart(at, r)
	default:
		http.NotFound(w, r)
		return
	}
	if err != nil {
		refuse(w, err)
		return
	}
	if data, raw := answer.([]byte); raw {
		sendFile(w, bytes.NewReader(data))
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

func sendFile(w http.ResponseWriter, content io.Reader) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = io.Copy(w, content) // the reader may have left
}

func (s *server) readPart(at string, r *http.Request) ([]byte, error) {
	offset, err := number(r, "offset")
	length, lengthErr := number(r, "length")
	if err = errors.Join(err, lengthErr); err != nil {
		return nil, err
	}
	file, err := s.openPlain(at, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	data := make([]byte, min(length, mostAtOnce))
	n, err := file.ReadAt(data, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return data[:n], nil
}

// openPlain opens a regular file, so that it never blocks.
func (s *server) openPlain(at string, flag int, mode fs.FileMode) (*os.File, error) {
	info, err := s.config.Files.Stat(at)
	switch {
	case err != nil && (flag&os.O_CREATE == 0 || !errors.Is(err, fs.ErrNotExist)):
		return nil, err
	case err == nil && info.IsDir():
		return nil, syscall.EISDIR
	case err == nil && !info.Mode().IsRegular():
		return nil, syscall.EINVAL
	}
	return s.config.Files.OpenFile(at, flag, mode)
}

func (s *server) change(w http.ResponseWriter, r *http.Request) {
	do, ok := map[string]func(at string, r *http.Request) error{
		"create": s.create, "write": s.write, "truncate": s.truncate, "chmod": s.chmod,
		"mkdir":  func(at string, _ *http.Request) error { return s.config.Files.Mkdir(at) },
		"unlink": func(at string, _ *http.Request) error { return s.remove(at, false) },
		"rmdir":  func(at string, _ *http.Request) error { return s.remove(at, true) },
		"rename": func(at string, r *http.Request) error {
			return s.config.Files.Rename(at, string(s.inside(r.URL.Query().Get("to"))))
		},
		"symlink": s.symlink,
	}[r.PathValue("op")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if err := do(string(s.inside(r.URL.Query().Get("path"))), r); err != nil {
		refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// numbered opens a file for a change that takes a number of the request.
func (s *server) numbered(at string, r *http.Request, name string, do func(*os.File, int64) error) error {
	n, err := number(r, name)
	if err != nil {
		return err
	}
	file, err := s.openPlain(at, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(file, n), file.Close())
}

func (s *server) write(at string, r *http.Request) error {
	return s.numbered(at, r, "offset", func(file *os.File, offset int64) error {
		_, err := io.Copy(io.NewOffsetWriter(file, offset), http.MaxBytesReader(nil, r.Body, mostContent))
		return err
	})
}

func (s *server) truncate(at string, r *http.Request) error {
	return s.numbered(at, r, "size", (*os.File).Truncate)
}

func (s *server) create(at string, r *http.Request) error {
	mode, err := permissions(r)
	if err != nil {
		return err
	}
	file, err := s.openPlain(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	return file.Close()
}

func (s *server) chmod(at string, r *http.Request) error {
	mode, err := permissions(r)
	if err != nil {
		return err
	}
	return s.config.Files.SetAttributes(at, mode, time.Time{})
}

// symlink makes a link relative, because an absolute one leads nowhere in a simulated session.
func (s *server) symlink(at string, r *http.Request) error {
	target := r.URL.Query().Get("target")
	if strings.HasPrefix(target, "/") {
		relative, err := filepath.Rel(filepath.FromSlash(path.Dir(at)), filepath.FromSlash(target))
		if err != nil {
			return err
		}
		target = filepath.ToSlash(relative)
	}
	return s.config.Files.Symlink(target, at)
}

func permissions(r *http.Request) (fs.FileMode, error) {
	mode, err := number(r, "mode")
	return fs.FileMode(mode & 0o777), err //nolint:gosec // permissions only
}

func (s *server) remove(at string, directory bool) error {
	info, err := s.config.Files.Lstat(at)
	switch {
	case err != nil:
		return err
	case info.IsDir() && !directory:
		return syscall.EISDIR
	case !info.IsDir() && directory:
		return syscall.ENOTDIR
	case at == s.config.Home:
		return syscall.EBUSY
	}
	return s.config.Files.Remove(at)
}

// numbers are the names of errors in Python's errno.
var numbers = []struct {
	err  error
	name string
}{
	{syscall.ENOTEMPTY, "ENOTEMPTY"}, {fs.ErrNotExist, "ENOENT"}, {fs.ErrExist, "EEXIST"}, {syscall.EROFS, "EROFS"},
	{fs.ErrPermission, "EACCES"},
	{syscall.EISDIR, "EISDIR"}, {syscall.ENOTDIR, "ENOTDIR"}, {syscall.EBUSY, "EBUSY"}, {syscall.EXDEV, "EXDEV"},
	{syscall.ENOSPC, "ENOSPC"},
	{syscall.ELOOP, "ELOOP"}, {syscall.ENAMETOOLONG, "ENAMETOOLONG"}, {syscall.EINVAL, "EINVAL"},
	{fs.ErrInvalid, "EINVAL"},
}

// refuse answers with the name of an error.
func refuse(w http.ResponseWriter, err error) {
	name := "EIO"
	for _, n := range numbers {
		if errors.Is(err, n.err) {
			name = n.name
			break
		}
	}
	status := http.StatusConflict
	if name == "ENOENT" {
		status = http.StatusNotFound
	}
	writeJSON(w, status, map[string]string{"errno": name})
}
