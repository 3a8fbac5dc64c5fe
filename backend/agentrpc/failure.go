package agentrpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"slipway/backend/session"
	"slipway/tunnel"
)

// failure is a [session.Error] on the wire.
type failure struct {
	Code    session.Code         `json:"code"`
	Message string               `json:"message"`
	Hint    string               `json:"hint,omitempty"`
	Fields  []session.FieldError `json:"fields,omitempty"`
}

// failureOf returns err for the wire. An error without a code becomes an internal error.
func failureOf(err error) failure {
	known := session.AsError(err, session.CodeAgentInternal)
	if _, coded := errors.AsType[*session.Error](err); !coded && errors.Is(err, context.DeadlineExceeded) {
		known = session.NewError(session.CodeAgentTimeout, "The agent did not finish in time.",
			"Try again. If it happens again, check the agent's log.")
	}
	return failure{Code: known.Code, Message: known.Message, Hint: known.Hint, Fields: known.Fields}
}

func parseFailure(body []byte) error {
	var f failure
	if err := decodeReply(body, &f); err != nil {
		return fmt.Errorf("a failure: %w", err)
	}
	return &session.Error{Code: f.Code, Message: f.Message, Hint: f.Hint, Fields: f.Fields}
}

// unavailable means that the agent was not reached and the outcome is unknown.
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

// lastHeard tells how long ago at is, in one unit.
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

// checkVersion refuses a caller of an unsupported version.
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

// FaultError returns the fault of a transport as a [session.Error], and every other error as it is.
func FaultError(err error) error {
	if fault, ok := errors.AsType[*tunnel.Fault](err); ok {
		return session.WrapError(err, session.Code(fault.Code), fault.Message, fault.Hint)
	}
	return err
}
