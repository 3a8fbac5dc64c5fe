package agent

import (
	"context"
	"io"

	"slipway/backend/session"
)

// inPlace returns what reaches the files of a place.
func (a *Agent) inPlace(ctx context.Context, place session.Place) (Files, error) {
	switch {
	case (place.Session == "") == (place.Folder == ""):
		return nil, &session.Error{Code: "file_call_invalid", Message: "One place is to be named.",
			Hint: "Name a session or a folder."}
	case place.Folder != "":
		return a.folders.Files(place.Folder)
	}
	return a.guestOf(ctx, place.Session, place.Kernel)
}

// at makes a call in a place.
func at[T any](ctx context.Context, a *Agent, place session.Place, call func(Files) (T, error)) (T, error) {
	f, err := a.inPlace(ctx, place)
	if err != nil {
		var none T
		return none, err
	}
	return call(f)
}

func done(err error) (struct{}, error) { return struct{}{}, err }

func (a *Agent) ListFiles(ctx context.Context, place session.Place,
	req session.ListRequest) (session.FileListing, error) {
	return at(ctx, a, place, func(f Files) (session.FileListing, error) { return f.ListFiles(ctx, req) })
}

func (a *Agent) StatFile(ctx context.Context, place session.Place, path session.FilePath) (session.FileInfo, error) {
	return at(ctx, a, place, func(f Files) (session.FileInfo, error) { return f.StatFile(ctx, path) })
}

func (a *Agent) ReadFile(ctx context.Context, place session.Place, req session.ReadRequest) (io.ReadCloser, error) {
	content, err := at(ctx, a, place, func(f Files) (io.ReadCloser, error) { return f.ReadFile(ctx, req) })
	if err != nil {
		return nil, err
	}
	return a.reclaim.File(place.Session, content), nil
}

func (a *Agent) ChecksumFile(ctx context.Context, place session.Place, path session.FilePath) (string, error) {
	return at(ctx, a, place, func(f Files) (string, error) { return f.ChecksumFile(ctx, path) })
}

func (a *Agent) UploadOffset(ctx context.Context, place session.Place, up session.Upload) (int64, error) {
	return at(ctx, a, place, func(f Files) (int64, error) { return f.UploadOffset(ctx, up) })
}

func (a *Agent) WriteUpload(ctx context.Context, place session.Place, up session.Upload,
	from io.Reader) (int64, error) {
	watched := a.reclaim.File(place.Session, io.NopCloser(from))
	return at(ctx, a, place, func(f Files) (int64, error) { return f.WriteUpload(ctx, up, watched) })
}

func (a *Agent) FinishUpload(ctx context.Context, place session.Place,
	req session.FinishRequest) (session.FileInfo, error) {
	return at(ctx, a, place, func(f Files) (session.FileInfo, error) { return f.FinishUpload(ctx, req) })
}

func (a *Agent) DropUpload(ctx context.Context, place session.Place, up session.Upload) error {
	_, err := at(ctx, a, place, func(f Files) (struct{}, error) { return done(f.DropUpload(ctx, up)) })
	return err
}

func (a *Agent) MakeDirectory(ctx context.Context, place session.Place, path session.FilePath, parents bool) error {
	_, err := at(ctx, a, place, func(f Files) (struct{}, error) { return done(f.MakeDirectory(ctx, path, parents)) })
	return err
}

func (a *Agent) MoveFile(ctx context.Context, place session.Place, from, to session.FilePath) error {
	_, err := at(ctx, a, place, func(f Files) (struct{}, error) { return done(f.MoveFile(ctx, from, to)) })
	return err
}

func (a *Agent) RemoveFile(ctx context.Context, place session.Place, path session.FilePath, recursive bool) error {
	_, err := at(ctx, a, place, func(f Files) (struct{}, error) { return done(f.RemoveFile(ctx, path, recursive)) })
	return err
}
