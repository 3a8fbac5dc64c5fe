package sshstdio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"slipway/tunnel"
	"slipway/tunnel/askpass"
)

// reason recognizes a failure by the messages of ssh, which are in English and have been stable for many years.
type reason struct {
	code          string
	message, hint string
	asks          bool // asking a person may avoid it
	pattern       *regexp.Regexp
}

// reasons are tried in order: what went wrong at a jump host comes before what it did to the connection behind it.
var reasons = []reason{
	{tunnel.CodeConnectHostKey, "The host key has changed.", "If the machine was reinstalled, remove its old key " +
		"with ssh-keygen -R and connect again. If not, somebody may be intercepting the connection.", false,
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
		"Check the user name, and that ssh to this host works in a terminal.", true, regexp.MustCompile(
			`Permission denied|Authentication failed|No more authentication methods|sign_and_send_pubkey`)},
	{tunnel.CodeUnreachable, "The host name was not found.",
		"Check the spelling, and whether the name needs a VPN or a Host entry in ~/.ssh/config.", false,
		regexp.MustCompile(`Could not resolve hostname|Name or service not known|nodename nor servname`)},
	{tunnel.CodeConnectInvalid, "The ssh configuration of this computer has an error.",
		"Run ssh to this host in a terminal and fix what it reports.", false,
		regexp.MustCompile(`(?i)Bad configuration option|Bad owner or permissions|bad configuration options|` +
			`keyword .* extra arguments|missing argument`)},
	{tunnel.CodeUnreachable, "The host answers, but no ssh server listens on that port.",
		"Check the port, and that the ssh server runs.", false, regexp.MustCompile(`Connection refused`)},
	{tunnel.CodeUnreachable, "The host cannot be reached.",
		"Check that it is on and that this computer is in the right network or VPN.", false, regexp.MustCompile(
			`Connection timed out|Operation timed out|No route to host|Network is unreachable|Host is down`)},
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
		"Use a host with Linux.", false, regexp.MustCompile(`is not recognized as`)},
	{tunnel.CodeUnreachable, "The host closed the connection.", "It may be overloaded, block this computer after " +
		"failed logins, or not be an ssh server; try again in a few minutes.", false,
		regexp.MustCompile(`kex_exchange_identification|Connection (closed|reset) by|banner exchange|` +
			`Broken pipe|client_loop|Software caused connection abort`)},
}

const hintTerminal = "Run ssh to this host in a terminal to see what happens."

