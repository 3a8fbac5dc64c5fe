// Package provision sets up the agent of another machine over a connection that
// runs commands and carries files there: it looks what the machine is and has
// ([Probe]), brings the program that fits and starts it, or replaces the one
// that runs ([Install]), and takes everything away again ([Remove]). It needs
// no root, no network and no tools over there beyond those of every Unix.
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
	"slices"
	"strings"
	"time"

	"slipway/backend/daemon"
	"slipway/backend/session"
	"slipway/tunnel"
	"slipway/tunnel/sshstdio"
)

// Remote is an account on another machine. Its errors may be of type
// [tunnel.Fault].
type Remote interface {
	// Run runs a command there to its end; its arguments arrive as they are.
	Run(ctx context.Context, command []string, stdin io.Reader) (sshstdio.Result, error)
	// Upload puts content into a file there, whole and with the given hash or
	// not at all.
	Upload(ctx context.Context, content io.Reader, path string, mode fs.FileMode, sum [sha256.Size]byte) error
}

var _ Remote = (*sshstdio.Remote)(nil)

// StepState is where a step stands.
type StepState string

// The states of a step.
const (
	StepRunning StepState = "running"
	StepOK      StepState = "ok"
	StepWarning StepState = "warning"
	StepFailed  StepState = "failed"
	StepSkipped StepState = "skipped"
)

// Step is one step of the work, or one finding of a probe, as it is now.
type Step struct {
	Name   string // stable: probe, upload, start, stop; or the id of a check
	Title  string
	State  StepState
	Detail string
	Remedy string // one command or sentence
}

// Report is told how the work goes. Its methods are called by one goroutine at
// a time and must not block for long.
type Report interface {
	// Tell tells a step that began or changed, by its name.
	Tell(step Step)
	// Progress tells how many bytes have gone over, of how many.
	Progress(done, total int64)
}

// Options say what is wanted of an agent.
type Options struct {
	// Dir is the folder for the agent's files there, absolute. Empty: the usual
	// one of the account.
	Dir string
	// DockerHost is where Docker listens there. Empty: as the account has it.
	DockerHost string
	// Programs finds the program for a machine.
	Programs Programs
	// Version is that of the programs, for their names over there.
	Version string
	// Report is told how the work goes; nil: nobody is.
	Report Report
	// Anyway installs although a check has failed, as far as that can be.
	Anyway bool
	// Admit judges what was found before [Install] changes anything; nil: all is well.
	Admit func(Findings) error
}

// Programs finds programs to install. It fails with agent_install_failed.
type Programs interface {
	// Program returns the path on this machine of the program without a window
	// for an operating system and an architecture, as Go names them.
	Program(os, arch string) (string, error)
}

// Installed says what is there after [Install].
type Installed struct {
	Findings Findings
	Program  string        // path over there
	Status   daemon.Status // of what rules the agent now
	Changed  bool          // false: it was there and ran already
}

//go:embed probe.sh
var probeScript string

// Times of the steps.
const (
	probeTime  = 90 * time.Second
	startTime  = 3 * time.Minute
	removeTime = 4 * time.Minute
)

// Probe looks what a machine is and has, in one round trip, and changes nothing
// there. What is wrong with the machine is in the [Findings]; it fails where it
// could not look.
func Probe(ctx context.Context, remote Remote, opts Options) (Findings, error) {
	w := work{remote: remote, opts: opts}
	return w.probe(ctx)
}

// Install makes the agent of a machine run with the program that Options name:
// it probes, uploads what is not there yet, and starts it or replaces what
// runs. Sessions go on. It can be repeated after any failure. A new program that
// does not answer is taken back over there: agent_install_failed.
func Install(ctx context.Context, remote Remote, opts Options) (Installed, error) {
	w := work{remote: remote, opts: opts}
	found, err := w.probe(ctx)
	if err != nil {
		return Installed{}, err
	}
	if opts.Admit != nil {
		err = opts.Admit(found)
	}
	if err == nil && !opts.Anyway {
		err = found.Err()
	}
	if err != nil {
		return Installed{Findings: found}, err
	}
	p, err := w.choose(found)
	if err != nil {
		return Installed{Findings: found}, err
	}
	if err := w.bring(ctx, found, p); err != nil {
		return Installed{Findings: found}, err
	}
	switched, err := w.start(ctx, found, p)
	if err != nil {
		return Installed{Findings: found}, err
	}
	return Installed{Findings: found, Program: p.there, Status: switched.To, Changed: switched.Done}, nil
}

// RemoveOptions say what goes with the agent.
type RemoveOptions = daemon.UninstallOptions

