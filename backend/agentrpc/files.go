package agentrpc

import (
	"context"
	"io"
	"time"

	"slipway/backend/session"
	"slipway/tunnel"
)

// checking is how long the content of one file may take to be read and made
// durable.
const checking = 30 * time.Minute

// The arguments of the methods.
type (
	listFilesArgs struct {
		Place session.Place       `json:"place"`
		List  session.ListRequest `json:"list"`
	}
	fileArgs struct {
		Place session.Place    `json:"place"`
		Path  session.FilePath `json:"path"`
		To    session.FilePath `json:"to,omitempty"`  // of a move
		All   bool             `json:"all,omitempty"` // with those above, or with what is in it
	}
	readFileArgs struct {
		Place session.Place       `json:"place"`
		Read  session.ReadRequest `json:"read"`
	}
	uploadArgs struct {
		Place  session.Place  `json:"place"`
		Upload session.Upload `json:"upload"`
	}
	finishArgs struct {
		Place  session.Place         `json:"place"`
		Finish session.FinishRequest `json:"finish"`
	}
)

// at asks for what follows the first bytes.
func (r readFileArgs) at(offset int64) readFileArgs {
	if r.Read.Length > 0 {
		r.Read.Length -= offset - r.Read.Offset
	}
	r.Read.Offset = offset
	return r
}

// openFile opens what readFileArgs ask for.
func openFile(ctx context.Context, a session.Agent, r readFileArgs) (downloaded, error) {
	from, err := a.ReadFile(ctx, r.Place, r.Read)
	return downloaded{from, r.Read.Offset}, err
}

// The methods of [session.Files].
var (
	methodListFiles = plain[listFilesArgs, session.FileListing]{spec{"file.list", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, r listFilesArgs) (session.FileListing, error) {
			return a.ListFiles(ctx, r.Place, r.List)
		}}
	methodStatFile = plain[fileArgs, session.FileInfo]{spec{"file.stat", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, r fileArgs) (session.FileInfo, error) {
			return a.StatFile(ctx, r.Place, r.Path)
		}}
	methodReadFile = download[readFileArgs]{spec{"file.read", "read", tunnel.Bulk, read, short}, openFile,
		readFileArgs.at}
	methodChecksumFile = plain[fileArgs, checksum]{spec{"file.checksum", "read", tunnel.Control, read, checking},
		func(ctx context.Context, a session.Agent, r fileArgs) (checksum, error) {
			sum, err := a.ChecksumFile(ctx, r.Place, r.Path)
			return checksum(sum), err
		}}
	methodUploadOffset = plain[uploadArgs, position]{spec{"file.offset", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, r uploadArgs) (position, error) {
			at, err := a.UploadOffset(ctx, r.Place, r.Upload)
			return position(at), err
		}}
	methodWriteUpload = upload[uploadArgs, position]{spec{"file.write", "write", tunnel.Bulk, once, short},
		func(ctx context.Context, a session.Agent, r uploadArgs, from io.Reader) (position, error) {
			at, err := a.WriteUpload(ctx, r.Place, r.Upload, from)
			return position(at), err
		}}
	methodFinishUpload = plain[finishArgs, session.FileInfo]{spec{"file.finish", "write", tunnel.Control, again,
		checking},
		func(ctx context.Context, a session.Agent, r finishArgs) (session.FileInfo, error) {
			return a.FinishUpload(ctx, r.Place, r.Finish)
		}}
	methodDropUpload = plain[uploadArgs, none]{spec{"file.drop", "write", tunnel.Control, again, short},
		func(ctx context.Context, a session.Agent, r uploadArgs) (none, error) {
			return none{}, a.DropUpload(ctx, r.Place, r.Upload)
		}}
	methodMakeDirectory = plain[fileArgs, none]{spec{"file.mkdir", "create", tunnel.Control, once, short},
		func(ctx context.Context, a session.Agent, r fileArgs) (none, error) {
			return none{}, a.MakeDirectory(ctx, r.Place, r.Path, r.All)
		}}
	methodMoveFile = plain[fileArgs, none]{spec{"file.move", "move", tunnel.Control, once, short},
		func(ctx context.Context, a session.Agent, r fileArgs) (none, error) {
			return none{}, a.MoveFile(ctx, r.Place, r.Path, r.To)
		}}
	methodRemoveFile = plain[fileArgs, none]{spec{"file.remove", "remove", tunnel.Control, once, long},
		func(ctx context.Context, a session.Agent, r fileArgs) (none, error) {
			return none{}, a.RemoveFile(ctx, r.Place, r.Path, r.All)
		}}
)

func (c *Client) ListFiles(ctx context.Context, place session.Place,
	req session.ListRequest) (session.FileListing, error) {
	return methodListFiles.call(ctx, c, listFilesArgs{place, req}, nextPart(req))
}

func (c *Client) StatFile(ctx context.Context, place session.Place, path session.FilePath) (session.FileInfo, error) {
	return methodStatFile.call(ctx, c, fileArgs{Place: place, Path: path})
}

// ReadFile implements [session.Files]. It goes on after a cut where the client
// can wait for its connection; a caller that names a version is sure that it
// goes on in the same content. ctx bounds all of it.
func (c *Client) ReadFile(ctx context.Context, place session.Place, req session.ReadRequest) (io.ReadCloser, error) {
	from, err := methodReadFile.open(ctx, c, readFileArgs{place, req})
	if err != nil || req.Length == 0 {
		return from, err
	}
	return limited{io.LimitReader(from, req.Length), from}, nil
}

// limited ends where enough has come, so that a part that is complete is not
// resumed.
type limited struct {
	io.Reader
	io.Closer
}

func (c *Client) ChecksumFile(ctx context.Context, place session.Place, path session.FilePath) (string, error) {
	sum, err := methodChecksumFile.call(ctx, c, fileArgs{Place: place, Path: path})
	return string(sum), err
}

func (c *Client) UploadOffset(ctx context.Context, place session.Place, up session.Upload) (int64, error) {
	at, err := methodUploadOffset.call(ctx, c, uploadArgs{place, up})
	return int64(at), err
}

// WriteUpload implements [session.Files]. It fails with agent_write_unavailable
// where it is cut; UploadOffset tells then what has come.
func (c *Client) WriteUpload(ctx context.Context, place session.Place, up session.Upload,
	from io.Reader) (int64, error) {
	at, err := methodWriteUpload.send(ctx, c, uploadArgs{place, up}, from)
	return int64(at), err
}

func (c *Client) FinishUpload(ctx context.Context, place session.Place,
	req session.FinishRequest) (session.FileInfo, error) {
	return methodFinishUpload.call(ctx, c, finishArgs{place, req})
}

func (c *Client) DropUpload(ctx context.Context, place session.Place, up session.Upload) error {
	_, err := methodDropUpload.call(ctx, c, uploadArgs{place, up})
	return err
}

func (c *Client) MakeDirectory(ctx context.Context, place session.Place, path session.FilePath, parents bool) error {
	_, err := methodMakeDirectory.call(ctx, c, fileArgs{Place: place, Path: path, All: parents})
	return err
}

func (c *Client) MoveFile(ctx context.Context, place session.Place, from, to session.FilePath) error {
	_, err := methodMoveFile.call(ctx, c, fileArgs{Place: place, Path: from, To: to})
	return err
}

func (c *Client) RemoveFile(ctx context.Context, place session.Place, path session.FilePath, recursive bool) error {
	_, err := methodRemoveFile.call(ctx, c, fileArgs{Place: place, Path: path, All: recursive})
	return err
}
