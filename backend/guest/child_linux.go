package guest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slipway/backend/session"
)

const (
	killGrace = 2 * time.Second
	// outputGrace is how long output may pause after a command's end, because background programs may have the pipe.
	outputGrace = 200 * time.Millisecond
)

// child is a program started through spawn, which leads its own session.
type child struct {
	pid    int
	ended  chan struct{} // closed when it has ended
	code   int           // valid once ended is closed
	killed atomic.Bool   // Kill was called
}

// startChild starts a program as the work user, with the variables of cmd added to env, and waits until it executes.
// The caller closes files: stdin, stdout and stderr. With onTerminal, stdin becomes the controlling terminal.
func (c *container) startChild(cmd Command, env environment, files [3]*os.File, onTerminal bool) (*child, error) {
	status, told, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer status.Close()
	dir := cmp.Or(cmd.Dir, c.home)
	program := "spawn"
	if c.admin {
		program = "spawn-admin"
	}
	args := []string{"slipway-guest", program, strconv.Itoa(c.uid), writeGroups(c.gid, c.groups), dir}
	process, err := os.StartProcess(selfPath, append(args, cmd.Argv...), &os.ProcAttr{
		Env:   env.with(cmd.Env),
		Files: append(files[:], told),
		Sys:   &syscall.SysProcAttr{Setsid: true, Setctty: onTerminal},
	})
	_ = told.Close()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Argv[0], err)
	}
	started := &child{pid: process.Pid, ended: make(chan struct{})}
	go func() {
		state, err := process.Wait()
		started.code = exitCode(state, err)
		close(started.ended)
	}()
	report, err := io.ReadAll(status)
	if err != nil || len(report) > 0 {
		<-started.ended
		return nil, spawnFailure(report, err)
	}
	return started, nil
}

func spawnFailure(report []byte, err error) error {
	var cause session.Cause
	if err == nil {
		err = json.Unmarshal(report, &cause)
	}
	if err != nil || cause.Code == "" {
		return errors.Join(errors.New("the start helper failed without a message"), err)
	}
	return session.NewError(cause.Code, cause.Message, cause.Hint)
}

// exitCode returns the exit code as a shell has it: 128 plus the signal's number for a signal.
func exitCode(state *os.ProcessState, err error) int {
	if err != nil {
		return codeForbidden
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

func (c *child) Wait() int {
	<-c.ended
	return c.code
}

// Signal sends a signal to the program's process group.
func (c *child) Signal(number int) error {
	if closed(c.ended) {
		return os.ErrProcessDone
	}
	return unix.Kill(-c.pid, unix.Signal(number))
}

// Kill sends SIGTERM to everything in the program's session, and SIGKILL at its end or after 2 s.
func (c *child) Kill() {
	c.end(unix.SIGTERM, func() { signalSession(c.pid, unix.SIGKILL) })
}

// hangUp sends SIGHUP to everything in the session of a program that has not ended, and kills the program after 2 s.
func (c *child) hangUp() {
	if closed(c.ended) {
		return
	}
	c.end(unix.SIGHUP, func() {
		if !closed(c.ended) {
			_ = unix.Kill(c.pid, unix.SIGKILL)
		}
	})
}

// end signals the program's session once, and calls insist when the program has ended or the grace period is over.
func (c *child) end(signal unix.Signal, insist func()) {
	if c.killed.Swap(true) {
		return
	}
	signalSession(c.pid, signal, unix.SIGCONT)
	go func() {
		select {
		case <-c.ended:
		case <-time.After(killGrace):
		}
		insist()
	}()
}

type command struct {
	*child
	stdin          io.WriteCloser
	stdout, stderr *outputPipe
}

func (c *command) Stdin() io.WriteCloser { return c.stdin }
func (c *command) Stdout() io.Reader     { return c.stdout }
func (c *command) Stderr() io.Reader     { return c.stderr }

// outputPipe reads a program's output. After the program's end it does not wait for others that have the pipe open.
type outputPipe struct {
	file  *os.File
	ended <-chan struct{}
}

func newOutputPipe(file *os.File, ended <-chan struct{}) *outputPipe {
	go func() { // wakes a read that blocks at the end
		<-ended
		_ = file.SetReadDeadline(time.Now().Add(outputGrace))
	}()
	return &outputPipe{file: file, ended: ended}
}

func (p *outputPipe) Read(b []byte) (int, error) {
	if closed(p.ended) {
		_ = p.file.SetReadDeadline(time.Now().Add(outputGrace))
	}
	n, err := p.file.Read(b)
	if err != nil {
		_ = p.file.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
			err = io.EOF
		}
	}
	return n, err
}

// signalSession sends signals to every process of a session, in whichever process group.
func signalSession(leader int, signals ...unix.Signal) {
	for _, pid := range processes() {
		if sessionOf(pid) != leader {
			continue
		}
		for _, signal := range signals {
			_ = unix.Kill(pid, signal)
		}
	}
}

func processes() []int {
	dir, err := openKernel("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what was read counts
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// sessionOf returns the session of a process, which is the fourth field after its name in proc(5); 0 if it has ended.
func sessionOf(pid int) int {
	data, err := kernelFile("/proc/"+strconv.Itoa(pid)+"/stat", maxKernelText)
	if err != nil {
		return 0
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 4 {
		return 0
	}
	session, _ := strconv.Atoi(string(fields[3]))
	return session
}
