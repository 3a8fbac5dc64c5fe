package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/place"
	"slipway/backend/service"
	"slipway/backend/session"
)

// StarterCommand is the hidden command by which a [Starter] starts a
// demonstration as a second process of this program.
const StarterCommand = "demo-second"

// startPatience is how long the demonstration may take to answer.
const startPatience = 30 * time.Second

// Starter starts a demonstration beside what is real, when somebody asks to see
// it. The demonstration has a folder and a port of its own, ends with this
// process, and is then thrown away.
type Starter struct {
	mu      sync.Mutex // guards what follows; held while one is started
	running *child
	home    place.Home // of the one that runs
}

// starterReady is the one line that a demonstration beside what is real says.
type starterReady struct {
	Dir string `json:"dir"`
}

// Start starts the demonstration unless it runs, and returns an address that logs
// a browser in to it once. It fails with server_start_failed.
func (s *Starter) Start(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		select {
		case <-s.running.ended:
			s.running = nil
		default:
		}
	}
	if s.running == nil {
		if err := s.launch(ctx); err != nil {
			return "", startFailed(err)
		}
	}
	address, err := loginTo(ctx, s.home)
	if err != nil {
		return "", startFailed(err)
	}
	return address, nil
}

func startFailed(err error) error {
	return &session.Error{Code: session.CodeServerFailed, Message: "The demo does not start.",
		Hint: "Try slipway demo in a terminal: it says why.", Err: err}
}

// launch starts the process and waits until it answers. The caller holds mu.
func (s *Starter) launch(ctx context.Context) error {
	c, err := startChild(ctx, nil, StarterCommand)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	var ready starterReady
	select {
	case line := <-c.told:
		err = json.Unmarshal(line, &ready)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return errors.Join(err, c.end())
	}
	s.running, s.home = c, place.Home{Dir: ready.Dir}
	return nil
}

// loginTo asks the control plane of a folder for a one-time address.
func loginTo(ctx context.Context, home place.Home) (string, error) {
	c, err := client.Connect(ctx, home)
	if err != nil {
		return "", err
	}
	defer c.HTTP.CloseIdleConnections()
	link, err := route.LoginLink.Ask(ctx, c)
	return link.URL, err
}

// Close ends the demonstration, if one runs, and waits until it is thrown away.
func (s *Starter) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return nil
	}
	return s.running.end()
}

// StarterMain is the demonstration that a control plane starts beside itself. It
// serves until its standard input ends and returns the exit code of the process.
func StarterMain(assets, notebook fs.FS, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := childContext(stdin)
	defer cancel()
	err := Demo(ctx, Config{Assets: assets, Notebook: notebook,
		Ready: func(_ service.Ready, dir string) {
			_ = json.NewEncoder(stdout).Encode(starterReady{Dir: dir}) // nobody reads it: then the input ends, too
		}})
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
