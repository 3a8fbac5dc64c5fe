package link

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"slipway/backend/session"
	"slipway/tunnel/frame"
)

// FileOp is an operation on files, a method of [session.Files] or [session.Uploads].
type FileOp string

// FileCall is a request for files, with the fields for Op.
type FileCall struct {
	Op         FileOp                 `json:"op"`
	Path       session.FilePath       `json:"path,omitempty"`
	To         session.FilePath       `json:"to,omitempty"`
	All        bool                   `json:"all,omitempty"` // mkdir: those above too; remove: what is in it too
	List       *session.ListRequest   `json:"list,omitempty"`
	Read       *session.ReadRequest   `json:"read,omitempty"`
	Upload     *session.Upload        `json:"upload,omitempty"` // offset, write, drop
	Finish     *session.FinishRequest `json:"finish,omitempty"`
	Attributes *session.Attributes    `json:"attributes,omitempty"`
}

const maxPiece = 64 << 10

// PieceWriter writes content in pieces: a big-endian uint32 length and that many bytes. End writes the length 0.
type PieceWriter struct {
	w      io.Writer
	buffer []byte
}

// NewPieceWriter returns a writer of pieces.
func NewPieceWriter(w io.Writer) *PieceWriter {
	return &PieceWriter{w: w, buffer: make([]byte, frame.LengthSize+maxPiece)}
}

// ReadFrom writes everything from r, each read as a piece.
func (p *PieceWriter) ReadFrom(r io.Reader) (int64, error) {
	var total int64
	for {
		n, err := r.Read(p.buffer[frame.LengthSize:])
		if n > 0 {
			piece := p.buffer[:frame.LengthSize+n]
			frame.PutLength(piece)
			if _, err := p.w.Write(piece); err != nil {
				return total, &sendError{err}
			}
			total += int64(n)
		}
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// sendError is a failure of the receiver, not of the content.
type sendError struct{ err error }

func (e *sendError) Error() string { return e.err.Error() }
func (e *sendError) Unwrap() error { return e.err }

// End ends the content.
func (p *PieceWriter) End() error {
	if _, err := p.w.Write(make([]byte, frame.LengthSize)); err != nil {
		return &sendError{err}
	}
	return nil
}

// PieceReader reads content in pieces. It returns io.EOF at their end, and io.ErrUnexpectedEOF if that is missing.
type PieceReader struct {
	r    *bufio.Reader
	left int
	end  bool
}

// NewPieceReader returns a reader of pieces.
func NewPieceReader(r io.Reader) *PieceReader {
	return &PieceReader{r: bufio.NewReaderSize(r, maxPiece)}
}

// Rest reads what follows the pieces.
func (p *PieceReader) Rest() io.Reader { return p.r }

func (p *PieceReader) Read(b []byte) (int, error) {
	if p.end {
		return 0, io.EOF
	}
	if p.left == 0 {
		length, err := frame.ReadLength(p.r)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
		if length > maxPiece {
			return 0, fmt.Errorf("a piece of %d bytes is longer than %d", length, maxPiece)
		}
		if length == 0 {
			p.end = true
			return 0, io.EOF
		}
		p.left = int(length)
	}
	n, err := p.r.Read(b[:min(len(b), p.left)])
	p.left -= n
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// CallFiles makes a call over a connection for files of the guest itself. It sends content, if it is not nil, as that
// of an upload, and reads the last answer into value, which may be nil. The caller closes the connection, which ends
// whatever is still under way.
func CallFiles(conn net.Conn, call FileCall, content io.Reader, value any) error {
	if err := WriteMessage(conn, call); err != nil {
		return err
	}
	if content != nil {
		if err := readReply(conn, nil); err != nil {
			return err
		}
		go func() {
			pieces := NewPieceWriter(conn)
			if _, err := pieces.ReadFrom(content); err == nil {
				_ = pieces.End()
			}
		}()
	}
	return readReply(conn, value)
}

// ReadFile reads a file over such a connection, which closes with it.
func ReadFile(conn net.Conn, req session.ReadRequest) (io.ReadCloser, error) {
	if err := CallFiles(conn, FileCall{Op: FileRead, Read: &req}, nil, nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &content{stream: conn, pieces: NewPieceReader(conn)}, nil
}

func onFiles(call FileCall) Request { return Request{Op: OpFile, File: &call} }

// ReadFile reads a file. ctx applies to the opening only.
func (c *Client) ReadFile(ctx context.Context, req session.ReadRequest) (io.ReadCloser, error) {
	stream, err := c.open(ctx, onFiles(FileCall{Op: FileRead, Read: &req}), nil)
	if err != nil {
		return nil, err
	}
	return &content{stream: stream, pieces: NewPieceReader(stream)}, nil
}

// content is a file being read. A last answer follows its pieces.
type content struct {
	stream net.Conn
	pieces *PieceReader
}

func (f *content) Read(p []byte) (int, error) {
	n, err := f.pieces.Read(p)
	if err == nil || n > 0 {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		if err = readReply(f.pieces.Rest(), nil); err == nil {
			return 0, io.EOF
		}
	}
	return 0, callError(context.Background(), err)
}

func (f *content) Close() error { return f.stream.Close() }

// WriteUpload sends the content of from. If the guest answers early, it returns while a Read may be in progress.
func (c *Client) WriteUpload(ctx context.Context, up session.Upload, from io.Reader) (int64, error) {
	stream, err := c.open(ctx, onFiles(FileCall{Op: FileWrite, Upload: &up}), nil)
	if err != nil {
		return 0, err
	}
	defer stream.Close()
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
	broke := make(chan error, 1) // of from
	go func() {
		pieces := NewPieceWriter(stream)
		_, err := pieces.ReadFrom(from)
		if err == nil {
			err = pieces.End()
		}
		if _, sending := errors.AsType[*sendError](err); err != nil && !sending {
			broke <- err
			_ = stream.Close()
		}
	}()
	var there int64
	if err := readReply(stream, &there); err != nil {
		select {
		case own := <-broke:
			return 0, own
		default:
			return 0, callError(ctx, err)
		}
	}
	return there, nil
}
