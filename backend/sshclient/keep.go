package sshclient

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/moby/sys/atomicwriter"
	"golang.org/x/crypto/ssh"

	"slipway/backend/session"
)

// Keep writes the configuration for these sessions and removes the keys of others. It omits invalid ids and kernels and
// then fails with agent_reply_invalid, after it has written everything else.
func (c *Client) Keep(sessions []Session) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.written && slices.EqualFunc(c.told, sessions, same) {
		return nil
	}
	var refused error
	c.told = slices.Clone(sessions)
	c.sessions, refused = writable(sessions)
	c.aliases = names(c.sessions, c.taken())
	if err := c.write(); err != nil {
		c.written = false
		return fmt.Errorf("write the configuration for ssh: %w", err)
	}
	c.written = true
	return refused
}

// writable returns the sessions without invalid ids and kernels. These come from agents, and could add other options to
// the configuration.
func writable(sessions []Session) ([]Session, error) {
	var good []Session
	var bad []string // agents
	for _, s := range sessions {
		valid := session.ValidID(string(s.ID))
		if !valid || slices.ContainsFunc(s.Kernels, invalidKernel) {
			bad = append(bad, plain(s.Agent))
		}
		if valid {
			s.Kernels = slices.DeleteFunc(slices.Clone(s.Kernels), invalidKernel)
			slices.Sort(s.Kernels)
			s.Kernels = slices.Compact(s.Kernels)
			good = append(good, s)
		}
	}
	if len(bad) == 0 {
		return good, nil
	}
	slices.Sort(bad)
	from := strings.Join(slices.Compact(bad), ", ")
	return good, session.NewError(session.CodeAgentReply,
		fmt.Sprintf("The configuration for ssh leaves out invalid data from %s.", from),
		"Do not trust that machine until you know why it sends such data.")
}

func invalidKernel(name string) bool { return !session.ValidKernel(name) }

func same(a, b Session) bool {
	return a.ID == b.ID && a.Name == b.Name && a.Agent == b.Agent && slices.Equal(a.Kernels, b.Kernels)
}

// write needs mu.
func (c *Client) write() error {
	content := []byte(c.render(c.sessions, c.aliases))
	if old, err := os.ReadFile(c.ConfigFile()); err != nil || !bytes.Equal(old, content) {
		if err := atomicwriter.WriteFile(c.ConfigFile(), content, 0o600); err != nil {
			return err
		}
	}
	keep := map[string]bool{}
	for _, s := range c.sessions {
		keep[alias(s.ID, "")] = true
		for _, kernel := range s.Kernels {
			keep[alias(s.ID, kernel)] = true
		}
	}
	return c.editKnown(func(lines []string) []string {
		return slices.DeleteFunc(lines, func(line string) bool {
			host, _, _ := strings.Cut(line, " ")
			return !keep[host]
		})
	})
}

// editKnown changes the file with the keys of hosts. It needs mu.
func (c *Client) editKnown(edit func([]string) []string) error {
	old, err := os.ReadFile(c.knownFile())
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	lines := strings.FieldsFunc(string(old), func(r rune) bool { return r == '\n' })
	content := strings.Join(edit(lines), "\n")
	if content != "" {
		content += "\n"
	}
	if !missing && content == string(old) {
		return nil
	}
	return atomicwriter.WriteFile(c.knownFile(), []byte(content), 0o600)
}

// Pin makes ssh accept only the key of a kernel that its agent reported, as long as the session lives. It fails with
// ssh_open_conflict if the kernel had another one.
func (c *Client) Pin(id session.ID, kernel string, host session.SSHHost) error {
	key, err := keyOf(host)
	if err != nil {
		return session.WrapError(err, session.CodeSSHInvalid, "The session reported an invalid key.",
			"Start the session again with this version of Slipway.")
	}
	if !session.ValidID(string(id)) || kernel != "" && !session.ValidKernel(kernel) {
		return session.NewError(session.CodeSSHInvalid, "The session has an invalid id or kernel.",
			"Do not trust its machine until you know why it sends such data.")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	name := alias(id, kernel)
	line := name + " " + keyLine(key)
	var conflict error
	err = c.editKnown(func(lines []string) []string {
		i := slices.IndexFunc(lines, func(known string) bool { return strings.HasPrefix(known, name+" ") })
		if i < 0 {
			return append(lines, line)
		}
		if lines[i] != line {
			conflict = session.NewError(session.CodeSSHConflict,
				"The session's host key has changed.",
				fmt.Sprintf("Somebody may have put another container in its place. If you know why, remove the line "+
					"of %s from %s.", name, c.knownFile()))
		}
		return lines
	})
	return errors.Join(err, conflict)
}

func keyOf(host session.SSHHost) (ssh.PublicKey, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(host.Key))
	return key, err
}

// Fingerprint returns the key of a host as ssh displays it.
func Fingerprint(host session.SSHHost) string {
	key, err := keyOf(host)
	if err != nil {
		return ""
	}
	return ssh.FingerprintSHA256(key)
}

// Names returns the names of a session for ssh, the shortest first, or none if it has no entry.
func (c *Client) Names(id session.ID) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.aliases[id])
}

// Sessions returns the sessions with entries.
func (c *Client) Sessions() []Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sessions)
}
