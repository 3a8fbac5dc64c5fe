package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/gpu"
)

func (p sessionCommands) psCommand() *cobra.Command {
	var all, quiet bool
	var on, tag string
	cmd := &cobra.Command{Use: "ps [-a] [--on AGENT]", Aliases: []string{"ls"},
		Short: "List live sessions, or all with -a, newest first"}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "include finished sessions")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print IDs only")
	p.onFlag(cmd, &on, "only sessions of this agent")
	usesMachine(cmd)
	cmd.Flags().StringVar(&tag, "tag", "", "only sessions with this tag")
	return runs(cmd, p.command(func(ctx context.Context, c *caller, _ []string) error {
		state := liveSessions
		if all {
			state = allSessions
		}
		sessions, err := route.Sessions.With("state", state).With("agent", on).Ask(ctx, c)
		if err != nil {
			return err
		}
		if tag != "" {
			sessions = slices.DeleteFunc(sessions, func(s api.Session) bool { return !slices.Contains(s.Tags, tag) })
		}
		return p.print(sessions, func(w io.Writer) {
			if quiet {
				for _, s := range sessions {
					fmt.Fprintln(w, s.ID)
				}
				return
			}
			p.sessionTable(w, sessions, all)
		})
	}))
}

func (p sessionCommands) sessionTable(w io.Writer, sessions []api.Session, all bool) {
	if len(sessions) == 0 {
		what := "No live sessions. slipway ps -a lists finished ones."
		if all {
			what = "No sessions yet. slipway run --image IMAGE launches one."
		}
		fmt.Fprintln(w, what)
		return
	}
	table(w, "ID,NAME,TYPE,STATUS,AGENT, CPU, MEMORY,GPU, ELAPSED,IMAGE,DETAIL", sessions,
		func(s api.Session) []string {
			return []string{string(s.ID), s.Name, string(s.Type), string(s.Status), s.Agent,
				strconv.Itoa(s.Spec.Resources.CPU), size(s.Spec.Resources.Memory),
				cmp.Or(acceleratorText(s.Spec.Accelerator), "-"), p.elapsed(s), s.Image, p.heardDetail(s)}
		})
}

// heardDetail returns the reason for the status of a session, with its age if the agent is not reached.
func (p sessionCommands) heardDetail(s api.Session) string {
	detail := p.stateDetail(s)
	if s.Ending != nil {
		detail = p.endingText(*s.Ending)
	}
	if s.LastHeard == nil {
		return detail
	}
	return strings.TrimSuffix(s.Agent+" is not reached; this was "+span(p.Now().Sub(*s.LastHeard))+" ago; "+detail,
		"; ")
}

// endingText describes an end that can be undone, or that failed.
func (p sessionCommands) endingText(e hub.Ending) string {
	if e.Error != nil {
		return "was not terminated: " + e.Error.Message
	}
	return "terminates at " + e.At.In(p.Now().Location()).Format(time.TimeOnly) + " unless this is undone"
}

// elapsed formats how long a session has run; "-" before its start.
func (p sessionCommands) elapsed(s api.Session) string {
	if s.StartedAt == nil {
		return "-"
	}
	until := p.Now()
	if s.TerminatedAt != nil {
		until = *s.TerminatedAt
	}
	return span(until.Sub(*s.StartedAt))
}

func (p sessionCommands) showCommand() *cobra.Command {
	return asks(p.program, &cobra.Command{Use: "show SESSION", Short: "Show the details of a session",
		ValidArgsFunction: p.completeSessions(allSessions)}, "", route.Session, p.sessionFields)
}

