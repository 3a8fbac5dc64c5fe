package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/place"
	"slipway/backend/session"
)

// planeCommands are the commands for the control plane.
type planeCommands struct{ *program }

var engines = []string{"auto", "docker", "sim"}

func (p planeCommands) serveCommand() *cobra.Command {
	var engine string
	var port int
	var open, detach, quiet bool
	cmd := &cobra.Command{
		Use:   "serve [--engine docker|sim|auto] [--port N]",
		Short: "Run Slipway and print a login link for the browser",
		Long: `Serve runs Slipway on 127.0.0.1 until it is interrupted. Sessions keep running without it. If
Slipway is already running, serve prints a login link for it and exits. The link works once,
within ten minutes. To get a new one, press Enter in the terminal or run slipway login.`,
	}
	cmd.Flags().StringVar(&engine, "engine", p.Env("SLIPWAY_ENGINE"),
		"what runs the containers: docker, sim, or auto: docker if it answers, else sim (default docker)")
	cmd.Flags().IntVar(&port, "port", 0, "port on 127.0.0.1 (default: the last one used, 7421, or any free port)")
	cmd.Flags().BoolVar(&open, "open", false, "open the browser")
	cmd.Flags().BoolVarP(&detach, "detach", "d", false, "run in the background")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "do not print a login link")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := interruptible(cmd.Context())
		defer cancel()
		asked := engine
		if engine == "" {
			engine = "docker"
		}
		if !slices.Contains(engines, engine) {
			return usagef("unknown engine %q: use docker, sim or auto", engine)
		}
		if port < 0 || port > 65535 {
			return usagef("invalid port %d: use a number from 1 to 65535", port)
		}
		home, err := place.FindHome(p.Env)
		if err != nil {
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
	}
	return cmd
}

// serve runs the control plane in this process. What a quiet one prints is a
// log, where no login code may stand.
func (p planeCommands) serve(ctx context.Context, opts ServeOptions, open, quiet bool) error {
	if p.Serve == nil {
		return fail(session.CodeServerFailed, "This program cannot serve.", "Use the slipway program.")
	}
	if !quiet {
		opts.Ready = func(ready Ready) {
			p.sayServing(ready)
			p.begun(ctx, opts.Home, ready, open)
		}
	}
	err := p.Serve(ctx, opts)
	if errors.Is(err, place.ErrLocked) {
		return fail(session.CodeStartConflict, "Another control plane holds "+opts.Home.Dir+" and does not answer.",
			"It may be starting or stopping: try again. SLIPWAY_HOME chooses another folder.")
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // stopped as asked
	}
	return err
}

func (p planeCommands) sayServing(ready Ready) {
	if p.output == outputJSON {
		_ = json.NewEncoder(p.Stdout).Encode(map[string]string{"url": ready.URL, "loginUrl": ready.LoginURL,
			"engine": ready.Engine})
		return
	}
	if ready.Note != "" {
		fmt.Fprintln(p.Stdout, ready.Note)
	}
	fmt.Fprintf(p.Stdout, "Slipway runs at %s (engine: %s).\n", ready.URL, ready.Engine)
	p.sayLogin(ready)
	fmt.Fprintln(p.Stdout, "Ctrl-C stops the control plane; sessions go on.")
}

// alreadyServing logs in to the control plane that runs, unless another engine
// was asked for than it has.
func (p planeCommands) alreadyServing(ctx context.Context, running *client.Client, asked string, open bool) error {
	if have := running.Serving.Engine; asked != "" && asked != "auto" && have != "" && asked != have {
		return fail(session.CodeStartConflict, fmt.Sprintf("A control plane runs already, with the engine %s.", have),
			"slipway shutdown stops it; sessions go on.")
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
		if err := p.openBrowser(ctx, c, link.URL); err != nil {
			p.notice("The browser could not be opened: %v.", err)
		}
	}
	return p.print(link, func(w io.Writer) { fmt.Fprintln(w, link.URL) })
}

func (p planeCommands) loginCommand() *cobra.Command {
	var open, printOnly bool
	cmd := &cobra.Command{
		Use:   "login [--open | --print]",
		Short: "Print a single-use login link and, on a desktop, open it",
		Long: `Login prints a login link for a browser. It works once, within one minute. On a desktop,
login also opens the browser.`,
	}
	cmd.Flags().BoolVar(&open, "open", false, "open the browser, even without a desktop")
	cmd.Flags().BoolVar(&printOnly, "print", false, "print the address without opening it")
	cmd.MarkFlagsMutuallyExclusive("open", "print")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := interruptible(cmd.Context())
		defer cancel()
		c, err := p.connect(ctx)
		if err != nil {
			return err
		}
		open = open || !printOnly && p.output == outputTable && appCommands(p).onDesktop()
		return p.printLogin(ctx, c, open)
	}
	return cmd
}

// shutdownPause is how often shutdown looks whether it is done.
const shutdownPause = 20 * time.Millisecond

func (p planeCommands) shutdownCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "shutdown",
		Short: "Stop Slipway; sessions keep running",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := interruptible(cmd.Context())
			defer cancel()
			home, err := place.FindHome(p.Env)
			if err != nil {
				return err
			}
			connection, err := client.Connect(ctx, home)
			if errors.Is(err, client.ErrNotServing) {
				p.notice("No control plane is running.")
				return nil
			}
			if err != nil {
				return err
			}
			if _, err := route.Shutdown.Ask(ctx, connection); err != nil {
				return err
			}
			for { // the next command must find either none or a new one
				lock, err := home.Lock()
				if err == nil {
					return lock.Close()
				}
				if !errors.Is(err, place.ErrLocked) {
					return err
				}
				select {
				case <-time.After(shutdownPause):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		},
	}
}

func (p planeCommands) doctorCommand() *cobra.Command {
	var on string
	cmd := &cobra.Command{
		Use:   "doctor [--on AGENT]",
		Short: "Check a machine and show how to fix problems",
		Long:  "Exits with 1 if a check failed.",
	}
	p.onFlag(cmd, &on, "the machine of this agent (default this computer)")
	cmd.RunE = p.command(func(ctx context.Context, c *caller, _ []string) error {
		checks, err := route.Doctor.With("agent", on).Ask(ctx, c)
		if err != nil {
			return err
		}
		if err := p.print(checks, func(w io.Writer) { checkTable(w, checks) }); err != nil {
			return err
		}
		if slices.ContainsFunc(checks, func(check session.Check) bool { return check.Result == "failed" }) {
			return &exitError{ExitFailure}
		}
		return nil
	})
	return cmd
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

func (p planeCommands) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and of the running Slipway",
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer := struct {
				api.Version
				Server *api.Version `json:"server"` // null: none is running
			}{Version: p.Version}
			home, err := place.FindHome(p.Env)
			if err != nil {
				return err
			}
			if connection, err := client.Connect(cmd.Context(), home); err == nil {
				version, err := route.Version.Ask(cmd.Context(), connection)
				if err != nil {
					return err
				}
				answer.Server = &version
			}
			return p.print(answer, func(w io.Writer) {
				rows := []string{"Slipway", versionText(p.Version)}
				if answer.Server != nil {
					rows = append(rows, "Control plane", versionText(*answer.Server))
				}
				fields(w, rows...)
			})
		},
	}
}

func versionText(v api.Version) string {
	return fmt.Sprintf("%s (%s, %s, %s/%s)", v.Version, v.Commit, v.Go, v.OS, v.Arch)
}
