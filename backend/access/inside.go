package access

import (
	"context"
	"fmt"
	"io"
	"net"

	"slipway/backend/session"
)

func (v *view) ListTerminals(ctx context.Context, id session.ID) ([]session.Terminal, error) {
	return asked(ctx, v, "ListTerminals", id,
		func() ([]session.Terminal, error) { return v.inner.ListTerminals(ctx, id) })
}

func (v *view) OpenTerminal(ctx context.Context, id session.ID, req session.TerminalRequest) (session.Terminal, error) {
	return did(ctx, v, "OpenTerminal", id, req.Kernel,
		func() (session.Terminal, error) { return v.inner.OpenTerminal(ctx, id, req) })
}

func (v *view) AttachTerminal(ctx context.Context, id session.ID,
	req session.AttachRequest) (io.ReadWriteCloser, error) {
	return did(ctx, v, "AttachTerminal", id, req.Terminal,
		func() (io.ReadWriteCloser, error) { return v.inner.AttachTerminal(ctx, id, req) })
}

func (v *view) CloseTerminal(ctx context.Context, id session.ID, terminal string) error {
	_, err := did(ctx, v, "CloseTerminal", id, terminal,
		func() (none, error) { return only(v.inner.CloseTerminal(ctx, id, terminal)) })
	return err
}

// Exec implements [session.Terminals]. What is run is not written down: it may
// hold secrets.
func (v *view) Exec(ctx context.Context, id session.ID, req session.ExecRequest) (io.ReadWriteCloser, error) {
	return did(ctx, v, "Exec", id, req.Kernel, func() (io.ReadWriteCloser, error) { return v.inner.Exec(ctx, id, req) })
}

func (v *view) SSHHost(ctx context.Context, id session.ID, kernel string) (session.SSHHost, error) {
	return asked(ctx, v, "SSHHost", id, func() (session.SSHHost, error) { return v.inner.SSHHost(ctx, id, kernel) })
}

func (v *view) DialSSH(ctx context.Context, id session.ID, req session.SSHRequest) (net.Conn, error) {
	return did(ctx, v, "DialSSH", id, req.Kernel, func() (net.Conn, error) { return v.inner.DialSSH(ctx, id, req) })
}

func (v *view) ListApps(ctx context.Context, id session.ID) ([]session.App, error) {
	return asked(ctx, v, "ListApps", id, func() ([]session.App, error) { return v.inner.ListApps(ctx, id) })
}

func (v *view) StartApp(ctx context.Context, id session.ID, req session.AppRequest) (session.App, error) {
	return did(ctx, v, "StartApp", id, req.App, func() (session.App, error) { return v.inner.StartApp(ctx, id, req) })
}

func (v *view) StopApp(ctx context.Context, id session.ID, app string) error {
	_, err := did(ctx, v, "StopApp", id, app, func() (none, error) { return only(v.inner.StopApp(ctx, id, app)) })
	return err
}

// DialPort implements [session.Apps]. A page makes many connections: the log
// tells of one a minute.
func (v *view) DialPort(ctx context.Context, id session.ID, port int) (net.Conn, error) {
	return did(ctx, v, "DialPort", id, fmt.Sprint(port),
		func() (net.Conn, error) { return v.inner.DialPort(ctx, id, port) })
}

func (v *view) ListFiles(ctx context.Context, place session.Place,
	req session.ListRequest) (session.FileListing, error) {
	return askedIn(ctx, v, "ListFiles", place,
		func() (session.FileListing, error) { return v.inner.ListFiles(ctx, place, req) })
}

func (v *view) StatFile(ctx context.Context, place session.Place, path session.FilePath) (session.FileInfo, error) {
	return askedIn(ctx, v, "StatFile", place,
		func() (session.FileInfo, error) { return v.inner.StatFile(ctx, place, path) })
}

func (v *view) ReadFile(ctx context.Context, place session.Place, req session.ReadRequest) (io.ReadCloser, error) {
	return didIn(ctx, v, "ReadFile", place, req.Path,
		func() (io.ReadCloser, error) { return v.inner.ReadFile(ctx, place, req) })
}

func (v *view) ChecksumFile(ctx context.Context, place session.Place, path session.FilePath) (string, error) {
	return askedIn(ctx, v, "ChecksumFile", place,
		func() (string, error) { return v.inner.ChecksumFile(ctx, place, path) })
}

func (v *view) UploadOffset(ctx context.Context, place session.Place, up session.Upload) (int64, error) {
	return askedIn(ctx, v, "UploadOffset", place, func() (int64, error) { return v.inner.UploadOffset(ctx, place, up) })
}

func (v *view) WriteUpload(ctx context.Context, place session.Place, up session.Upload, from io.Reader) (int64, error) {
	return didIn(ctx, v, "WriteUpload", place, up.Path,
		func() (int64, error) { return v.inner.WriteUpload(ctx, place, up, from) })
}

func (v *view) FinishUpload(ctx context.Context, place session.Place,
	req session.FinishRequest) (session.FileInfo, error) {
	return didIn(ctx, v, "FinishUpload", place, req.Path,
		func() (session.FileInfo, error) { return v.inner.FinishUpload(ctx, place, req) })
}

func (v *view) DropUpload(ctx context.Context, place session.Place, up session.Upload) error {
	_, err := didIn(ctx, v, "DropUpload", place, up.Path,
		func() (none, error) { return only(v.inner.DropUpload(ctx, place, up)) })
	return err
}

func (v *view) MakeDirectory(ctx context.Context, place session.Place, path session.FilePath, parents bool) error {
	_, err := didIn(ctx, v, "MakeDirectory", place, path,
		func() (none, error) { return only(v.inner.MakeDirectory(ctx, place, path, parents)) })
	return err
}

func (v *view) MoveFile(ctx context.Context, place session.Place, from, to session.FilePath) error {
	_, err := didIn(ctx, v, "MoveFile", place, from,
		func() (none, error) { return only(v.inner.MoveFile(ctx, place, from, to)) })
	return err
}

func (v *view) RemoveFile(ctx context.Context, place session.Place, path session.FilePath, recursive bool) error {
	_, err := didIn(ctx, v, "RemoveFile", place, path,
		func() (none, error) { return only(v.inner.RemoveFile(ctx, place, path, recursive)) })
	return err
}
