package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
)

func TestAppsListenToTheLinkAlone(t *testing.T) {
	ports := map[int]string{}
	for _, p := range programs {
		for _, root := range []bool{true, false} {
			args := p.args(setting{port: p.port, root: root, dir: p.dir})
			text := strings.Join(args, " ")
			if !strings.Contains(text, "127.0.0.1") || strings.Contains(text, "0.0.0.0") ||
				!strings.Contains(text, fmt.Sprint(p.port)) {
				t.Errorf("%s: %v", p.id, args)
			}
			if isJupyter(p.id) && slices.Contains(args, "--allow-root") != root {
				t.Errorf("%s as root %t: %v", p.id, root, args)
			}
			if p.dir != "" && !strings.Contains(text, "="+p.dir) {
				t.Errorf("%s does not show %s: %v", p.id, p.dir, args)
			}
			for _, lax := range []string{"allow_origin", "allow_remote", "disable_check_xsrf", "bind_all"} {
				if strings.Contains(text, lax) {
					t.Errorf("%s lets other pages in: %s", p.id, text)
				}
			}
		}
		if !session.ReservedPort(p.port) || ports[p.port] != "" {
			t.Errorf("%s uses port %d, which a person or %s may take", p.id, p.port, ports[p.port])
		}
		ports[p.port] = p.id
	}
}

func TestPortsThatNobodyAnnouncedAreFound(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, s, g := runningWithGuest(t, session.Spec{Ports: []int{8000}})
		ctx := context.Background()
		g.mu.Lock()
		g.listening[8000], g.listening[8501], g.listening[7431] = true, true, true
		g.mu.Unlock()
		apps, err := w.agent.ListApps(ctx, s.ID)
		if err != nil || len(apps) != 2 {
			t.Fatalf("%+v, %v", apps, err)
		}
		if apps[0].ID != "port-8000" || apps[0].Found {
			t.Errorf("the preopened one is %+v", apps[0])
		}
		if got := apps[1]; got.ID != "port-8501" || !got.Found || got.State != session.AppReady || got.Kind != "web" {
			t.Errorf("the found one is %+v", got)
		}
		if a, err := w.agent.StartApp(ctx, s.ID, session.AppRequest{App: "port-8501"}); err != nil || !a.Found ||
			a.State != session.AppReady {
			t.Errorf("opened as %+v, %v", a, err)
		}
		if _, err := w.agent.StartApp(ctx, s.ID, session.AppRequest{App: "port-7431"}); session.CodeOf(
			err) != "app_start_not-found" {
			t.Errorf("a port of Slipway's own: %v", err)
		}
		g.mu.Lock()
		delete(g.listening, 8501)
		g.mu.Unlock()
		if apps, err := w.agent.ListApps(ctx, s.ID); err != nil || len(apps) != 1 {
			t.Errorf("when it is gone: %+v, %v", apps, err)
		}
	})
}

// runningWithGuest is a session that runs, with the guest in it.
func runningWithGuest(t *testing.T, spec session.Spec) (*world, session.Session, *scriptedGuest) {
	t.Helper()
	w := newWorld(t, enginetest.NewFake(enginetest.FakeConfig{}), nil)
	s := w.awaitStatus(w.launch(spec).ID, session.Running)
	return w, s, w.guest()
}

func TestAppShowsTheDirectoryThatWasChosen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, s, g := runningWithGuest(t, session.Spec{})
		ctx := context.Background()
		g.mu.Lock()
		g.installed["tensorboard"], g.installed["jupyter-lab"] = "/usr/bin/tensorboard", "/usr/bin/jupyter-lab"
		g.mu.Unlock()
		for _, step := range []struct {
			asked, shown string
			starts       int
		}{
			{"", "/home/work/logs", 1},
			{"runs/../exp", "/home/work/exp", 2},
			{"", "/home/work/exp", 3}, // the one that it shows; the guest joins the running one
			{"/data/logs/", "/data/logs", 4},
		} {
			app, err := w.agent.StartApp(ctx, s.ID, session.AppRequest{App: "tensorboard", Dir: step.asked})
			if err != nil || app.Dir != step.shown || g.startCount() != step.starts {
				t.Errorf("asked for %q: %+v, %v after %d starts", step.asked, app, err, g.startCount())
			}
		}
		for app, dir := range map[string]string{"jupyterlab": "x", "tensorboard": "a\nb"} {
			if _, err := w.agent.StartApp(ctx, s.ID, session.AppRequest{App: app, Dir: dir}); session.CodeOf(
				err) != "app_start_invalid" {
				t.Errorf("%s with %q: %v", app, dir, err)
			}
		}
	})
}

