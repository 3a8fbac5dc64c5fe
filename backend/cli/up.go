package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/hub"
	"slipway/backend/project"
	"slipway/backend/session"
	"slipway/gpu"
)

func (p runCommands) upCommand() *cobra.Command {
	flags, idle, opts := p.projectFlags(), idleFlags{}, runOptions{count: 1}
	var choice session.ProjectRequest
	var folder string
	var list bool
	cmd := &cobra.Command{Use: "up [flags] [PROJECT] [COMMAND…]", Short: "Launch a session for a project",
		Long: `Up makes the image that a project asks for and launches a session with it and the project's
folder. PROJECT is a directory (default: the current one) or the address of a git repository,
URL[@BRANCH][#SUBDIRECTORY], which your own git clones into the current directory. Projects
are remembered: PROJECT can also be a name that --list shows, unless a directory has it.

The first of these files in it decides: .devcontainer/devcontainer.json, .devcontainer.json,
Dockerfile, then environment.yml, requirements.txt, Pipfile, pyproject.toml, setup.py, apt.txt,
install.R and postBuild, in .binder or binder if there is one. Without any, the session uses
the environment itself. What is not taken over is said.

On this computer, the session sees the directory itself. On another machine it gets a copy in
a folder; the same command sends what has changed since. By its name, a remembered project is
used as its folder has it. An image is built again only if what it is built from has changed.

A Dockerfile with RUN --mount=type=secret,id=NAME reads your secret NAME (slipway secret set NAME)
while that step runs, after you agree. The value is not in the image, nor in the build's log.
A project that asks for another folder of yours gets it only if you agree.

COMMAND and the other flags are those of slipway run.`,
		Example: "  slipway up\n  slipway up --on lab --gpu 1 ./train\n" +
			"  slipway up https://example.com/ada/paper.git@v2#notebooks"}
	flags.add(cmd)
	idle.add(cmd)
	f := cmd.Flags()
	f.StringVar(&choice.File, "project-file", "", "file of the project that decides, instead of the first")
	f.StringVar(&choice.Environment, "environment", "", "image to extend (default: the first environment with Jupyter)")
	f.StringVar(&folder, "folder", "", "name of the folder (default: that of the directory)")
	f.BoolVar(&list, "list", false, "list the remembered projects and launch nothing")
	f.BoolVarP(&opts.detach, "detach", "d", false, "print the ID and return at once")
	f.BoolVar(&opts.wait, "wait", false, "wait until the session runs, and print its ID")
	p.yesFlag(cmd)
	f.SetInterspersed(false)
	asInDocker(cmd)
	return runs(cmd, func(cmd *cobra.Command, args []string) error {
		if list {
			return p.command(func(ctx context.Context, c *caller, _ []string) error {
				return show(ctx, c, route.Projects, p.projectTable)
			})(cmd, args)
		}
		source := "."
		if len(args) > 0 {
			source, opts.words = args[0], args[1:]
		}
		spec, err := p.buildSpec(flags, idle, opts)
		if err == nil {
			err = opts.check(spec)
		}
		if err != nil {
			return err
		}
		one := up{runCommands: p, choice: choice, folder: folder, opts: opts, anywhere: !f.Changed("on")}
		return one.run(cmd.Context(), source, spec)
	})
}

func (p runCommands) projectTable(w io.Writer, known []hub.RecentProject) {
	if len(known) == 0 {
		fmt.Fprintln(w, "No project was opened yet.")
		return
	}
	table(w, "NAME,AGENT, OPENED,PINNED,CLONED FROM", known, func(one hub.RecentProject) []string {
		pinned := ""
		if one.Pinned {
			pinned = "yes"
		}
		return []string{one.Name, one.Agent, p.age(one.OpenedAt), pinned, one.Address}
	})
}

// projectFlags are those of run that a project does not decide.
func (p runCommands) projectFlags() specFlags {
	decided := []string{"image", "group", "no-volume", "no-after", "admin"}
	return slices.DeleteFunc(p.runFlags(), func(flag *specFlag) bool { return slices.Contains(decided, flag.name) })
}

// up is one run of the command.
type up struct {
	runCommands
	choice   session.ProjectRequest
	folder   string // its name; empty: that of the directory
	opts     runOptions
	anywhere bool   // no machine was named
	address  string // of the repository that was cloned; empty: none
}

