package agentrpc

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"slipway/backend/session"
)

// standing is a hostile agent whose connection always stands.
type standing struct{ *hostile }

func (standing) WaitUp(ctx context.Context) error { return ctx.Err() }

// TestHostileDownloadsAreNotResumedInALoop has an agent begin a download and cut
// it off before its first byte, again and again.
func TestHostileDownloadsAreNotResumedInALoop(t *testing.T) {
	h := &hostile{asked: map[string]int{}, answers: map[string][]byte{"logs": rawFrame(kindAnswer,
		[]byte(`{"offset":0}`))}}
	client := NewClient(ClientConfig{Name: func() string { return "lab" }, Opener: standing{h}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	log, err := client.Logs(ctx, "aaaaaaaaaaaa", session.LogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := io.Copy(io.Discard, log); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended as %v", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := h.asked["logs"]; n < 2 || n > 15 {
		t.Errorf("it was asked for %d times in a second", n)
	}
}
