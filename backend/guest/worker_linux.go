package guest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slipway/backend/engine"
	"slipway/backend/session"
)

const (
	// watchTimeout is how long a batch command waits until the agent has received "ready". Then it starts anyway.
	watchTimeout = 30 * time.Second
	// flushTimeout is how long sending the exit code to the agent may take.
	flushTimeout = 2 * time.Second
	maxSettings  = 16 << 20 // bytes of the config file
)

// work prepares the container and serves the agent until a batch command ends, whose exit code it returns, or a signal
// ends the session.
func work([]string) int {
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

	shell := findShell(os.Getenv("PATH"))
	c := &container{
		uid: settings.UID, gid: settings.GID, groups: settings.Groups, admin: settings.Admin, home: homePath,
		shell: shell, env: newEnvironment(os.Environ(), shell, settings), held: held, author: settings.Author,
	}
	if settings.Shared {
		if err := c.makeSockets(); err != nil {
			fmt.Fprintln(os.Stderr, "slipway-guest: make a folder for the sockets of apps:", err)
			return codeBroken
		}
	}
	config := Config{Processes: c, SpoolDir: held.spool.held(), Sockets: c.sockets}
	if settings.Command == "" && settings.Server == nil {
		config.Log = os.Stdout // the log of a session with a command is that of its command
	}
	g := New(config)
	go connect(ctx, g, held.link.held()+"/"+socketName)
	failures := append(c.prepare(), c.cooperate(), c.keepPackages(settings.Env))
	if settings.Cluster != nil {
		failures = append(failures, c.joinCluster(ctx, *settings.Cluster))
	}
	for _, err := range failures {
		if err != nil {
			g.Trouble(err)
		}
	}
	oom := newOOMCounter()
	go oom.watch(ctx, g.OOM)
	g.Ready()
	if settings.Command == "" && settings.Server == nil {
		settingUp, stop := context.WithCancel(ctx)
		go func() {
			if _, err := SetUp(settingUp, c, settings.Setup, os.Stdout); err != nil {
				fmt.Fprintln(os.Stdout, "slipway:", err.Message)
				g.Trouble(err)
			}
		}()
		<-ending
		stop()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = g.Close(ctx)
		}()
		select {
		case <-done:
		case <-ending: // a second signal ends the wait
		}
		return 0
	}
	return batch(g, c, settings, oom, ending)
}

// begin reads the config and opens the places that the guest uses, before anything of the image runs.
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
	if settings, err = parseSettings(data); err != nil {
		return settings, nil, err
	}
	if held, err = openPlaces(t); err != nil {
		return settings, nil, err
	}
	if settings.Waits {
		if settings, err = parseSettings(awaitSettings(held.link.held() + "/" + socketName)); err != nil {
			return settings, nil, err
		}
	}
	return settings, held, held.spool.keep()
}

func parseSettings(data []byte) (settings engine.GuestConfig, err error) {
	if err := json.Unmarshal(data, &settings); err != nil {
		return settings, fmt.Errorf("read settings: %w", err)
	}
	if settings.UID < 0 || settings.GID < 0 || settings.Admin && settings.UID != 0 {
		return settings, fmt.Errorf("read settings: invalid user %d:%d", settings.UID, settings.GID)
	}
	return settings, nil
}

// awaitSettings returns the settings that the agent sends, once a session gets this container.
func awaitSettings(socket string) []byte {
	for {
		if conn, err := net.Dial("unix", socket); err == nil {
			data, err := io.ReadAll(io.LimitReader(conn, maxSettings))
			_ = conn.Close()
			if err == nil && json.Valid(data) { // else the agent ended meanwhile
				return data
			}
		}
		time.Sleep(redialPause)
	}
}

// checkPins fails if a mount is not the directory that it must be. Nothing of the session runs before this.
func checkPins(pins []engine.Pin) error {
	for _, pin := range pins {
		stat, err := lookAt(pin.Target)
		if err != nil {
			return fmt.Errorf("look at the mount %s: %w", pin.Target, err)
		}
		if pin.Device != 0 && stat.Dev != pin.Device || stat.Ino != pin.Inode {
			return fmt.Errorf("what is mounted at %s is not what was to be mounted: its folder has changed",
				pin.Target)
		}
	}
	return nil
}

// prepare creates the account and the home and returns the failures.
func (c *container) prepare() []error {
	var failures []error
	if err := c.createUser(); err != nil {
		failures = append(failures, session.WrapError(err, session.CodeNoUser,
			fmt.Sprintf("The user %q could not be added to the image's user files: %v.", User, err),
			"Programs that look up their user's name may complain."))
	}
	if err := c.prepareHome(); err != nil {
		failures = append(failures, session.WrapError(err, session.CodeNoHome,
			fmt.Sprintf("The home could not be prepared: %v.", err), "Check that the engine's disk is not full."))
	}
	for _, file := range []*os.File{os.Stdout, os.Stderr} {
		_ = unix.Fchown(int(file.Fd()), c.uid, c.gid) // for programs that open /dev/stdout
	}
	return failures
}

// sitecustomize is a module that Python runs when it starts.
//
//go:embed python/sitecustomize.py
var sitecustomize []byte

const (
	pythonPath = "/var/lib/slipway/python"
	// cooperative is set by the agent if frameworks should limit themselves to the session's part of a device.
	cooperative = "SLIPWAY_GPU_COOPERATIVE"
)

