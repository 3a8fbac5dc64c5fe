package guest

import (
	"context"
	"net"

	"slipway/backend/session"
	"slipway/backend/terminal"
)

// Processes starts programs in one container. The real one makes Linux processes; a simulated container brings its own.
// All methods are safe for concurrent use. A program that cannot be started fails with process_start_not-found,
// process_start_forbidden, guest_call_internal-error, guest_call_internal-error or guest_call_internal-error; the guest
// tells its caller under the domain of the call, for example process_start_not-found.
type Processes interface {
	// OpenTerminal starts a program, or the user's shell where cmd.Argv is empty, on a terminal of the given size,
	// which is valid.
	OpenTerminal(cmd Command, cols, rows int) (terminal.TTY, error)
	// Start starts a program without a terminal.
	Start(cmd Command) (terminal.Process, error)
	// Which returns the paths of those of names that Start would find.
	Which(names []string) map[string]string
	// DialPort connects to a port on the container's loopback.
	DialPort(ctx context.Context, port int) (net.Conn, error)
	// Listening returns the ports of that loopback on which programs take connections, in their order, without those
	// that nobody chose.
	Listening() []int
	// Files opens a connection to what answers one call for files as the user whose programs are started: see
	// [ServeFiles].
	Files(ctx context.Context) (net.Conn, error)
	// Script is the command by which the shell that OpenTerminal finds runs a script, or what it reads where there is
	// none; nil: there is no shell.
	Script(text string) []string
}

// Command is a program to start. Env comes on top of what every program of the container gets; an empty Dir is the
// home.
type Command struct {
	Argv  []string
	Env   []session.EnvVar
	Dir   string
	Stdin bool
}

func hasShell(p Processes) bool { return len(p.Script("")) > 0 }
