package sshclient

import (
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"slipway/backend/session"
)

// domain ends the names that are always ours.
const domain = ".slipway"

// Session is a session that can be reached.
type Session struct {
	ID      session.ID
	Name    string
	Agent   string
	Kernels []string // besides the main one
}

// alias returns the name of a kernel in known_hosts. Both parts must be valid.
func alias(id session.ID, kernel string) string {
	if kernel == "" || kernel == session.MainKernel {
		return "slipway-" + string(id)
	}
	return "slipway-" + string(id) + "-" + kernel
}

// plain shortens a name and replaces characters that have a meaning to ssh or a shell.
func plain(name string) string {
	name = name[:min(len(name), session.SessionNames.Max)]
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, name), "-.")
}

// names returns the names of each session, the shortest first. Its bare name is one of them only if it is unique, has
// no domain and is not taken.
func names(sessions []Session, taken func(string) bool) map[session.ID][]string {
	count := map[string]int{}
	for _, s := range sessions {
		count[strings.ToLower(plain(s.Name))]++
	}
	all := make(map[session.ID][]string, len(sessions))
	for _, s := range sessions {
		name := plain(s.Name)
		var own []string
		switch {
		case name == "":
		case count[strings.ToLower(name)] > 1:
			if agent := plain(s.Agent); agent != "" {
				own = append(own, name+"."+agent+domain)
			}
		default:
			if !strings.Contains(name, ".") && !strings.EqualFold(name, "localhost") && !taken(name) {
				own = append(own, name)
			}
			own = append(own, name+domain)
		}
		all[s.ID] = append(own, string(s.ID)+domain)
	}
	return unambiguous(sessions, all)
}

// unambiguous removes names that could mean two sessions, such as those of two people on one agent, or a kernel of
// another session. An id always means its session.
func unambiguous(sessions []Session, all map[session.ID][]string) map[session.ID][]string {
	used := map[string]int{}
	for _, s := range sessions {
		for _, name := range all[s.ID] {
			used[strings.ToLower(name)]++
			for _, kernel := range s.Kernels {
				used[strings.ToLower(kernel+"."+name)]++
			}
		}
	}
	for id, own := range all {
		all[id] = slices.DeleteFunc(own, func(name string) bool {
			return used[strings.ToLower(name)] > 1 && name != string(id)+domain
		})
	}
	return all
}

// head is the comment at the top of the configuration.
const head = "# Slipway's sessions. This file is rewritten whenever a session starts, ends or\n# is renamed. " +
	"Changes made here are lost.\n"

// render returns the configuration. See ssh_config(5).
func (c *Client) render(sessions []Session, names map[session.ID][]string) string {
	var b strings.Builder
	b.WriteString(head)
	for _, s := range sessions {
		c.entry(&b, names[s.ID], s.ID, "")
		for _, kernel := range s.Kernels {
			var own []string
			for _, name := range names[s.ID] {
				if strings.HasSuffix(name, domain) {
					own = append(own, kernel+"."+name)
				}
			}
			c.entry(&b, own, s.ID, kernel)
		}
	}
	return b.String()
}

func (c *Client) entry(b *strings.Builder, names []string, id session.ID, kernel string) {
	key, noFile := alias(id, kernel), "/dev/null"
	if runtime.GOOS == "windows" {
		noFile = "none"
	}
	fmt.Fprintf(b, "\nHost %s\n", strings.Join(names, " "))
	for _, option := range [][2]string{
		{"HostName", key},
		{"HostKeyAlias", key},
		{"User", User},
		{"Port", "22"},
		{"ProxyCommand", c.proxy(id, kernel)},
		{"IdentityFile", quoted(c.KeyFile())},
		{"IdentitiesOnly", "yes"},
		{"IdentityAgent", "none"},
		{"PreferredAuthentications", "publickey"},
		{"UserKnownHostsFile", quoted(c.knownFile())},
		{"GlobalKnownHostsFile", noFile},
		{"StrictHostKeyChecking", "yes"},
		{"UpdateHostKeys", "no"},
		{"CheckHostIP", "no"},
		{"CanonicalizeHostname", "no"},
		{"ForwardAgent", "no"},
		{"ForwardX11", "no"},
	} {
		fmt.Fprintf(b, "    %s %s\n", option[0], option[1])
	}
}

// proxy returns the command that carries a connection. It has no secrets, because it reads the token from the folder.
func (c *Client) proxy(id session.ID, kernel string) string {
	args := []string{c.config.Program, "ssh-proxy", "--home", c.config.Home}
	if kernel != "" {
		args = append(args, "--kernel", kernel)
	}
	args = append(args, string(id))
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = strings.ReplaceAll(shellWord(arg), "%", "%%")
	}
	return strings.Join(words, " ")
}

// shellWord quotes a word for the shell that ssh runs a ProxyCommand with.
func shellWord(text string) string {
	if text != "" && strings.Trim(text,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:@") == "" {
		return text
	}
	if runtime.GOOS == "windows" {
		return `"` + text + `"`
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// quoted quotes a path for the configuration, where % begins a token.
func quoted(path string) string {
	return `"` + strings.ReplaceAll(strings.ReplaceAll(filepath.ToSlash(path), "%", "%%"), `"`, `\"`) + `"`
}

// Command is a command line for copying.
type Command struct{ Name, Line string }

// Commands returns examples for a session, only of transfers to a directory if it serves one. It returns nil if the
// session has no entry. If the user's configuration does not include ours, the commands name it.
func (c *Client) Commands(id session.ID, installed bool, served string) []Command {
	names := c.Names(id)
	if len(names) == 0 {
		return nil
	}
	host, with, rsync := names[0], "", "rsync -av "
	if !installed {
		with = "-F " + shellWord(c.ConfigFile()) + " "
		rsync += "-e " + shellWord("ssh "+strings.TrimSpace(with)) + " "
	}
	if served != "" {
		to := shellWord(host + ":" + served + "/")
		return []Command{{"sftp", "sftp " + with + to}, {"scp", "scp " + with + "-r results " + to}}
	}
	return []Command{
		{"ssh", "ssh " + with + host},
		{"scp", "scp " + with + "-r results " + host + ":"},
		{"sftp", "sftp " + with + host},
		{"rsync", rsync + "./ " + host + ":project/"},
		{"forward", "ssh " + with + "-N -L 8080:localhost:8080 " + host},
	}
}

// Editor returns the address that opens a session in Visual Studio Code, which reads the user's own configuration, or
// "" if it has no entry.
func (c *Client) Editor(id session.ID) string {
	names := c.Names(id)
	if len(names) == 0 {
		return ""
	}
	return "vscode://vscode-remote/ssh-remote+" + url.PathEscape(names[0]) + session.Home
}
