package secure

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"slipway/tunnel"
)

func notPaired() *tunnel.Fault {
	return tunnel.NewFault(tunnel.CodeNotPaired,
		"This computer is not paired with the agent, or its access was revoked.",
		"Run slipway agent pair on the agent's machine to get a pairing code.", ErrUnknownClient)
}

func busy() *tunnel.Fault {
	return tunnel.NewFault(tunnel.CodeUnreachable, "This computer has too many connections to the agent.",
		"Close another Slipway on this computer and try again.", errBusyClient)
}

// connectFault explains why a connection could not be made.
func connectFault(ctx context.Context, address string, err error) error {
	var already *tunnel.Fault
	var key *KeyError
	var unresolved *net.DNSError
	var notTLS tls.RecordHeaderError
	code, message, hint := tunnel.CodeUnreachable, fmt.Sprintf("The connection to %s failed.", address),
		"Check that the agent runs there and listens at this address."
	switch {
	case errors.As(err, &already):
		return err
	case errors.As(err, &key):
		code, message = tunnel.CodeConnectHostKey, "The agent's key is not the one that was paired."
		hint = "If the agent was set up again, pair again. Otherwise another machine may be answering."
	case errors.Is(err, context.Canceled):
		code, message, hint = tunnel.CodeConnectAuth, "Connecting was cancelled.", ""
	case errors.As(err, &unresolved):
		message, hint = "The agent's host name was not found.",
			"Check the spelling, and whether the name needs a VPN."
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), ctx.Err() != nil,
		isTimeout(err):
		message = "The agent did not answer in time."
		hint = "Check that its machine is on and that this computer is in the right network or VPN."
	case errors.Is(err, syscall.ECONNREFUSED):
		message = "The machine answers, but no agent listens on that port."
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		message, hint = "The machine cannot be reached.", "Check that this computer is in the right network or VPN."
	case isAlert(err), errors.As(err, &notTLS), errors.Is(err, errProtocol), errors.Is(err, errCertificate):
		code = tunnel.CodeConnectVersion
		message = "What answers there is not a Slipway agent, or its version does not match."
		hint = "Check the address and port, and upgrade the older side."
	}
	return tunnel.NewFault(code, message, hint, err)
}

// isAlert reports whether the peer ended the handshake because it did not like
// what it saw.
func isAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}
