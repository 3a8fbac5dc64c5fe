package agentrpc

import (
	"bufio"
	"context"
	"errors"
	"io"

	"slipway/backend/session"
)

// logsArgs asks for a log. Offset is set where it goes on: how many bytes of the whole log are passed over, which Tail
// says otherwise.
type logsArgs struct {
	ID      session.ID         `json:"id"`
	Options session.LogOptions `json:"options"`
	Offset  *int64             `json:"offset,omitempty"`
}

func (a logsArgs) at(offset int64) logsArgs {
	a.Offset, a.Options.Tail = &offset, 0
	return a
}

// maxTail is the longest tail that can be resumed, in lines.
const maxTail = 100_000

// openLogs opens a log so that it can be resumed: the bytes of a log never move, so its place in the whole log is a
// lasting one. A log of which the engine has dropped the beginning meanwhile, after tens of megabytes, goes on later
// than it should.
func openLogs(ctx context.Context, a session.Agent, args logsArgs) (downloaded, error) {
	offset := int64(-1)
	switch {
	case args.Offset != nil:
		offset = *args.Offset
		if offset < 0 {
			return downloaded{}, session.NewError(session.CodeAgentInvalid, "The offset of a log cannot be negative.",
				"Read it from the beginning.")
		}
		args.Options.Tail = 0
	case args.Options.Tail <= 0:
		offset = 0
	case args.Options.Follow && args.Options.Tail <= maxTail:
		var err error
		if offset, err = tailOffset(ctx, a, args); err != nil {
			return downloaded{}, err
		}
		args.Options.Tail = 0
	}
	log, err := a.Logs(ctx, args.ID, args.Options)
	if err != nil {
		return downloaded{}, err
	}
	return downloaded{ReadCloser: &passingOver{ReadCloser: log, left: max(offset, 0)}, offset: offset}, nil
}

// tailOffset finds where the last lines of a log begin that will be followed.
func tailOffset(ctx context.Context, a session.Agent, args logsArgs) (int64, error) {
	whole := args.Options
	whole.Follow, whole.Tail = false, 0
	log, err := a.Logs(ctx, args.ID, whole)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	starts := make([]int64, args.Options.Tail) // of the newest lines, as a ring
	lines, at, begins := 0, int64(0), true
	for in := bufio.NewReaderSize(log, 64<<10); ; {
		piece, err := in.ReadSlice('\n')
		if len(piece) > 0 && begins {
			starts[lines%len(starts)] = at
			lines++
		}
		at += int64(len(piece))
		begins = err == nil
		switch {
		case errors.Is(err, io.EOF) && lines < len(starts):
			return 0, nil
		case errors.Is(err, io.EOF):
			return starts[lines%len(starts)], nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return 0, err
		}
	}
}

// passingOver leaves out the first bytes of a log.
type passingOver struct {
	io.ReadCloser
	left int64
}

func (p *passingOver) Read(b []byte) (int, error) {
	for p.left > 0 && len(b) > 0 {
		n, err := p.ReadCloser.Read(b[:min(int64(len(b)), p.left)])
		p.left -= int64(n)
		if err != nil {
			return 0, err
		}
	}
	return p.ReadCloser.Read(b)
}
