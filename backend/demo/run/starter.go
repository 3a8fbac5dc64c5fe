package run

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"time"

	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/place"
	"slipway/backend/service"
	"slipway/backend/session"
)

// StarterCommand is the hidden command by which a [Starter] starts a demonstration as a second process of this program.
const StarterCommand = "demo-second"

// startPatience is how long the demonstration may take to answer.
const startPatience = 30 * time.Second

// Starter starts a demonstration beside what is real, when somebody asks to see it. The demonstration has a folder and
// a port of its own, ends with this process, and is then thrown away.
type Starter struct {
	mu      sync.Mutex // guards what follows; held while one is started
	running *child
}

// child is the process of the demonstration. It ends with its standard input, so it never outlives who started it.
type child struct {
	home  place.Home
	input io.Closer
	ended chan struct{}
}

// Start starts the demonstration unless it runs, and returns an address that logs a browser in to it once. It fails
// with server_start_failed.
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
	address, err := loginTo(ctx, s.running.home)
	if err != nil {
		return "", startFailed(err)
	}
	return address, nil
}

func startFailed(err error) error {
	return &session.Error{Code: session.CodeServerFailed, Message: "The demo does not start.",
		Hint: "Try slipway demo in a terminal: it says why.", Err: err}
}

// launch starts the process and waits until it says the folder in which it answers. The caller holds mu.
func (s *Starter) launch(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self, StarterCommand)
	input, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c := &child{input: input, ended: make(chan struct{})}
	told := make(chan string, 1)
	go func() {
		defer close(c.ended)
		lines := bufio.NewReader(output)
		line, _ := lines.ReadString('\n')
		told <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, lines) // it says nothing more
		_ = cmd.Wait()                    // how it ended is in its log
	}()
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	select {
	case c.home.Dir = <-told:
	case <-ctx.Done():
	}
	if c.home.Dir == "" {
		return errors.Join(errors.New("it does not answer"), ctx.Err(), c.end())
	}
	s.running = c
	return nil
}

// end ends the process and waits for it.
func (c *child) end() error {
	err := c.input.Close()
	<-c.ended
	return err
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

// StarterMain is the demonstration that a control plane starts beside itself. It serves until its standard input ends
// and returns the exit code of the process.
func StarterMain(assets, notebook fs.FS, stdin io.Reader, stdout, stderr io.Writer) int {
	signal.Ignore(os.Interrupt) // it is meant for who started this process
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // nothing comes but the end
		cancel()
	}()
	err := Demo(ctx, Config{Assets: assets, Notebook: notebook,
		Ready: func(_ service.Ready, dir string) {
			_, _ = fmt.Fprintln(stdout, dir) // nobody reads it: then the input ends, too
		}})
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
