package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/atomicwriter"
	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/place"
	"slipway/backend/recipe"
	"slipway/backend/session"
)

func (p terminalCommands) appsCommand() *cobra.Command {
	return asks(p.program, &cobra.Command{Use: "apps SESSION", Short: "List the apps of a session"}, "", route.Apps,
		appTable)
}

func appTable(w io.Writer, apps []api.App) {
	if len(apps) == 0 {
		fmt.Fprintln(w, "Nothing that Slipway knows is installed, and no port is open.")
		return
	}
	table(w, "ID,TITLE,KIND, PORT,STATE,ADDRESS", apps, func(app api.App) []string {
		state := string(app.State)
		if app.Installable && app.State == session.AppStopped {
			state = "not installed"
		}
		return []string{app.ID, app.Title, app.Kind, limitCell(app.Port), state, app.URL}
	})
	for _, app := range apps {
		if len(app.NotKept) > 0 {
			fmt.Fprintln(w, app.Title+":", session.Reader{}.Read(app.NotKept...))
		}
		switch lost := app.LostDoor; {
		case lost == nil:
		case lost.Public:
			fmt.Fprintf(w, "%s was open to everybody on port %d until Slipway ended; open it again with "+
				"--public --port %d.\n", app.Title, lost.Port, lost.Port)
		default:
			const text = "%s was on port %d of this computer until Slipway ended; another program has that port now.\n"
			fmt.Fprintf(w, text, app.Title, lost.Port)
		}
	}
}

func (p terminalCommands) openCommand() *cobra.Command {
	var printOnly, shut, stop bool
	var req api.OpenRequest
	cmd := &cobra.Command{Use: "open SESSION [APP]", Short: "Open an app such as JupyterLab and print its address",
		Long: `Open starts an app if necessary, waits until it responds, prints its address, and opens the
browser on a desktop. Without APP it opens the first web app. Press Ctrl-C to cancel. To stop
a running or starting app, use --stop. The address works once, within one minute.

With --port the app is also on that port of this computer, or on another one if it is in
use, until --close or the end of the session. With --public everyone who can reach this
computer can use it without a login, until --close, the end of the session or the end of
Slipway. slipway apps lists ports that closed with Slipway.`}
	cmd.Flags().IntVar(&req.Port, "port", 0, "preferred port of this computer, 1024 to 65535")
	cmd.Flags().BoolVar(&req.Public, "public", false, "open it to everyone on the network, without a login")
	cmd.Flags().BoolVar(&shut, "close", false, "close the port opened by --port or --public; the app keeps running")
	cmd.Flags().BoolVar(&stop, "stop", false, "stop the app; the session keeps running")
	for _, other := range []string{"port", "public"} {
		cmd.MarkFlagsMutuallyExclusive("close", "stop", other)
	}
	cmd.Flags().StringVar(&req.Dir, "dir", "", "directory of the session for TensorBoard or MLflow")
	cmd.Flags().BoolVar(&req.Install, "install", false,
		"install the app into the session with pip if the image lacks it")
	cmd.Flags().BoolVar(&printOnly, "print", false, "print the address without opening it")
	cmd.Flags().BoolVar(&req.Window, "window", false, "open in a window of the desktop app, if it is running")
	return runs(cmd, p.inSession(func(ctx context.Context, c *caller, s api.Session, args []string) error {
		apps, err := route.Apps.At(string(s.ID)).Ask(ctx, c)
		if err != nil {
			return err
		}
		app, err := chooseApp(s, apps, args, req.Install)
		if err != nil {
			return err
		}
		if shut {
			return route.AppDoorClose.At(string(s.ID), app).Call(ctx, c, nil)
		}
		stopping := route.AppStop.At(string(s.ID), app)
		if stop {
			return stopping.Call(ctx, c, nil)
		}
		opened, err := route.AppOpen.At(string(s.ID), app).Body(req).Ask(ctx, c)
		began := slices.ContainsFunc(apps, func(a api.App) bool {
			return a.ID == app && a.State != "ready" && a.State != "starting"
		})
		if err != nil && ctx.Err() != nil && began {
			left, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			return errors.Join(err, stopping.Call(left, c, nil))
		}
		if err != nil {
			return err
		}
		p.tellDoor(opened.App)
		if !opened.Windowed && !printOnly && p.output == outputTable && p.onDesktop() {
			p.showBrowser(ctx, c, opened.URL)
		}
		return p.print(opened, func(w io.Writer) { fmt.Fprintln(w, opened.URL) })
	}))
}

// tellDoor prints the port of an app, and who can reach it.
func (p terminalCommands) tellDoor(app api.App) {
	if app.Door == nil {
		return
	}
	if app.Door.Instead {
		p.notice("The preferred port is in use; %s is on port %d.", app.Title, app.Door.Port)
	}
	if app.Door.Public {
		p.notice("%s is open to everybody, without a login, at %s.", app.Title,
			strings.Join(app.Door.Addresses[1:], " "))
	}
}

