//go:build desktop

package app

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"github.com/wailsapp/wails/v2"
	"github.com/wailsapp/wails/v2/pkg/options"
	"github.com/wailsapp/wails/v2/pkg/options/assetserver"
	"github.com/wailsapp/wails/v2/pkg/runtime"
)

// startChild opens an app window at an address, in a process of its own. The address has a one-time ticket, so it is
// sent to stdin, where other users cannot read it. The process ends when its window is closed or the pipe breaks.
func startChild(address, title string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "window", "--title", title)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if _, err := pipe.Write([]byte(address + "\n")); err != nil {
		return errors.Join(err, pipe.Close(), cmd.Wait())
	}
	go func() { _ = cmd.Wait() }() // the app itself keeps running; this also keeps the pipe open
	return nil
}

// runChild runs an app window at the address on stdin, until the window is closed or stdin ends.
func runChild(args []string) error {
	flags := flag.NewFlagSet("window", flag.ContinueOnError)
	title := flags.String("title", "Slipway", "title until the page has one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	input := bufio.NewReader(os.Stdin)
	address, err := input.ReadString('\n')
	if err != nil {
		return errors.New("window: the address is expected as a line on stdin")
	}
	target, err := url.Parse(strings.TrimSpace(address))
	if err != nil || target.Scheme != "http" {
		return errors.New("window: the address on stdin is not an http address")
	}
	prepareEnvironment()
	return wails.Run(&options.App{
		Title:            *title,
		Width:            defaultWidth,
		Height:           defaultHeight,
		BackgroundColour: options.NewRGB(255, 255, 255),
		AssetServer:      &assetserver.Options{Handler: stub(target.String())},
		Linux:            linuxOptions(),
		OnStartup: func(ctx context.Context) {
			installWebViewHooks()
			go func() {
				_, _ = input.ReadString(0) // until the parent is gone
				runtime.Quit(ctx)
			}()
		},
		EnableDefaultContextMenu: true,
	})
}
