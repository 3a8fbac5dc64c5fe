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

const (
	// StarterCommand is the hidden command with which a [Starter] starts a second process of this program.
	StarterCommand = "demo-second"
	startPatience  = 30 * time.Second
)

// Starter starts a demonstration next to the real control plane, with a temporary folder and its own port. It ends with
// this process.
type Starter struct {
	mu      sync.Mutex // guards running; locked during a start
	running *child
}

// child is the process of the demonstration. It ends with its standard input, so it never outlives its parent.
type child struct {
	home  place.Home
	input io.Closer
	ended chan struct{}
}

// Start starts the demonstration unless it is running, and returns an address that logs a browser in to it once. It
// fails with server_start_failed.
func (s *Starter) Start(ctx context.Context) (address string, err error) {
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
		err = s.launch(ctx)
	}
	if err == nil {
		address, err = loginTo(ctx, s.running.home)
	}
	if err != nil {
		return "", session.WrapError(err, session.CodeServerFailed, "The demo does not start.",
			"Try slipway demo in a terminal: it says why.")
	}
	return address, nil
}

// launch starts the process and waits until it prints its folder. The caller has locked mu.
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
		_, _ = io.Copy(io.Discard, lines)
		_ = cmd.Wait() // its log has the error
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

func (c *child) end() error {
	err := c.input.Close()
	<-c.ended
	return err
}

func loginTo(ctx context.Context, home place.Home) (string, error) {
	c, err := client.Connect(ctx, home)
	if err != nil {
		return "", err
	}
	defer c.HTTP.CloseIdleConnections()
	link, err := route.LoginLink.Ask(ctx, c)
	return link.URL, err
}

// Close stops the demonstration, if it is running, and waits until its folder is removed.
func (s *Starter) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return nil
	}
	return s.running.end()
}

// StarterMain is the main function of [StarterCommand]. It serves a demonstration until standard input ends, and
// returns the exit code of the process.
func StarterMain(assets, notebook fs.FS, stdin io.Reader, stdout, stderr io.Writer) int {
	signal.Ignore(os.Interrupt) // the parent handles it
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	err := Demo(ctx, Config{Assets: assets, Notebook: notebook,
		Ready: func(_ service.Ready, dir string) {
			_, _ = fmt.Fprintln(stdout, dir)
		}})
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
