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

// failureOf writes err as it crosses the wire. An error that has no code is told as an internal error.
func failureOf(err error) failure {
	var known *session.Error
	switch {
	case errors.As(err, &known):
	case errors.Is(err, context.DeadlineExceeded):
		known = session.NewError(session.CodeAgentTimeout, "The agent did not finish in time.",
			"Try again. If it happens again, check the agent's log.")
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
	e := session.WrapError(err, session.CodeAgentUnavailable, "The agent "+agent+" cannot be reached.",
		"Slipway keeps trying. Check the state of its connection.")
	var down *tunnel.DownError
	switch {
	case errors.As(err, &down):
		e.Message = "The agent " + agent + " cannot be reached, " + lastHeard(down.LastHeard, time.Now()) + "."
		if down.State == tunnel.LineQuestion {
			e.Hint = "It needs your answer: slipway agent reconnect " + agent
		}
	case errors.Is(err, context.DeadlineExceeded):
		e.Message, e.Hint = "The agent "+agent+" did not answer in time.",
			"Try again. It is unknown whether the call took effect."
	case errors.Is(err, tunnel.ErrTooManyStreams):
		e.Message, e.Hint = "The connection to "+agent+" has too many open streams.",
			"Close some terminals or apps, then try again."
	}
	return e
}

// lastHeard says how long ago that was, with one unit.
func lastHeard(at, now time.Time) string {
	if at.IsZero() {
		return "not heard since this program started"
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
	return session.NewError(session.CodeAgentUnsupported, "The agent is too old: it does not support "+method+".",
		"Upgrade the agent.")
}

// checkVersion refuses a caller of a version that is not tolerated.
func checkVersion(caller int) error {
	switch {
	case caller > Version+1:
		return session.NewError(session.CodeConnectVersion, "The agent is too old for this version of Slipway.",
			"Upgrade the agent.")
	case caller < oldest:
		return session.NewError(session.CodeConnectVersion, "This version of Slipway is too old for the agent.",
			"Upgrade Slipway on this computer.")
	}
	return nil
}
