package agent

import (
	"archive/zip"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
)

// A package of the name that Slipway asks pip for, with a program of the name that it starts. It is not JupyterLab: the
// test is of pip, of the session around it, and of the way to the program.
const labModule = `import http.server, sys
def main():
    port = next(int(a.split("=")[1]) for a in sys.argv if a.startswith("--port="))
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"installed by pip")
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Page).serve_forever()
`

// writeWheel makes a directory with a package as pip expects it.
func writeWheel(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "jupyterlab-99.0-py3-none-any.whl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	archive := zip.NewWriter(file)
	const info = "jupyterlab-99.0.dist-info/"
	for _, part := range [][2]string{
		{"slipway_test_lab.py", labModule},
		{info + "METADATA", "Metadata-Version: 2.1\nName: jupyterlab\nVersion: 99.0\n"},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "entry_points.txt", "[console_scripts]\njupyter-lab = slipway_test_lab:main\n"},
		{info + "RECORD", "slipway_test_lab.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info +
			"entry_points.txt,,\n" + info + "RECORD,,\n"},
	} {
		w, err := archive.Create(part[0])
		if err == nil {
			_, err = w.Write([]byte(part[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// withPip is a running session of an image that has pip and no Jupyter.
func (r *real) withPip(spec session.Spec, env ...string) session.Session {
	r.t.Helper()
	spec.Image = enginetest.ImagePip
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		spec.Env = append(spec.Env, session.EnvVar{Name: name, Value: value})
	}
	s := r.awaitRunning(r.launch(spec).ID)
	r.t.Cleanup(func() { // the machine may have room for no more than two
		if _, err := r.agent.Terminate(context.Background(), s.ID, true); err != nil {
			r.t.Error(err)
		}
		r.awaitEnd(s.ID)
	})
	return s
}

// lab is JupyterLab in the list of a session's apps.
func (r *real) lab(id session.ID) session.App {
	r.t.Helper()
	apps, err := r.agent.ListApps(context.Background(), id)
	if err != nil || len(apps) == 0 || apps[0].ID != "jupyterlab" {
		r.t.Fatalf("apps %+v, %v", apps, err)
	}
	return apps[0]
}

func TestRealInstallOfAnApp(t *testing.T) {
	t.Parallel()
	enginetest.RequireDocker(t)
	r := newReal(t, t.TempDir())
	asked := session.AppRequest{App: "jupyterlab", Install: true}

	t.Run("it runs once pip has installed it", func(t *testing.T) {
		r := r.in(t)
		s := r.withPip(session.Spec{Mounts: []session.Mount{{Source: writeWheel(t), Target: "wheels"}}},
			"PIP_NO_INDEX=1", "PIP_FIND_LINKS="+session.Home+"/wheels")
		if app := r.lab(s.ID); !app.Installable || app.State != session.AppStopped {
			t.Errorf("it is offered as %+v", app)
		}
		if _, err := r.agent.StartApp(t.Context(), s.ID, session.AppRequest{App: "jupyterlab"}); session.CodeOf(err) !=
			session.CodeAppNotInstalled {
			t.Errorf("without being asked: %v", err)
		}
		app, err := r.agent.StartApp(t.Context(), s.ID, asked)
		if err != nil || app.State != session.AppReady {
			t.Fatalf("%+v, %v", app, err)
		}
		if now := r.lab(s.ID); now.Installable || now.State != session.AppReady {
			t.Errorf("then it is %+v", now)
		}
		conn, err := r.agent.DialPort(t.Context(), s.ID, app.Port)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := request.Write(conn); err != nil {
			t.Fatal(err)
		}
		text := make([]byte, 4096)
		if n, err := conn.Read(text); err != nil || !strings.HasPrefix(string(text[:n]), "HTTP/1.0 200") {
			t.Errorf("it answers %q, %v", text[:n], err)
		}
	})
	t.Run("without a network it says so", func(t *testing.T) {
		r := r.in(t)
		s := r.withPip(session.Spec{}, "PIP_INDEX_URL=http://127.0.0.1:9/simple")
		_, err := r.agent.StartApp(t.Context(), s.ID, asked)
		if session.CodeOf(err) != session.CodeAppNotInstalled ||
			!strings.Contains(err.Error(), "the session cannot reach the package index") {
			t.Errorf("it says %v", err)
		}
		if app := r.lab(s.ID); !app.Installable || app.State != session.AppStopped {
			t.Errorf("then it is %+v", app)
		}
	})
	t.Run("it is cancelled", func(t *testing.T) {
		r := r.in(t)
		s := r.withPip(session.Spec{}, "PIP_INDEX_URL=http://127.0.0.1:8099/simple", "PIP_TIMEOUT=600")
		// An index that accepts connections and never answers.
		r.exec(s.ID, "bash", "-c", `python3 -c 'import socket, time
s = socket.create_server(("127.0.0.1", 8099)); open("/tmp/listens", "w"); time.sleep(9999)' >/dev/null 2>&1 &
while [ ! -e /tmp/listens ]; do sleep 0.05; done`)
		failed := make(chan error, 1)
		go func() {
			_, err := r.agent.StartApp(context.Background(), s.ID, asked)
			failed <- err
		}()
		for end := time.Now().Add(patience); r.lab(s.ID).Progress == ""; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("no progress is told: %+v", r.lab(s.ID))
			}
		}
		if app := r.lab(s.ID); app.State != session.AppStarting || !app.Installable {
			t.Errorf("meanwhile it is %+v", app)
		}
		if err := r.agent.StopApp(t.Context(), s.ID, "jupyterlab"); err != nil {
			t.Fatal(err)
		}
		if err := <-failed; session.CodeOf(err) != session.CodeAppConflict {
			t.Errorf("whoever waits is told %v", err)
		}
		for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			out, _ := r.exec(s.ID, "bash", "-c", "pgrep -fc '[b]in/pip install' || true")
			if strings.TrimSpace(out) == "0" {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("pip goes on: %s", out)
			}
		}
	})
}
