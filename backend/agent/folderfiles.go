package agent

import (
	"context"
	"io"
	"os"

	"slipway/backend/folder"
	"slipway/backend/session"
)

// folderFiles reaches the files of one folder as [Files] does those of a
// container. It holds no open file between calls.
type folderFiles struct {
	keeper *folders
	folder session.Folder
}

var _ Files = folderFiles{}

// filesOf returns the files of a folder that is not in the trash.
func (a *Agent) filesOf(id session.FolderID) (Files, error) {
	f, err := a.store.Folder(id)
	if err == nil && f.State == session.FolderDeleting {
		err = session.NoFolder(string(id))
	}
	if err != nil {
		return nil, err
	}
	if f.State == session.FolderTrashed {
		f.Permission = session.FolderReadOnly // one may look what there is to restore
	}
	return folderFiles{keeper: a.folders, folder: f}, nil
}

func inFolder[T any](f folderFiles, call func(*folder.Tree) (T, error)) (T, error) {
	tree, err := f.keeper.disk.Open(f.folder)
	if err != nil {
		var none T
		return none, err
	}
	defer tree.Close()
	return call(tree)
}

// changes makes a call that changes what the folder holds.
func changes[T any](f folderFiles, call func(*folder.Tree) (T, error)) (T, error) {
	defer f.keeper.touched(f.folder.ID)
	return inFolder(f, call)
}

func (f folderFiles) ListFiles(_ context.Context, req session.ListRequest) (session.FileListing, error) {
	return inFolder(f, func(t *folder.Tree) (session.FileListing, error) { return t.List(req) })
}

func (f folderFiles) StatFile(_ context.Context, path session.FilePath) (session.FileInfo, error) {
	return inFolder(f, func(t *folder.Tree) (session.FileInfo, error) { return t.Stat(path) })
}

func (f folderFiles) ReadFile(ctx context.Context, req session.ReadRequest) (io.ReadCloser, error) {
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

func (f folderFiles) ChecksumFile(ctx context.Context, path session.FilePath) (string, error) {
	return inFolder(f, func(t *folder.Tree) (string, error) { return t.Checksum(ctx, path) })
}

func (f folderFiles) UploadOffset(_ context.Context, up session.Upload) (int64, error) {
	return inFolder(f, func(t *folder.Tree) (int64, error) { return t.UploadOffset(up) })
}

func (f folderFiles) WriteUpload(_ context.Context, up session.Upload, from io.Reader) (int64, error) {
	return changes(f, func(t *folder.Tree) (int64, error) { return t.Write(up, from) })
}

func (f folderFiles) FinishUpload(ctx context.Context, req session.FinishRequest) (session.FileInfo, error) {
	return changes(f, func(t *folder.Tree) (session.FileInfo, error) { return t.Finish(ctx, req) })
}

func (f folderFiles) DropUpload(_ context.Context, up session.Upload) error {
	_, err := changes(f, func(t *folder.Tree) (struct{}, error) { return done(t.Drop(up)) })
	return err
}

func (f folderFiles) MakeDirectory(_ context.Context, path session.FilePath, parents bool) error {
	_, err := changes(f, func(t *folder.Tree) (struct{}, error) { return done(t.MakeDirectory(path, parents)) })
	return err
}

func (f folderFiles) MoveFile(_ context.Context, from, to session.FilePath) error {
	_, err := changes(f, func(t *folder.Tree) (struct{}, error) { return done(t.Move(from, to)) })
	return err
}

func (f folderFiles) RemoveFile(ctx context.Context, path session.FilePath, recursive bool) error {
	_, err := changes(f, func(t *folder.Tree) (struct{}, error) { return done(t.Remove(ctx, path, recursive)) })
	return err
}
