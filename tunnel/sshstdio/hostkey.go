package sshstdio

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"slipway/tunnel"
)

// HostKeyError says that a host showed a key other than the one that is known:
// either the host was set up anew, or another one answers in its place. Only a
// person can tell which.
type HostKeyError struct {
	Host        string // as it is in the file, for example "lab" or "[lab]:2222"; a jump host perhaps
	Fingerprint string // of the key that was shown, for example "SHA256:…"
	Where       string // file and line of the known key, as ssh says them
}

func (e *HostKeyError) Error() string {
	return fmt.Sprintf("%s shows the key %s, and another one is known in %s", e.Host, e.Fingerprint, e.Where)
}

var (
	shownKey  = regexp.MustCompile(`(?s)sent by the remote host is\s+(\S+?)\.?\s`)
	knownLine = regexp.MustCompile(`Offending \S+ key in ([^\r\n]+)`)
	knownHost = regexp.MustCompile(`Host key for (\S+) has changed`)
)

// changedKey reads what ssh says about a key that has changed.
func changedKey(messages string) *HostKeyError {
	first := func(pattern *regexp.Regexp) string {
		if found := pattern.FindStringSubmatch(messages); found != nil {
			return printable(found[1])
		}
		return ""
	}
	return &HostKeyError{Host: first(knownHost), Fingerprint: first(shownKey), Where: first(knownLine)}
}

// Forget removes the known key that an error is about, once a person has said
// that the host was set up anew. The next Dial asks about the new key as about
// any that is not known, with its fingerprint, so that nothing is trusted here.
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
	cmd := exec.CommandContext(ctx, "ssh-keygen", "-R", changed.Host, "-f", file)
	cmd.Env = environment("", "")
	cmd.WaitDelay = checkTimeout
	if out, err := cmd.CombinedOutput(); err != nil {
		return forgetFault(changed, fmt.Errorf("%w: %s", err, lastMessage(string(out))))
	}
	return nil
}

func forgetFault(changed *HostKeyError, err error) error {
	return &tunnel.Fault{Code: "agent_connect_host-key", Message: "The old key of the host could not be removed.",
		Hint: "Remove it by hand: ssh-keygen -R " + changed.Host, Err: err}
}