// explain returns why a connection could not be made. It waits a moment for the last messages.
func explain(ctx context.Context, c *child, asking *askpass.Questions, err error) error {
	if _, refusal := asking.Outcome(); refusal != nil {
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

// explainTimeout adds the last message of ssh to err, the error of a context.
func explainTimeout(c *child, err error) error {
	if said := lastMessage(c.messages.String()); said != "" {
		err = fmt.Errorf("%w (ssh: %s)", err, said)
	}
	if errors.Is(err, context.Canceled) {
		return tunnel.NewFault(tunnel.CodeConnectAuth, "Connecting was cancelled.", "", err)
	}
	return tunnel.NewFault(tunnel.CodeUnreachable, "The host did not answer in time.",
		"Check that it is on and that this computer is in the right network or VPN.", err)
}

// faultOf explains the end of ssh. silent: it was not allowed to ask, and an error that a question may avoid is also
// tunnel.ErrWouldAsk.
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

func orSilence(said string) string { return cmp.Or(strings.TrimRight(said, "."), "no output") }

// lastMessage is the last line with a message, at most 300 characters of it.
func lastMessage(messages string) string {
	last := ""
	for line := range strings.Lines(askpass.Printable(messages)) {
		line = strings.TrimSpace(line)
		if line != "" && strings.Trim(line, "@") != "" && !strings.HasPrefix(line, "Warning: Permanently added") {
			last = line
		}
	}
	if runes := []rune(last); len(runes) > 300 {
		last = string(runes[:300]) + "…"
	}
	return last
}

// explainLocal explains why the local ssh program failed. waited is the error of its context, if any.
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

// HostKeyError means that a host showed another key than the known one: the host was set up again, or another one
// answers in its place. Only a person can tell which.
type HostKeyError struct {
	Host        string // as in the file, for example "lab" or "[lab]:2222"; may be a jump host
	Fingerprint string // of the key that was shown, for example "SHA256:…"
	Where       string // file and line of the known key, as ssh names them
}

func (e *HostKeyError) Error() string {
	return fmt.Sprintf("%s shows the key %s, and another one is known in %s", e.Host, e.Fingerprint, e.Where)
}

var (
	shownKey  = regexp.MustCompile(`(?s)sent by the remote host is\s+(\S+?)\.?\s`)
	knownLine = regexp.MustCompile(`Offending \S+ key in ([^\r\n]+)`)
	knownHost = regexp.MustCompile(`Host key for (\S+) has changed`)
)

// changedKey reads the messages of ssh about a key that has changed.
func changedKey(messages string) *HostKeyError {
	first := func(pattern *regexp.Regexp) string {
		if found := pattern.FindStringSubmatch(messages); found != nil {
			return askpass.Printable(found[1])
		}
		return ""
	}
	return &HostKeyError{Host: first(knownHost), Fingerprint: first(shownKey), Where: first(knownLine)}
}

// Forget removes the known key that an error is about, after a person has confirmed that the host was set up again. The
// next Dial asks about the new key as about any unknown one, with its fingerprint, so that nothing is trusted here.
func (r *Remote) Forget(ctx context.Context, changed *HostKeyError) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	file := changed.Where
	if at := strings.LastIndex(file, ":"); at > 0 {
		file = file[:at]
	}
	if !filepath.IsAbs(file) || changed.Host == "" || strings.HasPrefix(changed.Host, "-") {
		return forgetFault(changed, fmt.Errorf("ssh names neither host nor file: %q, %q", changed.Host, changed.Where))
	}
	if !r.uses(ctx, changed.Host, file) {
		return forgetFault(changed, fmt.Errorf("ssh does not use %q in %q on the way to this machine", changed.Host,
			file))
	}
	cmd := exec.CommandContext(ctx, "ssh-keygen", "-R", changed.Host, "-f", file)
	cmd.Env = askpass.Environment(nil)
	cmd.WaitDelay = checkTimeout
	askpass.Detach(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return forgetFault(changed, fmt.Errorf("%w: %s", err, lastMessage(string(out))))
	}
	return nil
}

// uses reports whether ssh looks a host up in a file of known keys on the way to the machine. A HostKeyError is read
// from messages, and a machine may print its own, which name another host's key or any file.
func (r *Remote) uses(ctx context.Context, host, file string) bool {
	hosts, known, jumps := r.lookedUp(ctx, r.destination())
	for _, jump := range jumps {
		args := []string{"--", "ssh://" + jump}
		if r.config.ConfigFile != "" {
			args = append([]string{"-F", r.config.ConfigFile}, args...)
		}
		more, others, _ := r.lookedUp(ctx, args)
		hosts, known = append(hosts, more...), known+" "+others
	}
	return slices.Contains(hosts, host) && strings.Contains(" "+known+" ", " "+file+" ") // a path may hold spaces
}

// lookedUp asks the local client under which names it looks up a destination, in which files, separated by spaces, and
// over which jump hosts it connects.
func (r *Remote) lookedUp(ctx context.Context, destination []string) (hosts []string, files string, jumps []string) {
	said, _, err := r.configured(ctx, destination)
	if err != nil {
		return nil, "", nil
	}
	hosts = []string{said["hostname"]}
	if port := said["port"]; port != "22" {
		hosts[0] = "[" + said["hostname"] + "]:" + port
	}
	if alias := said["hostkeyalias"]; alias != "" && alias != "none" {
		hosts = append(hosts, alias)
	}
	if jump := said["proxyjump"]; jump != "" && jump != "none" {
		jumps = strings.Split(jump, ",")
	}
	return hosts, said["userknownhostsfile"], jumps
}

func forgetFault(changed *HostKeyError, err error) error {
	return tunnel.NewFault(tunnel.CodeConnectHostKey, "The old host key could not be removed.",
		"Remove it by hand: ssh-keygen -R "+changed.Host, err)
}
