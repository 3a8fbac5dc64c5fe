package hub

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"time"

	"slipway/backend/pace"
	"slipway/backend/session"
)

const (
	uploadPiece   = 8 << 20 // bytes that are kept until the agent has them, to send them again after a cut
	uploadsAtOnce = 16      // bounds the memory of all uploads
	// transferPatience is how long a transfer waits for an agent that is not reached. The caller can resume it later.
	transferPatience  = 10 * time.Minute
	transferPause     = 100 * time.Millisecond // before the second attempt; doubles up to transferPauseMost
	transferPauseMost = 3 * time.Second
)

type transfers struct {
	*finder
	folders *folders
	uploads chan struct{} // one token for each upload in progress
	rates   rates
}

// Files accesses the files of one place. A transfer resumes after its connection to the agent was cut.
type Files struct {
	session.Files
	session.Uploads
	Place     session.Place
	transfers *transfers
	piece     int // size of the pieces of an upload; 0: the agent is local, so its connection is never lost
}

// FilesOf returns the files of a session's kernel, main1 if kernel is empty. It fails like [Hub.Find].
func (t *transfers) FilesOf(ctx context.Context, ref, kernel string) (*Files, error) {
	agent, id, err := t.Find(ctx, ref)
	if err != nil {
		return nil, err
	}
	place := session.Place{Session: id, Kernel: kernel}
	return &Files{Files: agent, Uploads: agent, Place: place, transfers: t, piece: uploadPiece}, nil
}

// FilesIn returns the files of a folder. It fails like [Hub.FindFolder].
func (t *transfers) FilesIn(ctx context.Context, ref, agent string) (*Files, session.Folder, error) {
	m, f, err := t.folders.findFolder(ctx, ref, agent)
	if err != nil {
		return nil, f, err
	}
	files := &Files{Files: m.Agent, Uploads: m.Agent, Place: session.Place{Folder: f.ID}, transfers: t,
		piece: uploadPiece}
	if m.Local {
		files.piece = 0
	}
	return files, f, nil
}

// awaitPlace waits until the agent of a place is reached, like [Hub.AwaitKeeper].
func (t *transfers) awaitPlace(ctx context.Context, place session.Place) error {
	_, err := t.awaitMember(ctx, true, func() *member {
		if place.Folder != "" {
			return t.folderHomes[place.Folder]
		}
		return t.homes[place.Session]
	})
	return err
}

// away reports whether an agent, or the session on it, was not reached.
func away(err error) bool { return session.CodeOf(err).Detail() == session.DetailUnavailable }

type outage struct {
	began time.Time
	pause time.Duration
}

// wait waits until the place may be reached again. It returns cause if waiting is useless.
func (f *Files) wait(ctx context.Context, o *outage, cause error) error {
	if !away(cause) {
		return cause
	}
	now := time.Now().Round(0) // includes the time that this computer sleeps
	if o.began.IsZero() {
		o.began, o.pause = now, transferPause
	}
	left := transferPatience - now.Sub(o.began)
	if left <= 0 {
		return cause
	}
	limited, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	pause := o.pause
	o.pause = min(2*o.pause, transferPauseMost)
	if err := pace.Wall().Pause(ctx, pause); err != nil {
		return err
	}
	if err := f.transfers.awaitPlace(limited, f.Place); err != nil {
		return cmp.Or(context.Cause(ctx), cause)
	}
	return nil
}

// Upload appends what it reads from from to an upload and returns how many bytes the agent has then.
func (f *Files) Upload(ctx context.Context, up session.Upload, from io.Reader) (int64, error) {
	select {
	case f.transfers.uploads <- struct{}{}:
		defer func() { <-f.transfers.uploads }()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	if f.piece == 0 {
		return f.WriteUpload(ctx, f.Place, up, from)
	}
	there := up.Offset
	buffer := make([]byte, f.piece)
	for first := true; ; first = false {
		n, err := io.ReadFull(from, buffer)
		if n > 0 || first {
			again, failed := f.sendPiece(ctx, up, buffer[:n], &there)
			if failed != nil {
				return there, failed
			}
			if again { // a connection that broke may still read it
				buffer = make([]byte, f.piece)
			}
			up.Offset += int64(n)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return there, nil
		}
		if err != nil {
			return there, err
		}
	}
}

// sendPiece sends a piece of an upload over as many connections as necessary. again: it took more than one.
func (f *Files) sendPiece(ctx context.Context, up session.Upload, piece []byte, there *int64) (again bool, err error) {
	var gone outage
	for {
		n, err := f.WriteUpload(ctx, f.Place, up, bytes.NewReader(piece))
		if err == nil {
			*there = n
			return again, nil
		}
		again = true
		for err != nil {
			if err := f.wait(ctx, &gone, err); err != nil {
				return again, err
			}
			n, err = f.UploadOffset(ctx, f.Place, up)
		}
		if n < up.Offset {
			return again, session.NewError(session.CodeFileConflict, "The received part of the upload is lost.",
				"Upload the file again.")
		}
		*there = n
		came := min(n-up.Offset, int64(len(piece)))
		if came > 0 {
			gone = outage{}
		}
		up.Offset, piece = up.Offset+came, piece[came:]
	}
}

// Read reads a part of a file. With a version, it fails with file_use_changed if the file changes while its agent is
// not reached. ctx bounds the whole download.
func (f *Files) Read(ctx context.Context, req session.ReadRequest) (io.ReadCloser, error) {
	r := &download{files: f, ctx: ctx, req: req}
	if err := r.open(); err != nil {
		return nil, err
	}
	return r, nil
}

type download struct {
	files *Files
	ctx   context.Context //nolint:containedctx // of the whole download
	req   session.ReadRequest
	from  io.ReadCloser
	end   error
}

func (r *download) open() error {
	var err error
	r.from, err = r.files.ReadFile(r.ctx, r.files.Place, r.req)
	return err
}

func (r *download) Read(p []byte) (int, error) {
	if r.end != nil {
		return 0, r.end
	}
	n, err := r.from.Read(p)
	r.req.Offset += int64(n)
	if r.req.Length > 0 {
		if r.req.Length -= int64(n); r.req.Length == 0 {
			r.end = io.EOF
			return n, nil
		}
	}
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	r.end = r.resume(err)
	return n, r.end
}

// OnDisk returns the file that is read if it is on this machine. It needs no resuming.
func (r *download) OnDisk() (*os.File, bool) {
	if content, ok := r.from.(interface{ OnDisk() (*os.File, bool) }); ok {
		return content.OnDisk()
	}
	return nil, false
}

// resume opens the rest of the file when its agent is reached again.
func (r *download) resume(cause error) error {
	r.from.Close()
	var gone outage
	for {
		if err := r.files.wait(r.ctx, &gone, cause); err != nil {
			return err
		}
		if cause = r.open(); cause == nil {
			return nil
		}
	}
}

func (r *download) Close() error { return r.from.Close() }
