package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/hub"
	"slipway/backend/session"
)

// runOptions are the options of run that are not in the spec.
type runOptions struct {
	detach, wait, remove, createFolders bool

	file     string // of the spec; may be empty
	timeout  time.Duration
	words    []string // the command
	count    int      // of sessions
	gpuGiven bool     // a flag sets the devices, so that a preset does not
	preset   string
	owner    string // empty: oneself
}

func (p runCommands) runCommand() *cobra.Command {
	flags, idle, opts := p.runFlags(), idleFlags{}, runOptions{}
	cmd := &cobra.Command{Use: "run [flags] [IMAGE] [COMMAND…]", Short: "Launch a session",
		Long: `Run launches a session of IMAGE. Flags go before the image; everything after it is COMMAND.
With --image or --file, all arguments are COMMAND.

Interactive sessions: run waits for the session and opens a terminal in it that runs COMMAND
or a shell. The session keeps running after the terminal ends: use slipway attach to return
and slipway stop to terminate it. If this is not a terminal, run executes COMMAND as slipway
exec does. Without COMMAND, or with --detach, it prints the ID at once.

Batch sessions (--type batch): the session runs COMMAND and ends with it. Run prints the ID
at once. With --wait it shows the log and exits with the exit code of COMMAND. If COMMAND is
a single word with spaces, the shell of the image runs it.

If something that a file (-f) names is missing here (an agent, a folder, devices, a session to
wait for), run says so at once, with the flags that fix it. It never skips anything unasked.

--memory, --cpus and --gpus mean the same as --mem, --cpu and --gpu.`,
		Example: `  slipway run python:3.12
  slipway run --type batch --wait --cpu 2 --mem 4g -v ./data:data python:3.12 python train.py
  slipway run --gpu 0.5 --priority 50 --pending-timeout 2h --detach pytorch:2.5
  slipway run --type batch --gpu vram:12g --after prepare --count 4 --name sweep pytorch:2.5 python sweep.py
  slipway run -f recipe.yaml --name second-try --on= --create-folders --gpu none`}
	flags.add(cmd)
	idle.add(cmd)
	f := cmd.Flags()
	f.StringVarP(&opts.file, "file", "f", "", "read the session from a YAML file, - for stdin; flags override it")
	f.StringVar(&opts.preset, "preset", "", "name of a resource preset; other flags override it")
	f.BoolVar(&opts.createFolders, "create-folders", false, "create missing folders that the session mounts")
	f.BoolVarP(&opts.detach, "detach", "d", false, "print the ID and return at once")
	f.BoolVar(&opts.wait, "wait", false, "wait until an interactive session runs or a batch session ends")
	f.DurationVar(&opts.timeout, "wait-timeout", 0,
		"stop waiting after this long, such as 10m; the session keeps running")
	f.BoolVar(&opts.remove, "rm", false, "terminate an interactive session when its terminal or command ends")
	f.IntVar(&opts.count, "count", 1, "launch this many, 1 to 10, named NAME-1, NAME-2 …; prints the IDs at once")
	f.StringVar(&opts.owner, "owner", "", "owner of the session, on an agent that you administer (default: you)")
	f.SetInterspersed(false)
	asInDocker(cmd)
	groupFlags(cmd, runGroups())
	return runs(cmd, func(cmd *cobra.Command, args []string) error {
		opts.words, opts.gpuGiven = args, f.Changed("gpu")
		if !f.Changed("image") && opts.file == "" && cmd.ArgsLenAtDash() != 0 {
			if err := opts.takeImage(f); err != nil {
				return err
			}
		}
		spec, err := p.buildSpec(flags, idle, opts)
		if err == nil && spec.Image == "" {
			err = usagef("missing image: use slipway run IMAGE, or --image IMAGE")
		}
		if err == nil && !f.Changed("on") {
			err = p.onDefaultMachine(&spec)
		}
		if err == nil {
			err = opts.check(spec)
		}
		if err != nil {
			return err
		}
		return p.run(cmd.Context(), spec, opts)
	})
}

