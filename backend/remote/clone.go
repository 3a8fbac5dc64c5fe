package remote

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"slipway/backend/hub"
	"slipway/backend/project"
	"slipway/backend/session"
	"slipway/tunnel/askpass"
	"slipway/tunnel/sshstdio"
)

const maxTold = 1 << 10 // bytes of a line that git prints

// Clone clones a repository into a new directory below parent, or of the person's home, with the person's own git, its
// helpers and the ssh agent. What git asks, the operation asks. If it fails, it leaves nothing.
func (c *Connector) Clone(ctx context.Context, work *hub.Work, repository project.Repository, parent string,
	tell func(line string)) (dir string, err error) {
	if parent == "" {
		if parent, err = os.UserHomeDir(); err != nil {
			return "", session.WrapError(err, session.CodeFileNotFound, "Your home directory is not known.",
				"Name the directory for the clone.")
		}
	}
	if !filepath.IsAbs(parent) {
		return "", session.NewError(session.CodeFileInvalid, session.Clip(parent)+" is not a whole path.",
			"Write the directory for the clone from its root.")
	}
	git, err := exec.LookPath("git")
	if err != nil {
		return "", session.WrapError(err, session.CodeProcessNotFound, "There is no git on this computer.",
			"Install git, or clone the repository elsewhere and use the directory.")
	}
	dir = filepath.Join(parent, repository.Name)
	if _, err := os.Lstat(dir); err == nil {
		return "", session.NewError(session.CodeFileExists, "The directory "+dir+" is there already.",
			"Use it as a folder, or choose another directory for the clone.")
	}
	part, err := os.MkdirTemp(parent, "."+repository.Name+".part-")
	if err != nil {
		return "", session.WrapError(err, session.CodeFileForbidden, "There can be no clone in "+parent+".",
			"Choose a directory that exists and that you may write to.")
	}
	defer os.RemoveAll(part)
	made := filepath.Join(part, repository.Name)
	if err := c.runGit(ctx, work, exec.CommandContext(ctx, git, repository.Clone(made)...), tell); err != nil {
		return "", err
	}
	if err := os.Rename(made, dir); err != nil {
		return "", session.WrapError(err, session.CodeFileFailed, "The clone cannot be moved to "+dir+".",
			"Choose another directory for the clone.")
	}
	return dir, nil
}

// runGit runs git, tells what it prints, and passes its questions on.
func (c *Connector) runGit(ctx context.Context, work *hub.Work, git *exec.Cmd, tell func(line string)) error {
	person := &asker{}
	defer person.ask(work)()
	var asking *askpass.Questions
	folder, err := sshstdio.MakeFolder(c.sockets)
	if err == nil {
		defer os.RemoveAll(folder)
		asking, err = askpass.Listen(ctx, folder, person)
	}
	if err != nil {
		return session.WrapError(err, session.CodeFileFailed, "Git cannot be given a way to ask.",
			"Check that Slipway's directory can be written to.")
	}
	defer asking.Close()
	// An address may come from a link: git is to reach other machines, and to run none of its helpers for more.
	git.Env = append(askpass.Environment(asking), "GIT_ALLOW_PROTOCOL=https:http:ssh:git", "LC_ALL=C.UTF-8",
		"LANGUAGE=en")
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
	said := follow(printed, tell)
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
