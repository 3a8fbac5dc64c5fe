package hubtest

import (
	"context"
	"io"

	"slipway/backend/session"
)

// noFiles are the files of an agent that was given none.
type noFiles struct{}

var _ session.Files = noFiles{}

func (noFiles) none(verb string) error {
	return &session.Error{Code: session.Code("file_" + verb + "_unavailable"), Message: "This agent has no files.",
		Hint: "Give it some."}
}

func (f noFiles) ListFiles(context.Context, session.Place, session.ListRequest) (session.FileListing, error) {
	return session.FileListing{}, f.none("list")
}

func (f noFiles) StatFile(context.Context, session.Place, session.FilePath) (session.FileInfo, error) {
	return session.FileInfo{}, f.none("read")
}

func (f noFiles) ReadFile(context.Context, session.Place, session.ReadRequest) (io.ReadCloser, error) {
	return nil, f.none("read")
}

func (f noFiles) ChecksumFile(context.Context, session.Place, session.FilePath) (string, error) {
	return "", f.none("read")
}

func (f noFiles) UploadOffset(context.Context, session.Place, session.Upload) (int64, error) {
	return 0, f.none("write")
}

func (f noFiles) WriteUpload(context.Context, session.Place, session.Upload, io.Reader) (int64, error) {
	return 0, f.none("write")
}

func (f noFiles) FinishUpload(context.Context, session.Place, session.FinishRequest) (session.FileInfo, error) {
	return session.FileInfo{}, f.none("finish")
}

func (f noFiles) DropUpload(context.Context, session.Place, session.Upload) error {
	return f.none("write")
}

func (f noFiles) MakeDirectory(context.Context, session.Place, session.FilePath, bool) error {
	return f.none("create")
}

func (f noFiles) MoveFile(context.Context, session.Place, session.FilePath, session.FilePath) error {
	return f.none("move")
}

func (f noFiles) RemoveFile(context.Context, session.Place, session.FilePath, bool) error {
	return f.none("remove")
}
