// Package backend is the program without a window ([Main]): it hands the command line the services that it can run.
package backend

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"slipway/backend/cli"
	"slipway/backend/demo"
	"slipway/backend/demo/run"
	"slipway/backend/service"
	"slipway/backend/session"
	"slipway/gpu/nvml"
	"slipway/tunnel/askpass"
)

// Pages are the built pages that the program holds.
type Pages struct {
	Interface fs.FS // the user interface
	Notebook  fs.FS // what notebooks of simulated sessions show; nil: they have none
}

// Main runs the program without a window: the command line, of which serve is one command. It returns the exit code of
// the process.
func Main(args []string, pages Pages) int {
	if exit, handled := hidden(args, pages); handled {
		return exit
	}
	return cli.Main(context.Background(), cli.Config{
		Version: service.BuildVersion(), Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Serve: func(ctx context.Context, opts cli.ServeOptions) error {
			starter := &run.Starter{}
			config := service.Config{Home: opts.Home, Engine: opts.Engine, Port: opts.Port, Assets: pages.Interface,
				Notebook: pages.Notebook, DemoStarter: starter}
			if opts.Ready != nil {
				config.Ready = func(r service.Ready) { opts.Ready(cli.Ready(r)) }
			}
			return told(errors.Join(service.Run(ctx, config), starter.Close()))
		},
		Demo: func(ctx context.Context, opts cli.DemoOptions) error {
			config := run.Config{Options: demo.Options{Seed: opts.Seed, Story: demo.Story(opts.Story),
				Speed: opts.Speed}, Keep: opts.Keep, Port: opts.Port, Assets: pages.Interface, Notebook: pages.Notebook}
			if opts.Ready != nil {
				config.Ready = func(r service.Ready, dir string) { opts.Ready(cli.Ready(r), dir) }
			}
			return told(run.Demo(ctx, config))
		},
		Agent: func(ctx context.Context, opts cli.AgentOptions) error {
			return service.RunAgent(ctx, service.AgentConfig{Home: opts.Home, Settings: opts.Settings,
				Ready: opts.Ready, Notebook: pages.Notebook})
		},
	})
}

// hidden runs the commands by which the program starts itself.
func hidden(args []string, pages Pages) (exit int, handled bool) {
	// ssh starts this program to ask a question
	if exit, handled = askpass.Main(args, os.Getenv, os.Stdout, os.Stderr); handled || len(args) == 0 {
		return exit, handled
	}
	switch args[0] {
	case nvml.ChildCommand:
		return nvml.ChildMain(args[1:], os.Stdin, os.Stdout, os.Stderr), true
	case run.StarterCommand:
		return run.StarterMain(pages.Interface, pages.Notebook, os.Stdin, os.Stdout, os.Stderr), true
	}
	return 0, false
}

// told gives a failure's code, message and hint to the command line.
func told(err error) error {
	var e *session.Error
	if !errors.As(err, &e) {
		return err
	}
	return cli.Told(session.Error{Code: e.Code, Message: e.Message, Hint: e.Hint})
}
