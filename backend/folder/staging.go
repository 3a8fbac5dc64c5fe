package folder

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"slipway/backend/session"
	"slipway/gpu"
)

// staged is the prefix of a folder's directory before the folder exists.
const staged = ".staged-"

// Stage makes an empty directory that only this account may enter, to be filled before Settle makes it the folder's.
func (d Disk) Stage(f session.Folder) (dir string, err error) {
	if err := os.MkdirAll(d.Dir, 0o700); err != nil {
		return "", diskError(d.Dir, err)
	}
	dir = filepath.Join(d.Dir, staged+string(f.ID))
	return dir, diskError(dir, os.Mkdir(dir, 0o700))
}

// Fit gives what was filled in to the owner of new files.
func (d Disk) Fit(f session.Folder) error {
	dir := filepath.Join(d.Dir, staged+string(f.ID))
	root, err := os.OpenRoot(dir)
	if err != nil {
		return diskError(dir, err)
	}
	defer root.Close()
	err = root.Chmod(".", 0o755)
	if err == nil && d.gives() {
		err = fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
			if err == nil {
				err = root.Lchown(name, d.UID, d.GID)
			}
			return err
		})
	}
	return diskError(dir, err)
}

// Settle makes what was staged the directory of a folder that exists now.
func (d Disk) Settle(f session.Folder) error {
	dir := d.Path(f)
	return diskError(dir, os.Rename(filepath.Join(d.Dir, staged+string(f.ID)), dir))
}

// Unstage removes what was staged for a folder.
func (d Disk) Unstage(ctx context.Context, f session.Folder) error {
	root, err := os.OpenRoot(d.Dir)
	if err != nil {
		return diskError(d.Dir, err)
	}
	defer root.Close()
	return diskError(d.Path(f), removeAll(ctx, root, staged+string(f.ID), func(int, gpu.Bytes) {}))
}

// Staged returns the folders for which something is staged.
func (d Disk) Staged() (ids []session.FolderID, err error) {
	entries, err := os.ReadDir(d.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		if id, is := strings.CutPrefix(entry.Name(), staged); is {
			ids = append(ids, session.FolderID(id))
		}
	}
	return ids, diskError(d.Dir, err)
}
