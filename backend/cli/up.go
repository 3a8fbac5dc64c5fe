package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
)

func (p runCommands) upCommand() *cobra.Command {
	flags, idle, opts := p.projectFlags(), idleFlags{}, runOptions{count: 1}
	var choice session.ProjectRequest
	var folder, where string
	var list, dockerfile bool
	cmd := &cobra.Command{Use: "up [flags] [PROJECT] [COMMAND…]", Short: "Launch a session for a project",
		Long: `Up makes the image that a project asks for and launches a session with it and the project's
folder. PROJECT is a directory (default: the current one) or the address of a git repository,
URL[@BRANCH][#SUBDIRECTORY], which your own git clones into the current directory. Without one,
the git of the machine that --on names clones it there. Projects are remembered: PROJECT can also
be a name that --list shows, unless a directory has it.

The first of these files in it decides: .devcontainer/devcontainer.json, .devcontainer.json,
Dockerfile, then environment.yml, requirements.txt, Pipfile, pyproject.toml, setup.py, apt.txt,
install.R, postBuild, runtime.txt and start, in .binder or binder if there is one. Without any,
the session uses the environment itself. What is not taken over is said.

On this computer, the session sees the directory itself. On another machine it gets a copy in
a folder; the same command sends what has changed here since, and overwrites or deletes nothing
that changed there: slipway folder sync does that. By its name, a remembered project is used as
its folder has it. An image is built again only if what it is built from has changed.

The machine builds the image with its own internet access, and nothing is sent. With --build
through, what it downloads comes through this computer, and images to extend that it lacks are
sent. With --build here, this computer builds with its own Docker, then sends the layers that
the machine lacks: of the images to extend, and all that the build adds.

--dockerfile prints what would be built, also if Slipway has written it: save it as Dockerfile
in the project, and from then on it decides.

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
	f.StringVar(&where, "build", "there", "where an image for another machine is built: there, through or here")
	f.BoolVar(&list, "list", false, "list the remembered projects and launch nothing")
	f.BoolVar(&dockerfile, "dockerfile", false, "print the project's Dockerfile and launch nothing")
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
		place, known := map[string]hub.BuildPlace{"there": hub.BuildThere, "through": hub.BuildThrough,
			"here": hub.BuildHere}[where]
		if !known {
			return usagef("--build is there, through or here, not %q", where)
		}
		spec, err := p.buildSpec(flags, idle, opts)
		if err == nil {
			err = opts.check(spec)
		}
		if err != nil {
			return err
		}
		one := up{runCommands: p, choice: choice, folder: folder, where: place, opts: opts,
			anywhere: !f.Changed("on"), prints: dockerfile}
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
	where    hub.BuildPlace
	opts     runOptions
	anywhere bool   // no machine was named
	prints   bool   // the Dockerfile, and does nothing more
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
	if u.prints {
		return u.print(found)
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
				hub.ProjectBuilding{ProjectRequest: u.choice, Where: u.where, Secrets: secrets}))
		}); err != nil {
			return err
		}
	}
	_, _ = u.remember(working, c, folder, found.Image)
	cancel()
	return u.runCommands.run(ctx, spec, u.opts)
}

func (u up) print(found session.Project) error {
	if found.Dockerfile == "" {
		return fail(session.CodeImageInvalid, "The project has nothing to build: it uses the image "+
			session.Printable(found.Image)+".", "Launch a session with slipway up.")
	}
	for i, part := range strings.Split(found.Dockerfile, "\t") { // a tab may have a meaning
		if i > 0 {
			fmt.Fprint(u.Stdout, "\t")
		}
		fmt.Fprint(u.Stdout, session.Printable(part))
	}
	return nil
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
	spec.Accelerator = cmp.Or(spec.Accelerator, found.Accelerator)
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
