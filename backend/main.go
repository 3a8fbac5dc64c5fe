package backend

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"slipway/backend/api"
	"slipway/backend/cli"
	"slipway/backend/demo"
	"slipway/backend/session"
	"slipway/gpu/nvml"
	"slipway/tunnel/sshstdio"
)

// Pages are the built pages that the program holds.
type Pages struct {
	Interface fs.FS // the user interface
	Notebook  fs.FS // what notebooks of simulated sessions show; nil: they have none
}

// Main runs the program without a window: the command line, of which serve is
// one command. It returns the exit code of the process.
func Main(args []string, pages Pages) int {
	// hidden: ssh starts this program to ask a question
	if exit, handled := sshstdio.AskpassMain(args, os.Getenv, os.Stdout, os.Stderr); handled {
		return exit
	}
	if len(args) > 0 && args[0] == nvml.ChildCommand { // hidden: gpu/devices starts this program so
		return nvml.ChildMain(args[1:], os.Stdin, os.Stdout, os.Stderr)
	}
	if len(args) > 0 && args[0] == LabCommand { // hidden: a demo starts this program so
		return LabMain(args[1:], pages.Notebook, os.Stdin, os.Stdout, os.Stderr)
	}
	if len(args) > 0 && args[0] == BesideCommand { // hidden: a control plane starts this program so
		return BesideMain(pages, os.Stdin, os.Stdout, os.Stderr)
	}
	return cli.Main(context.Background(), cli.Config{
		Version: BuildVersion(), Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Serve: func(ctx context.Context, opts cli.ServeOptions) error {
			config := Config{Home: opts.Home, Engine: opts.Engine, Port: opts.Port, Assets: pages.Interface,
				Notebook: pages.Notebook}
			if opts.Ready != nil {
				config.Ready = func(r Ready) { opts.Ready(cli.Ready(r)) }
			}
			return told(Serve(ctx, config))
		},
		Demo: func(ctx context.Context, opts cli.DemoOptions) error {
			config := DemoConfig{Options: demo.Options{Seed: opts.Seed, Story: demo.Story(opts.Story),
				Speed: opts.Speed}, Keep: opts.Keep, Port: opts.Port, Assets: pages.Interface, Notebook: pages.Notebook}
			if opts.Ready != nil {
				config.Ready = func(r Ready, dir string) { opts.Ready(cli.Ready(r), dir) }
			}
			return told(ServeDemo(ctx, config))
		},
		Agent: func(ctx context.Context, opts cli.AgentOptions) error {
			return ServeAgent(ctx, AgentConfig{Home: opts.Home, Settings: opts.Settings, Ready: opts.Ready,
				Notebook: pages.Notebook})
		},
	})
}

// told gives a failure's code, message and hint to the command line.
func told(err error) error {
	var e *session.Error
	if !errors.As(err, &e) {
		return err
	}
	return cli.Told(api.Problem{Code: string(e.Code), Message: e.Message, Hint: e.Hint})
}
