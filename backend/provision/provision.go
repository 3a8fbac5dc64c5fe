// Package provision sets up the agent of another machine over a connection that runs commands and copies files there.
// [Probe] examines the machine, [Install] uploads and starts the matching program or replaces the running one, and
// [Remove] uninstalls it. It needs no root, no network and only the standard tools of Unix there.
package provision

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/backend/daemon"
	"slipway/backend/session"
	"slipway/backend/vet"
	"slipway/tunnel"
	"slipway/tunnel/sshstdio"
)

// Remote is an account on another machine. Its errors may be of type [tunnel.Fault].
type Remote interface {
	// Run runs a command there until it ends; arguments are not interpreted.
	Run(ctx context.Context, command []string, stdin io.Reader) (sshstdio.Result, error)
	// Upload writes a complete file with the given hash there, or fails without writing it.
	Upload(ctx context.Context, content io.Reader, path string, mode fs.FileMode, sum [sha256.Size]byte) error
}

var _ Remote = (*sshstdio.Remote)(nil)

// More results of a [session.Check], for steps. A skipped step was not necessary.
const (
	stepRunning session.CheckResult = "running"
	stepSkipped session.CheckResult = "skipped"
)

// Report receives the progress. Its methods are not called concurrently and must not block for long.
type Report interface {
	// Tell reports a finding of a probe, or the state of a step: probe, upload, start or remove. The ID identifies it.
	Tell(session.Check)
	// Progress reports the uploaded bytes.
	Progress(done, total int64)
}

// Options are the options of all operations.
type Options struct {
	Dir        string // absolute path of the agent's folder there; empty: the default of the account
	DockerHost string // address of Docker there; empty: as the account has it
	Slurm      bool   // sessions run as jobs of Slurm, which has to be there
	Programs   Programs
	Version    string               // of the programs, which is part of their names there
	Report     Report               // nil: none
	Anyway     bool                 // install even if a check failed
	Admit      func(Findings) error // may refuse before [Install] changes anything; nil: accept
}

// Programs finds programs to install.
type Programs interface {
	// Program returns the path of the program for a system, in Go's names, or fails with agent_install_failed.
	Program(os, arch string) (string, error)
}

// Installed is the result of [Install].
type Installed struct {
	Findings Findings
	Program  string        // path there
	Status   daemon.Status // of the agent
	Changed  bool          // false: the program was running already
}

//go:embed probe.sh
var probeScript string

// Time limits of the steps.
const (
	probeTime  = 90 * time.Second
	startTime  = 3 * time.Minute
	removeTime = 4 * time.Minute
)

// Probe examines a machine in one round trip, without changing it. It fails only if it cannot examine the machine.
func Probe(ctx context.Context, remote Remote, opts Options) (Findings, error) {
	w := work{remote: remote, opts: opts}
	return w.probe(ctx)
}

// Install probes the machine, uploads the program if it is missing, and starts it or replaces the running one. Sessions
// keep running. It can be repeated after any failure. If a new program does not answer, the old one is restored and
// Install fails with agent_install_failed.
func Install(ctx context.Context, remote Remote, opts Options) (done Installed, err error) {
	w := work{remote: remote, opts: opts}
	if done.Findings, err = w.probe(ctx); err != nil {
		return done, err
	}
	if opts.Admit != nil {
		err = opts.Admit(done.Findings)
	}
	if err == nil && !opts.Anyway {
		err = done.Findings.Err()
	}
	if err != nil {
		return done, err
	}
	p, err := w.choose(done.Findings)
	if err != nil {
		return done, err
	}
	if err := w.bring(ctx, done.Findings, p); err != nil {
		return done, err
	}
	switched, err := w.start(ctx, done.Findings, p)
	if err != nil {
		return done, err
	}
	done.Program, done.Status, done.Changed = p.there, switched.To, switched.Done
	return done, nil
}

