package apps

import (
	"cmp"
	"context"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway/backend/session"
)

// program is an app that Slipway can start where it is installed.
type program struct {
	id      string
	title   string
	command string // name or path of its program; empty: people start it in the session
	port    int    // in the container; see session.ReservedPort
	ready   string // path that answers when it is ready; empty: a connection is enough
	path    string // where its URL begins
	kind    string // "web" or "tcp"; empty: "web"
	dir     string // directory that it shows unless a person names another; empty: it shows none
	pip     string // package that pip can install it from; empty: it is not offered for installation
	instead string // command of a program that is enough, so that pip is not offered
	args    func(s setting) []string
	sockets bool // args listens on a socket if it is asked to
	keeps   bool // what its cells print is kept while no page is open; see package keeper
}

type setting struct {
	port   int
	socket string // path of a unix socket to listen on in place of the port; empty: none
	root   bool   // it runs as root
	dir    string // absolute; see program.dir
}

// programs is the table of apps. Each listens on the container's loopback, which only the guest's link reaches, or on a
// socket where others reach that loopback, too. The gateway has checked the caller, so the app needs no token of its
// own.
var programs = []program{
	{id: "jupyterlab", title: "JupyterLab", command: "jupyter-lab", port: 7430, ready: "/api",
		pip: "jupyterlab", instead: "jupyter-notebook", sockets: true, keeps: true, args: func(s setting) []string {
			return jupyterArgs([]string{"ServerApp"}, s)
		}},
	{id: "notebook", title: "Jupyter Notebook", command: "jupyter-notebook", port: 7431, ready: "/api", sockets: true,
		keeps: true, args: func(s setting) []string {
			// Notebook 6 reads the first name, notebook 7 the second.
			return jupyterArgs([]string{"NotebookApp", "ServerApp"}, s)
		}},
	{id: "code-server", title: "code-server", command: "code-server", port: 7432, ready: "/healthz", sockets: true,
		args: func(s setting) []string {
			at := "--bind-addr=127.0.0.1:" + strconv.Itoa(s.port)
			if s.socket != "" {
				at = "--socket=" + s.socket
			}
			return []string{"--auth=none", at, "--disable-telemetry", "--disable-update-check", session.Home}
		}},
	{id: "tensorboard", title: "TensorBoard", command: "tensorboard", port: 7433, ready: "/",
		dir: session.Home + "/logs", args: func(s setting) []string {
			return []string{"--logdir=" + s.dir, "--host=127.0.0.1", "--port=" + strconv.Itoa(s.port)}
		}},
	{id: "mlflow", title: "MLflow", command: "mlflow", port: 7434, ready: "/health", dir: session.Home + "/mlruns",
		args: func(s setting) []string {
			return []string{"ui", "--backend-store-uri=" + s.dir, "--host=127.0.0.1", "--port=" + strconv.Itoa(s.port)}
		}},
}

// jupyterArgs are the arguments of a Jupyter server whose settings begin with each of the given names. Pages of other
// origins and requests to other hosts stay refused: the gateway rewrites both to those of the app.
func jupyterArgs(names []string, s setting) []string {
	args := []string{"--no-browser", "--LabServerApp.extra_labextensions_path=" + labDir} // Notebook 6 ignores it
	if s.socket == "" {
		args = append(args, "--ip=127.0.0.1", "--port="+strconv.Itoa(s.port))
	} else { // and so do its kernels
		args = append(args, "--KernelManager.transport=ipc")
	}
	if s.root {
		args = append(args, "--allow-root")
	}
	for _, name := range names {
		dir := "root_dir"
		if name == "NotebookApp" {
			dir = "notebook_dir"
		}
		args = append(args,
			"--"+name+".port_retries=0", "--"+name+".token=", "--"+name+".password=", "--"+name+".base_url=/",
			"--"+name+"."+dir+"="+session.Home, "--"+name+".quit_button=False")
		if s.socket != "" {
			args = append(args, "--"+name+".sock="+s.socket)
		}
	}
	return args
}

func (p program) app() session.App {
	return session.App{ID: p.id, Title: p.title, Kind: cmp.Or(p.kind, "web"), Port: p.port,
		State: session.AppStopped, Path: p.path, Dir: p.dir}
}

const longestDir = 1024

