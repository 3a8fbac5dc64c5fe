package sshclient

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"slipway/backend/session"
)

// Domain ends the names that are always ours.
const Domain = ".slipway"

// Session is a session that can be reached.
type Session struct {
	ID      session.ID
	Name    string
	Agent   string
	Kernels []string // besides the main one
}

// alias is how the keys of a kernel are kept apart from all others. Both are valid.
func alias(id session.ID, kernel string) string {
	if kernel == "" || kernel == session.MainKernel {
		return "slipway-" + string(id)
	}
	return "slipway-" + string(id) + "-" + kernel
}

// plain is a name that has no meaning to ssh or to a shell, and is no longer than names are.
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

// names returns the names of each session, the shortest first. Its bare name is among them only where nothing else can
// be meant by it: no other session, no name with a domain, and none that taken knows.
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
				own = append(own, name+"."+agent+Domain)
			}
		default:
			if bare := name; !strings.Contains(bare, ".") && !strings.EqualFold(bare, "localhost") && !taken(bare) {
				own = append(own, bare)
			}
			own = append(own, name+Domain)
		}
		all[s.ID] = append(own, string(s.ID)+Domain)
	}
	return unambiguous(sessions, all)
}

// unambiguous takes away what could mean two sessions, of two people with one name on one agent for example, or a
// kernel of another session. An id always means the session that has it.
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
			return used[strings.ToLower(name)] > 1 && name != string(id)+Domain
		})
	}
	return all
}

// head stands at the top of the configuration.
const head = "# The sessions of Slipway. This file is written anew whenever one starts, ends or\n# is renamed; what " +
	"is changed here is lost.\n"

// render writes the configuration. See ssh_config(5).
func (c *Client) render(sessions []Session, names map[session.ID][]string) string {
	var b strings.Builder
	b.WriteString(head)
	for _, s := range sessions {
		c.entry(&b, names[s.ID], s.ID, "")
		for _, kernel := range s.Kernels {
			var own []string
			for _, name := range names[s.ID] {
				if strings.HasSuffix(name, Domain) {
					own = append(own, kernel+"."+name)
				}
			}
			c.entry(&b, own, s.ID, kernel)
		}
	}
	return b.String()
}

func (c *Client) entry(b *strings.Builder, names []string, id session.ID, kernel string) {
	key := alias(id, kernel)
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
		{"GlobalKnownHostsFile", nowhere()},
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

// proxy is the command that carries a connection. Nothing secret is in it: the token is read from the folder.
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

// shellWord is a word of the shell that ssh runs a ProxyCommand with.
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

// quoted is a path as an argument in the configuration, where % begins a token.
func quoted(path string) string {
	return `"` + strings.ReplaceAll(strings.ReplaceAll(filepath.ToSlash(path), "%", "%%"), `"`, `\"`) + `"`
}

func nowhere() string {
	if runtime.GOOS == "windows" {
		return "none"
	}
	return "/dev/null"
}
