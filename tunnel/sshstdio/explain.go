package sshstdio

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"slipway/tunnel"
)

// reason recognizes a failure by the messages of ssh, which are in English and have been the same for many years.
type reason struct {
	code          string
	message, hint string
	asks          bool // a silent connection failed so only because it may not ask
	pattern       *regexp.Regexp
}

// reasons are tried in order: what went wrong at a jump host comes before what it did to the connection behind it.
var reasons = []reason{
	{tunnel.CodeConnectHostKey, "The host key has changed.",
		"If the machine was set up anew, remove its old key with ssh-keygen -R and connect again; if " +
			"not, somebody may be in between.", false,
		regexp.MustCompile(`REMOTE HOST IDENTIFICATION HAS CHANGED|Host key for .* has changed`)},
	{tunnel.CodeConnectHostKey, "The host key is unknown or was not confirmed.",
		"Compare the fingerprint with what the machine's administrator says, and confirm it.", true,
		regexp.MustCompile(`Host key verification failed|host key is known for|authenticity of host`)},
	{tunnel.CodeConnectAuth, "The host refused to try more keys.",
		"Name the right key for this host with IdentityFile and IdentitiesOnly yes in ~/.ssh/config.", false,
		regexp.MustCompile(`Too many authentication failures`)},
	{tunnel.CodeConnectAuth, "The host requires a new password.",
		"Log in once with ssh in a terminal and change it there.", false,
		regexp.MustCompile(`(?i)password change required|password has expired|must change your password`)},
	{tunnel.CodeConnectAuth, "The host did not accept the login.",
		"Check the user name, and that ssh to this host works in a terminal.", true,
		regexp.MustCompile(`Permission denied|Authentication failed|No more authentication methods|` +
			`sign_and_send_pubkey`)},
	{tunnel.CodeUnreachable, "The host name was not found.",
		"Check the spelling, and whether the name needs a VPN or a Host entry in ~/.ssh/config.", false,
		regexp.MustCompile(`Could not resolve hostname|Name or service not known|nodename nor servname`)},
	{tunnel.CodeConnectInvalid, "The ssh configuration of this computer has an error.",
		"Run ssh to this host in a terminal and fix what it reports.", false,
		regexp.MustCompile(`(?i)Bad configuration option|Bad owner or permissions|bad configuration options|` +
			`keyword .* extra arguments|missing argument`)},
	{tunnel.CodeUnreachable, "The host answers, but no ssh server listens on that port.",
		"Check the port, and that the ssh server runs.", false,
		regexp.MustCompile(`Connection refused`)},
	{tunnel.CodeUnreachable, "The host cannot be reached.",
		"Check that it is on and that this computer is in the right network or VPN.", false,
		regexp.MustCompile(`Connection timed out|Operation timed out|No route to host|` +
			`Network is unreachable|Host is down`)},
	{tunnel.CodeConnectVersion, "This computer's ssh and the host's have no encryption algorithm in common.",
		"Update the older one, or allow its algorithms for this host in ~/.ssh/config.", false,
		regexp.MustCompile(`no matching .* found|Unable to negotiate`)},
	{tunnel.CodeUnreachable, "The jump host does not forward the connection.",
		"Ask its administrator whether TCP forwarding is allowed.", false,
		regexp.MustCompile(`administratively prohibited|stdio forwarding failed|open failed`)},
	{tunnel.CodeUnreachable, "The account is not allowed to run programs on the host.",
		"Ask for an account with a login shell.", false,
		regexp.MustCompile(`(?i)allows sftp connections only|account is (currently )?not available|` +
			`shell request failed|exec request failed|PTY allocation request failed|This account`)},
	{tunnel.CodeUnreachable, "The host does not run Linux or Unix, or has an unusual login shell.",
		"Use a host with Linux.", false,
		regexp.MustCompile(`is not recognized as`)},
	{tunnel.CodeUnreachable, "The host closed the connection.",
		"It may be overloaded, block this computer after failed logins, or not be an ssh server; try " +
			"again in a few minutes.", false,
		regexp.MustCompile(`kex_exchange_identification|Connection (closed|reset) by|banner exchange|` +
			`Broken pipe|client_loop|Software caused connection abort`)},
}

const hintTerminal = "Run ssh to this host in a terminal to see what happens."