func (p sessionCommands) sessionFields(w io.Writer, s api.Session) {
	cpu, memory := strconv.Itoa(s.Spec.Resources.CPU), size(s.Spec.Resources.Memory)
	if len(s.Grants.CPUs) > 0 {
		cpu += " (number " + session.Ranges(s.Grants.CPUs) + ")"
	}
	if s.Usage != nil {
		cpu += fmt.Sprintf(", %.2f busy", s.Usage.CPU)
		memory += ", " + size(s.Usage.Memory) + " used"
	}
	detail := p.heardDetail(s)
	if s.Error != nil && ended(s) {
		detail = string(s.Reason) // the error has its own line
	}
	pairs := []string{"Name", s.Name, "Id", string(s.ID), "Type", string(s.Type), "Status", string(s.Status),
		"Detail", detail, "Result", string(s.Result), "Image", s.Image, "Agent", s.Agent, "Command", s.Spec.Command,
		"CPU", cpu, "Memory", memory, "Shared memory", size(s.Spec.Resources.Shm),
		"Mounts", mountText(s.Spec.Mounts), "Variables", envText(s.Spec.Env),
		"Ports", session.Ranges(s.Spec.Ports), "GPU", gpuText(s), "Label", s.Spec.Label,
		"Waits for", joined(s.DependsOn), "Waited for by", joined(s.Dependents),
		"Created", p.moment(&s.CreatedAt), "Started", p.moment(s.StartedAt), "Ended", p.moment(s.TerminatedAt)}
	if s.StartedAt != nil {
		pairs = append(pairs, "Elapsed", p.elapsed(s))
	}
	if s.Status == "PENDING" {
		pairs = append(pairs, "Priority", strconv.Itoa(s.Priority))
	}
	if s.Wait != nil && s.Status == "PENDING" {
		pairs = append(pairs, "Turn", turnText(*s.Wait, s.Agent), "Start", p.reader(s.Agent).Estimate(*s.Wait))
	}
	if s.KeepUntil != nil && s.KeepUntil.After(p.Now()) && !ended(s) {
		pairs = append(pairs, "Kept until", p.moment(s.KeepUntil))
	}
	if s.Processes > 0 {
		pairs = append(pairs, "Processes", fmt.Sprintf("at most %d in each container", s.Processes))
	}
	for _, check := range s.Idle {
		found := string(check.State) + ": " + check.Message
		if check.JudgedFrom != nil {
			found += " Judged from " + p.moment(check.JudgedFrom) + "."
		}
		pairs = append(pairs, "Idle, "+string(check.Checker), found)
	}
	for _, k := range s.Kernels {
		text := string(k.Status) + "  " + k.Container[:min(len(k.Container), 12)]
		if k.Node != "" {
			text += "  on " + k.Node
		}
		pairs = append(pairs, "Kernel "+k.Name, text)
	}
	if s.Error != nil {
		pairs = append(pairs, "Error", strings.TrimSpace(s.Error.Message+"\n"+s.Error.Hint))
	}
	if s.EndImage != nil {
		pairs = append(pairs, "Image at end", endImageText(s))
	}
	for _, warning := range s.Warnings {
		pairs = append(pairs, "Warning", warning.Title+"\n"+warning.Text)
	}
	fields(w, pairs...)
}

// endImageText describes the image that is made when a session ends, and what to do if that failed.
func endImageText(s api.Session) string {
	i := s.EndImage
	reason := ""
	if i.Error != nil {
		reason = strings.TrimSpace(i.Error.Message + " " + i.Error.Hint)
	}
	switch {
	case i.Kept:
		return fmt.Sprintf("failed: %s\nIts container is kept. slipway commit %s %s tries again, "+
			"slipway stop --force %s drops it.", reason, s.ID, i.Name, s.ID)
	case i.State == "failed":
		return "failed: " + reason
	case i.State == "cancelled":
		return "none was made"
	case i.State == "running":
		return "is being made"
	case s.Continuable():
		return i.Ref + "\nslipway continue " + s.Name + " launches the session again."
	}
	return i.Ref
}

// joined formats numbers or ids as a list.
func joined[T any](items []T) string {
	return named(items, func(item T) string { return fmt.Sprint(item) })
}

// acceleratorText formats a request for devices; "" if there is none.
func acceleratorText(r gpu.Request) string {
	if r.IsZero() {
		return ""
	}
	return r.String()
}

// gpuText describes the devices that a session requested, was allocated and uses, and how the limits are enforced.
func gpuText(s api.Session) string {
	if s.Spec.Accelerator.IsZero() {
		return ""
	}
	lines := []string{s.Spec.Accelerator.String()}
	if s.Enforcement != "" {
		lines[0] += ", kept by: " + string(s.Enforcement)
	}
	for _, g := range s.Grants.GPUs {
		line := g.Share.String() + " of " + string(g.Device)
		if g.Instance != "" {
			line = string(g.Instance) + " on " + string(g.Device)
		}
		if g.Memory > 0 {
			line += ", " + size(g.Memory)
		}
		lines = append(lines, line+loadOf(s.Usage, g.Device))
	}
	return strings.Join(lines, "\n")
}

// loadOf formats the measured use of one device by a session.
func loadOf(usage *session.Usage, device gpu.UUID) string {
	text := ""
	if usage == nil {
		return text
	}
	for _, load := range usage.GPUs {
		if load.Device != device {
			continue
		}
		if load.Memory != nil {
			text += ", " + size(*load.Memory) + " used"
		}
		if load.Util != nil {
			text += ", " + permyriad(*load.Util) + " busy"
		}
	}
	return text
}