// Remove ends the sessions and removes the agent, its programs and its data.
func Remove(ctx context.Context, remote Remote, opts Options) error {
	w := work{remote: remote, opts: opts}
	found, err := w.probe(ctx)
	if err != nil {
		return err
	}
	name := ""
	if found.Installed == nil {
		if len(found.Held) == 0 {
			w.tell("remove", "Remove", stepSkipped, "Nothing of Slipway is there.", "")
			return nil
		}
		name = found.Held[len(found.Held)-1] // of an interrupted installation
	}
	return w.step("remove", "Remove", func() (string, error) {
		ctx, cancel := context.WithTimeout(ctx, removeTime)
		defer cancel()
		var left daemon.Uninstalled
		err := w.ask(ctx, Command(found.Dir, name, "-o", "json", "agent", "uninstall", "--end-sessions"), &left)
		return fmt.Sprintf("Sessions that keep running: %d.", left.Live), err
	})
}

// Command returns the command that runs the program of a folder there: the linked one, or the one with the given name.
func Command(dir, name string, args ...string) []string {
	if name == "" {
		name = "slipway"
	}
	return append([]string{"env", "SLIPWAY_HOME=" + dir, path.Join(dir, "bin", name)}, args...)
}

// Bridge returns the command that carries a tunnel to the agent of a folder.
func Bridge(dir string) []string { return Command(dir, "", "agent", "--stdio") }

type work struct {
	remote Remote
	opts   Options
	moved  func() // reports progress of an upload; set during one
}

func (w *work) tell(id, title string, result session.CheckResult, text, remedy string) {
	if w.opts.Report != nil {
		w.opts.Report.Tell(session.Check{ID: id, Title: title, Result: result, Text: text, Remedy: remedy})
	}
}

func (w *work) fail(id, title string, err error) {
	told := session.AsError(err, "")
	w.tell(id, title, session.CheckFailed, told.Message, told.Hint)
}

// step runs one step and reports its state.
func (w *work) step(id, title string, do func() (text string, err error)) error {
	w.tell(id, title, stepRunning, "", "")
	text, err := do()
	if err != nil {
		err = asError(err)
		w.fail(id, title, err)
		return err
	}
	w.tell(id, title, session.CheckOK, text, "")
	return nil
}

// asError gives every error a code and a hint, except a cancelled context.
func asError(err error) error {
	var fault *tunnel.Fault
	var told *session.Error
	switch {
	case err == nil, errors.As(err, &told):
		return err
	case errors.As(err, &fault):
		return session.WrapError(err, session.Code(fault.Code), fault.Message, fault.Hint)
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return session.WrapError(err, session.CodeInstallFailed, "The machine did not answer in time.",
			"Look at its load and its disks, then try again.")
	}
	return session.WrapError(err, session.CodeInstallFailed, "The connection to the machine failed.",
		"Try again. Completed steps are not repeated.")
}

func (w *work) probe(ctx context.Context) (found Findings, err error) {
	err = w.step("probe", "Look at the machine", func() (string, error) {
		ctx, cancel := context.WithTimeout(ctx, probeTime)
		defer cancel()
		script := []string{"sh", "-c", probeScript, "slipway-probe", w.opts.Dir, w.opts.DockerHost}
		result, err := w.remote.Run(ctx, script, nil)
		if err == nil {
			found, err = parse(result.Stdout, time.Now())
			found.Slurm.Wanted = w.opts.Slurm
		}
		return fmt.Sprintf("%s, %s/%s.", found.Host, found.OS, found.Arch), err
	})
	if err == nil && w.opts.Report != nil {
		for _, check := range found.Checks() {
			w.opts.Report.Tell(check)
		}
	}
	return found, err
}

// start replaces the running program, and restores it on failure, even without this connection.
func (w *work) start(ctx context.Context, found Findings, p program) (switched daemon.Switched, err error) {
	args := []string{"-o", "json", "agent", "switch"}
	if w.opts.DockerHost != "" || found.DockerHost != "unix:///var/run/docker.sock" {
		// a daemon does not inherit the environment of a login
		args = append(args, "--env", "DOCKER_HOST="+found.DockerHost)
	}
	if w.opts.Slurm {
		args = append(args, "--engine", "slurm")
	}
	title := "Start the agent"
	if found.Running != nil {
		title = "Replace the agent"
	}
	return switched, w.step("start", title, func() (string, error) {
		ctx, cancel := context.WithTimeout(ctx, startTime)
		defer cancel()
		if err := w.ask(ctx, Command(found.Dir, p.name, args...), &switched); err != nil {
			return "", err
		}
		switch {
		case switched.To.Role == daemon.RolePlane:
			return "Somebody uses Slipway " + switched.To.Version +
				" on that machine, which controls the agent. Update it there.", nil
		case !switched.Done:
			return "Version " + switched.To.Version + " runs already.", nil
		case switched.From.PID != 0:
			return fmt.Sprintf("Version %s took over from %s. Sessions that kept running: %d.", switched.To.Version,
				switched.From.Version, switched.To.Live), nil
		}
		return "Version " + switched.To.Version + " runs.", nil
	})
}

