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
	"sync"

	"github.com/wailsapp/wails/v2"
	"github.com/wailsapp/wails/v2/pkg/options"
	"github.com/wailsapp/wails/v2/pkg/options/assetserver"
	"github.com/wailsapp/wails/v2/pkg/runtime"
)

// children are the app windows of this process, each a process of its own.
type children struct {
	mu   sync.Mutex // guards open
	open map[*exec.Cmd]struct{}
}

// start opens a window at an address. The address holds a one-time ticket, so it goes through stdin and never into the
// list of processes. The child lives until its window is closed or the pipe to it breaks.
func (c *children) start(address, title string) error {
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
	c.mu.Lock()
	if c.open == nil {
		c.open = map[*exec.Cmd]struct{}{}
	}
	c.open[cmd] = struct{}{}
	c.mu.Unlock()
	if _, err := pipe.Write([]byte(address + "\n")); err != nil {
		return errors.Join(err, pipe.Close(), cmd.Wait())
	}
	go func() {
		// How an app window ended concerns nobody: the app itself goes on.
		_ = cmd.Wait()
		c.mu.Lock()
		delete(c.open, cmd)
		c.mu.Unlock()
	}()
	return nil
}

// runChild is the whole life of an app window: it reads its address from stdin and ends when its window is closed or
// stdin does.
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
				// Any end of stdin means that the parent is gone.
				_, _ = input.ReadString(0)
				runtime.Quit(ctx)
			}()
		},
		EnableDefaultContextMenu: true,
	})
}
