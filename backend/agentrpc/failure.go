package agentrpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"slipway/backend/session"
	"slipway/tunnel"
)

// failure is a [session.Error] as it crosses the wire.
type failure struct {
	Code    session.Code         `json:"code"`
	Message string               `json:"message"`
	Hint    string               `json:"hint,omitempty"`
	Fields  []session.FieldError `json:"fields,omitempty"`
}

// failureOf writes err as it crosses the wire. An error that has no code is
// told as an internal error.
func failureOf(err error) failure {
	var known *session.Error
	switch {
	case errors.As(err, &known):
	case errors.Is(err, context.DeadlineExceeded):
		known = &session.Error{Code: session.CodeAgentTimeout,
			Message: "The agent did not come to an end in time.",
			Hint:    "Try again; if it goes on, look at the agent's log."}
	default:
		known = session.AsError(err, session.CodeAgentInternal)
	}
	return failure{Code: known.Code, Message: known.Message, Hint: known.Hint, Fields: known.Fields}
}

// readFailure reads the rest of a failure frame and returns it as an error.
func readFailure(w *wire, h header) error {
	body, err := w.body(h)
	if err != nil {
		return err
	}
	return parseFailure(body)
}

func parseFailure(body []byte) error {
	var f failure
	if err := decodeReply(body, &f); err != nil {
		return fmt.Errorf("a failure: %w", err)
	}
	return &session.Error{Code: f.Code, Message: f.Message, Hint: f.Hint, Fields: f.Fields}
}

// unavailable says that the agent was not reached and nothing is known of the outcome.
func unavailable(agent string, err error) error {
	e := &session.Error{Code: session.CodeAgentUnavailable, Err: err,
		Message: "The agent " + agent + " is not reached.",
		Hint:    "It is tried again by itself; look at the state of its connection."}
	var down *tunnel.DownError
	switch {
	case errors.As(err, &down):
		e.Message = "The agent " + agent + " is not reached, " + lastHeard(down.LastHeard, time.Now()) + "."
		if down.State == tunnel.LineQuestion {
			e.Hint = "It waits for you: slipway agent reconnect " + agent
		}
	case errors.Is(err, context.DeadlineExceeded):
		e.Message, e.Hint = "The agent "+agent+" did not answer in time.",
			"Try again; whether it did what was asked is not known."
	case errors.Is(err, tunnel.ErrTooManyStreams):
		e.Message, e.Hint = "The connection to "+agent+" carries as much as it may.",
			"Close some terminals or apps, then try again."
	}
	return e
}

// lastHeard says how long ago that was, with one unit.
func lastHeard(at, now time.Time) string {
	if at.IsZero() {
		return "and was not heard since this program was started"
	}
	ago := max(now.Sub(at), 0)
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "days"}, {time.Hour, "hours"}, {time.Minute, "minutes"}} {
		if ago >= 2*unit.length {
			return fmt.Sprintf("last heard %d %s ago", ago/unit.length, unit.name)
		}
	}
	return fmt.Sprintf("last heard %d seconds ago", ago/time.Second)
}

func unsupported(method string) error {
	return &session.Error{Code: session.CodeAgentUnsupported,
		Message: "The agent is too old for this: it does not know " + method + ".", Hint: "Upgrade the agent."}
}

// checkVersion refuses a caller of a version that is not tolerated.
func checkVersion(caller int) error {
	switch {
	case caller > Version+1:
		return &session.Error{Code: session.CodeConnectVersion, Message: "The agent is too old to be used from here.",
			Hint: "Upgrade the agent."}
	case caller < oldest:
		return &session.Error{Code: session.CodeConnectVersion, Message: "This program is too old to use the agent.",
			Hint: "Upgrade Slipway on this computer."}
	}
	return nil
}
