package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"slipway/backend/engine/sim/shell"
	"slipway/backend/files"
	"slipway/backend/guest"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

// processes starts the programs of one simulated container.
type processes struct {
	world *shell.World
	env   []string
	bare  bool // there is no program, because the image is empty
	ttys  atomic.Int64
}

var _ guest.Processes = (*processes)(nil)

func (p *processes) OpenTerminal(cmd guest.Command, cols, rows int) (terminal.TTY, error) {
	command := cmd.Argv
	if len(command) == 1 && (path.Base(command[0]) == "sh" || path.Base(command[0]) == "bash") {
		command = nil
	}
	if err := p.find(command); err != nil {
		return nil, err
	}
	name := "pts/" + strconv.FormatInt(p.ttys.Add(1)-1, 10)
	tty, err := shell.Open(p.world, p.with(cmd.Env), session.Home, name, cols, rows, command)
	if err != nil {
		return nil, broken(err)
	}
	return tty, nil
}

func (p *processes) Start(cmd guest.Command) (terminal.Process, error) {
	if err := p.find(cmd.Argv); err != nil {
		return nil, err
	}
	dir := session.Home
	if cmd.Dir != "" {
		dir = inHome(cmd.Dir)
		if info, err := p.world.FS.Stat(dir); err != nil || !info.IsDir() {
			return nil, session.NewError(session.CodeGuestInternal,
				fmt.Sprintf("There is no directory %s in the session.", dir), "Make it first, or choose another.")
		}
	}
	job, err := shell.Start(p.world, shell.JobConfig{Argv: cmd.Argv, Env: p.with(cmd.Env), Dir: dir, Stdin: cmd.Stdin})
	if err != nil {
		return nil, broken(err)
	}
	return job, nil
}

// inHome makes a path absolute.
func inHome(p string) string {
	if strings.HasPrefix(p, "/") {
		return shell.Clean(p)
	}
	return shell.Clean(path.Join(session.Home, p))
}

func (p *processes) with(vars []session.EnvVar) []string {
	env := slices.Clone(p.env)
	for _, v := range vars {
		env = append(env, v.Name+"="+v.Value)
	}
	return env
}

// find fails if a program does not exist or is not executable.
func (p *processes) find(argv []string) error {
	if !p.bare && (len(argv) == 0 || p.world.Known(argv[0])) {
		return nil
	}
	if len(argv) > 0 && strings.Contains(argv[0], "/") {
		info, err := p.world.FS.Stat(inHome(argv[0]))
		if err == nil && info.Mode()&0o111 != 0 && !info.IsDir() {
			return nil
		}
		if err == nil {
			return session.NewError(session.CodeProcessForbidden, fmt.Sprintf("%s is not a program.", argv[0]),
				"Make it executable with chmod +x.")
		}
	}
	return session.NewError(session.CodeProcessNotFound, fmt.Sprintf("%s is not in this simulated session.", argv[0]),
		"A simulated session has a shell and its utilities only; with Docker it has what its image holds.")
}

func broken(err error) error {
	return session.WrapError(err, session.CodeGuestInternal, "The simulated program could not be started.", "")
}

func (p *processes) Which(names []string) map[string]string {
	if p.bare {
		return nil
	}
	return p.world.Which(names)
}

func (p *processes) DialPort(ctx context.Context, port int) (net.Conn, error) {
	return p.world.Dial(ctx, port)
}

func (p *processes) Listening() []int { return p.world.Listening() }

func (p *processes) Files(context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	go guest.ServeFiles(far, files.Tree{FS: files.Of(simulatedFS{p.world.FS}), Home: session.Home})
	return near, nil
}

// simulatedFS adapts the file system of a simulated container to package files.
type simulatedFS struct{ *shell.FS }

func (s simulatedFS) OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	opened, err := s.Open(path, flag, perm)
	if err != nil {
		return nil, err
	}
	if file, ok := opened.(*os.File); ok {
		return file, nil
	}
	return nil, errors.Join(syscall.EINVAL, opened.Close()) // a device
}

func (p *processes) Script(text string) []string {
	switch {
	case p.bare:
		return nil
	case text == "":
		return []string{"sh"}
	}
	return []string{"sh", "-c", text}
}