// Ask runs an agent command with -o json and decodes its output into what into points to, or returns its problem.
func Ask(ctx context.Context, remote Remote, dir string, into any, args ...string) error {
	w := work{remote: remote}
	return asError(w.ask(ctx, Command(dir, "", append([]string{"-o", "json", "agent"}, args...)...), into))
}

// ask runs a command that prints JSON, or a problem on standard error.
func (w *work) ask(ctx context.Context, command []string, into any) error {
	result, err := w.remote.Run(ctx, command, nil)
	if err != nil {
		return err
	}
	if result.Exit != 0 {
		return problemOf(result)
	}
	return read(result.Stdout, into)
}

// problemOf returns the problem in the last line of standard error that has one.
func problemOf(result sshstdio.Result) error {
	lines := bytes.Split(bytes.TrimSpace(result.Stderr), []byte("\n"))
	for _, line := range slices.Backward(lines) {
		var p struct {
			Code    session.Code `json:"code"`
			Message string       `json:"message"`
			Hint    string       `json:"hint"`
		}
		err := json.Unmarshal(line, &p)
		if code := clip(string(p.Code)); err == nil && code != "" {
			return session.NewError(session.Code(code), clip(p.Message), clip(p.Hint))
		}
	}
	e := session.NewError(session.CodeInstallFailed, fmt.Sprintf("The program ended there with code %d.", result.Exit),
		"It said nothing.")
	if last := strings.TrimSpace(string(lines[len(lines)-1])); last != "" {
		e.Hint = "It said: " + clip(last)
	}
	if result.Exit == 126 || strings.Contains(strings.ToLower(e.Hint), "exec format") {
		e.Code, e.Message = session.CodeInstallFailed, "The program cannot be run there."
	}
	return e
}

// clip makes text from another machine fit for display.
func clip(text string) string {
	const most = 400
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// gate checks the output of agent commands on other machines.
var gate = sync.OnceValue(func() *vet.Gate { return vet.New(answers) })

var answers = vet.Tables{
	Fields: map[reflect.Type]vet.Fields{
		reflect.TypeFor[session.PairCode](): {"Code": vet.Mark, "Address": vet.Mark, "Key": vet.Maybe(vet.Mark)},
		reflect.TypeFor[session.KeyRotation](): {"Before": vet.Maybe(vet.Mark), "Key": vet.Mark,
			"Clients": vet.Whole(0, 1<<20)},
		reflect.TypeFor[daemon.Status](): {
			"Role": vet.Maybe(vet.Mark), "PID": vet.Whole(0, 1<<31), "Version": vet.Line(128),
			"Commit": vet.Line(128),
			"Engine": vet.Maybe(vet.Mark), "Program": vet.Line(4096), "SHA256": vet.Maybe(vet.Checksum),
			"Live": vet.Whole(0, 1<<31),
			"Home": vet.Line(4096), "Listen": vet.Maybe(vet.Mark), "Key": vet.Maybe(vet.Mark),
			"Keeper":   vet.Maybe(vet.Mark),
			"Instance": vet.Maybe(vet.Mark),
		},
		reflect.TypeFor[daemon.Switched]():    {},
		reflect.TypeFor[daemon.Uninstalled](): {"Live": vet.Whole(0, 1<<31), "Kept": vet.List(1000, vet.Line(4096))},
	},
}

// read decodes and checks the output of a command into what into points to, unless nil.
func read(raw []byte, into any) error {
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return session.WrapError(err, session.CodeInstallFailed, "What the program answered there cannot be read.",
			"Look at what the login shell prints without a terminal.")
	}
	if err := gate().Check(into); err != nil {
		return session.WrapError(err, session.CodeAgentReply,
			fmt.Sprintf("The machine sent invalid data: %v.", err),
			"The data is not used. Upgrade Slipway on both machines. If it happens again, ask whoever runs "+
				"that machine.")
	}
	return nil
}
