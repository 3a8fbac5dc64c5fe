package node

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slipway/backend/engine"
	"slipway/backend/peer"
)

// Programs are those of package node in slipway-guest, by their first argument.
func Programs() map[string]func(args []string) int {
	return map[string]func(args []string) int{"node": run, "relay": relay, "probe": probe, "contain": contain,
		"follow": follow, "answer": answer}
}

const (
	// guestWait is how long a signal is held back until the guest takes it. Process 1 ignores those that it does not.
	guestWait = 5 * time.Second
	// drainTimeout is how long what a container wrote last may take to be read.
	drainTimeout = 5 * time.Second
	codeTerm     = 128 + int(syscall.SIGTERM)
)

// runner runs one kernel.
type runner struct {
	dir     string // of the run, shared
	kernel  string
	spec    Spec
	place   string     // of the kernel on this node
	held    []*os.File // locks
	log     *logWriter
	asked   <-chan struct{} // closed by the first signal
	signals chan os.Signal
	exit    Exit

	container
	network *network // nil: none
}

// container is what the runner holds of its container.
type container struct {
	first    *exec.Cmd   // that makes the container, and ends with it
	follower *exec.Cmd   // ends that with this process; nil: it does so by itself
	init     *os.Process // the container's first process
	plans    *os.File
	status   *os.File
	outputs  chan struct{} // closed when everything that the container wrote is in the log
}

// errRestarted says that a batch command is not begun again.
var errRestarted = errors.New("the job was started again after its command had begun, which does not run twice")

// errHere says that the same kernel runs on this node: the job was started again before its first start had ended.
var errHere = errors.New("this kernel already runs on this node")

// errAsked says that the job was ended before its guest started.
var errAsked = errors.New("the job was ended before the session started")

// ends are the signals by which a job is asked to end.
func ends() []os.Signal { return []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} }

// run RUN runs the kernel of this task and returns its exit code.
func run(args []string) int {
	runtime.LockOSThread() // with this thread end the processes that it starts
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "slipway-guest node: name the folder of the run")
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), ends()...)
	defer cancel()
	r := &runner{dir: args[0], asked: ctx.Done(), signals: make(chan os.Signal, 8)}
	signal.Notify(r.signals, ends()...)
	if err := r.read(); err != nil {
		fmt.Fprintln(os.Stderr, "slipway-guest node:", err)
		return CodeFailed
	}
	return r.run()
}

