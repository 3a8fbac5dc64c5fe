package agent

import (
	"context"
	"io"

	"slipway/backend/session"
)

// inPlace returns the guest that reaches the files of a place.
func (a *Agent) inPlace(ctx context.Context, place session.Place) (Guest, error) {
	if place.Session == "" {
		return nil, &session.Error{Code: "file_call_invalid", Message: "No place is named.", Hint: "Name a session."}
	}
	return a.guestOf(ctx, place.Session, place.Kernel)
}

// inGuest makes a call in a place.
func inGuest[T any](ctx context.Context, a *Agent, place session.Place, call func(Guest) (T, error)) (T, error) {
	g, err := a.inPlace(ctx, place)
	if err != nil {
		var none T
		return none, err
	}
	return call(g)
}

func done(err error) (struct{}, error) { return struct{}{}, err }

// ListFiles implements [session.Files].
func (a *Agent) ListFiles(ctx context.Context, place session.Place, req session.ListRequest) (session.FileListing, error) {
	return inGuest(ctx, a, place, func(g Guest) (session.FileListing, error) { return g.ListFiles(ctx, req) })
}

// StatFile implements [session.Files].
func (a *Agent) StatFile(ctx context.Context, place session.Place, path session.FilePath) (session.FileInfo, error) {
	return inGuest(ctx, a, place, func(g Guest) (session.FileInfo, error) { return g.StatFile(ctx, path) })
}

// ReadFile implements [session.Files].
func (a *Agent) ReadFile(ctx context.Context, place session.Place, req session.ReadRequest) (io.ReadCloser, error) {
	return inGuest(ctx, a, place, func(g Guest) (io.ReadCloser, error) { return g.ReadFile(ctx, req) })
}

// ChecksumFile implements [session.Files].
func (a *Agent) ChecksumFile(ctx context.Context, place session.Place, path session.FilePath) (string, error) {
	return inGuest(ctx, a, place, func(g Guest) (string, error) { return g.ChecksumFile(ctx, path) })
}

// UploadOffset implements [session.Files].
func (a *Agent) UploadOffset(ctx context.Context, place session.Place, up session.Upload) (int64, error) {
	return inGuest(ctx, a, place, func(g Guest) (int64, error) { return g.UploadOffset(ctx, up) })
}

// WriteUpload implements [session.Files].
func (a *Agent) WriteUpload(ctx context.Context, place session.Place, up session.Upload, from io.Reader) (int64, error) {
	return inGuest(ctx, a, place, func(g Guest) (int64, error) { return g.WriteUpload(ctx, up, from) })
}

// FinishUpload implements [session.Files].
func (a *Agent) FinishUpload(ctx context.Context, place session.Place, req session.FinishRequest) (session.FileInfo, error) {
	return inGuest(ctx, a, place, func(g Guest) (session.FileInfo, error) { return g.FinishUpload(ctx, req) })
}

// DropUpload implements [session.Files].
func (a *Agent) DropUpload(ctx context.Context, place session.Place, up session.Upload) error {
	_, err := inGuest(ctx, a, place, func(g Guest) (struct{}, error) { return done(g.DropUpload(ctx, up)) })
	return err
}

// MakeDirectory implements [session.Files].
func (a *Agent) MakeDirectory(ctx context.Context, place session.Place, path session.FilePath, parents bool) error {
	_, err := inGuest(ctx, a, place, func(g Guest) (struct{}, error) { return done(g.MakeDirectory(ctx, path, parents)) })
	return err
}

// MoveFile implements [session.Files].
func (a *Agent) MoveFile(ctx context.Context, place session.Place, from, to session.FilePath) error {
	_, err := inGuest(ctx, a, place, func(g Guest) (struct{}, error) { return done(g.MoveFile(ctx, from, to)) })
	return err
}

// RemoveFile implements [session.Files].
func (a *Agent) RemoveFile(ctx context.Context, place session.Place, path session.FilePath, recursive bool) error {
	_, err := inGuest(ctx, a, place, func(g Guest) (struct{}, error) { return done(g.RemoveFile(ctx, path, recursive)) })
	return err
}