// explain says why a connection could not be made. It waits a moment for the last messages.
func explain(ctx context.Context, c *child, asking *questions, err error) error {
	if refusal := asking.refusal(); refusal != nil {
		return tunnel.NewFault(tunnel.CodeConnectAuth, "The login was cancelled.",
			"Connect again when you have what the host asks for.", refusal)
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return explainTimeout(c, ctxErr)
	}
	c.settle(endTimeout)
	fault := faultOf(c.messages.String(), c.code(), asking == nil)
	if fault.Err == nil {
		fault.Err = err
	}
	return fault
}

// explainTimeout says what ssh was about when ctx ended.
func explainTimeout(c *child, err error) error {
	cancelled := errors.Is(err, context.Canceled)
	if said := lastMessage(c.messages.String()); said != "" {
		err = fmt.Errorf("%w (ssh: %s)", err, said)
	}
	if cancelled {
		return tunnel.NewFault(tunnel.CodeConnectAuth, "Connecting was cancelled.", "", err)
	}
	return tunnel.NewFault(tunnel.CodeUnreachable, "The host did not answer in time.",
		"Check that it is on and that this computer is in the right network or VPN.", err)
}

// faultOf explains the end of ssh. silent says that it was not allowed to ask; then an error that a question would have
// avoided is tunnel.ErrWouldAsk too.
func faultOf(messages string, exit int, silent bool) *tunnel.Fault {
	said := lastMessage(messages)
	var cause error
	if said != "" {
		cause = fmt.Errorf("ssh: %s", said)
	}
	for _, why := range reasons {
		if exit == missingExit || !why.pattern.MatchString(messages) {
			continue
		}
		fault := tunnel.NewFault(why.code, why.message, why.hint, cause)
		switch {
		case why.code == tunnel.CodeConnectHostKey && !why.asks:
			fault.Err = changedKey(messages)
		case why.asks && silent:
			if why.code == tunnel.CodeConnectAuth {
				fault = tunnel.NewFault(tunnel.CodeConnectAsks,
					"The host asks for a password or code before it accepts this computer.",
					"Connect and enter the password, passphrase or one-time code.", nil)
			}
			fault.Err = fmt.Errorf("%w (ssh: %s)", tunnel.ErrWouldAsk, said)
		}
		return fault
	}
	switch exit {
	case missingExit, 126:
		return tunnel.NewFault(tunnel.CodeUnreachable, "Slipway is not installed on the host, or cannot run there.",
			"Add the host again to install it.", cause)
	case 255, -1, 0:
		return tunnel.NewFault(tunnel.CodeUnreachable, "The connection through ssh ended: "+orSilence(said)+".",
			hintTerminal, cause)
	}
	return tunnel.NewFault(tunnel.CodeUnreachable,
		fmt.Sprintf("The program on the host ended with code %d: %s.", exit, orSilence(said)),
		"Upgrade the agent on the host, or start it there and look at its log.", cause)
}

func orSilence(said string) string {
	if said == "" {
		return "no output"
	}
	return strings.TrimRight(said, ".")
}

const maxMessage = 300 // characters of what ssh said that are repeated

// lastMessage is the last line that says something.
func lastMessage(messages string) string {
	last := ""
	for line := range strings.Lines(printable(messages)) {
		line = strings.TrimSpace(line)
		if line != "" && strings.Trim(line, "@") != "" && !strings.HasPrefix(line, "Warning: Permanently added") {
			last = line
		}
	}
	if runes := []rune(last); len(runes) > maxMessage {
		last = string(runes[:maxMessage]) + "…"
	}
	return last
}

// settle waits for ssh to have ended, at most so long.
func (c *child) settle(most time.Duration) {
	select {
	case <-c.done:
	case <-time.After(most):
	}
}

// code is the exit code, -1 while ssh runs.
func (c *child) code() int {
	select {
	case <-c.done:
		return c.exitCode()
	default:
		return -1
	}
}

// lastFault is what a reader gets instead of err, the end of the file.
func (c *child) lastFault(err error) error {
	c.settle(lastWords)
	if code := c.code(); code > 0 {
		return faultOf(c.messages.String(), code, false)
	}
	return err
}

// explainLocal says why ssh could not even be asked. waited is the error of the context that it was given, if any.
func explainLocal(waited error, messages string, err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return tunnel.NewFault(tunnel.CodeConnectInvalid, "ssh is not installed on this computer.",
			"Install the OpenSSH client.", err)
	case waited != nil:
		return tunnel.NewFault(tunnel.CodeUnreachable, "The ssh program on this computer does not respond.",
			hintTerminal, waited)
	}
	fault := faultOf(messages, 255, false)
	fault.Err = errors.Join(fault.Err, err)
	return fault
}