// takeImage takes the image from the first word of the command, as docker run does.
func (o *runOptions) takeImage(flags *pflag.FlagSet) error {
	if len(o.words) == 0 {
		return nil
	}
	image := o.words[0]
	o.words = o.words[1:]
	switch {
	case len(o.words) > 0 && o.words[0] == "--":
		o.words = o.words[1:]
	case len(o.words) > 0 && strings.HasPrefix(o.words[0], "-"):
		return usagef("flags go before the image: slipway run %s … %s", o.words[0], image)
	}
	return flags.Set("image", image)
}

// onDefaultMachine sets the agent of a launch that names neither an agent nor a group to the default machine.
func (p runCommands) onDefaultMachine(spec *session.Spec) error {
	machine, err := defaultMachine(p.Env)
	if err == nil && spec.Agent == "" && spec.Group == "" {
		spec.Agent = machine
	}
	return err
}

// asInDocker accepts Docker's names of flags for resources.
func asInDocker(cmd *cobra.Command) {
	names := map[string]string{"memory": "mem", "cpus": "cpu", "gpus": "gpu"}
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(cmp.Or(names[name], name))
	})
}

// flagGroup is a part of the help of a command.
type flagGroup struct {
	title string
	flags string // their names
}

func runGroups() []flagGroup {
	return []flagGroup{
		{"Image and command", "image file type env secret setup name label port no-ssh admin"},
		{"Resources", "cpu mem shm gpu preset cluster threads uncooperative mps"},
		{"Data", "volume no-volume create-folders"},
		{"Machine and owner", "on group owner"},
		{"Queue", "count priority after no-after start-at at pending-timeout"},
		{"Slurm", "partition account qos gpu-type time-limit constraint reservation sbatch-option"},
		{"Ending", "timeout rm commit-on-end keep-home"},
		{"Idle checks", "idle-lifetime idle-network idle-window idle-grace idle-any idle-cpu idle-memory idle-gpu " +
			"idle-vram idle-keep idle-off"},
		{"Output", "detach wait wait-timeout output help"},
	}
}

// groupFlags divides the help of the flags of a command into groups.
func groupFlags(cmd *cobra.Command, groups []flagGroup) {
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		w := cmd.OutOrStderr()
		fmt.Fprintf(w, "Usage:\n  %s\n\nExamples:\n%s\n", cmd.UseLine(), cmd.Example)
		for _, group := range groups {
			part := pflag.NewFlagSet(group.title, pflag.ContinueOnError)
			part.SortFlags = false
			for name := range strings.FieldsSeq(group.flags) {
				part.AddFlag(cmd.Flag(name))
			}
			fmt.Fprintf(w, "\n%s:\n%s", group.title, part.FlagUsages())
		}
		return nil
	})
}

func (o runOptions) check(spec session.Spec) error {
	interactive := spec.Type != typeBatch
	switch {
	case o.count < 1:
		return usagef("invalid --count %d: use a whole number from 1 to 10", o.count)
	case o.count > 1 && (o.wait || o.remove):
		return usagef("--wait and --rm work with one session: remove --count")
	case o.count > 1 && interactive && len(o.words) > 0:
		return usagef("several interactive sessions cannot run a command: use --type batch, or slipway exec later")
	case o.detach && o.wait:
		return usagef("use either --detach or --wait")
	case interactive && o.detach && len(o.words) > 0:
		return usagef("a detached interactive session cannot run a command: use --type batch, or slipway exec later")
	case !interactive && o.remove:
		return usagef("--rm is for interactive sessions: batch sessions end on their own")
	case interactive && o.remove && o.detach:
		return usagef("--rm needs a terminal or a command to end with")
	}
	return nil
}

// resolve replaces the names of sessions in --after by their ids, adds resources from a preset, and creates missing
// folders. It leaves unknown sessions of the file, so that the server reports them with whatever else is missing.
func (p runCommands) resolve(ctx context.Context, c *caller, spec *session.Spec, opts runOptions) error {
	for i, ref := range spec.After {
		s, err := c.find(ctx, ref)
		switch {
		case err == nil:
			spec.After[i] = string(s.ID)
		case opts.file == "" || !isNotFound(err):
			return err
		}
	}
	if err := p.fill(ctx, c, spec, opts); err != nil || !opts.createFolders {
		return err
	}
	return p.createMissing(ctx, c, *spec)
}

