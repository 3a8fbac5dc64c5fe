package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"slipway/backend/session"
)

// ReadFile opens a part of a regular file.
func (t Tree) ReadFile(_ context.Context, req session.ReadRequest) (io.ReadCloser, error) {
	full, err := t.resolve(req.Path)
	if err != nil {
		return nil, err
	}
	if req.Offset < 0 || req.Length < 0 {
		return nil, session.NewError(session.CodeFileInvalid, "Offset and length cannot be negative.",
			"Ask for another part.")
	}
	file, info, err := t.openRegular(full)
	if err != nil {
		return nil, failure(full, err)
	}
	if req.Version != "" && req.Version != version(info) {
		_ = file.Close()
		return nil, session.NewError(session.CodeFileChanged, fmt.Sprintf("%q has changed meanwhile.", full),
			"Read it from the beginning.")
	}
	if _, err := file.Seek(req.Offset, io.SeekStart); err != nil {
		_ = file.Close()
		return nil, failure(full, err)
	}
	if req.Length == 0 {
		return file, nil
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(file, req.Length), file}, nil
}

// openRegular opens a regular file, so that reads do not block.
func (t Tree) openRegular(full string) (*os.File, fs.FileInfo, error) {
	info, err := t.FS.Stat(full)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, notRegular(full)
	}
	file, err := t.FS.OpenFile(full, os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err = file.Stat()
	if err == nil && !info.Mode().IsRegular() { // it was replaced meanwhile
		err = notRegular(full)
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

func notRegular(full string) error {
	return session.NewError(session.CodeFileConflict, fmt.Sprintf("%q is not a plain file.", full),
		"Choose a file. To copy a directory, use a recursive copy.")
}

// ChecksumFile returns the SHA-256 of a regular file in hexadecimal.
func (t Tree) ChecksumFile(ctx context.Context, p session.FilePath) (string, error) {
	full, err := t.resolve(p)
	if err != nil {
		return "", err
	}
	file, _, err := t.openRegular(full)
	if err != nil {
		return "", failure(full, err)
	}
	defer file.Close()
	sum, err := checksum(ctx, file)
	return sum, failure(full, err)
}

func checksum(ctx context.Context, from io.Reader) (string, error) {
	sum := sha256.New()
	buffer := make([]byte, 256<<10)
	for {
		n, err := from.Read(buffer)
		sum.Write(buffer[:n])
		switch {
		case errors.Is(err, io.EOF):
			return hex.EncodeToString(sum.Sum(nil)), nil
		case err != nil:
			return "", err
		case ctx.Err() != nil:
			return "", ctx.Err()
		}
	}
}

// The name of a part is partPrefix, the upload's key and partSuffix.
const (
	partPrefix = ".slipway-"
	partSuffix = ".part"
)

func isPart(name string) bool {
	return strings.HasPrefix(name, partPrefix) && strings.HasSuffix(name, partSuffix)
}

// place returns the paths of an upload's file and its part.
func (t Tree) place(up session.Upload) (full, hidden string, err error) {
	if err := up.Check(); err != nil {
		return "", "", err
	}
	if full, err = t.resolve(up.Path); err != nil {
		return "", "", err
	}
	if strings.HasSuffix(string(up.Path), "/") || isPart(path.Base(full)) || full == "/" {
		return "", "", session.NewError(session.CodeFileInvalid, fmt.Sprintf("A file cannot be called %q.", full),
			"Choose another name.")
	}
	return full, path.Join(path.Dir(full), partPrefix+up.Key+partSuffix), nil
}

// UploadOffset returns how many bytes of an upload were received.
func (t Tree) UploadOffset(_ context.Context, up session.Upload) (int64, error) {
	_, hidden, err := t.place(up)
	if err != nil {
		return 0, err
	}
	info, err := t.FS.Lstat(hidden)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, failure(hidden, err)
	case !info.Mode().IsRegular():
		return 0, notRegular(hidden)
	}
	return info.Size(), nil
}

// WriteUpload adds to an upload and returns how many bytes it has. The same bytes may be written twice, even at the
// same time: a caller that lost its connection resumes while what it sent before still arrives.
func (t Tree) WriteUpload(ctx context.Context, up session.Upload, from io.Reader) (int64, error) {
	full, hidden, err := t.place(up)
	if err != nil {
		return 0, err
	}
	there, err := t.UploadOffset(ctx, up)
	if err != nil {
		return 0, err
	}
	if up.Offset > there {
		return there, session.NewError(session.CodeFileConflict, fmt.Sprintf("The upload has %d bytes, not %d.",
			there, up.Offset), "Resume from there.")
	}
	if info, err := t.FS.Stat(full); err == nil && info.IsDir() {
		return 0, failure(full, &fs.PathError{Op: "open", Path: full, Err: fs.ErrExist})
	}
	if there == 0 {
		if entries, err := t.FS.ReadDir(path.Dir(full)); err == nil { // it may be writable but not readable
			t.sweep(path.Dir(full), entries)
		}
	}
	file, err := t.FS.OpenFile(hidden, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return 0, failure(hidden, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, errors.Join(notRegular(hidden), err)
	}
	sum, end := t.Sums.begin(info, up.Offset)
	err = copyAt(&placed{file: file, offset: up.Offset}, from, sum)
	if end(file); err != nil {
		return 0, failure(full, err)
	}
	return t.UploadOffset(ctx, up)
}

// partKept is how long an unfinished upload is kept, so that it can be resumed.
const partKept = 7 * 24 * time.Hour

// sweep removes the old parts in a directory.
func (t Tree) sweep(dir string, entries []fs.DirEntry) {
	for _, e := range entries {
		if !isPart(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > partKept {
			_ = t.FS.Remove(path.Join(dir, e.Name())) // the caller may lack the permission
		}
	}
}

// DropUpload removes an unfinished upload.
func (t Tree) DropUpload(_ context.Context, up session.Upload) error {
	_, hidden, err := t.place(up)
	if err != nil {
		return err
	}
	err = t.FS.Remove(hidden)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return failure(hidden, err)
}

// FinishUpload renames the part of an upload to its file.
func (t Tree) FinishUpload(ctx context.Context, req session.FinishRequest) (session.FileInfo, error) {
	full, hidden, err := t.place(req.Upload)
	if err != nil {
		return session.FileInfo{}, err
	}
	switch req.Conflict {
	case session.ConflictFail, session.ConflictReplace, session.ConflictKeep, "":
	default:
		return session.FileInfo{}, session.NewError(session.CodeFileInvalid,
			fmt.Sprintf("Unknown conflict action %q.", req.Conflict), "Write fail, replace or keep-both.")
	}
	mode := fs.FileMode(cmp.Or(req.Mode, 0o644)).Perm()
	err = t.seal(ctx, hidden, mode, req)
	if errors.Is(err, fs.ErrNotExist) {
		return t.finished(ctx, full, req)
	}
	if err != nil {
		return session.FileInfo{}, failure(full, err)
	}
	if req.Conflict == session.ConflictReplace {
		err = t.FS.Rename(hidden, full)
	} else {
		full, err = t.settle(hidden, full, req.Conflict == session.ConflictKeep)
	}
	if err != nil {
		return session.FileInfo{}, failure(full, err)
	}
	if !req.Modified.IsZero() { // not earlier: a part with an old time could be swept
		if err := t.FS.SetAttributes(full, mode, req.Modified); err != nil {
			return session.FileInfo{}, failure(full, err)
		}
	}
	t.syncDirectory(path.Dir(full))
	return t.Stat(session.FilePath(full))
}

// seal checks a part and syncs it.
func (t Tree) seal(ctx context.Context, hidden string, mode fs.FileMode, req session.FinishRequest) error {
	file, err := t.FS.OpenFile(hidden, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() != req.Size {
		return session.NewError(session.CodeFileConflict,
			fmt.Sprintf("Received %d bytes instead of %d.", info.Size(), req.Size),
			"Resume the upload, or start it again.")
	}
	if err := file.Chmod(mode); err != nil {
		return err
	}
	durable := make(chan error, 1) // the disk writes while the checksum is computed
	go func() { durable <- file.Sync() }()
	err = t.checkSum(ctx, file, info, req.SHA256)
	return errors.Join(err, <-durable)
}

// checkSum fails if a part does not have the wanted checksum; empty: any. It reads the part if [Sums] does not know it.
func (t Tree) checkSum(ctx context.Context, part io.Reader, info fs.FileInfo, wanted string) error {
	if wanted == "" {
		return nil
	}
	var err error
	sum, known := t.Sums.of(info)
	if !known {
		sum, err = checksum(ctx, part)
	}
	if err == nil && !strings.EqualFold(sum, wanted) {
		err = session.NewError(session.CodeFileChanged, "Checksum mismatch.",
			"Upload the file again; it may have changed while it was read.")
	}
	return err
}

// finished returns the file of an upload without a part, if it was finished earlier.
func (t Tree) finished(ctx context.Context, full string, req session.FinishRequest) (session.FileInfo, error) {
	info, err := t.Stat(session.FilePath(full))
	if err == nil && info.Kind == session.KindFile && info.Size == req.Size {
		if req.SHA256 == "" {
			return info, nil
		}
		if sum, err := t.ChecksumFile(ctx, session.FilePath(full)); err == nil && strings.EqualFold(sum, req.SHA256) {
			return info, nil
		}
	}
	return session.FileInfo{}, session.NewError(session.CodeFileNotFound, fmt.Sprintf("There is no upload for %q.",
		full), "Upload the file again.")
}

// mostCopies is how many names are tried for a file that replaces none.
const mostCopies = 1000

// settle renames a part. If the name exists and keep is set, it adds a number.
func (t Tree) settle(hidden, full string, keep bool) (string, error) {
	err := t.appear(hidden, full)
	ext := path.Ext(full)
	stem := strings.TrimSuffix(full, ext)
	if path.Base(full) == ext { // like .bashrc
		stem, ext = full, ""
	}
	for n := 2; keep && errors.Is(err, fs.ErrExist) && n < mostCopies; n++ {
		full = fmt.Sprintf("%s (%d)%s", stem, n, ext)
		err = t.appear(hidden, full)
	}
	return full, err
}

func (t Tree) syncDirectory(dir string) {
	if d, err := t.FS.OpenFile(dir, os.O_RDONLY, 0); err == nil {
		_ = d.Sync() // the file itself is synced, under this name or that of its part
		_ = d.Close()
	}
}
