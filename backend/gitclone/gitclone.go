// Package gitclone clones repositories with the git of the computer that it runs on.
package gitclone

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"slipway/backend/project"
	"slipway/backend/session"
	"slipway/tunnel/askpass"
	"slipway/tunnel/sshstdio"
)

// Clone is one run of git.
type Clone struct {
	Repository project.Repository
	Dir        string            // for the clone; absent or empty
	Sockets    string            // where git's questions go, see [sshstdio.MakeFolder]
	Asker      askpass.Asker     // answers them
	Tell       func(line string) // called with what git prints
	// Apart keeps from git what belongs to this account: its configuration, keys and stored logins. Git then reaches
	// repositories by HTTP only.
	Apart bool
}

// Installed reports whether there is a git.
func Installed() bool {
	_, err := exec.LookPath("git")
	return err == nil
}

// Author returns the person's name and address, as this account's git has them in a directory; empty: in the current
// one.
func Author(ctx context.Context, dir string) session.GitAuthor {
	get := func(name string) string {
		git := exec.CommandContext(ctx, "git", "config", "--get", name)
		git.Dir = dir
		value, err := git.Output()
		if err != nil { // there is no git, or no value
			return ""
		}
		return strings.TrimSpace(string(value))
	}
	return session.GitAuthor{Name: get("user.name"), Email: get("user.email")}
}

// Settings returns those of a clone with which commits have the person's name and address, wherever it is used.
func Settings(ctx context.Context) (settings []string) {
	author := Author(ctx, "")
	if author.Name != "" {
		settings = append(settings, "user.name="+author.Name)
	}
	if author.Email != "" {
		settings = append(settings, "user.email="+author.Email)
	}
	return settings
}

// Run runs git. What git has made is left if it fails.
func (c Clone) Run(ctx context.Context) error {
	var asking *askpass.Questions
	folder, err := sshstdio.MakeFolder(c.Sockets)
	if err == nil {
		defer os.RemoveAll(folder)
		asking, err = askpass.Listen(ctx, folder, c.Asker)
	}
	if err != nil {
		return session.WrapError(err, session.CodeFileFailed, "Git cannot be given a way to ask.",
			"Check that Slipway's directory can be written to.")
	}
	defer asking.Close()
	var settings []string
	if !c.Apart {
		settings = Settings(ctx)
	}
	git := exec.CommandContext(ctx, "git", c.Repository.Clone(c.Dir, settings...)...)
	// An address may come from a link: git is to reach other machines, and to run none of its helpers for more.
	git.Env = append(askpass.Environment(asking), "GIT_ALLOW_PROTOCOL=https:http:ssh:git", "LC_ALL=C.UTF-8",
		"LANGUAGE=en")
	if c.Apart {
		git.Args = slices.Insert(git.Args, 1, "-c", "core.hooksPath="+os.DevNull, "-c", "credential.helper=")
		git.Env = append(slices.DeleteFunc(git.Env, private), "GIT_ALLOW_PROTOCOL=https:http", "HOME="+folder,
			"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	}
	askpass.Detach(git)
	git.Cancel = func() error {
		askpass.Terminate(git, false)
		return nil
	}
	printed, err := git.StderrPipe()
	if err == nil {
		err = git.Start()
	}
	if err != nil {
		return session.WrapError(err, session.CodeCommandFailed, "Git cannot be started.", "Check its installation.")
	}
	said := follow(printed, c.Tell)
	err = git.Wait()
	_, refusal := asking.Outcome()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case refusal != nil:
		return refusal
	}
	return session.WrapError(err, session.CodeCommandFailed, "Git could not clone the repository: "+said+".",
		"Check the address, the branch and your access.")
}

// public are the variables of this account that git may have where it runs apart: how to reach the network, and how to
// ask.
var public = []string{"PATH", "TMPDIR", "TEMP", "SYSTEMROOT", "LC_ALL", "LANGUAGE", "HTTP_PROXY", "HTTPS_PROXY",
	"ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH",
	"GIT_TERMINAL_PROMPT", "GIT_ASKPASS", "SLIPWAY_ASKPASS"}

func private(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	return !slices.Contains(public, strings.ToUpper(name))
}

const maxTold = 1 << 10 // bytes of a line that git prints

// follow reads lines, which may replace each other, until their end, and returns the last that is no progress.
func follow(from io.Reader, tell func(line string)) (last string) {
	lines := bufio.NewScanner(from)
	lines.Split(func(data []byte, atEnd bool) (int, []byte, error) {
		if at := bytes.IndexAny(data, "\r\n"); at >= 0 {
			return at + 1, data[:at], nil
		}
		if len(data) >= maxTold || atEnd && len(data) > 0 {
			return len(data), data, nil
		}
		return 0, nil, nil
	})
	for lines.Scan() {
		line := askpass.Printable(lines.Text())
		if line == "" || strings.HasPrefix(line, "Cloning into ") { // a name that lasts until the end
			continue
		}
		if !strings.Contains(line, "% (") {
			last = strings.TrimRight(strings.TrimPrefix(line, "fatal: "), ".")
		}
		tell(line)
	}
	return last
}
