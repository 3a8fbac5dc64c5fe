package folders

import (
	"context"
	"io"
	"os"

	"slipway/backend/folder"
	"slipway/backend/session"
)

// Files reaches the files of one folder as a guest does those of a container.
// It holds no open file between calls.
type Files struct {
	folders *Folders
	folder  session.Folder
}

// Files returns the files of a folder. What is in the trash can only be read.
func (f *Folders) Files(id session.FolderID) (Files, error) {
	one, err := f.config.Records.Folder(id)
	if err == nil && one.State == session.FolderDeleting {
		err = session.NoFolder(string(id))
	}
	if err != nil {
		return Files{}, err
	}
	if one.State == session.FolderTrashed {
		one.Permission = session.FolderReadOnly // one may look what there is to restore
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

// changes makes a call that changes what the folder holds.
func changes[T any](f Files, call func(*folder.Tree) (T, error)) (T, error) {
	defer f.folders.touched(f.folder.ID)
	return inFolder(f, call)
}

func (f Files) ListFiles(_ context.Context, req session.ListRequest) (session.FileListing, error) {
	return inFolder(f, func(t *folder.Tree) (session.FileListing, error) { return t.List(req) })
}

func (f Files) StatFile(_ context.Context, path session.FilePath) (session.FileInfo, error) {
	return inFolder(f, func(t *folder.Tree) (session.FileInfo, error) { return t.Stat(path) })
}

func (f Files) ReadFile(ctx context.Context, req session.ReadRequest) (io.ReadCloser, error) {
	return inFolder(f, func(t *folder.Tree) (io.ReadCloser, error) {
		from, err := t.Tree.Open(req)
		if err != nil {
			return nil, err
		}
		return &ending{ReadCloser: from, ctx: ctx}, nil
	})
}

// ending is a file that is read until its reader's context ends.
type ending struct {
	io.ReadCloser
	ctx context.Context //nolint:containedctx // of the whole download, as its caller gave it
}

func (e *ending) Read(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.ReadCloser.Read(p)
}

// OnDisk returns the file itself, unless only a part of it is to be read.
func (e *ending) OnDisk() (*os.File, bool) {
	file, ok := e.ReadCloser.(*os.File)
	return file, ok
}

func (f Files) ChecksumFile(ctx context.Context, path session.FilePath) (string, error) {
	return inFolder(f, func(t *folder.Tree) (string, error) { return t.Checksum(ctx, path) })
}

func (f Files) UploadOffset(_ context.Context, up session.Upload) (int64, error) {
	return inFolder(f, func(t *folder.Tree) (int64, error) { return t.UploadOffset(up) })
}

func (f Files) WriteUpload(_ context.Context, up session.Upload, from io.Reader) (int64, error) {
	return changes(f, func(t *folder.Tree) (int64, error) { return t.Write(up, from) })
}

func (f Files) FinishUpload(ctx context.Context, req session.FinishRequest) (session.FileInfo, error) {
	return changes(f, func(t *folder.Tree) (session.FileInfo, error) { return t.Finish(ctx, req) })
}

func (f Files) DropUpload(_ context.Context, up session.Upload) error {
	_, err := changes(f, func(t *folder.Tree) (struct{}, error) { return done(t.Drop(up)) })
	return err
}

func (f Files) MakeDirectory(_ context.Context, path session.FilePath, parents bool) error {
	_, err := changes(f, func(t *folder.Tree) (struct{}, error) { return done(t.MakeDirectory(path, parents)) })
	return err
}

func (f Files) MoveFile(_ context.Context, from, to session.FilePath) error {
	_, err := changes(f, func(t *folder.Tree) (struct{}, error) { return done(t.Move(from, to)) })
	return err
}

func (f Files) RemoveFile(ctx context.Context, path session.FilePath, recursive bool) error {
	_, err := changes(f, func(t *folder.Tree) (struct{}, error) { return done(t.Remove(ctx, path, recursive)) })
	return err
}

func done(err error) (struct{}, error) { return struct{}{}, err }
