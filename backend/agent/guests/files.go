package guests

import (
	"context"
	"io"

	"slipway/backend/session"
)

// Tree is what is asked of the files of one place; see [session.Files].
type Tree interface {
	Reader
	Uploads
	Changer
}

// Reader shows files.
type Reader interface {
	ListFiles(ctx context.Context, req session.ListRequest) (session.FileListing, error)
	StatFile(ctx context.Context, path session.FilePath) (session.FileInfo, error)
	ReadFile(ctx context.Context, req session.ReadRequest) (io.ReadCloser, error)
	ChecksumFile(ctx context.Context, path session.FilePath) (string, error)
}

// Uploads takes files.
type Uploads interface {
	UploadOffset(ctx context.Context, up session.Upload) (int64, error)
	WriteUpload(ctx context.Context, up session.Upload, from io.Reader) (int64, error)
	FinishUpload(ctx context.Context, req session.FinishRequest) (session.FileInfo, error)
	DropUpload(ctx context.Context, up session.Upload) error
}

// Changer moves and removes files.
type Changer interface {
	MakeDirectory(ctx context.Context, path session.FilePath, parents bool) error
	MoveFile(ctx context.Context, from, to session.FilePath) error
	RemoveFile(ctx context.Context, path session.FilePath, recursive bool) error
}

// FilesConfig says where files are.
type FilesConfig struct {
	Guests *Guests
	// Folder returns the files of a data folder.
	Folder func(id session.FolderID) (Tree, error)
	// Use notes what is read and written of a session's files.
	Use interface {
		File(id session.ID, content io.ReadCloser) io.ReadCloser
	}
}

// Files are the files of a machine's sessions and folders.
type Files struct{ config FilesConfig }

// NewFiles returns the files of a machine.
func NewFiles(config FilesConfig) *Files { return &Files{config: config} }

// in returns what reaches the files of a place.
func (f *Files) in(ctx context.Context, place session.Place) (Tree, error) {
	switch {
	case (place.Session == "") == (place.Folder == ""):
		return nil, &session.Error{Code: "file_call_invalid", Message: "One place is to be named.",
			Hint: "Name a session or a folder."}
	case place.Folder != "":
		return f.config.Folder(place.Folder)
	}
	return f.config.Guests.Guest(ctx, place.Session, place.Kernel)
}

// at makes a call in a place.
func at[T any](ctx context.Context, f *Files, place session.Place, call func(Tree) (T, error)) (T, error) {
	t, err := f.in(ctx, place)
	if err != nil {
		var none T
		return none, err
	}
	return call(t)
}

func done(err error) (struct{}, error) { return struct{}{}, err }

func (f *Files) ListFiles(ctx context.Context, place session.Place,
	req session.ListRequest) (session.FileListing, error) {
	return at(ctx, f, place, func(t Tree) (session.FileListing, error) { return t.ListFiles(ctx, req) })
}

func (f *Files) StatFile(ctx context.Context, place session.Place, path session.FilePath) (session.FileInfo, error) {
	return at(ctx, f, place, func(t Tree) (session.FileInfo, error) { return t.StatFile(ctx, path) })
}

func (f *Files) ReadFile(ctx context.Context, place session.Place, req session.ReadRequest) (io.ReadCloser, error) {
	content, err := at(ctx, f, place, func(t Tree) (io.ReadCloser, error) { return t.ReadFile(ctx, req) })
	if err != nil {
		return nil, err
	}
	return f.config.Use.File(place.Session, content), nil
}

func (f *Files) ChecksumFile(ctx context.Context, place session.Place, path session.FilePath) (string, error) {
	return at(ctx, f, place, func(t Tree) (string, error) { return t.ChecksumFile(ctx, path) })
}

func (f *Files) UploadOffset(ctx context.Context, place session.Place, up session.Upload) (int64, error) {
	return at(ctx, f, place, func(t Tree) (int64, error) { return t.UploadOffset(ctx, up) })
}

func (f *Files) WriteUpload(ctx context.Context, place session.Place, up session.Upload,
	from io.Reader) (int64, error) {
	watched := f.config.Use.File(place.Session, io.NopCloser(from))
	return at(ctx, f, place, func(t Tree) (int64, error) { return t.WriteUpload(ctx, up, watched) })
}

func (f *Files) FinishUpload(ctx context.Context, place session.Place,
	req session.FinishRequest) (session.FileInfo, error) {
	return at(ctx, f, place, func(t Tree) (session.FileInfo, error) { return t.FinishUpload(ctx, req) })
}

func (f *Files) DropUpload(ctx context.Context, place session.Place, up session.Upload) error {
	_, err := at(ctx, f, place, func(t Tree) (struct{}, error) { return done(t.DropUpload(ctx, up)) })
	return err
}

func (f *Files) MakeDirectory(ctx context.Context, place session.Place, path session.FilePath, parents bool) error {
	_, err := at(ctx, f, place, func(t Tree) (struct{}, error) { return done(t.MakeDirectory(ctx, path, parents)) })
	return err
}

func (f *Files) MoveFile(ctx context.Context, place session.Place, from, to session.FilePath) error {
	_, err := at(ctx, f, place, func(t Tree) (struct{}, error) { return done(t.MoveFile(ctx, from, to)) })
	return err
}

func (f *Files) RemoveFile(ctx context.Context, place session.Place, path session.FilePath, recursive bool) error {
	_, err := at(ctx, f, place, func(t Tree) (struct{}, error) { return done(t.RemoveFile(ctx, path, recursive)) })
	return err
}