// cooperate limits PyTorch to the session's part of a device. No variable does that in all of its versions.
func (c *container) cooperate() error {
	if c.env.get(cooperative) != "1" {
		return nil
	}
	dir, err := c.held.tree.image(pythonPath, true)
	if err == nil {
		err = dir.replace("sitecustomize.py", sitecustomize, 0o644)
		dir.close()
	}
	if err != nil {
		return session.WrapError(err, session.CodeUncooperative,
			"PyTorch does not know this session's share of a device.",
			"Call torch.cuda.set_per_process_memory_fraction with SLIPWAY_GPU_FRACTION.")
	}
	path := pythonPath
	if own := c.env.get("PYTHONPATH"); own != "" {
		path += ":" + own
	}
	c.env = c.env.set("PYTHONPATH", path)
	return nil
}

// connect connects to the agent again and again until ctx ends.
func connect(ctx context.Context, g *Guest, socket string) {
	var dialer net.Dialer
	for ctx.Err() == nil {
		if conn, err := dialer.DialContext(ctx, "unix", socket); err == nil {
			_ = g.Serve(ctx, conn)
		}
		select {
		case <-time.After(redialPause):
		case <-ctx.Done():
		}
	}
}

// batch runs the startup command or the server and returns its code.
func batch(g *Guest, c *container, settings engine.GuestConfig, oom *oomCounter, ending <-chan os.Signal) int {
	select {
	case <-g.Watched():
	case <-time.After(watchTimeout):
	case <-ending:
		return 128 + int(syscall.SIGTERM)
	}
	code := c.runBatch(g, settings, ending)
	if count := oom.count(); count > 0 {
		g.OOM(count)
	}
	g.Exit(code)
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	_ = g.Flush(ctx) // there may be no agent
	return code
}

// runBatch runs the startup command with the image's shell, or the server without one, on the container's output.
func (c *container) runBatch(g *Guest, settings engine.GuestConfig, ending <-chan os.Signal) int {
	code, err := before(ending, func(ctx context.Context) (int, *session.Error) {
		if settings.Server != nil {
			return Prepare(ctx, c, settings.Server.Actions, os.Stdout)
		}
		return SetUp(ctx, c, settings.Setup, os.Stdout)
	})
	if err != nil {
		g.Trouble(err)
		fmt.Fprintln(os.Stderr, "slipway:", err.Message)
	}
	if code != 0 {
		return code
	}
	var cmd Command
	switch {
	case settings.Server != nil:
		cmd = Command{Argv: settings.Server.Argv, Dir: settings.Server.Dir}
	case hasShell(c):
		cmd = Command{Argv: c.shell.run(settings.Command)}
	default:
		g.Trouble(noShell(session.CodeNoShell))
		fmt.Fprintln(os.Stderr, "slipway: this image has no shell to run the startup command")
		return codeNotFound
	}
	started, failed := c.startChild(cmd, c.env, [3]*os.File{c.held.null, os.Stdout, os.Stderr}, false)
	if failed != nil {
		g.Trouble(session.AsError(failed, session.CodeGuestInternal))
		fmt.Fprintln(os.Stderr, "slipway:", failed)
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

// before does what comes before the start of a program, until a signal to end comes. It returns 0 if all is done, else
// the exit code for the container.
func before(ending <-chan os.Signal, do func(context.Context) (int, *session.Error)) (int, *session.Error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type result struct {
		code int
		err  *session.Error
	}
	done := make(chan result, 1)
	go func() {
		code, err := do(ctx)
		done <- result{code, err}
	}()
	select {
	case r := <-done:
		return r.code, r.err
	case <-ending:
		cancel()
		<-done
		return 128 + int(syscall.SIGTERM), nil
	}
}

// oomInterval is how often the count is read: control groups notify a container only with more privileges.
const oomInterval = 500 * time.Millisecond

// oomFiles count the processes that the kernel killed for lack of memory, in control groups of version 2 and 1.
var oomFiles = []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}

// oomCounter counts from its creation.
type oomCounter struct {
	file string
	base int
}

// newOOMCounter returns a counter that stays at 0 if the kernel reports no count.
func newOOMCounter() *oomCounter {
	for _, file := range oomFiles {
		if count, ok := readOOM(file); ok {
			return &oomCounter{file: file, base: count}
		}
	}
	return &oomCounter{}
}

func readOOM(file string) (int, bool) {
	data, err := kernelFile(file, maxKernelText)
	if err != nil {
		return 0, false
	}
	for line := range bytes.SplitSeq(data, []byte{'\n'}) {
		if value, ok := bytes.CutPrefix(line, []byte("oom_kill ")); ok {
			count, err := strconv.Atoi(string(bytes.TrimSpace(value)))
			return count, err == nil
		}
	}
	return 0, false
}

func (c *oomCounter) count() int {
	count, _ := readOOM(c.file)
	return max(0, count-c.base)
}

// watch calls tell with every new count until ctx ends.
func (c *oomCounter) watch(ctx context.Context, tell func(int)) {
	if c.file == "" {
		return
	}
	ticker := time.NewTicker(oomInterval)
	defer ticker.Stop()
	for told := 0; ; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if count := c.count(); count != told {
			told = count
			tell(count)
		}
	}
}
