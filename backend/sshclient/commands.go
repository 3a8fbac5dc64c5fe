package sshclient

import (
	"net/url"
	"strings"

	"slipway/backend/session"
)

// Command is a command line that a person may copy.
type Command struct{ Name, Line string }

// Commands are examples for a session, none where it is not kept. Where the person's configuration does not include
// ours they name it.
func (c *Client) Commands(id session.ID, installed bool) []Command {
	names := c.Names(id)
	if len(names) == 0 {
		return nil
	}
	host, with, shell := names[0], "", "ssh"
	if !installed {
		with = "-F " + shellWord(c.ConfigFile()) + " "
		shell = "ssh " + strings.TrimSpace(with)
	}
	rsync := "rsync -av "
	if !installed {
		rsync += "-e " + shellWord(shell) + " "
	}
	return []Command{
		{"ssh", "ssh " + with + host},
		{"scp", "scp " + with + "-r results " + host + ":"},
		{"sftp", "sftp " + with + host},
		{"rsync", rsync + "./ " + host + ":project/"},
		{"forward", "ssh " + with + "-N -L 8080:localhost:8080 " + host},
	}
}

// Editor is the address that opens a session in Visual Studio Code, which reads the person's own configuration; empty
// where it is not kept.
func (c *Client) Editor(id session.ID) string {
	names := c.Names(id)
	if len(names) == 0 {
		return ""
	}
	return "vscode://vscode-remote/ssh-remote+" + url.PathEscape(names[0]) + session.Home
}
