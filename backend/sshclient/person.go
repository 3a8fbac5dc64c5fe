package sshclient

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/atomicwriter"

	"slipway/backend/session"
)

// mark is the comment above our line in the user's configuration.
const mark = "# Slipway: ssh reaches sessions by their names. Remove this with slipway ssh-config remove."

// PersonFile returns the path of the user's own configuration.
func (c *Client) PersonFile() string { return filepath.Join(c.config.Person, "config") }

func (c *Client) include() string { return "Include " + quoted(c.ConfigFile()) }

// Installed reports whether the user's configuration includes ours.
func (c *Client) Installed() (bool, error) {
	data, err := os.ReadFile(c.PersonFile())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, c.trouble(err)
	}
	return slices.ContainsFunc(strings.Split(string(data), "\n"), c.isInclude), nil
}

func (c *Client) isInclude(line string) bool { return strings.TrimSpace(line) == c.include() }

// Install makes the user's configuration include ours, at the top: further down, the line would belong to the entry
// above.
func (c *Client) Install() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := os.MkdirAll(c.config.Person, 0o700); err != nil {
		return c.trouble(err)
	}
	return c.edit(func(text string) string {
		ours := mark + "\n" + c.include() + "\n"
		if text = c.without(text); text != "" {
			ours += "\n" + text
		}
		return ours
	})
}

// Remove removes our lines from the user's configuration, or the file if it has nothing else.
func (c *Client) Remove() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.edit(c.without)
}

// without returns a configuration without our lines and the empty one below them.
func (c *Client) without(text string) string {
	lines := strings.SplitAfter(text, "\n")
	kept := lines[:0:0]
	for i := 0; i < len(lines); i++ {
		switch ours := c.isInclude(lines[i]); {
		case ours && i+1 < len(lines) && lines[i+1] == "\n":
			i++
		case !ours && strings.TrimSpace(lines[i]) != mark:
			kept = append(kept, lines[i])
		}
	}
	return strings.Join(kept, "")
}

// edit changes the user's configuration atomically. It follows a link and keeps the mode. It needs mu.
func (c *Client) edit(change func(string) string) error {
	path := c.PersonFile()
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	old, err := os.ReadFile(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return c.trouble(err)
	}
	changed := change(string(old))
	switch {
	case changed == string(old):
		return nil
	case changed == "" && path == c.PersonFile():
		return c.trouble(os.Remove(path))
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	return c.trouble(atomicwriter.WriteFile(path, []byte(changed), mode))
}

func (c *Client) trouble(err error) error {
	if err == nil {
		return nil
	}
	return session.WrapError(err, session.CodeSSHFailed, fmt.Sprintf("The file %s cannot be changed.", c.PersonFile()),
		"Check who owns it, or put this line at its top yourself: "+c.include())
}

// taken returns a function that reports whether a name already means a host to the user, by an entry of their own
// configuration or because they have logged in there. A session must not use such a name, because another machine may
// have chosen it. Files that the configuration includes are not read.
func (c *Client) taken() func(string) bool {
	patterns := c.configured()
	names, digests := c.visited()
	return func(name string) bool {
		name = strings.ToLower(name)
		return names[name] || slices.ContainsFunc(digests, func(d hostDigest) bool {
			mac := hmac.New(sha1.New, d.salt)
			mac.Write([]byte(name))
			return bytes.Equal(mac.Sum(nil), d.sum)
		}) || slices.ContainsFunc(patterns, func(pattern string) bool {
			matched, err := filepath.Match(pattern, name)
			return matched && err == nil
		})
	}
}

// hostDigest is a name in known_hosts as a salted HMAC-SHA1.
type hostDigest struct{ salt, sum []byte }

// visited returns the names and digests in the user's known_hosts, the names in lower case.
func (c *Client) visited() (names map[string]bool, digests []hostDigest) {
	data, _ := os.ReadFile(filepath.Join(c.config.Person, "known_hosts")) // a missing file has no names
	names = map[string]bool{}
	for line := range strings.SplitSeq(string(data), "\n") {
		words := strings.Fields(line)
		if len(words) > 1 && strings.HasPrefix(words[0], "@") {
			words = words[1:]
		}
		if len(words) < 2 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if parts := strings.Split(words[0], "|"); len(parts) == 4 && parts[1] == "1" {
			salt, saltErr := base64.StdEncoding.DecodeString(parts[2])
			sum, sumErr := base64.StdEncoding.DecodeString(parts[3])
			if saltErr == nil && sumErr == nil {
				digests = append(digests, hostDigest{salt, sum})
			}
			continue
		}
		for host := range strings.SplitSeq(words[0], ",") {
			host, _, _ = strings.Cut(strings.TrimPrefix(host, "["), "]")
			names[strings.ToLower(host)] = true
		}
	}
	return names, digests
}

// configured returns the patterns of the user's configuration in lower case, except those for all hosts.
func (c *Client) configured() []string {
	data, _ := os.ReadFile(c.PersonFile()) // a missing file has no entries
	var patterns []string
	for line := range strings.SplitSeq(string(data), "\n") {
		words := strings.Fields(strings.Replace(line, "=", " ", 1))
		if len(words) < 2 || !strings.EqualFold(words[0], "host") {
			continue
		}
		for _, pattern := range words[1:] {
			pattern = strings.ToLower(strings.Trim(pattern, `"`))
			if strings.Trim(pattern, "*?") != "" && !strings.HasPrefix(pattern, "!") {
				patterns = append(patterns, pattern)
			}
		}
	}
	return patterns
}
