package layers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"

	"slipway/backend/session"
	"slipway/gpu"
)

// Source is an agent that has an image.
type Source interface {
	SendImage(ctx context.Context, wish session.ImageWish) (io.ReadCloser, error)
}

// Target is an agent that receives one.
type Target interface {
	ExpectImage(ctx context.Context, parts session.ImageParts) (session.ImageArrival, error)
	ReceiveImage(ctx context.Context, id string) (io.ReadWriteCloser, error)
}

// Report follows a transfer. Neither function may be nil.
type Report struct {
	// Progress receives how much of the layers was stored, of those that were missing when the transfer began.
	Progress func(done, total gpu.Bytes)
	// Again is called after a failure. It waits and returns nil to retry, or the error that ends the transfer.
	Again func(ctx context.Context, err error) error
}

// Carry copies what the target lacks of an image from the source. It returns when nothing is missing, when ctx ends, or
// when Report.Again returns an error. Streams survive cuts. When one is lost, for example because an agent was
// restarted, Carry continues from what the target has stored.
func Carry(ctx context.Context, source Source, target Target, parts session.ImageParts, report Report) error {
	c := &carrier{source: source, target: target, parts: parts, report: report, sizes: map[string]gpu.Bytes{},
		kept: map[string]gpu.Bytes{}}
	for _, layer := range parts.Layers {
		c.sizes[layer.Digest] = layer.Size
	}
	for {
		arrival, err := target.ExpectImage(ctx, parts)
		if err == nil {
			if c.begin(arrival.Missing); len(arrival.Missing) == 0 {
				return nil
			}
			err = c.once(ctx, arrival.Missing)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			continue
		}
		if err := report.Again(ctx, err); err != nil {
			return err
		}
	}
}

// carrier is one transfer.
type carrier struct {
	source Source
	target Target
	parts  session.ImageParts
	report Report
	// The sizes of layers, and how much is stored of each that was missing. Used by one goroutine at a time.
	sizes, kept map[string]gpu.Bytes
}

// begin records what is missing, first and after each lost stream.
func (c *carrier) begin(missing []session.PartMark) {
	for part := range c.kept {
		c.kept[part] = c.sizes[part]
	}
	for _, mark := range missing {
		c.note(told{PartMark: mark})
	}
	c.progress()
}

// note records how much of a layer is stored.
func (c *carrier) note(mark told) {
	if mark.Part == session.ImageConfig {
		return
	}
	c.kept[mark.Part] = mark.Offset
	if mark.Whole || mark.Offset > c.sizes[mark.Part] {
		c.sizes[mark.Part] = mark.Offset
	}
}

func (c *carrier) progress() {
	var done, total gpu.Bytes
	for part, kept := range c.kept {
		done += kept
		total += c.sizes[part]
	}
	c.report.Progress(done, total)
}

// once sends what is missing until all of it was sent and the target has closed its stream, or something fails.
func (c *carrier) once(ctx context.Context, missing []session.PartMark) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.source.SendImage(ctx, session.ImageWish{ID: c.parts.ID, Parts: missing})
	if err != nil {
		return err
	}
	defer stream.Close()
	conn, err := c.target.ReceiveImage(ctx, c.parts.ID)
	if err != nil {
		return err
	}
	defer conn.Close()
	context.AfterFunc(ctx, func() { _ = errors.Join(conn.Close(), stream.Close()) }) // ends both directions
	answered := make(chan error, 1)
	go func() {
		answered <- c.listen(conn)
		cancel()
	}()
	if err = copyFrames(conn, NewReader(stream)); err != nil {
		cancel()
	}
	answer := <-answered
	if refused, ok := errors.AsType[*session.Error](answer); ok {
		return refused // explains the write that failed
	}
	if err == nil && errors.Is(answer, io.EOF) {
		return nil
	}
	return errors.Join(err, answer)
}

// copyFrames copies a stream. It fails if the end is missing.
func copyFrames(to io.Writer, from *Reader) error {
	for {
		frame, err := from.Next()
		if err == io.EOF { //nolint:errorlint // exactly the end of a stream, which Next returns unwrapped
			return Frame{Kind: kindLast}.write(to)
		}
		if err != nil {
			return err
		}
		if err := frame.write(to); err != nil {
			return err
		}
	}
}

const mostTold = 64 << 10

// readTold reads a line of a target's answer. The buffer bounds its length.
func readTold(lines *bufio.Reader) (line told, err error) {
	data, err := lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = session.NewError(session.CodeImageInvalid, "The other agent's answer is too long.",
			"Upgrade the older side.")
	}
	if err == nil {
		err = json.Unmarshal(data, &line)
	}
	return line, err
}

// listen reads the target's answer until the target closes its stream, which is io.EOF, or reports a failure.
func (c *carrier) listen(conn io.Reader) error {
	lines := bufio.NewReaderSize(conn, mostTold)
	for {
		line, err := readTold(lines)
		if err != nil {
			return err
		}
		if f := line.Failure; f != nil {
			return session.NewError(f.Code, f.Message, f.Hint)
		}
		c.note(line)
		c.progress()
	}
}
