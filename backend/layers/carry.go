package layers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"

	"slipway/backend/session"
	"slipway/gpu"
)

// Source is the agent that has an image.
type Source interface {
	SendImage(ctx context.Context, wish session.ImageWish) (io.ReadCloser, error)
}

// Target is the agent that wants it.
type Target interface {
	ExpectImage(ctx context.Context, parts session.ImageParts) (session.ImageArrival, error)
	ReceiveImage(ctx context.Context, id string) (io.ReadWriteCloser, error)
}

// Report follows a transfer. Neither function may be nil.
type Report struct {
	// Progress is told how much content has arrived for good, of how much; both
	// count only what was missing when the transfer began.
	Progress func(done, total gpu.Bytes)
	// Again is asked after a failure: it returns nil when it is time for another
	// try, or the error that ends the transfer.
	Again func(ctx context.Context, err error) error
}

// outstandingMost is how much content is on its way without being told as kept.
// It bounds what [Carry] holds in memory.
const outstandingMost = 32 * gpu.MiB

// Carry brings what the target lacks of an image from the source to it, and
// returns when nothing is missing, when ctx ends, or when Report.Again says that
// there is no sense in going on. A connection that breaks costs only what was on
// its way: while the source's stream lives it is gone on with.
func Carry(ctx context.Context, source Source, target Target, parts session.ImageParts, report Report) error {
	c := &carrier{source: source, target: target, parts: parts, report: report, sizes: map[string]gpu.Bytes{},
		kept: map[string]gpu.Bytes{}}
	c.changed = sync.NewCond(&c.mu)
	for _, layer := range parts.Layers {
		c.sizes[layer.Digest] = layer.Size
	}
	defer c.close()
	for {
		arrival, err := target.ExpectImage(ctx, parts)
		if err == nil {
			if c.begin(arrival); len(arrival.Missing) == 0 {
				return nil
			}
			err = c.once(ctx, arrival)
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
	sizes  map[string]gpu.Bytes // of parts, as announced

	sending

	mu      sync.Mutex // guards what follows
	changed *sync.Cond
	window  []piece              // sent and not yet told as kept, in order
	content gpu.Bytes            // in window
	kept    map[string]gpu.Bytes // of each part that was missing
	broken  error                // the connection to the target is over
}

// sending is what the source sends. It belongs to the sending goroutine alone.
type sending struct {
	stream io.ReadCloser
	reader *Reader
	cancel context.CancelFunc
	part   string    // that the next frame belongs to
	at     gpu.Bytes // offset of the next frame
	ended  bool      // the source sent everything
}

// piece is a frame on its way.
type piece struct {
	frame      Frame
	part       string
	start, end gpu.Bytes
}

// begin takes in what is missing, the first time and after each cut.
func (c *carrier) begin(arrival session.ImageArrival) {
	c.mu.Lock()
	missing := map[string]bool{}
	for _, mark := range arrival.Missing {
		missing[mark.Part] = true
		c.kept[mark.Part] = mark.Offset
		c.sizes[mark.Part] = max(c.sizes[mark.Part], mark.Offset)
	}
	for part := range c.kept {
		if !missing[part] {
			c.kept[part] = c.sizes[part]
		}
	}
	c.mu.Unlock()
	c.tell()
}

func (c *carrier) tell() {
	c.mu.Lock()
	var done, total gpu.Bytes
	for part, kept := range c.kept {
		done += kept
		total += c.sizes[part]
	}
	c.mu.Unlock()
	c.report.Progress(done, total)
}

// once sends over one connection to the target until everything is kept or it breaks.
func (c *carrier) once(ctx context.Context, arrival session.ImageArrival) error {
	conn, err := c.target.ReceiveImage(ctx, c.parts.ID)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	first, err := c.position(ctx, arrival.Missing)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	c.mu.Lock()
	c.broken = nil
	c.mu.Unlock()
	var listener sync.WaitGroup
	listener.Go(func() { c.listen(conn) })
	err = c.send(conn, first)
	closed := conn.Close()
	listener.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	var refused *session.Error
	if errors.As(c.broken, &refused) {
		return refused // says more than the write that failed for it
	}
	if err == nil && len(c.window) > 0 {
		err = errors.Join(c.broken, closed)
	}
	return err
}

// position makes the source's stream go on where the target is, with what is
// still in the window where it can, and returns the mark that has to be sent
// first: nil where the next frame is the beginning of a part.
func (c *carrier) position(ctx context.Context, missing []session.PartMark) (*session.PartMark, error) {
	if c.stream != nil && !c.ended {
		if first, ok := c.rewind(missing); ok {
			return first, nil
		}
	}
	c.close()
	life, cancel := context.WithCancel(ctx)
	stream, err := c.source.SendImage(life, session.ImageWish{ID: c.parts.ID, Parts: missing})
	if err != nil {
		cancel()
		return nil, err
	}
	c.stream, c.reader, c.cancel, c.ended = stream, NewReader(stream), cancel, false
	c.part, c.at = "", 0
	return nil, nil
}

// rewind drops from the window what has arrived. It reports false where the
// target lacks something that is neither in the window nor still to come.
func (c *carrier) rewind(missing []session.PartMark) (*session.PartMark, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	marks := map[string]gpu.Bytes{}
	for _, mark := range missing {
		marks[mark.Part] = mark.Offset
	}
	for len(c.window) > 0 {
		p := c.window[0]
		kept, lacking := marks[p.part]
		switch {
		case lacking && p.start == kept && p.frame.Kind == kindPart:
			return nil, true
		case lacking && p.start == kept:
			return &session.PartMark{Part: p.part, Offset: kept}, true
		case lacking && p.start > kept:
			return nil, false
		}
		c.drop()
	}
	if c.part == "" {
		return nil, true
	}
	kept, lacking := marks[c.part]
	return &session.PartMark{Part: c.part, Offset: kept}, lacking && kept == c.at
}

// drop takes the oldest piece out of the window. c.mu is held.
func (c *carrier) drop() {
	c.content -= c.window[0].end - c.window[0].start
	c.window = c.window[1:]
}

// close gives the source's stream up.
func (c *carrier) close() {
	if c.stream == nil {
		return
	}
	c.cancel()
	_ = c.stream.Close() // it was only read
	c.stream = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.window, c.content = nil, 0
}

// send sends what is in the window again, after that what the source sends, and
// waits until all of it is kept.
func (c *carrier) send(conn io.Writer, first *session.PartMark) error {
	c.mu.Lock()
	again := slices.Clone(c.window)
	c.mu.Unlock()
	if first != nil {
		data, err := json.Marshal(first)
		if err != nil {
			return err
		}
		if err := (Frame{Kind: kindPart, Payload: data}).write(conn); err != nil {
			return err
		}
	}
	for _, p := range again {
		if err := p.frame.write(conn); err != nil {
			return err
		}
	}
	for !c.ended {
		frame, err := c.next()
		if err != nil {
			return err
		}
		if c.ended {
			break
		}
		if err := frame.write(conn); err != nil {
			return err
		}
	}
	if err := (Frame{Kind: kindLast}).write(conn); err != nil {
		return err
	}
	return c.settle()
}

// next reads a frame from the source into the window, once there is room.
func (c *carrier) next() (Frame, error) {
	c.mu.Lock()
	for c.content >= outstandingMost && c.broken == nil {
		c.changed.Wait()
	}
	broken := c.broken
	c.mu.Unlock()
	if broken != nil {
		return Frame{}, broken
	}
	frame, err := c.reader.Next()
	if err == io.EOF { //nolint:errorlint // exactly the end of a stream, which Next returns unwrapped
		c.ended = true
		return Frame{}, nil
	}
	if err != nil {
		c.close()
		return Frame{}, err
	}
	frame.Payload = slices.Clone(frame.Payload)
	if frame.Kind == kindPart {
		c.part, c.at = frame.Mark.Part, frame.Mark.Offset
	}
	p := piece{frame: frame, part: c.part, start: c.at, end: c.at + frame.Content}
	c.at = p.end
	if frame.Kind == kindEnd {
		c.part, c.at = "", 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.window = append(c.window, p)
	c.content += frame.Content
	c.sizes[p.part] = max(c.sizes[p.part], p.end)
	return frame, nil
}

// settle waits until everything sent is kept or the connection is over.
func (c *carrier) settle() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.window) > 0 && c.broken == nil {
		c.changed.Wait()
	}
	if len(c.window) > 0 {
		return c.broken
	}
	return nil
}

// mostTold bounds one line of what a target says, in bytes.
const mostTold = 64 << 10

// readTold reads a line of a target. One that is too long fails: the buffer of
// lines bounds it.
func readTold(lines *bufio.Reader) (line told, err error) {
	data, err := lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = &session.Error{Code: session.CodeImageInvalid, Message: "What the other agent answers is too long.",
			Hint: "Upgrade the older side."}
	}
	if err == nil {
		err = json.Unmarshal(data, &line)
	}
	return line, err
}

// listen takes in what the target says until the connection is over, for whoever
// writes to it too.
func (c *carrier) listen(conn io.ReadCloser) {
	lines := bufio.NewReaderSize(conn, mostTold)
	for {
		line, err := readTold(lines)
		if err == nil && line.Failure != nil {
			err = &session.Error{Code: line.Failure.Code, Message: line.Failure.Message, Hint: line.Failure.Hint}
		}
		if err != nil {
			c.mu.Lock()
			c.broken = cut(err)
			c.mu.Unlock()
			c.changed.Broadcast()
			_ = conn.Close() // what counts is why it is over
			return
		}
		c.acknowledge(line)
		c.changed.Broadcast()
		c.tell()
	}
}

// acknowledge drops from the window what is kept.
func (c *carrier) acknowledge(mark told) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.window) > 0 {
		p := c.window[0]
		if p.part != mark.Part || !mark.Whole && (p.end > mark.Offset || p.frame.Kind == kindEnd) {
			break
		}
		c.drop()
		c.kept[mark.Part] = max(c.kept[mark.Part], p.end)
		if p.frame.Kind == kindEnd {
			c.sizes[mark.Part] = p.end
			break
		}
	}
}
