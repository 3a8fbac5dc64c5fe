//go:build desktop

package app

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// runWindowed opens the main window when the program is started without a command, and an app window for the command
// "window". Everything else is left to the command line.
func runWindowed(args []string) (code int, handled bool) {
	switch {
	case len(args) > 0 && args[0] == "window":
		return report(runChild(args[1:])), true
	case len(args) == 1 && strings.HasPrefix(args[0], "slipway:"):
		return report(runMain(nil, args[0])), true
	case len(args) == 0 || strings.HasPrefix(args[0], "--engine"):
		return report(runMain(args, "")), true
	}
	return 0, false
}

func report(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "slipway:", err)
	return 1
}

// runMain opens the main window, or brings the one that is already open to the front. It shows the page that asks about
// link, where one is given.
func runMain(args []string, link string) error {
	flags := flag.NewFlagSet("slipway-desktop", flag.ContinueOnError)
	engine := flags.String("engine", "docker", "docker, sim or auto: used if the control plane has to be started")
	if err := flags.Parse(args); err != nil {
		return err
	}
	prepareEnvironment()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	plane, err := connect(ctx, *engine)
	if err != nil {
		return err
	}
	page := ""
	if link != "" {
		page = "/link?" + url.Values{"url": {link}}.Encode()
	}
	shown, err := plane.showExisting(ctx, page)
	if err != nil || shown {
		return err
	}
	shell := newShell(plane)
	shell.first = page
	return shell.run(ctx)
}