// Remove takes the agent and its programs away. It says what is left: books,
// while sessions go on or where that is wished.
func Remove(ctx context.Context, remote Remote, opts Options, remove RemoveOptions) (daemon.Uninstalled, error) {
	w := work{remote: remote, opts: opts}
	found, err := w.probe(ctx)
	if err != nil {
		return daemon.Uninstalled{}, err
	}
	var left daemon.Uninstalled
	name := ""
	if found.Installed == nil && len(found.Held) > 0 {
		name = found.Held[len(found.Held)-1] // an installation that was cut short
	}
	if found.Installed == nil && name == "" {
		w.tell(Step{Name: "remove", Title: "Remove", State: StepSkipped, Detail: "Nothing of Slipway is there."})
		return left, nil
	}
	args := []string{"-o", "json", "agent", "uninstall"}
	if remove.EndSessions {
		args = append(args, "--end-sessions")
	}
	if remove.KeepData {
		args = append(args, "--keep-data")
	}
	return left, w.step("remove", "Remove", func() (string, error) {
		ctx, cancel := context.WithTimeout(ctx, removeTime)
		defer cancel()
		if err := w.ask(ctx, Command(found.Dir, name, args...), &left); err != nil {
			return "", err
		}
		return fmt.Sprintf("%d sessions go on.", left.Live), nil
	})
}

// Command is what is run over there for the program of a folder: the one that
// is linked, or another one of its names.
func Command(dir, name string, args ...string) []string {
	if name == "" {
		name = "slipway"
	}
	return append([]string{"env", "SLIPWAY_HOME=" + dir, path.Join(dir, "bin", name)}, args...)
}

// Bridge is the command that carries a tunnel to the agent of a folder.
func Bridge(dir string) []string { return Command(dir, "", "agent", "--stdio") }

// work is one run of the above.
type work struct {
	remote Remote
	opts   Options
	moved  func() // an upload goes on; set while there is one
}

func (w *work) tell(step Step) {
	if w.opts.Report != nil {
		w.opts.Report.Tell(step)
	}
}

// step does one step and tells how it went.
func (w *work) step(name, title string, do func() (detail string, err error)) error {
	w.tell(Step{Name: name, Title: title, State: StepRunning})
	detail, err := do()
	if err != nil {
		err = asError(err)
		told := session.AsError(err, "")
		w.tell(Step{Name: name, Title: title, State: StepFailed, Detail: told.Message, Remedy: told.Hint})
		return err
	}
	w.tell(Step{Name: name, Title: title, State: StepOK, Detail: detail})
	return nil
}

// asError gives every failure a code and a hint. A context's end stays what it is.
func asError(err error) error {
	var fault *tunnel.Fault
	var told *session.Error
	switch {
	case errors.As(err, &told):
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
		"Try again; what was done already is not done twice.")
}

func (w *work) probe(ctx context.Context) (found Findings, err error) {
	err = w.step("probe", "Look at the machine", func() (string, error) {
		ctx, cancel := context.WithTimeout(ctx, probeTime)
		defer cancel()
		result, err := w.remote.Run(ctx, []string{"sh", "-c", probeScript, "slipway-probe", w.opts.Dir,
			w.opts.DockerHost}, nil)
		if err != nil {
			return "", err
		}
		if found, err = parse(result.Stdout, time.Now()); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s, %s/%s.", found.Host, found.OS, found.Arch), nil
	})
	if err != nil {
		return found, err
	}
	for _, check := range found.Checks() {
		w.tell(Step{Name: check.ID, Title: check.Title, State: StepState(check.Result), Detail: check.Text,
			Remedy: check.Remedy})
	}
	return found, nil
}

// start runs the new program there, which replaces whatever runs and goes back
// by itself if it does not work, whether this connection lives or not.
func (w *work) start(ctx context.Context, found Findings, p program) (switched daemon.Switched, err error) {
	args := []string{"-o", "json", "agent", "switch"}
	if w.opts.DockerHost != "" || found.DockerHost != "unix:///var/run/docker.sock" {
		// a daemon does not read what a login does
		args = append(args, "--env", "DOCKER_HOST="+found.DockerHost)
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
			return "A person at that machine uses Slipway " + switched.To.Version +
				", which rules its agent and is reached as it is. It is updated there.", nil
		case !switched.Done:
			return "Version " + switched.To.Version + " runs already.", nil
		case switched.From.PID != 0:
			return fmt.Sprintf("Version %s took over from %s; %d sessions went on.", switched.To.Version,
				switched.From.Version, switched.To.Live), nil
		}
		return "Version " + switched.To.Version + " runs.", nil
	})
}

// Ask runs a command of the agent of a folder, such as devices, with -o json, and
// reads what it prints into what into points to, nil: nothing. It fails with the problem that the command told.
func Ask(ctx context.Context, remote Remote, dir string, into any, args ...string) error {
	w := work{remote: remote}
	err := w.ask(ctx, Command(dir, "", append([]string{"-o", "json", "agent"}, args...)...), into)
	if err != nil {
		return asError(err)
	}
	return nil
}

// ask runs a command of ours there that prints JSON, or a problem to its errors.
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

// problemOf reads the problem that a command of ours ended with, the last line that
// is one.
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

// clip makes of what another machine says a line that can be shown.
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
