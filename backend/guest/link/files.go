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

// FileOp is what is done to files; each is a method of [session.Files].
type FileOp string

// FileCall is a request for files. The field that belongs to Op is set.
type FileCall struct {
	Op     FileOp                 `json:"op"`
	Path   session.FilePath       `json:"path,omitempty"`
	To     session.FilePath       `json:"to,omitempty"`
	All    bool                   `json:"all,omitempty"` // mkdir: those above too; remove: what is in it too
	List   *session.ListRequest   `json:"list,omitempty"`
	Read   *session.ReadRequest   `json:"read,omitempty"`
	Upload *session.Upload        `json:"upload,omitempty"` // offset, write, drop
	Finish *session.FinishRequest `json:"finish,omitempty"`
}

// maxPiece is the most bytes of content in one piece.
const maxPiece = 64 << 10

// PieceWriter writes content in pieces: a big-endian uint32 length and that many bytes. A length of zero, written by
// End, is the end.
type PieceWriter struct {
	w      io.Writer
	buffer []byte
}

// NewPieceWriter returns a writer of pieces.
func NewPieceWriter(w io.Writer) *PieceWriter {
	return &PieceWriter{w: w, buffer: make([]byte, frame.LengthSize+maxPiece)}
}

// ReadFrom writes everything that r gives, each read as a piece.
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

// sendError says that it was the far side that took no more.
type sendError struct{ err error }

func (e *sendError) Error() string { return e.err.Error() }
func (e *sendError) Unwrap() error { return e.err }

// End writes the end.
func (p *PieceWriter) End() error {
	if _, err := p.w.Write(make([]byte, frame.LengthSize)); err != nil {
		return &sendError{err}
	}
	return nil
}

// PieceReader reads content in pieces. It gives io.EOF only at their end; where they stop before it, it gives
// io.ErrUnexpectedEOF.
type PieceReader struct {
	r    *bufio.Reader
	left int
	end  bool
}

// NewPieceReader returns a reader of pieces.
func NewPieceReader(r io.Reader) *PieceReader {
	return &PieceReader{r: bufio.NewReaderSize(r, maxPiece)}
}

// Rest reads what follows the end.
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

// onFiles is a request for files.
func onFiles(call FileCall) Request { return Request{Op: OpFile, File: &call} }

// ReadFile reads a file. ctx bounds only the opening.
func (c *Client) ReadFile(ctx context.Context, req session.ReadRequest) (io.ReadCloser, error) {
	stream, err := c.open(ctx, Request{Op: OpFile, File: &FileCall{Op: FileRead, Read: &req}}, nil)
	if err != nil {
		return nil, err
	}
	return &content{stream: stream, pieces: NewPieceReader(stream)}, nil
}

// content is a file being read. After its last piece comes how it ended.
type content struct {
	stream net.Conn
	pieces *PieceReader
}

func (f *content) Read(p []byte) (int, error) {
	n, err := f.pieces.Read(p)
	switch {
	case err == nil || n > 0:
		return n, nil
	case errors.Is(err, io.EOF):
		if err := readReply(f.pieces.Rest(), nil); err != nil {
			return 0, callError(context.Background(), err)
		}
		return 0, io.EOF
	}
	return 0, callError(context.Background(), err)
}

func (f *content) Close() error { return f.stream.Close() }

// WriteUpload sends what from gives. It returns as soon as the guest has answered, also where that is before the end of
// from, of which one Read may be under way then. ctx bounds all of it.
func (c *Client) WriteUpload(ctx context.Context, up session.Upload, from io.Reader) (int64, error) {
	stream, err := c.open(ctx, Request{Op: OpFile, File: &FileCall{Op: FileWrite, Upload: &up}}, nil)
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
		var sending *sendError
		if err != nil && !errors.As(err, &sending) {
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
