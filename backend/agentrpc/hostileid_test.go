package agentrpc

import (
	"context"
	"testing"
	"time"

	"slipway/backend/session"
)

// hostileID ends the line of an ssh configuration that it is written into.
const hostileID = "aaaaaaaaaaaa\nMatch exec \"touch /tmp/owned\"\n#"

// told is a session as an agent tells of it.
func told(id session.ID) session.Session {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	return session.Session{ID: id, Name: "train", Owner: "ada", Agent: "lab", Status: session.Running,
		End: session.End{Result: session.ResultUndefined}, CreatedAt: at,
		Spec: session.Spec{Name: "train", Type: session.Interactive, Image: "python:3.13",
			Resources: session.Resources{CPU: 1, Memory: 1 << 30}}}
}

// TestAnIDThatIsACommandIsRefused is the attack by which an agent ran commands
// here: the id of a session was written into the configuration of ssh.
func TestAnIDThatIsACommandIsRefused(t *testing.T) {
	evil := told(hostileID)
	agent := &scripted{
		launch: func(context.Context, session.LaunchRequest) (session.Session, error) { return evil, nil },
		watch: func(_ context.Context, _ session.Cursor, fn func(session.Event) error) error {
			return fn(session.Event{Epoch: "e", Seq: 1,
				Reset: &session.Reset{Sessions: []session.Session{told("aaaaaaaaaaaa"), evil},
					Machine: session.Machine{Agent: "lab"}}})
		},
	}
	client, _ := pair(t, agent)
	s, err := client.Launch(t.Context(), session.LaunchRequest{Spec: evil.Spec})
	if session.CodeOf(err) != "agent_reply_invalid" || s.ID != "" {
		t.Errorf("a launch came as %q, %v", s.ID, err)
	}
	err = client.Watch(t.Context(), session.Cursor{}, func(e session.Event) error {
		t.Errorf("an event came: %q", e.Reset.Sessions[1].ID)
		return context.Canceled
	})
	if session.CodeOf(err) != "agent_reply_invalid" {
		t.Errorf("the watch ended as %v", err)
	}
}
