package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/gitclone"
	"slipway/backend/hub"
	"slipway/backend/project"
	"slipway/backend/session"
)

// open returns the folder of a project: a repository, a directory, or else one that is remembered.
func (u *up) open(ctx context.Context, c *caller, source string, spec session.Spec) (folder api.Folder, err error) {
	if _, err := os.Stat(source); err != nil && !project.IsRepository(source) {
		known, err := askAgain(ctx, c, route.Projects)
		if err != nil {
			return folder, err
		}
		i := slices.IndexFunc(known, func(one hub.RecentProject) bool {
			return one.Name == source && (spec.Agent == "" || spec.Agent == one.Agent)
		})
		if i >= 0 {
			return u.reopen(ctx, c, known[i])
		}
	}
	if u.anywhere {
		if err := u.onDefaultMachine(&spec); err != nil {
			return folder, err
		}
	}
	if project.IsRepository(source) {
		u.address = source
		r, err := repositoryOf(source)
		if err != nil {
			return folder, err
		}
		u.choice.Path = r.Path
		switch err := u.clone(ctx, r); {
		case errors.Is(err, exec.ErrNotFound):
			return u.cloneThere(ctx, c, r, spec.Agent)
		case err != nil:
			return folder, err
		}
		source = r.Name
	}
	return u.share(ctx, c, source, spec.Agent)
}

// reopen returns the folder of a remembered project, and chooses what was chosen before.
func (u *up) reopen(ctx context.Context, c *caller, one hub.RecentProject) (api.Folder, error) {
	u.choice = session.ProjectRequest{Path: one.Path, File: cmp.Or(u.choice.File, one.File),
		Environment: cmp.Or(u.choice.Environment, one.Environment)}
	folder, err := askAgain(ctx, c, route.Folder.At(string(one.Folder)).With("agent", one.Agent))
	var refused *client.Refused
	if errors.As(err, &refused) && refused.Problem.Code == session.CodeFolderNotFound {
		err = fail(session.CodeFolderNotFound,
			fmt.Sprintf("The folder of the project %s is no longer on %s.", one.Name, one.Agent),
			"Open the project again from its directory or repository.")
	}
	return folder, err
}

// share makes a directory of this computer a folder of the agent: itself on this computer, else a copy, to which a sync
// sends what has changed here.
func (u up) share(ctx context.Context, c *caller, dir, agent string) (api.Folder, error) {
	full, err := filepath.Abs(dir)
	if err == nil {
		full, err = filepath.EvalSymlinks(full)
	}
	if err != nil {
		return api.Folder{}, noLocal(dir, err)
	}
	agents, err := askAgain(ctx, c, route.Agents)
	if err != nil {
		return api.Folder{}, err
	}
	machines, err := askAgain(ctx, c, route.Machines)
	if err != nil {
		return api.Folder{}, err
	}
	near := ""
	for _, a := range agents {
		if a.Local {
			near = a.Name
		}
	}
	simulated := slices.ContainsFunc(machines, func(m hub.Machine) bool { return m.Agent == near && m.Engine == "sim" })
	req := session.FolderRequest{Name: cmp.Or(u.folder, project.FolderName(filepath.ToSlash(full)))}
	if !simulated {
		req.Path = full
	}
	here, err := u.folderOf(ctx, c, near, req)
	if err == nil && simulated { // it sees no directory of this computer
		err = u.upload(ctx, c, full, here)
	}
	if err != nil || agent == "" || agent == near {
		return here, err
	}
	there, err := u.folderOf(ctx, c, agent, session.FolderRequest{Name: here.Name})
	if err != nil {
		return there, err
	}
	_, err = c.operate(ctx, func() (api.Operation, error) {
		return begin(ctx, c, route.FileSync.Body(api.FileSyncing{Send: true,
			This: api.FileEnd{Folder: here.Name, Agent: near}, That: api.FileEnd{Folder: there.Name, Agent: agent}}))
	})
	return there, err
}

