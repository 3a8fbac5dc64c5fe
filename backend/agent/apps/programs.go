package apps

import (
	"cmp"
	"path"
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
	args    func(s setting) []string
}

type setting struct {
	port int
	root bool   // it runs as root
	dir  string // absolute; see program.dir
}

// programs is the table of apps. Each listens on the container's loopback, which only the guest's link reaches. The
// gateway has checked the caller, so the app needs no token of its own.
var programs = []program{
	{id: "jupyterlab", title: "JupyterLab", command: "jupyter-lab", port: 7430, ready: "/api",
		args: func(s setting) []string {
			return jupyterArgs([]string{"ServerApp"}, s)
		}},
	{id: "notebook", title: "Jupyter Notebook", command: "jupyter-notebook", port: 7431, ready: "/api",
		args: func(s setting) []string {
			// Notebook 6 reads the first name, notebook 7 the second.
			return jupyterArgs([]string{"NotebookApp", "ServerApp"}, s)
		}},
	{id: "code-server", title: "code-server", command: "code-server", port: 7432, ready: "/healthz",
		args: func(s setting) []string {
			return []string{"--auth=none", "--bind-addr=127.0.0.1:" + strconv.Itoa(s.port), "--disable-telemetry",
				"--disable-update-check", session.Home}
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
	args := []string{"--no-browser", "--ip=127.0.0.1", "--port=" + strconv.Itoa(s.port)}
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