func (u up) run(ctx context.Context, source string, spec session.Spec) error {
	working, cancel := interruptible(ctx)
	defer cancel()
	c, err := u.connect(working)
	if err != nil {
		return err
	}
	folder, err := u.open(working, c, source, spec)
	if err != nil {
		return err
	}
	found, err := askAgain(working, c, route.Project.At(string(folder.ID)).Body(u.choice))
	if err != nil {
		return err
	}
	opened, _ := u.remember(working, c, folder, "") // what follows does not depend on it
	u.tell(found)
	u.complete(&spec, folder, found)
	if s, err := route.Session.At(spec.Name).Ask(working, c); err == nil && !ended(s) {
		return u.again(ctx, c, s, found)
	}
	if err := u.mayMount(working, folder, found); err != nil {
		return err
	}
	if found.Dockerfile != "" && !found.Present {
		if opened.Image != "" && opened.Image != found.Image {
			u.notice("The project has changed since its image was built, so it is built again.")
		}
		secrets, err := u.secrets(working, c, found)
		if err != nil {
			return err
		}
		if _, err := c.operate(working, func() (api.Operation, error) {
			return begin(working, c, route.ProjectBuild.At(string(folder.ID)).Body(
				hub.ProjectBuilding{ProjectRequest: u.choice, Secrets: secrets}))
		}); err != nil {
			return err
		}
	}
	_, _ = u.remember(working, c, folder, found.Image)
	cancel()
	return u.runCommands.run(ctx, spec, u.opts)
}

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
		if source, u.choice.Path, err = u.clone(ctx, source); err != nil {
			return folder, err
		}
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

// remember has the project reopened later. With an image, a session is launched with it now.
func (u up) remember(ctx context.Context, c *caller, f api.Folder, image string) (hub.RecentProject, error) {
	opening := hub.ProjectOpening{ProjectRequest: u.choice, Address: u.address, Image: image}
	return askAgain(ctx, c, route.ProjectOpen.At(string(f.ID)).Body(opening))
}

// again uses the session of the project that there is.
func (u up) again(ctx context.Context, c *caller, s api.Session, found session.Project) error {
	if s.Spec.Image != found.Image {
		return fail(session.CodeNameTaken,
			fmt.Sprintf("The session %s runs with an older image of the project.", s.Name),
			fmt.Sprintf("End it with slipway stop %s, or launch another one with --name.", s.Name))
	}
	u.notice("%s is there already.", s.Name)
	if u.opts.detach {
		return u.printLaunched(s)
	}
	s, err := u.waitRunning(ctx, c, s, 0)
	if err != nil {
		return err
	}
	return exitWith(u.enter(ctx, c, s, u.opts))
}

// tell says what the project asks for.
func (u up) tell(found session.Project) {
	what := "No file says what it needs, so it uses " + found.Image + "."
	if found.File != "" {
		what = fmt.Sprintf("%s decides.", session.Printable(found.File))
	}
	u.notice("%s", what)
	if found.Setup != "" {
		u.notice("Its commands run in the session after the start; slipway logs shows what they print.")
	}
	for _, m := range found.Mounts {
		readOnly := ""
		if m.ReadOnly {
			readOnly = " (read-only)"
		}
		u.notice("The session has the folder %s as %s%s.", session.Printable(path.Join(m.Name, m.Path)),
			session.Printable(m.Target), readOnly)
	}
	for _, left := range found.Left {
		u.notice("Not taken over: %s. %s", session.Printable(left.What), left.Why.English())
	}
}