// fill sets the resources that are not set from a preset.
func (p runCommands) fill(ctx context.Context, c *caller, spec *session.Spec, opts runOptions) error {
	if opts.preset == "" {
		return nil
	}
	found, err := c.findPreset(ctx, opts.preset)
	if err != nil {
		return err
	}
	r, preset := &spec.Resources, found.Resources
	r.CPU, r.Memory, r.Shm = cmp.Or(r.CPU, preset.CPU), cmp.Or(r.Memory, preset.Memory), cmp.Or(r.Shm, preset.Shm)
	if spec.Accelerator.IsZero() && !opts.gpuGiven {
		spec.Accelerator = found.Accelerator
	}
	return nil
}

// failures prints all errors but the last, which it returns. That decides the exit code.
func (p *program) failures(problems []error) (last error) {
	for i, problem := range problems {
		if i > 0 {
			p.finish(last)
		}
		last = problem
	}
	return last
}

// run launches a session and then waits or connects, as the options say. -o json prints the session when it was
// accepted or after the wait.
func (p runCommands) run(ctx context.Context, spec session.Spec, opts runOptions) error {
	launching, cancel := interruptible(ctx)
	defer cancel()
	c, err := p.connect(launching)
	if err != nil {
		return err
	}
	if err := p.resolve(launching, c, &spec, opts); err != nil {
		return err
	}
	if opts.count > 1 {
		return opts.repairable(p.launchMany(launching, c, spec, opts), spec)
	}
	s, err := askAgain(launching, c,
		route.Launch.Body(hub.LaunchRequest{Key: rand.Text(), Spec: spec, Owner: opts.owner}))
	if err != nil {
		return opts.repairable(err, spec)
	}
	attached := p.attaches(opts)
	switch {
	case opts.detach, s.Type == typeBatch && !opts.wait, !attached && !opts.wait && len(opts.words) == 0:
		return p.printLaunched(s)
	case s.Type == typeBatch:
		return p.runBatch(launching, c, s, opts)
	}
	s, err = p.waitRunning(launching, c, s, opts.timeout)
	if err != nil {
		return err
	}
	cancel() // signals are now for the command or the terminal
	code, err := p.enter(ctx, c, s, opts)
	if opts.remove {
		if _, stopErr := route.Terminate.At(string(s.ID)).Ask(ctx, c); stopErr != nil {
			p.finish(stopErr)
		}
	} else if attached {
		p.notice("%s keeps running. Return with slipway attach %s, end it with slipway stop %s.", s.Name, s.Name,
			s.Name)
	}
	return exitWith(code, err)
}

// attaches reports whether a terminal is opened in a session.
func (p runCommands) attaches(opts runOptions) bool {
	return terminalCommands(p).hasTerminal() && p.output == outputTable && !opts.wait
}

// enter opens a terminal in a session that runs, or executes the command; without either, it prints the session.
func (p runCommands) enter(ctx context.Context, c *caller, s api.Session, opts runOptions) (code int, err error) {
	switch {
	case p.attaches(opts):
		return terminalCommands(p).openTerminal(ctx, c, s, "", opts.words)
	case len(opts.words) > 0:
		return terminalCommands(p).execute(ctx, c, s, session.ExecRequest{Command: opts.words})
	}
	return ExitOK, p.printLaunched(s)
}

// repairable adds the flags that fix a file to an error.
func (o runOptions) repairable(err error, spec session.Spec) error {
	if o.file == "" {
		return err
	}
	return withRepairs(err, spec)
}

// launchMany launches several sessions and prints their ids and all errors.
func (p runCommands) launchMany(ctx context.Context, c *caller, spec session.Spec, opts runOptions) error {
	launched, err := askAgain(ctx, c, route.LaunchMany.Body(api.LaunchManyRequest{
		LaunchRequest: hub.LaunchRequest{Key: rand.Text(), Spec: spec, Owner: opts.owner}, Count: opts.count}))
	if err != nil {
		return err
	}
	var problems []error
	for i, one := range launched {
		if one.Problem != nil {
			problem := *one.Problem
			problem.Message = fmt.Sprintf("Session %d of %d: %s", i+1, opts.count, problem.Message)
			problems = append(problems, &client.Refused{Problem: problem})
		}
	}
	err = p.print(launched, func(w io.Writer) {
		for _, one := range launched {
			if one.Session != nil {
				p.notice("%s is %s.", one.Session.Name, one.Session.Status)
				fmt.Fprintln(w, one.Session.ID)
			}
		}
	})
	if err != nil {
		return err
	}
	return p.failures(problems)
}

