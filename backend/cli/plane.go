package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/place"
	"slipway/backend/session"
)

func (p planeCommands) serveCommand() *cobra.Command {
	var engine string
	var port int
	var open, detach, quiet bool
	cmd := &cobra.Command{Use: "serve [--engine docker|sim|auto] [--port N]",
		Short: "Run Slipway and print a login link for the browser",
		Long: `Serve runs Slipway on 127.0.0.1 until it is interrupted. Sessions keep running without it. If
Slipway is already running, serve prints a login link for it and exits. The link works once,
within ten minutes. To get a new one, press Enter in the terminal or run slipway login.`}
	cmd.Flags().StringVar(&engine, "engine", p.Env("SLIPWAY_ENGINE"),
		"what runs the containers: docker, slurm, sim, or auto: the first of them that is there (default docker)")
	cmd.Flags().IntVar(&port, "port", 0, "port on 127.0.0.1 (default: the last one used, 7421, or any free port)")
	cmd.Flags().BoolVar(&open, "open", false, "open the browser")
	cmd.Flags().BoolVarP(&detach, "detach", "d", false, "run in the background")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "do not print a login link")
	return runs(cmd, p.here(func(ctx context.Context, home place.Home) error {
		asked := engine
		engine = cmp.Or(engine, "docker")
		if !slices.Contains([]string{"auto", "docker", "slurm", "sim"}, engine) {
			return usagef("unknown engine %q: use docker, slurm, sim or auto", engine)
		}
		if err := checkPort(port); err != nil {
			return err
		}
		if running, err := client.Connect(ctx, home); err == nil {
			return p.alreadyServing(ctx, running, asked, open)
		}
		if detach {
			connection, err := client.ConnectOrStart(ctx, home,
				client.StartOptions{Executable: p.Executable, Engine: engine, Port: port})
			if err != nil {
				return err
			}
			return p.printLogin(ctx, &caller{connection, p.program}, open)
		}
		return p.serve(ctx, ServeOptions{Home: home, Engine: engine, Port: port}, open, quiet)
	}))
}

func checkPort(port int) error {
	if port < 0 || port > 65535 {
		return usagef("invalid port %d: use a number from 1 to 65535", port)
	}
	return nil
}

// serve runs the control plane in this process. The output of a quiet one is a log, which must not contain login codes.
func (p planeCommands) serve(ctx context.Context, opts ServeOptions, open, quiet bool) error {
	if !quiet {
		opts.Ready = func(ready Ready) {
			where := fmt.Sprintf("Slipway runs at %s (engine: %s).", ready.URL, ready.Engine)
			if ready.Note != "" {
				where = ready.Note + "\n" + where
			}
			p.sayReady(ready, nil, where, "Ctrl-C stops the control plane; sessions keep running.")
			p.begun(ctx, opts.Home, ready, open)
		}
	}
	err := p.Serve(ctx, opts)
	if errors.Is(err, place.ErrLocked) {
		return fail(session.CodeStartConflict, "Another control plane holds "+opts.Home.Dir+" and does not answer.",
			"It may be starting or stopping: try again. SLIPWAY_HOME chooses another folder.")
	}
	return unlessStopped(ctx, err)
}

// unlessStopped returns err, unless that only says that ctx was canceled.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// sayReady prints where a control plane responds and how to stop it. -o json prints its fields and more.
func (p planeCommands) sayReady(ready Ready, more map[string]any, where, stop string) {
	if p.output == outputJSON {
		all := map[string]any{"url": ready.URL, "loginUrl": ready.LoginURL, "engine": ready.Engine}
		maps.Copy(all, more)
		_ = json.NewEncoder(p.Stdout).Encode(all)
		return
	}
	fmt.Fprintln(p.Stdout, where)
	fmt.Fprintln(p.Stdout, "Open this address to log a browser in. It works once, within ten minutes:")
	fmt.Fprintf(p.Stdout, "\n  %s\n\n", ready.LoginURL)
	if p.asksForLogins() {
		fmt.Fprintln(p.Stdout, "Press Enter for a new address.")
	}
	fmt.Fprintln(p.Stdout, stop)
}

// alreadyServing prints a login for the running control plane. It fails if that has another engine than asked.
func (p planeCommands) alreadyServing(ctx context.Context, running *client.Client, asked string, open bool) error {
	if have := running.Serving.Engine; asked != "" && asked != "auto" && have != "" && asked != have {
		return fail(session.CodeStartConflict, fmt.Sprintf("A control plane runs already, with the engine %s.", have),
			"slipway shutdown stops it; sessions keep running.")
	}
	p.notice("A control plane runs already (process %d).", running.Serving.PID)
	return p.printLogin(ctx, &caller{running, p.program}, open)
}