// chooseApp returns the app that was named, or the first web app that is installed or may be.
func chooseApp(s api.Session, apps []api.App, named []string, install bool) (string, error) {
	if len(named) > 0 {
		return named[0], nil
	}
	if i := slices.IndexFunc(apps, func(app api.App) bool {
		return app.Kind == "web" && (install || !app.Installable)
	}); i >= 0 {
		return apps[i].ID, nil
	}
	return "", fail(session.CodeAppNotFound,
		fmt.Sprintf("%s has no web app: Jupyter is not installed in %s and no port is open.", s.Name, s.Image),
		"Launch an image with Jupyter, install it with --install, or open a port with --port.")
}

// onDesktop reports whether this is a terminal on a computer with a display.
func (p terminalCommands) onDesktop() bool {
	return isTerminal(p.raw.out) && (runtime.GOOS == "windows" || runtime.GOOS == "darwin" || p.Env("DISPLAY") != "" ||
		p.Env("WAYLAND_DISPLAY") != "")
}

// openBrowser opens an address of the control plane in the browser. Every user of the computer can read the arguments
// of a browser, so they must not contain the address, which has a one-time code. They contain a pass of the control
// plane or, if the operating system does not report the user of a connection, a file that only this user can read.
func (p *program) openBrowser(ctx context.Context, c *caller, address string) error {
	pass, err := route.LoginPass.Body(api.PassRequest{URL: address}).Ask(ctx, c)
	if err == nil {
		return startBrowser(pass.URL)
	}
	home, err := place.FindHome(p.Env)
	if err != nil {
		return err
	}
	file := home.Join("open.html")
	var page bytes.Buffer
	err = forwardPage.Execute(&page, address)
	if err == nil {
		err = atomicwriter.WriteFile(file, page.Bytes(), 0o600)
	}
	if err != nil {
		return err
	}
	return startBrowser(file)
}

// showBrowser does the same, or prints why it cannot.
func (p *program) showBrowser(ctx context.Context, c *caller, address string) (shown bool) {
	err := p.openBrowser(ctx, c, address)
	if err != nil {
		p.notice("The browser could not be opened: %v.", err)
	}
	return err == nil
}

// forwardPage redirects to an address. Its code is used up then, so the file may stay.
var forwardPage = template.Must(template.New("forward").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={{.}}"><title>Slipway</title></head>
<body><a href="{{.}}">Open Slipway</a></body></html>
`))

// startBrowser starts the default browser with a file or an address, which must not be secret.
func startBrowser(target string) error {
	name, args := "xdg-open", []string{target}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", target}
	}
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // the browser may stay open
	return nil
}

// asksForLogins reports whether someone can press Enter.
func (p *program) asksForLogins() bool { return p.output == outputTable && isTerminal(p.Stdin) }

// begun opens the browser if open is set, and prints new login addresses on request while the control plane runs.
func (p *program) begun(ctx context.Context, home place.Home, ready Ready, open bool) {
	connect := func() (*caller, error) {
		c, err := client.Connect(ctx, home)
		return &caller{c, p}, err
	}
	if open {
		if c, err := connect(); err == nil {
			p.showBrowser(ctx, c, ready.LoginURL)
		}
	}
	if p.asksForLogins() {
		ignoreBackgroundRead()
		go p.giveLogins(ctx, p.Stdin, connect)
	}
}

// giveLogins prints a new address for each line that is read.
func (p *program) giveLogins(ctx context.Context, from io.Reader, connect func() (*caller, error)) {
	lines := bufio.NewScanner(from)
	for lines.Scan() && ctx.Err() == nil {
		var link api.LoginLink
		c, err := connect()
		if err == nil {
			link, err = route.LoginLink.Ask(ctx, c)
		}
		if err != nil {
			problem, _ := describe(err)
			p.notice("No new address: %s", problem.Message)
			continue
		}
		fmt.Fprintf(p.Stdout, "  %s\n", link.URL)
	}
}

func (p terminalCommands) openLinkCommand() *cobra.Command {
	var print bool
	cmd := &cobra.Command{Use: "open-link LINK", Short: "Open a slipway:// link",
		Long: `Open-link opens a link in the desktop window, or in the browser if there is none.
slipway://run?image=… fills in the launcher, slipway://open/SESSION shows a session, and
slipway://project?address=… names a git repository to open.
Nothing happens before you confirm.`,
		Example: "  slipway open-link 'slipway://run?image=python:3.12&cpu=2&memory=4g'"}
	cmd.Flags().BoolVar(&print, "print", false, "print the address instead of opening it")
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		var fault *recipe.Fault
		if _, err := recipe.ParseLink(args[0]); errors.As(err, &fault) {
			return fail(session.CodeRecipeInvalid, sentence(fault.Message), fault.Hint)
		} else if err != nil {
			return err
		}
		path := LinkPath(args[0])
		if !print {
			shown, err := route.WindowShow.Body(api.WindowRequest{Path: path}).Ask(ctx, c)
			if err != nil || shown.Shown {
				return err
			}
		}
		login, err := route.LoginLink.Ask(ctx, c)
		if err != nil {
			return err
		}
		login.URL += "&next=" + url.QueryEscape(path)
		if !print && p.showBrowser(ctx, c, login.URL) {
			return nil
		}
		return p.print(login, func(w io.Writer) { fmt.Fprintln(w, login.URL) })
	}))
}

// LinkPath returns the page of the user interface that shows a link and asks for confirmation.
func LinkPath(link string) string { return "/link?" + url.Values{"url": {link}}.Encode() }
