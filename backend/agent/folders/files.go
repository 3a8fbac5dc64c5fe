package folders

import (
	"context"
	"io"
	"os"

	"slipway/backend/folder"
	"slipway/backend/session"
)

// Files implements the methods of a guest for the files of one folder. It keeps no file open between calls.
type Files struct {
	folders *Folders
	folder  session.Folder
}

// Files returns the files of a folder. A folder in the trash is read-only.
func (f *Folders) Files(id session.FolderID) (Files, error) {
	one, err := f.config.Records.Folder(id)
	if err == nil && one.State == session.FolderDeleting {
		err = session.NoFolder(string(id))
	}
	if err != nil {
		return Files{}, err
	}
	if one.State == session.FolderTrashed {
		one.Permission = session.FolderReadOnly // people may look what there is to restore
	}
	return Files{folders: f, folder: one}, nil
}

func inFolder[T any](f Files, call func(*folder.Tree) (T, error)) (T, error) {
	tree, err := f.folders.disk.Open(f.folder)
	if err != nil {
		var none T
		return none, err
	}
	defer tree.Close()
	return call(tree)
}

// changes is inFolder for a call that changes what the folder holds.
func changes[T any](f Files, call func(*folder.Tree) (T, error)) (T, error) {
	defer f.folders.touched(f.folder.ID)
	return inFolder(f, call)
}

func (f Files) ReadFile(ctx context.Context, req session.ReadRequest) (io.ReadCloser, error) {
	return inFolder(f, func(t *folder.Tree) (io.ReadCloser, error) {
		from, err := t.ReadFile(ctx, req)
		if err != nil {
			return nil, err
		}
		return &ending{ReadCloser: from, ctx: ctx}, nil
	})
}

// ending is a file whose reads fail once its context has ended.
type ending struct {
	io.ReadCloser
	ctx context.Context //nolint:containedctx // of the whole download
}

func (e *ending) Read(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.ReadCloser.Read(p)
}

func (e *ending) OnDisk() (*os.File, bool) {
	file, ok := e.ReadCloser.(*os.File)
	return file, ok
}

func done(err error) (struct{}, error) { return struct{}{}, err }
