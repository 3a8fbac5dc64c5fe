package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"slipway/backend/daemon"
	"slipway/backend/demo"
	"slipway/backend/hub"
	"slipway/backend/local"
	"slipway/backend/place"
	"slipway/backend/service"
	"slipway/backend/session"
)

// LabCommand is the hidden command by which a demonstration starts its lab
// server as a second process of this program.
const LabCommand = "demo-lab"

// labPatience is how long the lab server may take to answer.
const labPatience = 20 * time.Second

// lab is the lab server's process, seen from the demonstration.
type lab struct {
	*child
	home place.Home
}

// startLab starts the lab server and does not wait for it.
func startLab(ctx context.Context, home place.Home, options demo.Options, goes demo.Time,
	program []string) (*lab, error) {
	if _, err := demo.Claim(home.Dir, options); err != nil {
		return nil, err
	}
	if err := demo.SaveTime(home.Dir, goes, 0); err != nil {
		return nil, err
	}
	c, err := startChild(ctx, program, LabCommand, home.Dir)
	if err != nil {
		return nil, labFailed(home, err)
	}
	return &lab{child: c, home: home}, nil
}

// address waits until the lab server answers and returns where.
func (l *lab) address(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, labPatience)
	defer cancel()
	select {
	case line := <-l.told:
		var status daemon.Status
		if err := json.Unmarshal(line, &status); err != nil {
			return "", labFailed(l.home, err)
		}
		address, err := hub.ParseAddress("slipway://" + status.Listen)
		return address.String(), err
	case <-ctx.Done():
		return "", labFailed(l.home, ctx.Err())
	}
}

// code asks the lab server for a pairing code, as slipway agent pair does there.
func (l *lab) code(ctx context.Context) (string, error) {
	c, err := daemon.Connect(ctx, l.home)
	if err != nil {
		return "", labFailed(l.home, err)
	}
	code, err := c.PairCode(ctx, session.PairRequest{Owner: demo.Person, Role: session.RoleAdmin})
	return code.Code, err
}

func labFailed(home place.Home, err error) error {
	return &session.Error{Code: session.CodeServerFailed, Message: "The demo's lab server does not start.",
		Hint: "Look at its log, " + daemon.LogFile(home) + ".", Err: err}
}

// LabMain is the lab server of a demonstration: an agent that paired computers
// reach on loopback, until its standard input ends. It says where it answers in
// one line of JSON and returns the exit code of the process.
func LabMain(args []string, notebook fs.FS, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := childContext(stdin)
	defer cancel()
	if len(args) != 1 {
		fmt.Fprintln(stderr, "This command is for slipway demo.")
		return 2
	}
	if err := serveLab(ctx, place.Home{Dir: args[0]}, notebook, stdout); err != nil && ctx.Err() == nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// serveLab listens where it did the last time, as long as nobody else does.
func serveLab(ctx context.Context, home place.Home, notebook fs.FS, stdout io.Writer) error {
	options, marked, err := demo.Marked(home.Dir)
	if err != nil {
		return err
	}
	if !marked {
		return &session.Error{Code: session.CodeStartConflict,
			Message: fmt.Sprintf("The folder %s is not one of a demo.",
				home.Dir), Hint: "Use slipway demo."}
	}
	kept, err := daemon.LoadSettings(home)
	if err != nil {
		return err
	}
	machine := demo.Lab(options)
	if machine.Time, err = demo.Goes(home.Dir); err != nil {
		return err
	}
	config := service.AgentConfig{Home: home, Settings: daemon.Settings{Engine: local.EngineSim, Listen: kept.Listen},
		Notebook: notebook, Machine: &machine, Acts: demo.OnLab(options)}
	config.Ready = func(status daemon.Status) {
		kept.Engine, kept.Listen = local.EngineSim, status.Listen
		err := kept.Save(home)
		if line, jsonErr := json.Marshal(status); err == nil && jsonErr == nil {
			_, _ = fmt.Fprintf(stdout, "%s\n", line) // nobody reads it: then the input ends, too
		}
	}
	if kept.Listen != "" {
		err := service.RunAgent(ctx, config)
		if session.CodeOf(err) != session.CodeListenConflict || errors.Is(err, context.Canceled) {
			return err
		}
	}
	config.Settings.Listen = "127.0.0.1:0"
	return service.RunAgent(ctx, config)
}
