package folder

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Unpack writes a home into a folder, which is made if it is not there: an archive whose names begin with "work/". What
// is there under the same name is replaced, so it can be called again after an interruption. Everything belongs to the
// owner of the disk's files. Devices, pipes and sockets are left out. tell is called with the bytes that were written.
func (d Disk) Unpack(ctx context.Context, f session.Folder, home io.Reader, tell func(gpu.Bytes)) error {
	if d.Missing(f) {
		if err := d.Make(f); err != nil {
			return err
		}
	}
	root, err := d.root(f)
	if err != nil {
		return err
	}
	defer root.Close()
	u := &unpacking{disk: d, root: root, tell: tell}
	for archive := tar.NewReader(home); ; {
		header, err := archive.Next()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF):
			return u.closeDirectories()
		case err != nil:
			return session.WrapError(err, session.CodeFileFailed, "The home cannot be read.", "Try again.")
		}
		if err := u.entry(header, archive); err != nil {
			return diskError(path.Join(d.Path(f), header.Name), err)
		}
	}
}

// unpacking is one call of Unpack.
type unpacking struct {
	disk        Disk
	root        *os.Root
	tell        func(gpu.Bytes)
	written     gpu.Bytes
	directories []directory // whose mode may not let files be made, and whose time each of them changes
}

type directory struct {
	name     string
	mode     fs.FileMode
	modified time.Time
}

// homeName is the name of an entry in the home.
func homeName(name string) (string, error) {
	below, ok := strings.CutPrefix(path.Clean("/"+name), "/"+path.Base(session.Home))
	if !ok || below != "" && below[0] != '/' {
		return "", fmt.Errorf("folder: %q is not in the home", name)
	}
	return inside(below), nil
}

func (u *unpacking) entry(header *tar.Header, content io.Reader) error {
	name, err := homeName(header.Name)
	if err != nil {
		return err
	}
	mode := header.FileInfo().Mode().Perm()
	if header.Typeflag == tar.TypeDir {
		u.directories = append(u.directories, directory{name, mode, header.ModTime})
		if info, err := u.root.Lstat(name); err != nil || !info.IsDir() {
			err = errors.Join(u.root.RemoveAll(name), u.root.Mkdir(name, 0o700))
			return errors.Join(err, u.give(name))
		}
		return u.root.Chmod(name, 0o700)
	}
	var make func() error
	switch header.Typeflag {
	case tar.TypeReg:
		make = func() error { return u.file(name, content, mode, header.ModTime) }
	case tar.TypeSymlink:
		make = func() error { return u.root.Symlink(header.Linkname, name) }
	case tar.TypeLink:
		target, err := homeName(header.Linkname)
		if err != nil {
			return err
		}
		make = func() error { return u.root.Link(target, name) }
	default:
		return nil
	}
	if err := u.root.RemoveAll(name); err != nil {
		return err
	}
	return errors.Join(make(), u.give(name))
}

func (u *unpacking) file(name string, content io.Reader, mode fs.FileMode, modified time.Time) error {
	file, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	size, err := io.Copy(file, content)
	err = errors.Join(err, file.Chmod(mode), file.Close(), u.root.Chtimes(name, modified, modified))
	u.written += gpu.Bytes(size)
	u.tell(u.written)
	return err
}

func (u *unpacking) give(name string) error {
	if !u.disk.gives() {
		return nil
	}
	return u.root.Lchown(name, u.disk.UID, u.disk.GID)
}

// closeDirectories gives directories their modes and times, those inside of others first.
func (u *unpacking) closeDirectories() error {
	for _, d := range slices.Backward(u.directories) {
		err := errors.Join(u.root.Chmod(d.name, d.mode), u.root.Chtimes(d.name, d.modified, d.modified))
		if err != nil {
			return diskError(d.name, err)
		}
	}
	return nil
}
