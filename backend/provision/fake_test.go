package provision

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/daemon"
	"slipway/backend/session"
	"slipway/tunnel"
	"slipway/tunnel/sshstdio"
)

// TestMain makes copies of the test program what is installed.
func TestMain(m *testing.M) {
	if strings.HasPrefix(filepath.Base(os.Args[0]), "slipway") {
		os.Exit(beProgram(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// beProgram answers as the program does that is installed on a machine. What it
// was asked is appended to a file.
func beProgram(args []string) int {
	home := os.Getenv("SLIPWAY_HOME")
	self, _ := os.Executable()
	line := strings.Join(args, " ")
	state := filepath.Join(home, "state")
	status := daemon.Status{Role: daemon.RoleAgent, PID: os.Getpid(), Version: "2", Program: self, Home: home}
	switch {
	case line == "agent --version":
		fmt.Println(`{"version":"2","commit":"abc","go":"go1","os":"linux","arch":"amd64"}`)
	case line == "agent status -o json":
		data, err := os.ReadFile(state)
		if err != nil {
			return 5
		}
		fmt.Print(string(data))
	case strings.HasPrefix(line, "-o json agent switch"):
		fmt.Fprintln(os.Stderr, "a word of the loader's")
		if os.Getenv("FAKE_FAILS") != "" {
			fmt.Fprintln(os.Stderr,
				`{"code":"agent_install_failed","message":"The new version did not work.","hint":"Look."}`)
			return 1
		}
		_ = os.Remove(filepath.Join(home, "bin/slipway"))
		err := os.Symlink(filepath.Base(self), filepath.Join(home, "bin/slipway"))
		data, _ := json.MarshalIndent(status, "", "  ")
		if err = errors.Join(err, os.WriteFile(state, data, 0o600),
			os.WriteFile(filepath.Join(home, "asked"), []byte(line), 0o600)); err != nil {
			return 1
		}
		_ = json.NewEncoder(os.Stdout).Encode(daemon.Switched{To: status, Done: true})
	case strings.HasPrefix(line, "-o json agent uninstall"):
		_ = os.RemoveAll(home)
		fmt.Println(`{"live":0,"kept":null}`)
	default:
		return 2
	}
	return 0
}

// account is an account of this machine that stands in for one of another.
type account struct {
	home  string
	env   []string
	runs  int
	cut   int64 // an upload is cut after so many bytes; 0: never
	hang  bool  // an upload stands still
	noise string
}

func newAccount(t *testing.T) *account {
	t.Helper()
	home := t.TempDir()
	return &account{home: home, env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "SHELL=/bin/sh", "USER=ada"}}
}

var _ Remote = (*account)(nil)

func (a *account) Run(ctx context.Context, command []string, stdin io.Reader) (sshstdio.Result, error) {
	a.runs++
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdin = a.env, a.home, stdin
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return sshstdio.Result{}, &tunnel.Fault{Code: "agent_connect_unavailable", Message: "The host does not answer.",
			Hint: "Try again.", Err: err}
	}
	return sshstdio.Result{Stdout: append([]byte(a.noise), out.Bytes()...), Stderr: diag.Bytes(),
		Exit: cmd.ProcessState.ExitCode()}, nil
}

func (a *account) Upload(ctx context.Context, content io.Reader, path string, mode fs.FileMode,
	sum [sha256.Size]byte) error {
	if a.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if a.cut > 0 {
		content = io.LimitReader(content, a.cut)
	}
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	if a.cut > 0 || sha256.Sum256(data) != sum {
		return &tunnel.Fault{Code: "agent_connect_lost", Message: "The connection was lost.", Hint: "Try again."}
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, mode))
}

// thisProgram installs copies of the test program.
type thisProgram struct{}

func (thisProgram) Program(string, string) (string, error) { return os.Executable() }

// told remembers what was told.
type told struct {
	steps map[string]session.Check
	done  int64
	total int64
}

func (r *told) Tell(step session.Check) {
	if r.steps == nil {
		r.steps = map[string]session.Check{}
	}
	r.steps[step.ID] = step
}
func (r *told) Progress(done, total int64) { r.done, r.total = done, total }
