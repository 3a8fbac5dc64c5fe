package agentrpc

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/tunnel"
)

// clientOf is a client that comes as a device of its own.
func clientOf(t *testing.T, h *Handler, key string) (*Client, Opener) {
	t.Helper()
	near, far := connect(t)
	opener := serveAs(t, h, near, far, tunnel.Peer{Transport: "tls", Key: key})
	return NewClient(ClientConfig{Name: func() string { return "lab" }, Opener: opener}), opener
}

func TestOnePeerKeepsNoOtherFromCalling(t *testing.T) {
	goOn, entered := make(chan struct{}), make(chan struct{}, 2*maxChanges)
	asked := 0 // bytes of the name in the last call that was let in
	agent := &scripted{
		open: func(ctx context.Context, _ session.ID, _ session.TerminalRequest) (session.Terminal, error) {
			entered <- struct{}{}
			select {
			case <-goOn:
			case <-ctx.Done():
			}
			return session.Terminal{ID: "t"}, ctx.Err()
		},
		rename: func(_ context.Context, id session.ID, name string) (session.Session, error) {
			asked = len(name)
			return told(id), nil
		},
	}
	h := handlerFor(agent)
	eve, _ := clientOf(t, h, "eve")
	ann, _ := clientOf(t, h, "ann")
	var calling sync.WaitGroup
	const atOnce = 64 // by one of her connections
	for i := range maxChanges {
		if i%atOnce == 0 {
			eve, _ = clientOf(t, h, "eve")
		}
		by := eve
		calling.Go(func() { _, _ = by.OpenTerminal(t.Context(), "a", session.TerminalRequest{}) })
	}
	eve, opener := clientOf(t, h, "eve")
	for range maxChanges {
		<-entered
	}
	if _, err := eve.Rename(t.Context(), "aaaaaaaaaaaa", "x"); session.CodeOf(err) != session.CodeAgentBusy {
		t.Errorf("one more call of the same: %v", err)
	}
	if _, err := ann.Rename(t.Context(), "aaaaaaaaaaaa", "x"); err != nil {
		t.Errorf("another's call: %v", err)
	}
	close(goOn)
	calling.Wait()
	t.Run("nor from long requests", func(t *testing.T) {
		for range 16 { // that never say what they are for
			stream, err := opener.Open(t.Context(), tunnel.Control)
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			var c codec
			frame, err := c.encode(kindRequest, request{Version: Version, Method: "session.rename",
				Args: []byte(`"` + strings.Repeat("x", smallRequest) + `"`)})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Write(frame[:len(frame)/2]); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), requestWithin/3)
		defer cancel()
		state, leave := h.enter(tunnel.Peer{Transport: "tls", Key: "eve"})
		defer leave()
		for len(state.large) < largeRequests {
			time.Sleep(time.Millisecond)
		}
		if _, err := ann.Rename(ctx, "aaaaaaaaaaaa", strings.Repeat("n", 2*smallRequest)); err != nil ||
			asked != 2*smallRequest {
			t.Errorf("another's long request of %d bytes: %v", asked, err)
		}
	})
}