// mayMount asks before the project's code can use folders other than its own.
func (u up) mayMount(ctx context.Context, folder api.Folder, found session.Project) error {
	var names []string
	for _, m := range found.Mounts {
		if m.Folder != folder.ID && !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return u.confirm(ctx, "May the project use other folders of yours: "+strings.Join(names, ", ")+"?")
}

// secrets returns those that the build may read, after the person has agreed, and says which are missing.
func (u up) secrets(ctx context.Context, c *caller, found session.Project) (names []string, err error) {
	if len(found.Secrets) == 0 {
		return nil, nil
	}
	stored, err := askAgain(ctx, c, route.Secrets)
	if err != nil {
		return nil, err
	}
	for _, name := range found.Secrets {
		if slices.ContainsFunc(stored, func(one hub.Secret) bool {
			return one.Kind == hub.SecretVariable && one.Name == name
		}) {
			names = append(names, name)
		} else {
			u.notice("%s", session.Say("secretMissing", session.Fill("name", name)).English())
		}
	}
	if len(names) > 0 {
		err = u.confirm(ctx, "May the build read "+strings.Join(names, ", ")+"?")
	}
	return names, err
}

// complete adds to a spec what the project asks for. The flags win.
func (u up) complete(spec *session.Spec, folder api.Folder, found session.Project) {
	spec.Image = found.Image
	spec.Mounts = append(mountsOf(folder, found, spec.Mounts), spec.Mounts...)
	spec.Agent = cmp.Or(spec.Agent, folder.Agent)
	if spec.Name == "" {
		spec.Name = folder.Name
		if session.SessionNames.Check(spec.Name) != nil {
			spec.Name = "project-" + strings.Trim(spec.Name, ".-")
		}
	}
	for _, one := range found.Env {
		if !slices.ContainsFunc(spec.Env, func(set session.EnvVar) bool { return set.Name == one.Name }) {
			spec.Env = append(spec.Env, one)
		}
	}
	for _, port := range found.Ports {
		if !slices.Contains(spec.Ports, port) {
			spec.Ports = append(spec.Ports, port)
		}
	}
	r := &spec.Resources
	r.CPU, r.Memory, r.Shm = cmp.Or(r.CPU, found.Minimum.CPU), cmp.Or(r.Memory, found.Minimum.Memory),
		cmp.Or(r.Shm, found.Minimum.Shm)
	spec.Setup = cmp.Or(spec.Setup, found.Setup)
	if found.GPU && spec.Accelerator.IsZero() {
		spec.Accelerator = gpu.Request{Devices: 1}
	}
}

// mountsOf returns the mounts of a project, without those whose place one of the flags has.
func mountsOf(folder api.Folder, found session.Project, flags []session.Mount) []session.Mount {
	if len(found.Mounts) == 0 {
		return []session.Mount{{Folder: string(folder.ID)}}
	}
	var mounts []session.Mount
	for i, m := range found.Mounts {
		if i == 0 || !slices.ContainsFunc(flags, func(flag session.Mount) bool {
			return session.MountTarget(flag) == m.Target
		}) {
			mounts = append(mounts, session.Mount{Folder: string(m.Folder), Path: m.Path, Target: m.Target,
				ReadOnly: m.ReadOnly})
		}
	}
	return mounts
}

// share makes a directory of this computer a folder of the agent: itself where its sessions see it, else a copy, for
// which files with the same size and time are not sent again.
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
	linked := false
	for _, a := range agents {
		if a.Local && (agent == "" || agent == a.Name) {
			agent = a.Name
			linked = !slices.ContainsFunc(machines, func(m hub.Machine) bool {
				return m.Agent == agent && (m.Engine == "sim" || slices.Contains(m.Lacks, session.FeatureMounts))
			})
		}
	}
	req := session.FolderRequest{Name: cmp.Or(u.folder, project.FolderName(filepath.ToSlash(full)))}
	if linked {
		req.Path = full
	}
	folder, err := u.folderOf(ctx, c, agent, req)
	if err != nil || linked {
		return folder, err
	}
	job := &copying{program: u.program, caller: c, files: route.FolderFiles(), place: string(folder.ID),
		recursive: true, force: true, update: true, line: u.newStatusLine()}
	err = job.uploadTree(ctx, full, ".")
	job.line.clear()
	if err == nil && job.done.Files > 0 {
		u.notice("%s copied to the folder %s on %s.", plural(job.done.Files, "file", "files"), folder.Name,
			folder.Agent)
	}
	return folder, err
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
	return askAgain(ctx, c, route.FolderCreate.Body(api.FolderRequest{Agent: agent, FolderRequest: req}))
}

// clone clones a repository with the person's git, which asks for passwords itself. A clone that is there stays as it
// is.
func (u up) clone(ctx context.Context, source string) (dir, sub string, err error) {
	r, err := project.ParseRepository(source)
	if err != nil {
		e := session.AsError(err, session.CodeUsage)
		return "", "", failAs(ExitUsage, e.Code, e.Message, e.Hint)
	}
	if _, err := os.Stat(r.Name); err == nil {
		u.notice("The directory %s is there already and is used as it is.", session.Printable(r.Name))
		return r.Name, r.Path, nil
	}
	git := exec.CommandContext(ctx, "git", r.Clone(r.Name)...)
	git.Stdin, git.Stdout, git.Stderr = u.Stdin, u.Stderr, u.Stderr
	if err := git.Run(); err != nil {
		return "", "", fail(session.CodeCommandFailed, sentence(fmt.Sprintf("git clone failed: %v", err)),
			"Look at what git says above.")
	}
	return r.Name, r.Path, nil
}
