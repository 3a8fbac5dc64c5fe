package apps

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/backend/session"
	"slipway/backend/terminal"
)

// installers are the programs that can install an app, the preferred one first.
var installers = []string{"pip", "pip3"}

const (
	installLimit = 25 * time.Minute
	maxProgress  = 200  // characters of a line
	keptLines    = 40   // of an installer's output
	maxLine      = 4096 // bytes
)

// installable reports whether p is not installed and can be, by the programs that were found.
func (p program) installable(found map[string]string) bool {
	return p.pip != "" && found[p.command] == "" && found[p.instead] == "" && installer(found) != ""
}

func installer(found map[string]string) string {
	for _, name := range installers {
		if found[name] != "" {
			return found[name]
		}
	}
	return ""
}

// install installs a program into a session unless it is there. Ending ctx ends the installer.
func install(ctx context.Context, g Guest, p program, said *output) error {
	found, err := g.Which(ctx, append([]string{p.command}, installers...))
	if err != nil || found[p.command] != "" {
		return err
	}
	pip := installer(found)
	if p.pip == "" || pip == "" {
		return session.NewError(session.CodeAppNotInstalled,
			p.title+" cannot be installed into this session, because it has no pip.",
			"Choose an image that has "+p.title+".")
	}
	conn, err := g.Exec(ctx, session.ExecRequest{
		Command: []string{pip, "install", "--no-input", "--progress-bar", "off", "--retries", "2", p.pip},
		// The system's own Python refuses packages that its package manager does not know. A container has no others.
		Env: []session.EnvVar{{Name: "PIP_BREAK_SYSTEM_PACKAGES", Value: "1"},
			{Name: "PIP_DISABLE_PIP_VERSION_CHECK", Value: "1"}, {Name: "PYTHONUNBUFFERED", Value: "1"}},
	})
	if err != nil {
		return err
	}
	code, err := terminal.RunExec(ctx, terminal.NewConn(conn), terminal.ExecIO{Stdout: said, Stderr: said})
	if err != nil {
		return err
	}
	if code != 0 {
		return notInstalled(p, code, said.all())
	}
	return nil
}

// unreached are parts of what pip prints if it cannot reach its index.
var unreached = []string{"NewConnectionError", "Failed to establish a new connection", "NameResolutionError",
	"Temporary failure in name resolution", "ConnectTimeoutError", "ReadTimeoutError", "Network is unreachable",
	"ProxyError"}

func notInstalled(p program, code int, lines []string) error {
	text := strings.Join(lines, "\n")
	if slices.ContainsFunc(unreached, func(part string) bool { return strings.Contains(text, part) }) {
		return session.NewError(session.CodeAppNotInstalled,
			p.title+" was not installed: the session cannot reach the package index.",
			"Check the network of the machine, or set PIP_INDEX_URL to a mirror in the session's variables. Or choose "+
				"an image that has "+p.title+".")
	}
	why := fmt.Sprintf("pip ended with code %d.", code)
	for _, line := range lines {
		if said, ok := strings.CutPrefix(line, "ERROR: "); ok {
			why = said
		}
	}
	return session.NewError(session.CodeAppNotInstalled, fmt.Sprintf("%s was not installed: %s", p.title, why),
		fmt.Sprintf("Run pip install %s in a terminal of the session to see everything that it prints.", p.pip))
}

// output keeps the last lines of an installer.
type output struct {
	mu    sync.Mutex // guards everything below
	lines []string   // complete ones
	part  []byte
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, b := range p {
		switch {
		case b != '\n' && b != '\r':
			if len(o.part) < maxLine {
				o.part = append(o.part, b)
			}
			continue
		case len(strings.TrimSpace(string(o.part))) > 0:
			line := strings.ToValidUTF8(strings.TrimSpace(string(o.part)), "\uFFFD")
			o.lines = append(o.lines[max(0, len(o.lines)-keptLines+1):], line)
		}
		o.part = o.part[:0]
	}
	return len(p), nil
}

func (o *output) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.lines)
}

// last returns the newest line for display.
func (o *output) last() string {
	lines := o.all()
	if len(lines) == 0 {
		return ""
	}
	line := []rune(session.Printable(lines[len(lines)-1]))
	return string(line[:min(len(line), maxProgress)])
}
