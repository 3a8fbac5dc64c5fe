package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"slipway/backend/place"
	"slipway/backend/session"
)

// DemoOptions says which demonstration to serve.
type DemoOptions struct {
	Seed  uint64 // 0: the usual one
	Story string // empty: the usual one
	Speed int    // how much faster time goes by; 0: as on the wall
	Keep  string // folder that it is kept in; empty: it is thrown away at the end
	Port  int    // 0: the one used last, else 7431, else any
	// Ready is called once, when it answers, with its folder.
	Ready func(ready Ready, dir string)
}

func (p planeCommands) demoCommand() *cobra.Command {
	var opts DemoOptions
	var open bool
	cmd := &cobra.Command{
		Use:   "demo [--story NAME] [--seed N] [--speed N] [--keep DIR]",
		Short: "Run a demo on simulated machines: no Docker, no GPU, no network",
		Long: `Demo opens the complete launcher with a simulated workstation with two GPUs and, behind the
real tunnel on loopback, a simulated lab server with eight GPUs. It is marked as a demo
everywhere, and its files are separate from yours. They are deleted at the end unless you
use --keep.

Stories: lab (default: everyday work on both machines), workstation (this machine only),
shortage (the lab server is full and sessions wait), idle (a session is about to be
reclaimed), failure (sessions end in different ways, each with its reason).`,
	}
	cmd.Flags().StringVar(&opts.Story, "story", "", "lab, workstation, shortage, idle or failure (default lab)")
	cmd.Flags().Uint64Var(&opts.Seed, "seed", 0, "random seed (default 1)")
	cmd.Flags().IntVar(&opts.Speed, "speed", 1, "speed of time on its machines, 1 to 60")
	cmd.Flags().StringVar(&opts.Keep, "keep", "", "save the demo in this directory and continue it later")
	cmd.Flags().IntVar(&opts.Port, "port", 0, "port on 127.0.0.1 (default: the last one used, 7431, or any free port)")
	cmd.Flags().BoolVar(&open, "open", false, "open the browser")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := interruptible(cmd.Context())
		defer cancel()
		if p.Demo == nil {
			return failAs(ExitFailure, session.CodeServerUnavailable, "This program has no demo.",
				"Use the slipway program.")
		}
		if opts.Port < 0 || opts.Port > 65535 {
			return usagef("invalid port %d: use a number from 1 to 65535", opts.Port)
		}
		if opts.Speed < 1 || opts.Speed > 60 {
			return usagef("invalid speed %d: use a number from 1 to 60", opts.Speed)
		}
		opts.Ready = func(ready Ready, dir string) {
			p.sayDemo(ready, dir, opts.Keep != "")
			p.begun(ctx, place.Home{Dir: dir}, ready, open)
		}
		err := p.Demo(ctx, opts)
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil // stopped as asked
		}
		return err
	}
	return cmd
}

func (p planeCommands) sayDemo(ready Ready, dir string, kept bool) {
	if p.output == outputJSON {
		_ = json.NewEncoder(p.Stdout).Encode(map[string]any{"url": ready.URL, "loginUrl": ready.LoginURL,
			"engine": ready.Engine, "demo": true, "home": dir})
		return
	}
	fmt.Fprintf(p.Stdout, "A DEMO of Slipway runs at %s. Nothing in it is real.\n", ready.URL)
	p.sayLogin(ready)
	fmt.Fprintf(p.Stdout, "The command line reaches it with SLIPWAY_HOME=%s\n", dir)
	if kept {
		fmt.Fprintln(p.Stdout, "Ctrl-C ends the demo; its files are kept.")
		return
	}
	fmt.Fprintln(p.Stdout, "Ctrl-C ends the demo and throws its files away.")
}