// read reads what the run consists of.
func (r *runner) read() error {
	unix.Umask(0o077)
	if os.Getuid() == 0 {
		return errors.New("sessions do not run as root on compute nodes")
	}
	spec, err := read(filepath.Join(r.dir, SpecFile), maxSpec, Spec.check)
	if err != nil {
		return err
	}
	task, err := taskNumber()
	if err != nil || task < 0 || task >= len(spec.Kernels) {
		return fmt.Errorf("this task has no kernel: %q", os.Getenv("SLURM_PROCID"))
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	r.spec, r.kernel = spec, spec.Kernels[task]
	r.exit = Exit{Host: host, Job: os.Getenv("SLURM_JOB_ID")}
	r.log, err = openLogWriter(logFile(r.dir, r.kernel))
	return err
}

// run makes the container, waits for its end and records it.
func (r *runner) run() int {
	before := oomKills()
	code, err := r.contain()
	r.end()
	if errors.Is(err, errHere) { // which records its own end
		fmt.Fprintln(os.Stderr, "slipway-guest node:", err)
		return CodeFailed
	}
	switch {
	case errors.Is(err, errRestarted):
		r.exit.Why, code = Restarted, CodeFailed
	case err != nil && r.wasAsked():
		code, err = codeTerm, errAsked
	case err != nil:
		code = CodeFailed
	}
	if err != nil {
		r.log.say("slipway: " + err.Error())
		fmt.Fprintln(os.Stderr, "slipway-guest node:", err)
	}
	r.exit.Code, r.exit.Ended = code, time.Now()
	r.exit.OOMKilled = oomKills() > before
	if err := errors.Join(r.log.close(), r.record()); err != nil {
		fmt.Fprintln(os.Stderr, "slipway-guest node:", err)
	}
	return code
}

func (r *runner) wasAsked() bool {
	select {
	case <-r.asked:
		return true
	default:
		return false
	}
}

// record writes how the kernel ended. A start that was refused does not replace the record of the one before.
func (r *runner) record() error {
	path := exitFile(r.dir, r.kernel)
	if r.exit.Why == Restarted {
		err := create(path, r.exit)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return replace(path, r.exit)
}

// contain makes the container and returns its exit code.
func (r *runner) contain() (int, error) {
	node, err := r.settle()
	if err != nil {
		return 0, err
	}
	if r.spec.Batch {
		if _, err := os.Lstat(begunFile(r.dir, r.kernel)); err == nil {
			return 0, errRestarted
		}
	}
	// Those of an earlier start.
	for _, path := range []string{meetingFile(r.dir, r.kernel), exitFile(r.dir, r.kernel)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	p, err := r.prepare(node)
	if err != nil {
		return 0, err
	}
	guests, err := peer.Listen(filepath.Join(r.place, linkFolder, guestSocket))
	if err != nil {
		return 0, err
	}
	defer guests.Close()
	relays, err := peer.Listen(filepath.Join(r.place, relaySocket))
	if err != nil {
		return 0, err
	}
	defer relays.Close()
	callers, err := net.Listen("tcp", ":0")
	if err != nil {
		return 0, err
	}
	defer callers.Close()
	if err := r.start(p); err != nil {
		return 0, err
	}
	if err := r.joinOutside(); err != nil {
		r.log.say("slipway: this session reaches nothing outside: " + err.Error())
	}
	users, err := usersOf(r.init.Pid)
	if err != nil {
		return 0, err
	}
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // never fails
	l := newLinks(secret, users, func() (engine.Stats, error) { return measure(r.init.Pid) })
	l.weak = p.Made
	go l.takeGuests(guests)
	if err := r.release(); err != nil {
		return 0, err
	}
	go l.takeCallers(relays)
	go l.takeCallers(callers)
	meeting := Meeting{Host: r.exit.Host, Port: callers.Addr().(*net.TCPAddr).Port, Secret: hex.EncodeToString(secret),
		Socket: filepath.Join(r.place, relaySocket), PID: os.Getpid(), Job: r.exit.Job, Started: r.exit.Started}
	if err := replace(meetingFile(r.dir, r.kernel), meeting); err != nil {
		return 0, err
	}
	defer r.part(meeting)
	return r.wait(l.first), nil
}

// part removes the meeting, unless the job was started again elsewhere and has another.
func (r *runner) part(own Meeting) {
	if m, err := ReadMeeting(r.dir, r.kernel); err == nil && m.Secret == own.Secret {
		_ = os.Remove(meetingFile(r.dir, r.kernel)) // an old one is recognised
	}
}

// start starts the container's first process and returns when everything is mounted.
func (r *runner) start(p *plan) error {
	plans, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer plans.Close()
	r.plans = ours
	said, status, err := os.Pipe()
	if err != nil {
		return err
	}
	defer status.Close()
	r.status = said
	read, output, err := os.Pipe()
	if err != nil {
		return err
	}
	defer output.Close()
	if r.first = enclosed("contain", p.Private); p.Made {
		if r.first, err = r.apptainer(p); err != nil {
			return err
		}
	}
	r.first.Stdout, r.first.Stderr = output, output
	r.first.ExtraFiles = []*os.File{plans, status}
	if err := r.first.Start(); err != nil {
		return fmt.Errorf("make namespaces: %w", err)
	}
	r.outputs = make(chan struct{})
	go func() {
		defer close(r.outputs)
		r.log.copy(read)
		_ = read.Close()
	}()
	_ = plans.Close()
	_ = status.Close()
	if p.Made {
		if err := r.follow(); err != nil {
			return err
		}
	}
	if err := json.NewEncoder(r.plans).Encode(p); err != nil {
		return r.failure(err)
	}
	if err := r.expect(ready); err != nil {
		return err
	}
	r.init, err = r.findInit(p)
	return err
}

// findInit returns the container's first process.
func (r *runner) findInit(p *plan) (*os.Process, error) {
	pid := r.first.Process.Pid
	if p.Made {
		var err error
		if pid, err = firstBelow(pid); err != nil {
			return nil, err
		}
	}
	return os.FindProcess(pid)
}

// expect waits for a word of the container's first process.
func (r *runner) expect(word string) error {
	answer := make([]byte, len(word))
	n, err := io.ReadFull(r.status, answer)
	if err == nil && string(answer) == word {
		return nil
	}
	return r.failure(errors.New(string(answer[:n])))
}

// joinOutside joins a private network to the outside where this node can. It has only its loopback otherwise.
func (r *runner) joinOutside() error {
	if !r.spec.Private {
		return nil
	}
	var err error
	r.network, err = join(r.init.Pid)
	return err
}

// enclosed is this program, to be started in namespaces of its own, with the capabilities to make a container in them.
// It ends with the calling thread.
func enclosed(program string, network bool) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", program)
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		AmbientCaps: setupCapabilities(),
		Pdeathsig:   syscall.SIGKILL,
		Setsid:      true,
	}
	if network {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWNET
	}
	return cmd
}

// failure is why the first process failed, by what it says.
func (r *runner) failure(err error) error {
	rest, _ := io.ReadAll(io.LimitReader(r.status, maxRecord)) // what was read counts
	if text := err.Error() + string(rest); text != "" {
		return errors.New(text)
	}
	return errors.New("the container's first process ended")
}

// release marks the kernel as begun and lets the guest start.
func (r *runner) release() error {
	if r.wasAsked() {
		return errAsked
	}
	at := time.Now()
	restarts, _ := strconv.Atoi(os.Getenv("SLURM_RESTART_COUNT")) // not set before the first
	begun := Begun{Job: r.exit.Job, Restarts: restarts, Host: r.exit.Host, At: at}
	err := create(begunFile(r.dir, r.kernel), begun)
	switch {
	case errors.Is(err, fs.ErrExist) && r.spec.Batch:
		return errRestarted
	case errors.Is(err, fs.ErrExist):
		err = replace(begunFile(r.dir, r.kernel), begun)
	}
	if err == nil {
		err = json.NewEncoder(r.plans).Encode(true)
	}
	if err != nil {
		return err
	}
	if err := r.expect(going); err != nil {
		return err
	}
	r.exit.Started = at
	return nil
}

// wait forwards signals to the guest, once it takes them, and returns its exit code.
func (r *runner) wait(guest <-chan struct{}) int {
	ended := make(chan struct{})
	go func() {
		select {
		case <-guest:
		case <-time.After(guestWait):
		case <-ended:
		}
		for {
			select {
			case <-r.signals:
				_ = r.init.Signal(syscall.SIGTERM)
			case <-ended:
				return
			}
		}
	}()
	_ = r.first.Wait() // the state says how it ended
	close(ended)
	return exitCode(r.first.ProcessState)
}

// exitCode returns the exit code as a shell has it: 128 plus the signal's number for a signal.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// end ends what still runs and removes what is on the node.
func (r *runner) end() {
	if r.first != nil && r.first.Process != nil && r.first.ProcessState == nil {
		_ = r.first.Process.Kill()
		_ = r.first.Wait()
	}
	if r.follower != nil && r.follower.Process != nil && r.follower.ProcessState == nil {
		_ = r.follower.Process.Kill()
		_ = r.follower.Wait()
	}
	r.network.close()
	if r.outputs != nil {
		select {
		case <-r.outputs:
		case <-time.After(drainTimeout):
		}
	}
	if r.place != "" {
		if err := removeAll(r.place); err != nil {
			r.log.say("slipway: files on the node stay: " + err.Error())
		}
		_ = os.Remove(r.place + ".lock")
	}
	for _, lock := range r.held {
		_ = lock.Close()
	}
}
