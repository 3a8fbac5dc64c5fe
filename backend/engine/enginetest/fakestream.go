package enginetest

import (
	"context"
	"io"
	"strings"
	"time"

	"slipway/backend/engine"
	"slipway/backend/session"
)

func (f *Fake) Watch(ctx context.Context, fn func(engine.State)) error {
	if err := f.enter(ctx, CallWatch); err != nil {
		return err
	}
	changes := engine.NewChanges()
	f.mu.Lock()
	f.watchers[changes] = struct{}{}
	close(f.changed)
	f.changed = make(chan struct{})
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.watchers, changes)
		f.mu.Unlock()
	}()
	if err := changes.Follow(ctx, fn); err != nil {
		return err
	}
	return Unavailable
}

// AwaitWatch waits until n calls of Watch are listening.
func (f *Fake) AwaitWatch(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		ready, wait := len(f.watchers) >= n, f.changed
		f.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

type logLine struct {
	at   time.Time
	text string
}

type fakeLog []logLine

// logReader reads the log of one container and, when it follows, waits for more
// until the container ends.
type logReader struct {
	io.Reader
	cancel context.CancelFunc
}

func (r logReader) Close() error {
	r.cancel()
	return nil
}

func (f *Fake) readLog(ctx context.Context, id string, opts session.LogOptions) io.ReadCloser {
	ctx, cancel := context.WithCancel(ctx)
	reader, writer := io.Pipe()
	go func() {
		writer.CloseWithError(f.copyLog(ctx, id, opts, writer)) //nolint:errcheck // always nil
	}()
	stop := context.AfterFunc(ctx,
		func() { reader.CloseWithError(context.Cause(ctx)) }) //nolint:errcheck // always nil
	return logReader{Reader: reader,
		cancel: func() { stop(); cancel(); reader.Close() }} //nolint:errcheck // always nil
}

func (f *Fake) copyLog(ctx context.Context, id string, opts session.LogOptions, w io.Writer) error {
	next := -1
	for {
		f.mu.Lock()
		var lines fakeLog
		c, ok := f.containers[id]
		if ok {
			if next < 0 {
				next = 0
				if opts.Tail > 0 {
					next = max(0, len(c.log)-opts.Tail)
				}
			}
			lines, next = append(lines, c.log[next:]...), len(c.log)
		}
		more, wait := ok && c.state.Running && opts.Follow, f.changed
		f.mu.Unlock()
		for _, line := range lines {
			text := line.text + "\n"
			if opts.Timestamps {
				text = line.at.UTC().Format(time.RFC3339Nano) + " " + text
			}
			if _, err := io.Copy(w, strings.NewReader(text)); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