func mountText(mounts []session.Mount) string {
	var lines []string
	for _, m := range mounts {
		line := m.Source
		if m.Folder != "" {
			line = "folder " + path.Join(m.Folder, m.Path)
		}
		line += " → " + m.Target
		if m.ReadOnly {
			line += " (read-only)"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func envText(env []session.EnvVar) string {
	return strings.Join(each(env, func(v session.EnvVar) string { return v.Name + "=" + v.Value }), "\n")
}

func (p sessionCommands) stopCommand() *cobra.Command {
	var o stopping
	cmd := &cobra.Command{Use: "stop [--keep] [--force] [--wait] [--yes] SESSION…",
		Short: "Terminate sessions; their home directories are deleted unless they are kept",
		Long: `Stop terminates sessions at once. On a terminal it asks first if that deletes files in the home
directory outside of mounted folders, or cancels sessions that start after it. Use --yes to skip
the question. slipway run --keep-home keeps the home directory as a folder. With --keep, an image
is made of what an interactive session installed and its home directory is kept as a folder, so
that slipway continue launches it again. What its programs had in memory is lost.`}
	p.yesFlag(cmd)
	cmd.Flags().BoolVarP(&o.keep, "keep", "k", false, "keep what is needed to continue the sessions later")
	cmd.Flags().BoolVarP(&o.force, "force", "f", false, "remove the containers at once")
	cmd.Flags().BoolVarP(&o.wait, "wait", "w", false, "wait until the sessions have ended")
	cmd.Flags().DurationVar(&o.timeout, "wait-timeout", 0, "stop waiting after this long, such as 90s")
	cmd.MarkFlagsMutuallyExclusive("keep", "force")
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		stopped, problems := []api.Session{}, []error{}
		for _, ref := range args {
			if s, err := p.stop(ctx, c, ref, o); err != nil {
				problems = append(problems, err)
			} else {
				stopped = append(stopped, s)
			}
		}
		if p.output != outputTable {
			if err := p.printObject(stopped); err != nil {
				return err
			}
		}
		return p.failures(problems)
	}))
}

// stopping says how sessions are stopped.
type stopping struct {
	keep, force, wait bool
	timeout           time.Duration // of the wait; 0: none
}

func (p sessionCommands) stop(ctx context.Context, c *caller, ref string, o stopping) (api.Session, error) {
	s, err := c.find(ctx, ref)
	if err == nil && !o.keep {
		err = p.confirmLoss(ctx, c, s)
	}
	switch {
	case err != nil:
	case o.keep:
		s, err = route.Park.At(string(s.ID)).Ask(ctx, c)
	default:
		s, err = route.Terminate.At(string(s.ID)).Body(api.TerminateRequest{Forced: o.force}).Ask(ctx, c)
	}
	if err != nil {
		return s, err
	}
	if o.wait {
		ctx, cancel := limited(ctx, o.timeout, "The end of "+s.Name)
		defer cancel()
		if err := c.follow(ctx, s.ID, func(now api.Session) bool { s = now; return ended(now) }); err != nil {
			return s, err
		}
		if s, err = route.Session.At(string(s.ID)).Ask(ctx, c); err != nil {
			return s, err
		}
	}
	if p.output == outputTable {
		fmt.Fprintln(p.Stdout, s.Name)
	}
	return s, nil
}

func (p runCommands) continueCommand() *cobra.Command {
	return asks(p.program, &cobra.Command{Use: "continue NAME",
		Short: "Launch a session again that was stopped and kept",
		Long: `Continue launches a session again that was ended by slipway stop --keep, or by an idle policy that
keeps sessions: with its name, resources and mounts, the image that was made of it and its home
directory. Its apps have their addresses again. NAME is its name or ID.`,
		ValidArgsFunction: p.completeSessions(allSessions)}, "", route.Continue, func(w io.Writer, s api.Session) {
		fmt.Fprintf(w, "%s is launched again on %s (%s).\n", s.Name, s.Agent, s.ID)
	})
}

// confirmLoss asks on a terminal before a session ends whose home directory has files, or that others start after.
// Files of the session's programs, whose names begin with a dot, and mounted folders do not count.
func (p sessionCommands) confirmLoss(ctx context.Context, c *caller, s api.Session) error {
	if p.yes || ended(s) || !terminalCommands(p).hasTerminal() {
		return nil
	}
	loss, err := route.Loss.At(string(s.ID)).Ask(ctx, c)
	var effects []string
	switch {
	case s.Status == session.Running && (err != nil || loss.Unknown):
		effects = append(effects, "deletes its home directory and everything in it")
	case loss.Count > 0:
		names := strings.Join(loss.Files[:min(len(loss.Files), 5)], ", ")
		if loss.Count > 5 {
			names += ", …"
		}
		effects = append(effects, "deletes "+plural(loss.Count, "entry", "entries")+" of its home directory: "+names)
	}
	if len(loss.Cancels) > 0 {
		effects = append(effects, "cancels "+plural(len(loss.Cancels), "session that starts", "sessions that start")+
			" after it: "+named(loss.Cancels, func(s hub.Cancelled) string { return s.Name }))
	}
	if len(effects) == 0 {
		return nil
	}
	return p.confirm(ctx, "Terminate "+s.Name+"? This "+inLine(strings.Join(effects, ". It "))+".")
}

