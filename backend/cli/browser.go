package cli

import (
	"bufio"
	"context"
	"fmt"
	"html/template"
	"io"
	"os/exec"
	"runtime"
	"strings"

	"github.com/moby/sys/atomicwriter"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/place"
)

// openBrowser opens an address of the control plane with the person's own
// browser. Every user of the computer can read the arguments that a browser is
// started with, so none of them is the address itself, which holds a one-time
// code: it is a pass of the control plane or, where the operating system does not
// tell whose a connection is, a file that only this user can read.
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
	var page strings.Builder
	if err := forwardPage.Execute(&page, address); err != nil {
		return err
	}
	if err := atomicwriter.WriteFile(file, []byte(page.String()), 0o600); err != nil {
		return err
	}
	return startBrowser(file)
}

// forwardPage goes on to an address. What is left of it is a code that is used up.
var forwardPage = template.Must(template.New("forward").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={{.}}"><title>Slipway</title></head>
<body><a href="{{.}}">Open Slipway</a></body></html>
`))

// startBrowser starts the person's own browser with a file, or an address that
// holds nothing secret.
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
	go func() { _ = cmd.Wait() }() // a browser that stays is no concern of ours
	return nil
}

// sayLogin tells a person at the terminal how a browser gets in.
func (p *program) sayLogin(ready Ready) {
	fmt.Fprintln(p.Stdout, "Open this address to log a browser in. It works once, within ten minutes:")
	fmt.Fprintf(p.Stdout, "\n  %s\n\n", ready.LoginURL)
	if p.asksForLogins() {
		fmt.Fprintln(p.Stdout, "Press Enter for a new address.")
	}
}

// asksForLogins reports whether a person can press Enter.
func (p *program) asksForLogins() bool { return p.output == outputTable && isTerminal(p.Stdin) }

// begun opens the browser where that is wanted, and gives a person at the
// terminal new addresses, as long as the control plane of a home runs.
func (p *program) begun(ctx context.Context, home place.Home, ready Ready, open bool) {
	connect := func() (*caller, error) {
		c, err := client.Connect(ctx, home)
		return &caller{c, p}, err
	}
	if open {
		c, err := connect()
		if err == nil {
			err = p.openBrowser(ctx, c, ready.LoginURL)
		}
		if err != nil {
			p.notice("The browser could not be opened: %v.", err)
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
			p.notice("There is no new address: %s", problem.Message)
			continue
		}
		fmt.Fprintf(p.Stdout, "  %s\n", link.URL)
	}
}