func (p planeCommands) printLogin(ctx context.Context, c *caller, open bool) error {
	link, err := route.LoginLink.Ask(ctx, c)
	if err != nil {
		return err
	}
	if open {
		p.showBrowser(ctx, c, link.URL)
	}
	return p.print(link, func(w io.Writer) { fmt.Fprintln(w, link.URL) })
}

func (p planeCommands) loginCommand() *cobra.Command {
	var open, printOnly bool
	cmd := &cobra.Command{Use: "login [--open | --print]",
		Short: "Print a single-use login link and, on a desktop, open it",
		Long: `Login prints a login link for a browser. It works once, within one minute. On a desktop,
login also opens the browser.`}
	cmd.Flags().BoolVar(&open, "open", false, "open the browser, even without a desktop")
	cmd.Flags().BoolVar(&printOnly, "print", false, "print the address without opening it")
	cmd.MarkFlagsMutuallyExclusive("open", "print")
	return runs(cmd, p.command(func(ctx context.Context, c *caller, _ []string) error {
		open = open || !printOnly && p.output == outputTable && terminalCommands(p).onDesktop()
		return p.printLogin(ctx, c, open)
	}))
}

func (p planeCommands) shutdownCommand() *cobra.Command {
	return &cobra.Command{Use: "shutdown", Short: "Stop Slipway; sessions keep running",
		RunE: p.here(func(ctx context.Context, home place.Home) error {
			connection, err := client.Connect(ctx, home)
			if errors.Is(err, client.ErrNotServing) {
				p.notice("No control plane is running.")
				return nil
			}
			if err == nil {
				_, err = route.Shutdown.Ask(ctx, connection)
			}
			if err != nil {
				return err
			}
			return home.WaitUnlocked(ctx) // the next command must find either none or a new one
		})}
}

func (p planeCommands) doctorCommand() *cobra.Command {
	var on string
	cmd := &cobra.Command{Use: "doctor [--on AGENT]", Short: "Check a machine and show how to fix problems",
		Long: "Exits with 1 if a check failed."}
	p.onFlag(cmd, &on, "agent of the machine (default: this computer)")
	return runs(cmd, p.command(func(ctx context.Context, c *caller, _ []string) error {
		checks, err := route.Doctor.With("agent", on).Ask(ctx, c)
		if err == nil {
			err = p.print(checks, func(w io.Writer) { checkTable(w, checks) })
		}
		failed := func(check session.Check) bool { return check.Result == "failed" }
		return failedIf(slices.ContainsFunc(checks, failed), err)
	}))
}

func checkTable(w io.Writer, checks []session.Check) {
	rows := [][]string{{"RESULT", "PROBE", "FOUND"}}
	for _, check := range checks {
		rows = append(rows, []string{string(check.Result), check.Title, check.Text})
		if check.Remedy != "" {
			rows = append(rows, []string{"", "", "→ " + check.Remedy})
		}
	}
	columns(w, rows)
}

func (p planeCommands) settingsCommand() *cobra.Command {
	parent := &cobra.Command{Use: "settings", Short: "Show and change settings",
		Long: `All settings are in settings.json in Slipway's directory, next to its JSON schema. SLIPWAY_*
variables override the file. Settings with a group, such as gpu.quantum, apply to the agent
of this computer, which reads them when it starts.`}
	list := &cobra.Command{Use: "ls", Aliases: []string{"list"},
		Short: "List all settings and errors in the settings file",
		Long:  "Exits with 1 if the file or a variable has an error."}
	list.RunE = p.command(func(ctx context.Context, c *caller, _ []string) error {
		file, err := route.SettingsFile.Ask(ctx, c)
		if err == nil {
			err = p.print(file, func(w io.Writer) { settingsTable(w, file) })
		}
		return failedIf(len(file.Problems) > 0, err)
	})
	set := &cobra.Command{Use: "set NAME VALUE", Short: "Change a setting"}
	unset := &cobra.Command{Use: "unset NAME", Short: "Reset a setting to its default"}
	for _, cmd := range []*cobra.Command{set, unset} {
		cmd.ValidArgsFunction = offers(p.program, route.SettingsFile, completeSettings)
		cmd.RunE = p.command(func(ctx context.Context, c *caller, args []string) error {
			var update api.SettingUpdate
			if len(args) > 1 {
				update.Value = &args[1]
			}
			return show(ctx, c, route.SettingUpdate.At(args[0]).Body(update), func(w io.Writer, file api.SettingsFile) {
				p.changedSetting(w, file, args[0])
			})
		})
	}
	parent.AddCommand(list, set, unset)
	return parent
}

