package sshstdio

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"slipway/tunnel"
)

// HostKeyError says that a host showed a key other than the one that is known: either the host was set up anew, or
// another one answers in its place. Only a person can tell which.
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

// Forget removes the known key that an error is about, once a person has said that the host was set up anew. The next
// Dial asks about the new key as about any that is not known, with its fingerprint, so that nothing is trusted here.
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
	cmd.Env = environment("", "")
	cmd.WaitDelay = checkTimeout
	if out, err := cmd.CombinedOutput(); err != nil {
		return forgetFault(changed, fmt.Errorf("%w: %s", err, lastMessage(string(out))))
	}
	return nil
}

// uses reports whether ssh looks a host up in a file of known keys on the way to the machine. What a HostKeyError says
// is read from messages, and a machine may print some of its own, which name the key of another host or any file at
// all.
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

// lookedUp asks the local client by which names it knows a destination, in which files, with spaces between them, and
// over which other machines it goes there.
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
