package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"

	"slipway/backend/api"
)

func (p *program) appsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "apps SESSION",
		Short:             "List what a session can serve",
		Args:              exactly(1, "one session"),
		ValidArgsFunction: p.completeSessions(liveSessions),
	}
	cmd.RunE = p.command(func(ctx context.Context, c *client, args []string) error {
		_, apps, raw, err := c.apps(ctx, args[0])
		if err != nil {
			return err
		}
		return p.print(raw, func(w io.Writer) {
			if len(apps) == 0 {
				fmt.Fprintln(w, "Nothing that Slipway knows is installed, and no port is open.")
				return
			}
			rows := [][]string{{"ID", "TITLE", "KIND", " PORT", "STATE", "ADDRESS"}}
			for _, app := range apps {
				port := strconv.Itoa(app.Port)
				if app.Port == 0 {
					port = "-"
				}
				rows = append(rows, []string{app.ID, app.Title, app.Kind, port, app.State, app.URL})
			}
			columns(w, rows)
		})
	})
	return cmd
}

func (c *client) apps(ctx context.Context, ref string) (api.Session, []api.App, []byte, error) {
	s, _, err := c.find(ctx, ref)
	if err != nil {
		return s, nil, nil, err
	}
	var apps []api.App
	raw, err := c.get(ctx, sessionPath(s.ID, "apps"), &apps)
	return s, apps, raw, err
}

func (p *program) openCommand() *cobra.Command {
	var printOnly, window bool
	var dir string
	cmd := &cobra.Command{
		Use:   "open SESSION [APP]",
		Short: "Open an app such as JupyterLab: start it, wait for it, and print its address",
		Long: `Open starts an app if need be, waits until it answers, prints its address and opens
the browser if this is a terminal on a desktop. Without APP it opens the first web app.
The address holds a ticket that works once, within one minute.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return notEmpty(args)
			}
			return exactly(1, "a session, and an app or none")(cmd, args)
		},
		ValidArgsFunction: p.completeSessions(liveSessions),
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the directory of the session that TensorBoard or MLflow shall show")
	cmd.Flags().BoolVar(&printOnly, "print", false, "only print the address")
	cmd.Flags().BoolVar(&window, "window", false, "in a window of the desktop program, if it runs")
	cmd.RunE = p.command(func(ctx context.Context, c *client, args []string) error {
		s, apps, _, err := c.apps(ctx, args[0])
		if err != nil {
			return err
		}
		app, err := chooseApp(s, apps, args[1:])
		if err != nil {
			return err
		}
		var opened api.Opened
		raw, err := c.call(ctx, http.MethodPost, sessionPath(s.ID, "apps", app, "open"), api.OpenRequest{Dir: dir, Window: window}, &opened)
		if err != nil {
			return err
		}
		if !opened.Windowed && !printOnly && p.output == outputTable && p.onDesktop() {
			if err := openBrowser(opened.URL); err != nil {
				p.notice("The browser could not be opened: %v.", err)
			}
		}
		return p.print(raw, func(w io.Writer) { fmt.Fprintln(w, opened.URL) })
	})
	return cmd
}

// chooseApp returns the app that was named, or the first web app.
func chooseApp(s api.Session, apps []api.App, named []string) (string, error) {
	if len(named) > 0 {
		return named[0], nil
	}
	for _, app := range apps {
		if app.Kind == "web" {
			return app.ID, nil
		}
	}
	return "", &failure{code: "app_open_not-found", exit: ExitNotFound,
		message: fmt.Sprintf("%s has no web app: Jupyter is not installed in %s and no port is open.", s.Name, s.Image),
		hint:    "Launch an image with Jupyter, or open a port with --port."}
}

// onDesktop reports whether a person sits before a display here.
func (p *program) onDesktop() bool {
	if !isTerminal(p.Stdout) {
		return false
	}
	return runtime.GOOS == "windows" || runtime.GOOS == "darwin" || p.Env("DISPLAY") != "" || p.Env("WAYLAND_DISPLAY") != ""
}

// openBrowser opens an address with the person's own browser.
func openBrowser(url string) error {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // a browser that stays is no concern of ours
	return nil
}

func (p *program) imageCommand() *cobra.Command {
	parent := &cobra.Command{
		Use:   "image",
		Short: "Images on the agents' machines",
		Args:  noSuchCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var on string
	list := &cobra.Command{Use: "ls [--on AGENT]", Aliases: []string{"list"}, Short: "List images", Args: exactly(0, "no argument")}
	p.onFlag(list, &on, "only images on this agent's machine")
	list.RunE = p.command(func(ctx context.Context, c *client, _ []string) error {
		var images []api.Image
		raw, err := c.get(ctx, onAgent("/api/v1/images", on), &images)
		if err != nil {
			return err
		}
		return p.print(raw, func(w io.Writer) { p.imageTable(w, images) })
	})
	parent.AddCommand(list, p.imageSendCommand())
	return parent
}

func (p *program) imageSendCommand() *cobra.Command {
	var req api.ImageSending
	cmd := &cobra.Command{
		Use:   "send IMAGE --to AGENT [--from AGENT]",
		Short: "Bring an image to another agent without a registry",
		Long: `Only the layers that are missing there travel, compressed, through the connection that
is there already. A cut costs nothing but time: the transfer goes on by itself. Without
--from the image is this computer's; without --to it comes to this computer.`,
		Args: exactly(1, "one image"),
	}
	cmd.Flags().StringVar(&req.From, "from", "", "the agent that has it (default this computer's)")
	cmd.Flags().StringVar(&req.To, "to", "", "the agent that gets it (default this computer's)")
	for _, name := range []string{"from", "to"} {
		_ = cmd.RegisterFlagCompletionFunc(name, p.completeAgents) // fails only for a flag that is not there
	}
	cmd.RunE = p.operates(func(ctx context.Context, c *client, args []string) (api.Operation, error) {
		req.Image = args[0]
		return c.operation(ctx, "/api/v1/images/send", req)
	}, func(w io.Writer, o api.Operation) { fmt.Fprintf(w, "%s is on %s.\n", req.Image, o.Agent) })
	return cmd
}

func (p *program) imageTable(w io.Writer, images []api.Image) {
	if len(images) == 0 {
		fmt.Fprintln(w, "No image is here yet; the first launch of one pulls it.")
		return
	}
	rows := [][]string{{"IMAGE", " SIZE", "ARCH", " CREATED", "AGENT", "ID"}}
	for _, image := range images {
		refs := image.Refs
		if len(refs) == 0 {
			refs = []string{"<none>"}
		}
		id := image.ID
		if len(id) > 19 {
			id = id[:19] // sha256: and 12 digits, as docker shows them
		}
		for _, ref := range refs {
			rows = append(rows, []string{ref, size(image.Size), image.Arch, span(p.Now().Sub(image.CreatedAt)) + " ago", image.Agent, id})
		}
	}
	columns(w, rows)
}
