package sshclient

import (
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

// mark stands above our line in the person's configuration.
const mark = "# Slipway: ssh reaches sessions by their names. slipway ssh-config remove takes this out."

// PersonFile is the person's own configuration.
func (c *Client) PersonFile() string { return filepath.Join(c.config.Person, "config") }

func (c *Client) include() string { return "Include " + quoted(c.ConfigFile()) }

// Installed reports whether the person's own configuration includes ours.
func (c *Client) Installed() (bool, error) {
	data, err := os.ReadFile(c.PersonFile())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, c.trouble(err)
	}
	return slices.Contains(trimmed(string(data)), c.include()), nil
}

func trimmed(text string) []string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// Install has the person's own configuration include ours, at its top: further down the line would belong to the entry
// above it.
func (c *Client) Install() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := os.MkdirAll(c.config.Person, 0o700); err != nil {
		return c.trouble(err)
	}
	return c.edit(func(text string) string {
		text = c.without(text)
		if text == "" {
			return mark + "\n" + c.include() + "\n"
		}
		return mark + "\n" + c.include() + "\n\n" + text
	})
}

// Remove takes our lines out of the person's configuration. A file that holds nothing else is removed.
func (c *Client) Remove() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.edit(c.without)
}

// without is a configuration without our lines and the empty one below them.
func (c *Client) without(text string) string {
	lines := strings.SplitAfter(text, "\n")
	kept := lines[:0:0]
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if line != mark && line != c.include() {
			kept = append(kept, lines[i])
			continue
		}
		if line == c.include() && i+1 < len(lines) && lines[i+1] == "\n" {
			i++
		}
	}
	return strings.Join(kept, "")
}

// edit changes the person's configuration at once, behind a link too, and leaves its mode as it is. It needs mu.
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
