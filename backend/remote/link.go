package remote

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"slipway/backend/hub"
	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/tunnel"
	"slipway/tunnel/secure"
	"slipway/tunnel/sshstdio"
)

// take derives the link from the status of the line.
func (a *agent) take(status tunnel.LineStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clock := a.connector.config.Clock // people see the time of a demo
	link := hub.Link{State: hub.LinkState(status.State), Since: clock.At(status.Since),
		LastHeard: clock.At(status.LastHeard), RTT: status.RTT, Transport: a.transport, Carriers: status.Carriers,
		NextTry: clock.At(status.NextTry), Version: a.program, Owner: a.entry.Owner}
	if a.transport == "tls" && status.Peer.Transport == "wss" {
		link.Transport = "wss"
	}
	if a.ssh != nil {
		link.Role = "admin" // a login permits everything
		if a.program != "" && a.program != place.Version {
			link.Upgrade = place.Version
		}
	}
	a.explain(&link, status.Err)
	link.Question = question(status)
	a.link = link
	close(a.changed)
	a.changed = make(chan struct{})
}

// explain sets what the link waits for, and why. It needs mu.
func (a *agent) explain(link *hub.Link, err error) {
	switch link.State {
	case hub.LinkConnected:
		if a.trouble != nil {
			link.Err, link.Waits = a.trouble, session.AsError(a.trouble, "").Message
		}
	case hub.LinkConnecting:
		link.Waits = "Connecting."
	case hub.LinkProbing:
		link.Waits = "It does not respond. Checking the connection."
	case hub.LinkDown:
		told := connectError(err)
		link.Err, link.Waits = told, told.Message+" Slipway retries automatically."
	case hub.LinkQuestion:
		told := connectError(err)
		link.Err, link.Waits, link.NextTry = told, told.Message+" Reconnect it to continue.", time.Time{}
	}
}

func (a *agent) Link() (hub.Link, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.link, a.changed
}

// personCodes are failures that a retry does not fix or makes worse.
var personCodes = []string{
	tunnel.CodeConnectHostKey, tunnel.CodeConnectAuth, tunnel.CodeNotPaired, tunnel.CodeConnectInvalid,
}

func needsPerson(err error) bool {
	var fault *tunnel.Fault
	var version *tunnel.VersionError
	return errors.Is(err, tunnel.ErrWouldAsk) || errors.As(err, &version) || errors.As(err, &fault) &&
		slices.Contains(personCodes, fault.Code)
}

// connectError returns why a line is down, for people.
func connectError(err error) *session.Error {
	var fault *tunnel.Fault
	var version *tunnel.VersionError
	var told *session.Error
	switch {
	case errors.As(err, &told):
		return told
	case errors.As(err, &fault):
		return session.WrapError(err, session.Code(fault.Code), fault.Message, cmp.Or(fault.Hint, "Try again."))
	case errors.As(err, &version) && version.Older():
		return session.WrapError(err, session.CodeConnectVersion, "The agent is too old for this version of Slipway.",
			"Upgrade the agent.")
	case errors.As(err, &version):
		return session.WrapError(err, session.CodeConnectVersion, "This version of Slipway is too old for the agent.",
			"Upgrade Slipway on this computer.")
	case errors.Is(err, tunnel.ErrSilent), errors.Is(err, context.DeadlineExceeded):
		return session.WrapError(err, session.CodeUnreachable, "The machine does not answer.",
			"Check that it is switched on and that this computer is in the right network.")
	case errors.Is(err, tunnel.ErrClosedByPeer):
		return session.WrapError(err, session.CodeUnreachable, "The agent ended the connection.",
			"It may be restarting. Wait a moment.")
	case errors.Is(err, tunnel.ErrDowngrade), errors.Is(err, tunnel.ErrHandshake):
		return session.WrapError(err, session.CodeConnectVersion,
			"No Slipway agent of a compatible version answers there.", "Upgrade the older side.")
	}
	return session.WrapError(err, session.CodeUnreachable, "The connection was lost.",
		"Look at the network of both machines.")
}

// question returns the question about an unexpected key, or nil.
func question(status tunnel.LineStatus) *hub.Question {
	if status.State != tunnel.LineQuestion {
		return nil
	}
	if key, ok := errors.AsType[*secure.KeyError](status.Err); ok {
		return &hub.Question{Kind: hub.QuestionRekeyed, Pinned: key.Expected, Found: key.Got, Asked: status.Since,
			Text: "The agent shows another key than the one it was paired with. Either it was set up again, or " +
				"something else answers in its place. Compare the new key with slipway agent status on its machine."}
	}
	if host, ok := errors.AsType[*sshstdio.HostKeyError](status.Err); ok {
		return &hub.Question{Kind: hub.QuestionHostKey, Pinned: host.Where, Found: host.Fingerprint,
			Asked: status.Since,
			Text: "The machine shows another ssh key than the one that ssh knows of it. If it was set up again, " +
				"accept, which removes the old key, and reconnect: you are asked about the new one."}
	}
	return nil
}
