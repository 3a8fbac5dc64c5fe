package agent

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"slipway/backend/engine/sim"
	"slipway/backend/engine/sim/shell"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
)

func TestPortsThatNobodyAnnouncedAreFound(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		s := w.awaitStatus(w.launch(session.Spec{Access: session.Access{Ports: []int{8000}}}).ID, session.Running)
		ctx := context.Background()
		w.listen(s.ID, 8000)
		w.listen(s.ID, 7431)
		end := w.listen(s.ID, 8501)
		synctest.Wait()
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
			err) != "app_open_not-found" {
			t.Errorf("a port of Slipway's own: %v", err)
		}
		end()
		synctest.Wait()
		if apps, err := w.agent.ListApps(ctx, s.ID); err != nil || len(apps) != 1 {
			t.Errorf("when it is gone: %+v, %v", apps, err)
		}
	})
}

// program is a server that a test has installed in a container.
type program struct {
	name string
	in   sim.Inside
	hold atomic.Bool // it does not answer yet
}

// install installs a server that answers every request.
func install(in sim.Inside, name string) *program {
	p := &program{name: name, in: in}
	in.World.Install(name, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if p.hold.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	return p
}

// runs returns how often the program runs, and the newest of its processes.
func (p *program) runs() (newest shell.Process, count int) {
	for _, process := range p.in.World.Processes() {
		if strings.Contains(process.Command, p.name) {
			newest, count = process, count+1
		}
	}
	return newest, count / 2 // a command that the guest starts is in the table, and so is the program in it
}

func TestAppShowsTheDirectoryThatWasChosen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		s := w.awaitStatus(w.launch(session.Spec{}).ID, session.Running)
		ctx := context.Background()
		board := install(w.inside(s), "tensorboard")
		install(w.inside(s), "jupyter-lab")
		last := 0
		for _, step := range []struct {
			asked, shown string
			again        bool
		}{
			{"", "/home/work/logs", true},
			{"runs/../exp", "/home/work/exp", true},
			{"", "/home/work/exp", false}, // the one that it shows, by the program that runs
			{"/data/logs/", "/data/logs", true},
		} {
			app, err := w.agent.StartApp(ctx, s.ID, session.AppRequest{App: "tensorboard", Dir: step.asked})
			process, count := board.runs()
			if err != nil || app.Dir != step.shown || count != 1 || (process.PID != last) != step.again ||
				!strings.Contains(process.Command, "--logdir="+step.shown+" ") {
				t.Fatalf("asked for %q: %+v, %v; %d run, the last is %q", step.asked, app, err, count, process.Command)
			}
			last = process.PID
		}
		for app, dir := range map[string]string{"jupyterlab": "x", "tensorboard": "a\nb"} {
			if _, err := w.agent.StartApp(ctx, s.ID, session.AppRequest{App: app, Dir: dir}); session.CodeOf(
				err) != "session_update_invalid" {
				t.Errorf("%s with %q: %v", app, dir, err)
			}
		}
	})
}

func TestAStartIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		s := w.awaitStatus(w.launch(session.Spec{}).ID, session.Running)
		ctx := context.Background()
		lab := install(w.inside(s), "jupyter-lab")
		lab.hold.Store(true)
		failures := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := w.agent.StartApp(ctx, s.ID, session.AppRequest{App: "jupyterlab"})
				failures <- err
			}()
		}
		synctest.Wait()
		if apps, err := w.agent.ListApps(ctx, s.ID); err != nil || apps[0].State != session.AppStarting {
			t.Fatalf("%+v, %v", apps, err)
		}
		if _, count := lab.runs(); count != 1 {
			t.Errorf("%d run", count)
		}
		if err := w.agent.StopApp(ctx, s.ID, "jupyterlab"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := <-failures; session.CodeOf(err) != "app_open_conflict" {
				t.Errorf("whoever waits is told %v", err)
			}
		}
		_, count := lab.runs()
		if apps, err := w.agent.ListApps(ctx, s.ID); err != nil || apps[0].State != session.AppStopped || count != 0 {
			t.Errorf("after that: %+v, %v, %d run", apps, err, count)
		}
		lab.hold.Store(false)
		if app, err := w.agent.StartApp(ctx, s.ID, session.AppRequest{App: "jupyterlab"}); err != nil ||
			app.State != session.AppReady {
			t.Errorf("started again: %+v, %v", app, err)
		}
	})
}
