package agentrpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"slipway/backend/session"
	"slipway/tunnel"
)

// methodTake is an upload for tests: it takes bytes up to a limit.
func methodTake(name string, take func(ctx context.Context, limit int64, from io.Reader) (int64,
	error)) upload[int64, position] {
	return upload[int64, position]{spec{name, tunnel.Bulk, once, short},
		func(ctx context.Context, _ session.Agent, limit int64, from io.Reader) (position, error) {
			n, err := take(ctx, limit, from)
			return position(n), err
		}}
}

func TestAnUploadIsTakenWhole(t *testing.T) {
	take := methodTake("test.take", func(_ context.Context, limit int64, from io.Reader) (int64, error) {
		n, err := io.Copy(io.Discard, io.LimitReader(from, limit))
		if n == limit {
			return n, &session.Error{Code: "disk_write_no-space", Message: "It is full.", Hint: "Make room."}
		}
		return n, err
	})
	entered, left := make(chan struct{}), make(chan struct{})
	leave := methodTake("test.leave", func(ctx context.Context, _ int64, from io.Reader) (int64, error) {
		close(entered)
		defer close(left)
		n, err := io.Copy(io.Discard, from)
		if err == nil || ctx.Err() == nil {
			t.Errorf("it ended well after %d bytes", n)
		}
		return n, err
	})
	var l *links
	var cutOff func()
	outcome := make(chan error, 1)
	cut := methodTake("test.cut", func(_ context.Context, _ int64, from io.Reader) (int64, error) {
		_, err := io.ReadFull(from, make([]byte, 100_000))
		go cutOff()
		return 0, errors.Join(err, <-outcome)
	})
	h := handlerFor(&scripted{})
	for _, m := range []served{take, leave, cut} {
		h.methods[m.about().name] = m
	}
	l = newLinks(t, h)
	client := NewClient(ClientConfig{Name: func() string { return "lab" }, Opener: l})
	for _, size := range []int{0, 1, 100, 5_000_000} {
		n, err := take.send(t.Context(), client, 1<<40, bytes.NewReader(make([]byte, size)))
		if err != nil || n != position(size) {
			t.Errorf("of %d bytes it took %d, %v", size, n, err)
		}
	}
	t.Run("and may be refused before its end", func(t *testing.T) {
		if n, err := take.send(t.Context(), client, 1000, endless{}); session.CodeOf(err) != "disk_write_no-space" {
			t.Errorf("it took %d, %v", n, err)
		}
	})
	t.Run("what fails here is told here", func(t *testing.T) {
		own := errors.New("the disk is gone")
		if _, err := take.send(t.Context(), client, 1<<40,
			io.MultiReader(strings.NewReader("some"), failing{own})); !errors.Is(err, own) {
			t.Errorf("told %v", err)
		}
	})
	t.Run("a caller that leaves is noticed", func(t *testing.T) {
		ctx := newExpiring(t.Context())
		go func() { <-entered; ctx.expire() }()
		if _, err := leave.send(ctx, client, 0, endless{}); session.CodeOf(err) != "agent_call_unavailable" {
			t.Errorf("told %v", err)
		}
		await(t, left, "the far call goes on")
	})
	t.Run("also over a cut", func(t *testing.T) {
		cutOff = func() { l.cut(); l.join(); outcome <- nil }
		if _, err := cut.send(t.Context(), client, 0, endless{}); err != nil {
			t.Errorf("told %v", err)
		}
	})
	t.Run("an agent that forgot it leaves the outcome unknown", func(t *testing.T) {
		cutOff = func() { l.cut(); l.handler = handlerFor(&scripted{}); l.join() }
		if _, err := cut.send(t.Context(), client, 0, endless{}); session.CodeOf(err) != "agent_call_unavailable" {
			t.Errorf("told %v", err)
		}
		outcome <- nil
	})
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
