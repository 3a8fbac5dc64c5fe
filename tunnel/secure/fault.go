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
	return &tunnel.Fault{Code: tunnel.CodeNotPaired,
		Message: "This computer is not paired with the agent, or its access was revoked.",
		Hint:    "Run slipway agent pair on the agent's machine to get a pairing code.", Err: ErrUnknownClient}
}

func busy() *tunnel.Fault {
	return &tunnel.Fault{Code: tunnel.CodeUnreachable, Message: "This computer has too many connections to the agent.",
		Hint: "Close another Slipway on this computer and try again.", Err: errBusyClient}
}

// connectFault explains why a connection could not be made.
func connectFault(ctx context.Context, address string, err error) error {
	fault := &tunnel.Fault{Code: tunnel.CodeUnreachable, Message: fmt.Sprintf("The connection to %s failed.", address),
		Hint: "Check that the agent runs there and listens at this address.", Err: err}
	var already *tunnel.Fault
	var key *KeyError
	var unresolved *net.DNSError
	var notTLS tls.RecordHeaderError
	switch {
	case errors.As(err, &already):
		return err
	case errors.As(err, &key):
		fault.Code, fault.Message = tunnel.CodeConnectHostKey,
			"The agent's key is not the one that was paired."
		fault.Hint = "If the agent was set up again, pair again. Otherwise another machine may be answering."
	case errors.Is(err, context.Canceled):
		fault.Code, fault.Message, fault.Hint = tunnel.CodeConnectAuth, "Connecting was cancelled.", ""
	case errors.As(err, &unresolved):
		fault.Code, fault.Message = tunnel.CodeUnreachable, "The agent's host name was not found."
		fault.Hint = "Check the spelling, and whether the name needs a VPN."
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), ctx.Err() != nil,
		isTimeout(err):
		fault.Code, fault.Message = tunnel.CodeUnreachable, "The agent did not answer in time."
		fault.Hint = "Check that its machine is on and that this computer is in the right network or VPN."
	case errors.Is(err, syscall.ECONNREFUSED):
		fault.Code, fault.Message = tunnel.CodeUnreachable, "The machine answers, but no agent listens on that port."
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		fault.Code, fault.Message = tunnel.CodeUnreachable, "The machine cannot be reached."
		fault.Hint = "Check that this computer is in the right network or VPN."
	case isAlert(err), errors.As(err, &notTLS), errors.Is(err, errProtocol), errors.Is(err, errCertificate):
		fault.Code, fault.Message = tunnel.CodeConnectVersion,
			"What answers there is not a Slipway agent, or its version does not match."
		fault.Hint = "Check the address and port, and upgrade the older side."
	}
	return fault
}

// isAlert reports whether the peer ended the handshake because it did not like
// what it saw.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
