package apps

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"slipway/backend/guest/link"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

// container is a guest with programs and one command that it can run.
type container struct {
	Guest
	found   map[string]string
	command *command
	asked   session.ExecRequest
	keeper  string // what its keeper of output answers; empty: it has none
	runs    []link.Service
}

func (c *container) Services(context.Context) ([]link.Service, error) { return c.runs, nil }

func (c *container) Which(context.Context, []string) (map[string]string, error) { return c.found, nil }

func (c *container) Exec(_ context.Context, req session.ExecRequest) (net.Conn, error) {
	c.asked = req
	near, far := net.Pipe()
	go func() { _ = terminal.ServeExec(context.Background(), far, c.command) }()
	return near, nil
}

// command prints a text and ends with a code; where hang is set, only when it is killed.
type command struct {
	out  io.Reader
	code int
	hang bool
	once sync.Once
	dead chan struct{}
}

func prints(text string, code int) *command {
	return &command{out: strings.NewReader(text), code: code, dead: make(chan struct{})}
}

func (c *command) Stdin() io.WriteCloser { return nil }
func (c *command) Stdout() io.Reader     { return c.out }
func (c *command) Stderr() io.Reader     { return strings.NewReader("") }
func (c *command) Signal(int) error      { return nil }
func (c *command) Kill()                 { c.once.Do(func() { close(c.dead) }) }
func (c *command) Wait() int {
	if c.hang {
		<-c.dead
	}
	return c.code
}

func lab(t *testing.T) program {
	t.Helper()
	for _, p := range programs {
		if p.pip != "" {
			return p
		}
	}
	t.Fatal("no app can be installed")
	return program{}
}

func TestAnAppIsInstalledByTheSessionsOwnPip(t *testing.T) {
	p := lab(t)
	c := &container{found: map[string]string{"pip3": "/usr/bin/pip3"},
		command: prints("Collecting jupyterlab\r\n\n  Downloading jupyterlab.whl\x1b[0m\n", 0)}
	var said output
	if err := install(t.Context(), c, p, &said); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.asked.Command, " "); !strings.HasPrefix(got, "/usr/bin/pip3 install ") ||
		!strings.HasSuffix(got, " jupyterlab") {
		t.Errorf("it ran %s", got)
	}
	if got := said.last(); got != "Downloading jupyterlab.whl[0m" {
		t.Errorf("its progress is %q", got)
	}
	c.found["jupyter-lab"], c.asked = "/usr/bin/jupyter-lab", session.ExecRequest{}
	if err := install(t.Context(), c, p, &said); err != nil || c.asked.Command != nil {
		t.Errorf("what is there is installed again: %v, %v", err, c.asked.Command)
	}
}

func TestTheExtensionOfPagesIsWrittenAsItIs(t *testing.T) {
	c := &container{command: prints("", 0)}
	if err := installLab(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	argv := slices.Clone(c.asked.Command)
	argv[4] = strings.Replace(argv[4], labDir, dir, 1)
	for range 2 { // a session opens it more than once
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
	}
	// It is found by name/package.json, which says where the script is.
	var found struct {
		Name       string
		JupyterLab struct {
			Build struct{ Load string } `json:"_build"`
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "slipway-live", "package.json"))
	if err != nil || json.Unmarshal(data, &found) != nil {
		t.Fatalf("its description is %s, %v", data, err)
	}
	script, err := os.ReadFile(filepath.Join(dir, found.Name, found.JupyterLab.Build.Load))
	if err != nil || string(script) != labScript || !strings.Contains(labScript, "`"+session.LivePath+"?") ||
		!strings.Contains(labScript, "_JUPYTERLAB['"+found.Name+"']") {
		t.Errorf("its script is %.80q, %v", script, err)
	}
	for _, p := range programs {
		if args := p.args(setting{port: p.port}); p.keeps != slices.ContainsFunc(args, func(arg string) bool {
			return strings.HasSuffix(arg, ".extra_labextensions_path="+labDir)
		}) {
			t.Errorf("%s: %v", p.id, args)
		}
	}
	c.command = prints("", 1)
	if installLab(t.Context(), c) == nil {
		t.Error("a session that cannot write it hides that")
	}
}

func TestWhyAnAppIsNotInstalledIsSaid(t *testing.T) {
	for name, test := range map[string]struct {
		found   map[string]string
		printed string
		want    string
	}{
		"no pip": {nil, "", "JupyterLab cannot be installed into this session, because it has no pip."},
		"no network": {map[string]string{"pip": "/opt/conda/bin/pip"}, "WARNING: Retrying after connection broken by " +
			"'NewConnectionError'\nERROR: No matching distribution found for jupyterlab\n",
			"JupyterLab was not installed: the session cannot reach the package index."},
		"no room": {map[string]string{"pip": "/opt/conda/bin/pip"},
			"ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n\n",
			"JupyterLab was not installed: Could not install packages due to an OSError: [Errno 28] No space left on " +
				"device"},
		"no reason": {map[string]string{"pip": "/opt/conda/bin/pip"}, "Killed\n",
			"JupyterLab was not installed: pip ended with code 1."},
	} {
		err := install(t.Context(), &container{found: test.found, command: prints(test.printed, 1)}, lab(t), &output{})
		var said *session.Error
		if !errors.As(err, &said) || said.Code != session.CodeAppNotInstalled || said.Message != test.want ||
			said.Hint == "" {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}

func TestAnInstallationIsCancelledWithItsProgram(t *testing.T) {
	pip := prints("", 0)
	pip.hang = true
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := install(ctx, &container{found: map[string]string{"pip": "/usr/bin/pip"}, command: pip}, lab(t), &output{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	<-pip.dead
}

func TestOnlyWhatIsMissingAndCanBeInstalledIsOffered(t *testing.T) {
	p := lab(t)
	for found, want := range map[string]bool{
		"pip": true, "pip3": true, "": false, "pip jupyter-lab": false, "pip jupyter-notebook": false,
	} {
		installed := map[string]string{}
		for name := range strings.FieldsSeq(found) {
			installed[name] = "/usr/bin/" + name
		}
		if got := p.installable(installed); got != want {
			t.Errorf("with %q it is offered: %t", found, got)
		}
	}
	if board := (program{command: "tensorboard"}); board.installable(map[string]string{"pip": "/usr/bin/pip"}) {
		t.Error("an app without a package is offered")
	}
}