func (p planeCommands) changedSetting(w io.Writer, file api.SettingsFile, name string) {
	for _, s := range file.Settings {
		if s.Name != name {
			continue
		}
		fmt.Fprintf(w, "%s is %s.\n", name, cmp.Or(s.Value, "not set"))
		if s.Override != "" {
			p.notice("%s overrides what the file says.", s.Variable)
		}
		if s.Restart {
			p.notice("It takes effect when Slipway starts next.")
		}
	}
}

func settingsTable(w io.Writer, file api.SettingsFile) {
	table(w, "SETTING,VALUE,FROM,ABOUT", file.Settings, func(s api.Setting) []string {
		from := "default"
		switch {
		case s.Override != "":
			from = s.Variable
		case s.Set:
			from = "file"
		}
		return []string{s.Name, cmp.Or(s.Value, "not set"), from, s.Text}
	})
	fmt.Fprintf(w, "\n%s\n", file.Path)
	for _, problem := range file.Problems {
		where := "variable"
		if problem.Line > 0 {
			where = "line " + strconv.Itoa(problem.Line)
		}
		if problem.Name != "" {
			where += ", " + problem.Name
		}
		fmt.Fprintf(w, "  %s: %s\n", where, problem.Message)
	}
}

// completeSettings completes the names of settings and the choices of a setting.
func completeSettings(file api.SettingsFile, args []string) (offered []string) {
	for _, s := range file.Settings {
		if len(args) == 0 {
			offered = append(offered, s.Name)
		} else if len(args) == 1 && s.Name == args[0] {
			offered = append(offered, s.Choices...)
		}
	}
	return offered
}

// DemoOptions configures a demonstration.
type DemoOptions struct {
	Seed  uint64                        // 0: the default
	Story string                        // empty: the default
	Speed int                           // factor of the speed of time; 0: 1
	Keep  string                        // folder for its files; empty: they are deleted at the end
	Port  int                           // 0: the one used last, else 7431, else any
	Ready func(ready Ready, dir string) // called once with its folder, when it responds
}

func (p planeCommands) demoCommand() *cobra.Command {
	var opts DemoOptions
	var open bool
	cmd := &cobra.Command{Use: "demo [--story NAME] [--seed N] [--speed N] [--keep DIR]",
		Short: "Run a demo on simulated machines: no Docker, no GPU, no network",
		Long: `Demo opens the complete launcher with a simulated workstation with two GPUs and, behind the
real tunnel on loopback, a simulated lab server with eight GPUs. It is marked as a demo
everywhere, and its files are separate from yours. They are deleted at the end unless you
use --keep.

Stories: lab (default: everyday work on both machines), workstation (this machine only),
shortage (the lab server is full and sessions wait), idle (a session is about to be
reclaimed), failure (sessions end in different ways, each with its reason).`}
	cmd.Flags().StringVar(&opts.Story, "story", "", "lab, workstation, shortage, idle or failure (default lab)")
	cmd.Flags().Uint64Var(&opts.Seed, "seed", 0, "random seed (default 1)")
	cmd.Flags().IntVar(&opts.Speed, "speed", 1, "speed of time on its machines, 1 to 60")
	cmd.Flags().StringVar(&opts.Keep, "keep", "", "save the demo in this directory and continue it later")
	cmd.Flags().IntVar(&opts.Port, "port", 0, "port on 127.0.0.1 (default: the last one used, 7431, or any free port)")
	cmd.Flags().BoolVar(&open, "open", false, "open the browser")
	return runs(cmd, func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := interruptible(cmd.Context())
		defer cancel()
		if err := checkPort(opts.Port); err != nil {
			return err
		}
		if opts.Speed < 1 || opts.Speed > 60 {
			return usagef("invalid speed %d: use a number from 1 to 60", opts.Speed)
		}
		opts.Ready = func(ready Ready, dir string) {
			stop := "Ctrl-C ends the demo and deletes its files."
			if opts.Keep != "" {
				stop = "Ctrl-C ends the demo; its files are kept."
			}
			p.sayReady(ready, map[string]any{"demo": true, "home": dir},
				fmt.Sprintf("A DEMO of Slipway runs at %s. Nothing in it is real.", ready.URL),
				fmt.Sprintf("The command line reaches it with SLIPWAY_HOME=%s\n%s", dir, stop))
			p.begun(ctx, place.Home{Dir: dir}, ready, open)
		}
		return unlessStopped(ctx, p.Demo(ctx, opts))
	})
}

func (p planeCommands) diagnosticsCommand() *cobra.Command {
	return asks(p.program, &cobra.Command{Use: "diagnostics", Short: "Print a support report with secrets removed"}, "",
		route.Diagnostics, func(w io.Writer, report api.Diagnostics) { _, _ = io.WriteString(w, report.Text) })
}