func (p sessionCommands) renameCommand() *cobra.Command {
	return changes(p.program, &cobra.Command{Use: "rename SESSION NAME", Short: "Rename a live session"},
		route.SessionUpdate, func(name string) api.SessionUpdate { return api.SessionUpdate{Name: &name} },
		func(w io.Writer, s api.Session) { fmt.Fprintln(w, s.Name) })
}

func (p sessionCommands) historyCommand() *cobra.Command {
	filters := map[string]*string{}
	cmd := &cobra.Command{Use: "history SESSION [--phase … --result … --from … --to … --code … --text … --sort …]",
		Short: "Show the scheduling history of a session", ValidArgsFunction: p.completeSessions(allSessions)}
	for name, usage := range map[string]string{
		"phase":  "only these, separated by commas: schedule, prepare, start, terminate",
		"result": "only these, such as FAILURE,GIVE_UP",
		"from":   "only from these statuses", "to": "only to these statuses",
		"code": "only with this in an error code", "text": "only with this in a message or a step",
		"sort": "created, updated, -created or -updated"} {
		filters[name] = cmd.Flags().String(name, "", usage)
	}
	return runs(cmd, p.about(func(ctx context.Context, c *caller, args []string) error {
		at := route.History.At(args[0])
		for name, value := range filters {
			at = at.With(name, *value)
		}
		return show(ctx, c, at, p.historyTable)
	}))
}

func (p sessionCommands) historyTable(w io.Writer, phases []session.Phase) {
	rows := [][]string{{"PHASE", "RESULT", "FROM", "TO", " ATTEMPTS", "STARTED", "ENDED", " TOOK", "MESSAGE"}}
	times := func(start time.Time, end *time.Time) []string {
		if end == nil {
			return []string{p.instant(start), "", span(p.Now().Sub(start))}
		}
		return []string{p.instant(start), p.instant(*end), span(end.Sub(start))}
	}
	for _, phase := range phases {
		end := &phase.UpdatedAt
		if phase.Result == session.OutcomeRunning {
			end = nil
		}
		rows = append(rows, slices.Concat([]string{string(phase.Phase), string(phase.Result), string(phase.From),
			string(phase.To), strconv.Itoa(phase.Attempts)}, times(phase.CreatedAt, end), []string{phase.Message}))
		for _, step := range phase.Steps {
			rows = append(rows, slices.Concat([]string{"  " + step.Step, string(step.Result), "", "", ""},
				times(step.StartedAt, step.EndedAt), []string{step.Message}))
		}
	}
	columns(w, rows)
}

func (p sessionCommands) tagCommand() *cobra.Command {
	var add, remove []string
	cmd := &cobra.Command{Use: "tag SESSION…", Short: "Tag sessions",
		Long: "Adds and removes tags, also of finished sessions, and prints the result.",
		Example: "  slipway tag train-a train-b --add paper\n  slipway tag train-a --remove paper\n  " +
			"slipway ps -a --tag paper",
		ValidArgsFunction: p.completeSessions(allSessions)}
	cmd.Flags().StringSliceVar(&add, "add", nil, "tags to add, separated by commas; repeatable")
	cmd.Flags().StringSliceVar(&remove, "remove", nil, "tags to remove, separated by commas; repeatable")
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		var tagged []api.Session
		var lines, problems = []string{}, []error{}
		for _, ref := range args {
			s, err := c.tag(ctx, ref, add, remove)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			tagged, lines = append(tagged, s), append(lines, s.Name+": "+strings.Join(s.Tags, ", "))
		}
		if err := p.print(tagged, func(w io.Writer) { fmt.Fprintln(w, strings.Join(lines, "\n")) }); err != nil {
			return err
		}
		return p.failures(problems)
	}))
}

// tag changes the tags of a session and returns it.
func (c *caller) tag(ctx context.Context, ref string, add, remove []string) (api.Session, error) {
	s, err := c.find(ctx, ref)
	if err != nil || len(add)+len(remove) == 0 {
		return s, err
	}
	tags := slices.DeleteFunc(append(s.Tags, add...), func(tag string) bool { return slices.Contains(remove, tag) })
	return route.SessionUpdate.At(string(s.ID)).Body(api.SessionUpdate{Tags: &tags}).Ask(ctx, c)
}
