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

// Keep has the configuration say what can be reached now. Keys of hosts that are gone are forgotten. Ids and kernels
// that are not valid are left out, with agent_reply_invalid; all else is written.
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

// writable returns the sessions that an entry can be written for. Ids and kernels come from agents, and whatever the
// configuration holds ssh acts on.
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

// editKnown changes the file of the keys of hosts. It needs mu.
func (c *Client) editKnown(edit func([]string) []string) error {
	old, err := os.ReadFile(c.knownFile())
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	var lines []string
	for line := range strings.SplitSeq(string(old), "\n") {
		if line != "" {
			lines = append(lines, line)
		}
	}
	content := strings.Join(edit(lines), "\n")
	if content != "" {
		content += "\n"
	}
	if !missing && content == string(old) {
		return nil
	}
	return atomicwriter.WriteFile(c.knownFile(), []byte(content), 0o600)
}

// Pin has ssh accept a kernel by the key that its agent told of, and by no other for as long as the session lives;
// ssh_open_conflict where it had another one before.
func (c *Client) Pin(id session.ID, kernel string, host session.SSHHost) error {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(host.Key))
	if err != nil {
		return session.WrapError(err, session.CodeSSHInvalid, "The session told a key that is none.",
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
		for _, known := range lines {
			if strings.HasPrefix(known, name+" ") {
				if known != line {
					conflict = session.NewError(session.CodeSSHConflict,
						"The session proves who it is by another key than before.",
						"Somebody may have put another container in its place. If you know why, remove the line "+
							"of "+name+" from "+c.knownFile()+".")
				}
				return lines
			}
		}
		return append(lines, line)
	})
	return errors.Join(err, conflict)
}

// Fingerprint is a host's key as ssh shows it to people.
func Fingerprint(host session.SSHHost) string {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(host.Key))
	if err != nil {
		return ""
	}
	return ssh.FingerprintSHA256(key)
}

// Names returns the names by which ssh knows a session, the shortest first, and none where it is not kept.
func (c *Client) Names(id session.ID) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.aliases[id])
}

// Sessions returns the sessions that are kept.
func (c *Client) Sessions() []Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sessions)
}