func TestAppsThatAnImageDeclares(t *testing.T) {
	for name, c := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"none": {nil, ""},
		"its own": {map[string]string{
			labelApps: `[{"id":"streamlit","title":"Streamlit","command":["streamlit","run","app.py"],"port":8501,` +
				`"ready":"/healthz"},{"id":"api","port":8080}]`},
			"streamlit Streamlit 8501 [streamlit run app.py], api api 8080 []"},
		"what Backend.AI's have": {map[string]string{
			labelServices: "jupyter:http:8888, vnc_web:http:6080,db:tcp:[5432,5433],ttyd:pty:7000"},
			"jupyter jupyter 8888 [], vnc-web vnc_web 6080 [], db db 5432 []"},
		"the first of two on a port": {
			map[string]string{labelApps: `[{"id":"a","port":8080},{"id":"b","port":8080},{"id":"a","port":8081}]`},
			"a a 8080 []"},
		"no id, port or name that could be used": {map[string]string{
			labelApps: `[{"id":"A b","port":8080},{"id":"port-1","port":8081},{"id":"notebook","port":8082},` +
				`{"id":"x","port":80},{"id":"y","port":7431},{"id":"z","port":99999}]`,
			labelServices: "notebook:http:8888,q:http:99999999999999999999",
		}, ""},
		"a title, path or length that leads elsewhere": {map[string]string{
			labelApps: `[{"id":"a","title":"\u001b[2Jx","port":8080},{"id":"b","title":"\u202egpj","port":8081},` +
				`{"id":"c","path":"/x\r\nSet-Cookie: y","port":8082},` +
				`{"id":"d","ready":"/ HTTP/1.1\r\nX: y","port":8083},{"id":"e","path":"\\\\far.example","port":8084},` +
				`{"id":"f","path":"/` + strings.Repeat("x", 600) + `","port":8085}]`,
		}, ""},
		"more than fits": {map[string]string{labelApps: `[{"id":"a","port":8080}]`, labelServices: strings.Repeat("x",
			1<<20)}, ""},
		"no JSON": {map[string]string{labelApps: "streamlit"}, ""},
	} {
		var got []string
		for _, p := range declaredBy(c.labels) {
			command := []string{}
			if p.command != "" {
				command = append([]string{p.command}, p.args(setting{})...)
			}
			got = append(got, fmt.Sprint(p.id, " ", p.title, " ", p.port, " ", command))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestAStartIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, s, g := runningWithGuest(t, session.Spec{})
		ctx := context.Background()
		hold := make(chan struct{})
		g.mu.Lock()
		g.installed["code-server"], g.hold = "/usr/bin/code-server", hold
		g.mu.Unlock()
		failures := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := w.agent.StartApp(ctx, s.ID, session.AppRequest{App: "code-server"})
				failures <- err
			}()
		}
		synctest.Wait()
		if apps, err := w.agent.ListApps(ctx, s.ID); err != nil || apps[0].State != session.AppStarting {
			t.Fatalf("%+v, %v", apps, err)
		}
		if err := w.agent.StopApp(ctx, s.ID, "code-server"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := <-failures; session.CodeOf(err) != "app_start_stopped" {
				t.Errorf("whoever waits is told %v", err)
			}
		}
		if apps, err := w.agent.ListApps(ctx, s.ID); err != nil || apps[0].State != session.AppStopped ||
			g.startCount() != 1 {
			t.Errorf("after that: %+v, %v, %d starts", apps, err, g.startCount())
		}
		close(hold)
		if app, err := w.agent.StartApp(ctx, s.ID, session.AppRequest{App: "code-server"}); err != nil ||
			app.State != session.AppReady {
			t.Errorf("started again: %+v, %v", app, err)
		}
	})
}
