package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slipway/backend/engine"
	"slipway/backend/session"
)

const (
	// watchTimeout is how long a batch command waits for the agent to see the session run. Without an agent it starts
	// all the same.
	watchTimeout = 30 * time.Second
	// flushTimeout is how long the news of the end may take to reach the agent.
	flushTimeout = 2 * time.Second
	// maxSettings is more than the engine ever tells, in bytes.
	maxSettings = 16 << 20
)

// work prepares the container and serves the agent until a batch command ends, whose code it returns, or a signal ends
// the session.
func work() int {
	settings, held, err := begin()
	if err != nil {
		fmt.Fprintln(os.Stderr, "slipway-guest:", err)
		if unsafe := (*unsafeError)(nil); errors.As(err, &unsafe) {
			return engine.ExitUnsafe
		}
		return codeBroken
	}
	if err := checkPins(settings.Pins); err != nil {
		fmt.Fprintln(os.Stderr, "slipway-guest:", err)
		return codeBroken
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ending := make(chan os.Signal, 2)
	signal.Notify(ending, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	signal.Ignore(syscall.SIGUSR1, syscall.SIGUSR2)

	image := environment(os.Environ())
	path, _ := image.get("PATH")
	shell := findShell(path)
	c := &container{
		uid: settings.UID, gid: settings.GID, groups: settings.Groups, home: homePath, shell: shell,
		env: newEnvironment(os.Environ(), shell, settings.Env), held: held,
	}
	config := Config{Processes: c, SpoolDir: held.spool.held()}
	if settings.Command == "" {
		config.Log = os.Stdout // a batch session's log is its command's alone
	}
	g := New(config)
	go connect(ctx, g, held.link.held()+"/"+socketName)
	for _, err := range c.prepare() {
		g.Trouble(err)
	}
	if err := c.cooperate(); err != nil {
		g.Trouble(err)
	}
	if settings.Cluster != nil {
		if err := c.joinCluster(ctx, *settings.Cluster); err != nil {
			g.Trouble(err)
		}
	}
	oom := newOOMCounter()
	go oom.watch(ctx, g.OOM)
	g.Ready()
	if settings.Command == "" {
		<-ending
		closeUntil(g, ending)
		return 0
	}
	return batch(g, c, settings.Command, oom, ending)
}

// begin reads what the engine has put into the container and opens what the guest works with, before anything of the
// image runs.
func begin() (settings engine.GuestConfig, held *places, err error) {
	t, err := openTree("/")
	if err != nil {
		return settings, nil, err
	}
	file, err := t.mounted(configPath, false)
	if err != nil {
		return settings, nil, err
	}
	defer file.close()
	data, err := file.content(maxSettings)
	if err != nil {
		return settings, nil, err
	}
	if settings, err = readSettings(data); err != nil {
		return settings, nil, err
	}
	if held, err = openPlaces(t); err != nil {
		return settings, nil, err
	}
	return settings, held, held.spool.keep()
}

// checkPins fails where a mount shows something else than it must. Nobody has seen it then: nothing runs before this.
func checkPins(pins []engine.Pin) error {
	for _, pin := range pins {
		stat, err := lookAt(pin.Target)
		if err != nil {
			return fmt.Errorf("look at the mount %s: %w", pin.Target, err)
		}
		if stat.Dev != pin.Device || stat.Ino != pin.Inode {
			return fmt.Errorf("what is mounted at %s is not what was to be mounted: its folder was changed meanwhile",
				pin.Target)
		}
	}
	return nil
}

// prepare makes the account and the home and returns what went wrong.
func (c *container) prepare() []error {
	var failures []error
	a := account{uid: c.uid, gid: c.gid, shell: c.shell.path}
	if err := a.create(c.held.tree); err != nil {
		failures = append(failures, session.WrapError(err, session.CodeNoUser,
			fmt.Sprintf("The user %q could not be added to the image's user files: %v.", User, err),
			"Programs that look up their user's name may complain."))
	}
	if err := a.prepareHome(c.held.tree, c.held.home); err != nil {
		failures = append(failures, session.WrapError(err, session.CodeNoHome,
			fmt.Sprintf("The home could not be prepared: %v.", err), "Check that the engine's disk is not full."))
	}
	for _, file := range []*os.File{os.Stdout, os.Stderr} {
		_ = unix.Fchown(int(file.Fd()), c.uid, c.gid) // for programs that open /dev/stdout anew
	}
	return failures
}

// connect keeps a link to the agent until ctx ends.
func connect(ctx context.Context, g *Guest, socket string) {
	var dialer net.Dialer
	for ctx.Err() == nil {
		if conn, err := dialer.DialContext(ctx, "unix", socket); err == nil {
			_ = g.Serve(ctx, conn) // a lost link is made anew
		}
		select {
		case <-time.After(redialPause):
		case <-ctx.Done():
		}
	}
}

// closeUntil ends terminals and services politely; a second signal cuts it short.
func closeUntil(g *Guest, ending <-chan os.Signal) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-ending:
			cancel()
		case <-ctx.Done():
		}
	}()
	_ = g.Close(ctx) // the container ends either way
}

// batch runs the startup command and returns its code.
func batch(g *Guest, c *container, script string, oom *oomCounter, ending <-chan os.Signal) int {
	select {
	case <-g.Watched():
	case <-time.After(watchTimeout):
	case <-ending:
		return 128 + int(syscall.SIGTERM)
	}
	code := c.runBatch(g, script, ending)
	if count := oom.count(); count > 0 {
		g.OOM(count)
	}
	g.Exit(code)
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	_ = g.Flush(ctx) // without an agent there is nobody to tell
	return code
}

// runBatch runs script with the image's shell on the container's own output.
func (c *container) runBatch(g *Guest, script string, ending <-chan os.Signal) int {
	if !hasShell(c) {
		g.Trouble(noShell(session.CodeNoShell))
		fmt.Fprintln(os.Stderr, "slipway: this image has no shell to run the startup command")
		return codeNotFound
	}
	spec := c.spec(Command{Argv: c.shell.run(script)}, c.env)
	spec.files = [3]*os.File{c.held.null, os.Stdout, os.Stderr}
	started, err := startChild(spec)
	if err != nil {
		g.Trouble(session.AsError(err, session.CodeGuestInternal))
		fmt.Fprintln(os.Stderr, "slipway:", err)
		return codeForbidden
	}
	for {
		select {
		case <-started.ended:
			return started.code
		case received := <-ending:
			if number, ok := received.(syscall.Signal); ok {
				signalSession(started.pid, number, unix.SIGCONT)
			}
		}
	}
}