func (p runCommands) printLaunched(s api.Session) error {
	if p.output == outputTable {
		p.notice("%s is %s.", s.Name, s.Status)
	}
	return p.print(s, func(w io.Writer) { fmt.Fprintln(w, s.ID) })
}

// waitRunning waits until the session runs. It fails if the session ends before.
func (p runCommands) waitRunning(ctx context.Context, c *caller, s api.Session,
	timeout time.Duration) (api.Session, error) {
	ctx, cancel := limited(ctx, timeout, "The start of "+s.Name)
	defer cancel()
	progress := progress{statusLine: p.newStatusLine(), program: p.program}
	settled := func(now api.Session) bool {
		s = now
		progress.show(now)
		return now.Status == session.Running || ended(now)
	}
	var err error
	if !settled(s) {
		err = c.follow(ctx, s.ID, settled)
	}
	progress.clear()
	if err != nil {
		p.saysGoesOn(ctx, s)
		return s, err
	}
	if ended(s) {
		return s, noResult(s)
	}
	return route.Session.At(string(s.ID)).Ask(ctx, c)
}

// runBatch waits for the end of a batch session, shows its log meanwhile, and returns its exit code.
func (p runCommands) runBatch(ctx context.Context, c *caller, s api.Session, opts runOptions) error {
	ctx, cancel := limited(ctx, opts.timeout, "The end of "+s.Name)
	defer cancel()
	progress := progress{statusLine: p.newStatusLine(), program: p.program}
	logs := make(chan error, 1)
	showing := false
	err := c.follow(ctx, s.ID, func(now api.Session) bool {
		s = now
		if p.output == outputTable && !showing && now.StartedAt != nil {
			progress.clear()
			showing = true
			own := *c
			go func() { logs <- own.copyLogs(ctx, now.ID, logOptions{follow: true, tail: -1}, p.raw.out) }()
		}
		if !showing {
			progress.show(now)
		}
		return ended(now)
	})
	if showing && err == nil {
		err = <-logs
	}
	progress.clear()
	if err != nil {
		p.saysGoesOn(ctx, s)
		return err
	}
	return p.endOfBatch(ctx, c, s)
}

// saysGoesOn prints that the session keeps running if only the waiting ended.
func (p runCommands) saysGoesOn(ctx context.Context, s api.Session) {
	if ctx.Err() != nil {
		p.notice("%s keeps running. See slipway show %s, end it with slipway stop %s.", s.Name, s.Name, s.Name)
	}
}

func (p runCommands) endOfBatch(ctx context.Context, c *caller, s api.Session) error {
	if p.output != outputTable {
		s, err := route.Session.At(string(s.ID)).Ask(ctx, c)
		if err == nil {
			err = p.printObject(s)
		}
		code := ExitNoResult
		if s.ExitCode != nil {
			code = *s.ExitCode
		}
		return exitWith(code, err)
	}
	if s.ExitCode == nil {
		return noResult(s)
	}
	if s.Reason != "task-finished" && s.Reason != "task-failed" {
		p.notice("%s ended: %s.", s.Name, s.Reason)
	}
	return exitWith(*s.ExitCode, nil)
}

// noResult returns the failure of a session that ended before its command.
func noResult(s api.Session) error {
	problem := session.Error{Code: session.CodeRunFailed, Message: string(s.Reason) + ".",
		Hint: "slipway history " + s.Name + " shows what happened."}
	if s.Error != nil {
		problem.Code, problem.Message = s.Error.Code, s.Error.Message
		problem.Hint = cmp.Or(s.Error.Hint, problem.Hint)
	}
	problem.Message = fmt.Sprintf("%s ended as %s: %s", s.Name, s.Status, problem.Message)
	return &failure{problem, ExitNoResult}
}
