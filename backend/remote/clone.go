package remote

import (
	"context"
	"os"
	"path/filepath"

	"slipway/backend/gitclone"
	"slipway/backend/hub"
	"slipway/backend/project"
	"slipway/backend/session"
)

// HasGit implements [hub.Cloner].
func (c *Connector) HasGit() bool { return gitclone.Installed() }

// Author returns the person's name and address, as git has them outside of repositories.
func (c *Connector) Author(ctx context.Context) session.GitAuthor {
	home, _ := os.UserHomeDir() // else the current directory
	return gitclone.Author(ctx, home)
}

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
	if !gitclone.Installed() {
		return "", session.NewError(session.CodeProcessNotFound, "There is no git on this computer.",
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
	person := &asker{}
	defer person.ask(work)()
	made := filepath.Join(part, repository.Name)
	err = gitclone.Clone{Repository: repository, Dir: made, Sockets: c.sockets, Asker: person, Tell: tell}.Run(ctx)
	if err != nil {
		return "", err
	}
	if err := os.Rename(made, dir); err != nil {
		return "", session.WrapError(err, session.CodeFileFailed, "The clone cannot be moved to "+dir+".",
			"Choose another directory for the clone.")
	}
	return dir, nil
}