// upload makes a folder of the simulated machine of this computer a copy of a directory.
func (u up) upload(ctx context.Context, c *caller, dir string, folder api.Folder) error {
	job := &copying{program: u.program, caller: c, files: route.FolderFiles(), place: string(folder.ID),
		recursive: true, force: true, update: true, line: u.newStatusLine()}
	err := job.uploadTree(ctx, dir, ".")
	job.line.clear()
	if err == nil && job.done.Files > 0 {
		u.notice("%s copied to the folder %s on %s.", plural(job.done.Files, "file", "files"), folder.Name,
			folder.Agent)
	}
	return err
}

// folderOf returns the folder that is asked for, which it makes if there is none.
func (u up) folderOf(ctx context.Context, c *caller, agent string, req session.FolderRequest) (api.Folder, error) {
	folders, err := askAgain(ctx, c, route.Folders.With("agent", agent))
	if err != nil {
		return api.Folder{}, err
	}
	for _, f := range folders {
		same := req.Path != "" && u.folder == "" || f.Name == req.Name
		if same && f.State == session.FolderReady && f.Path == req.Path {
			return f, nil
		}
	}
	made, err := askAgain(ctx, c, route.FolderCreate.Body(api.FolderRequest{Agent: agent, FolderRequest: req}))
	var refused *client.Refused
	if errors.As(err, &refused) && refused.Problem.Code == session.CodeFolderExists {
		err = fail(session.CodeFolderExists, fmt.Sprintf("The folder %s on %s is another one.", req.Name,
			agent), "Choose another name with --folder.")
	}
	return made, err
}

// repositoryOf parses the address of a repository.
func repositoryOf(source string) (project.Repository, error) {
	r, err := project.ParseRepository(source)
	if err != nil {
		e := session.AsError(err, session.CodeUsage)
		err = failAs(ExitUsage, e.Code, e.Message, e.Hint)
	}
	return r, err
}

// cloneThere has a repository cloned into a folder of a machine, where this computer has no git. A folder that is there
// stays as it is.
func (u *up) cloneThere(ctx context.Context, c *caller, r project.Repository, agent string) (f api.Folder, err error) {
	if agent == "" {
		return f, fail(session.CodeProcessNotFound, "There is no git on this computer.",
			"Install git, or choose with --on another machine, whose git clones it then.")
	}
	folders, err := askAgain(ctx, c, route.Folders.With("agent", agent))
	if err != nil {
		return f, err
	}
	name := project.FolderName(r.Name)
	at := func(one api.Folder) bool { return one.Name == name && one.State == session.FolderReady }
	if i := slices.IndexFunc(folders, at); i >= 0 {
		u.notice("The folder %s is there already and is used as it is.", name)
		return folders[i], nil
	}
	if _, err := c.operate(ctx, func() (api.Operation, error) {
		return begin(ctx, c, route.ProjectClone.Body(hub.ProjectCloning{Address: u.address, Agent: agent}))
	}); err != nil {
		return f, err
	}
	return askAgain(ctx, c, route.Folder.At(name).With("agent", agent))
}

// clone clones a repository with the person's git, which asks for passwords itself. A clone that is there stays as it
// is. Without git, it fails with [exec.ErrNotFound].
func (u up) clone(ctx context.Context, r project.Repository) error {
	if _, err := os.Stat(r.Name); err == nil {
		u.notice("The directory %s is there already and is used as it is.", session.Printable(r.Name))
		return nil
	}
	git := exec.CommandContext(ctx, "git", r.Clone(r.Name, gitclone.Settings(ctx)...)...)
	git.Stdin, git.Stdout, git.Stderr = u.Stdin, u.Stderr, u.Stderr
	err := git.Run()
	if err != nil && !errors.Is(err, exec.ErrNotFound) {
		err = fail(session.CodeCommandFailed, sentence(fmt.Sprintf("git clone failed: %v", err)),
			"Look at what git says above.")
	}
	return err
}
