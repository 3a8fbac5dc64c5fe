package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/session"
)

const (
	reconnectFirst = 50 * time.Millisecond
	reconnectMost  = 2 * time.Second
	// reconnectFor is how long a lost control plane is looked for.
	reconnectFor = 30 * time.Second
)

// longer is the pause after one that did not help.
func longer(pause time.Duration) time.Duration {
	return min(max(2*pause, reconnectFirst), reconnectMost)
}

// again calls try until it succeeds, fails for another reason than a lost
// connection, or the control plane has not answered for reconnectFor.
func (p *program) again(ctx context.Context, try func(ctx context.Context, c *caller) error) error {
	start := time.Now()
	for pause := reconnectFirst; ; pause = longer(pause) {
		c, err := p.reconnect(ctx)
		if err == nil {
			err = try(ctx, c)
		}
		if err == nil || !worthTrying(err) || time.Since(start) > reconnectFor {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// follow calls fn with the session as it is and after each of its changes until
// fn returns true. It goes on over a lost connection.
func (p *program) follow(ctx context.Context, c *caller, id session.ID, fn func(api.Session) bool) error {
	err := c.follow(ctx, id, fn)
	for client.IsLost(err) && ctx.Err() == nil {
		lost := err
		err = p.again(ctx, func(ctx context.Context, again *caller) error {
			c = again
			_, err := route.Session.At(string(id)).Ask(ctx, c)
			return err
		})
		if err != nil {
			return errors.Join(err, lost)
		}
		err = c.follow(ctx, id, fn)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// follow does the same over one connection. The stream is opened before the
// session is read, so that no change falls between the two.
func (c *caller) follow(ctx context.Context, id session.ID, fn func(api.Session) bool) error {
	conn, err := c.Dial(ctx, route.Events.Target())
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	now, err := route.Session.At(string(id)).Ask(ctx, c)
	if err != nil {
		return err
	}
	if fn(now) {
		return nil
	}
	for {
		var event api.Event
		if err := conn.ReadJSON(&event); err != nil {
			return &client.Lost{Err: err}
		}
		if event.Removed == string(id) {
			return &failure{code: session.CodeSessionNotFound, exit: ExitNotFound,
				message: "The session's record was removed while it was watched."}
		}
		if s := sessionIn(event, id); s != nil && s.Revision >= now.Revision && fn(*s) {
			return nil
		}
	}
}

func sessionIn(event api.Event, id session.ID) *api.Session {
	if event.Session != nil && event.Session.ID == id {
		return event.Session
	}
	if event.Snapshot != nil {
		for i, s := range event.Snapshot.Sessions {
			if s.ID == id {
				return &event.Snapshot.Sessions[i]
			}
		}
	}
	return nil
}

// limited ends ctx after timeout, if there is one, with a failure that says so.
func limited(ctx context.Context, timeout time.Duration, what string) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, &failure{code: session.CodeOperationTimeout, exit: ExitTimeout,
		message: fmt.Sprintf("%s did not happen within %s.", what, timeout),
		hint:    "slipway show and slipway history say where the session stands."})
}

// progress shows a session's way on one line of a terminal, or a line for each
// status where stderr is none.
type progress struct {
	w       io.Writer
	oneLine bool
	last    string
}

func (p *program) newProgress() *progress {
	if p.output == outputJSON {
		return &progress{w: io.Discard}
	}
	return &progress{w: p.raw.err, oneLine: isTerminal(p.raw.err)}
}

func (g *progress) show(s api.Session) {
	text := s.Name + ": " + string(s.Status)
	if detail := stateDetail(s); detail != "" && !ended(s) {
		if g.oneLine || s.Status == "PENDING" {
			text += ", " + detail
		}
	}
	text = inLine(text)
	if text == g.last {
		return
	}
	g.last = text
	if g.oneLine {
		fmt.Fprint(g.w, "\r\x1b[K"+text)
		return
	}
	fmt.Fprintln(g.w, text)
}

// clear removes the line.
func (g *progress) clear() {
	if g.oneLine && g.last != "" {
		fmt.Fprint(g.w, "\r\x1b[K")
	}
	g.last = ""
}

// stateDetail says in a few words why a session is where it is.
func stateDetail(s api.Session) string {
	switch {
	case ended(s) && s.Error != nil && s.Status == "ERROR":
		return s.Error.Message
	case ended(s):
		if s.ExitCode != nil && s.Type == typeBatch && s.Reason != "task-finished" {
			return fmt.Sprintf("%s, exit code %d", s.Reason, *s.ExitCode)
		}
		return string(s.Reason)
	case s.Wait != nil:
		return s.Wait.Message
	case s.Pull != nil && s.Pull.Total > 0:
		text := percent(s.Pull.Current, s.Pull.Total) + " of " + size(s.Pull.Total)
		if s.Pull.Rate > 0 {
			text += ", " + size(s.Pull.Rate) + "/s"
		}
		return text
	case s.Pull != nil:
		return fmt.Sprintf("%d of %s", s.Pull.LayersDone, plural(s.Pull.Layers, "layer", "layers"))
	case len(s.Warnings) > 0:
		return s.Warnings[len(s.Warnings)-1].Title
	}
	return ""
}
