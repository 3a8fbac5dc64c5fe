package cli

import (
	"context"
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

// again reconnects and calls try until it succeeds, fails for another reason
// than a lost connection, or the control plane has not answered for reconnectFor.
func (c *caller) again(ctx context.Context, try func(context.Context) error) error {
	start := time.Now()
	for pause := reconnectFirst; ; pause = longer(pause) {
		err := c.reconnect(ctx)
		if err == nil {
			err = try(ctx)
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

// resume calls try, which starts where it stopped, until the connection lasts.
func (c *caller) resume(ctx context.Context, try func(context.Context) error) error {
	err := try(ctx)
	for client.IsLost(err) && ctx.Err() == nil {
		err = c.again(ctx, try)
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// askAgain asks, and asks again where the answer was lost: only what may be done
// twice.
func askAgain[In, Out any](ctx context.Context, c *caller, at route.Route[In, Out]) (answer Out, err error) {
	ask := func(ctx context.Context) error { answer, err = at.Ask(ctx, c); return err }
	if err = ask(ctx); err != nil && worthTrying(err) && ctx.Err() == nil {
		err = c.again(ctx, ask)
	}
	return answer, err
}

// follow calls fn with the session as it is and after each of its changes until
// fn returns true. It continues after a lost connection.
func (c *caller) follow(ctx context.Context, id session.ID, fn func(api.Session) bool) error {
	return c.resume(ctx, func(ctx context.Context) error { return c.followOnce(ctx, id, fn) })
}

// followOnce does the same over one connection. The stream is opened before the
// session is read, so that no change falls between the two.
func (c *caller) followOnce(ctx context.Context, id session.ID, fn func(api.Session) bool) error {
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
			return fail(session.CodeSessionNotFound, "The session's record was removed while it was watched.", "")
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
	return context.WithTimeoutCause(ctx, timeout, failAs(ExitTimeout, session.CodeOperationTimeout,
		fmt.Sprintf("%s did not happen within %s.", what, timeout),
		"slipway show and slipway history say where the session stands."))
}

// progress shows the status of a session on one line of a terminal, or a line
// for each status where standard error is not one.
type progress struct {
	statusLine
	w    io.Writer
	last string
}

func (p *program) newProgress() *progress {
	g := &progress{statusLine: p.newStatusLine(), w: p.raw.err}
	if p.output == outputJSON {
		g.w = io.Discard
	}
	return g
}

func (g *progress) show(s api.Session) {
	oneLine, text := g.statusLine.w != nil, s.Name+": "+string(s.Status)
	if detail := stateDetail(s); detail != "" && !ended(s) && (oneLine || s.Status == session.Pending) {
		text += ", " + detail
	}
	if text = inLine(text); oneLine {
		g.statusLine.show(text)
	} else if text != g.last {
		g.last = text
		fmt.Fprintln(g.w, text)
	}
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