// chosenDir returns the directory that a program is to show: the requested one, relative to the home, or its usual one.
func (p program) chosenDir(asked string) (string, error) {
	switch {
	case asked == "":
		return p.dir, nil
	case p.dir == "":
		return "", session.NewError(session.CodeSessionInvalid, p.title+" shows no directory that could be chosen.",
			"Open it without one.")
	case len(asked) > longestDir || strings.ContainsFunc(asked, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", session.NewError(session.CodeSessionInvalid, "The directory is not a path.",
			"Name a directory of the session, such as "+p.dir+".")
	case path.IsAbs(asked):
		return path.Clean(asked), nil
	}
	return path.Join(session.Home, asked), nil
}

// Labels by which an image declares apps.
const (
	// labelApps is a JSON list of declarations. Without a command, the image starts the program itself.
	labelApps = "slipway.apps"
	// labelServices is the list of Backend.AI's images: name:protocol:port, …
	labelServices = "ai.backend.service-ports"
)

const (
	maxDeclared = 20       // apps
	maxLabel    = 64 << 10 // bytes of a label
	maxAppTitle = 64       // bytes
	maxAppPath  = 512      // bytes
)

type declaration struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Command []string `json:"command"`
	Port    int      `json:"port"`
	Ready   string   `json:"ready"`
	Path    string   `json:"path"`
}

// declaredIn returns the apps that the image of a session declares. It reads them once for the life of the session.
func (a *Apps) declaredIn(ctx context.Context, s session.Session) []program {
	a.mu.Lock()
	list, read := a.declared[s.ID]
	a.mu.Unlock()
	if read {
		return list
	}
	image, err := a.config.Engine.Image(ctx, s.Spec.Image)
	if err != nil && session.CodeOf(err) != session.CodeNoImage {
		return nil // read again the next time
	}
	list = declaredBy(image.Labels)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.declared[s.ID] = list
	return list
}

// declaredBy reads the labels of an image. It skips entries that are invalid or repeat an earlier one.
func declaredBy(labels map[string]string) []program {
	var found []program
	add := func(p program) {
		if usable(p) && len(found) < maxDeclared &&
			!slices.ContainsFunc(found, func(other program) bool { return other.id == p.id || other.port == p.port }) {
			found = append(found, p)
		}
	}
	if len(labels[labelApps]) > maxLabel || len(labels[labelServices]) > maxLabel {
		return nil
	}
	var list []declaration
	if json.Unmarshal([]byte(labels[labelApps]), &list) == nil {
		for _, d := range list {
			add(d.program())
		}
	}
	for _, entry := range splitServices(labels[labelServices]) {
		add(entry)
	}
	return found
}

func (d declaration) program() program {
	p := program{id: d.ID, title: cmp.Or(strings.TrimSpace(d.Title), d.ID), port: d.Port, ready: d.Ready, path: d.Path}
	if len(d.Command) > 0 {
		p.command = d.Command[0]
		p.args = func(setting) []string { return d.Command[1:] }
	}
	return p
}

var serviceEntry = regexp.MustCompile(`([\w.-]+):(\w+):\[?(\d+)`)

// splitServices returns the entries of labelServices. A list of ports in brackets counts by its first.
func splitServices(text string) (found []program) {
	for _, match := range serviceEntry.FindAllStringSubmatch(text, -1) {
		port, err := strconv.Atoi(match[3])
		if err != nil || match[2] == "pty" {
			continue
		}
		p := program{id: strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(match[1])), title: match[1],
			port: port}
		if match[2] != "http" && match[2] != "preopen" {
			p.kind = "tcp"
		}
		found = append(found, p)
	}
	return found
}

var appID = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// usable reports whether an image may declare p: with an id, port and title that it may use, and paths that fit a URL.
func usable(p program) bool {
	known := slices.ContainsFunc(programs, func(own program) bool { return own.id == p.id })
	return !known && len(p.id) <= 32 && appID.MatchString(p.id) && !strings.HasPrefix(p.id, portPrefix) &&
		p.port >= 1024 && p.port <= 65535 && !session.ReservedPort(p.port) &&
		len(p.title) <= maxAppTitle && session.IsPrintable(p.title) && addressable(p.path) && addressable(p.ready)
}

// addressable reports whether text may be the path of a URL as it is.
func addressable(text string) bool {
	return len(text) <= maxAppPath && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"<>\\`, r)
	})
}
