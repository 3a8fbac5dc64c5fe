package guests

import (
	"context"
	"io"

	"slipway/backend/session"
)

// FilesConfig says where files are.
type FilesConfig struct {
	Guests *Guests
	Folder func(id session.FolderID) (Tree, error)
	// Use counts reads and writes of a session's files as use of it.
	Use interface {
		File(id session.ID, content io.ReadCloser) io.ReadCloser
	}
}

// Files are the files of a machine's sessions and folders.
type Files struct{ config FilesConfig }

// NewFiles returns the files of a machine.
func NewFiles(config FilesConfig) *Files { return &Files{config: config} }

func (f *Files) in(ctx context.Context, place session.Place) (Tree, error) {
	switch {
	case (place.Session == "") == (place.Folder == ""):
		return nil, session.NewError(session.CodeFileInvalid, "One place is to be named.",
			"Name a session or a folder.")
	case place.Folder != "":
		return f.config.Folder(place.Folder)
	}
	return f.config.Guests.Guest(ctx, place.Session, place.Kernel)
}

func at[T any](ctx context.Context, f *Files, place session.Place, call func(Tree) (T, error)) (T, error) {
	t, err := f.in(ctx, place)
	if err != nil {
		var none T
		return none, err
	}
	return call(t)
}

func done(err error) (struct{}, error) { return struct{}{}, err }

func (f *Files) ReadFile(ctx context.Context, place session.Place, req session.ReadRequest) (io.ReadCloser, error) {
	content, err := at(ctx, f, place, func(t Tree) (io.ReadCloser, error) { return t.ReadFile(ctx, req) })
	if err != nil {
		return nil, err
	}
	return f.config.Use.File(place.Session, content), nil
}

func (f *Files) WriteUpload(ctx context.Context, place session.Place, up session.Upload,
	from io.Reader) (int64, error) {
	watched := f.config.Use.File(place.Session, io.NopCloser(from))
	return at(ctx, f, place, func(t Tree) (int64, error) { return t.WriteUpload(ctx, up, watched) })
}
