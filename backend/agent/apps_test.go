package agent

import (
	"context"
	"testing"
	"testing/synctest"

	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
)

func TestPortsThatNobodyAnnouncedAreFound(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, s, g := runningWithGuest(t, session.Spec{Access: session.Access{Ports: []int{8000}}})
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
			err) != "app_open_not-found" {
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
	w := newWorld(t, newFake(t, simtest.Config{}), nil)
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
				err) != "session_update_invalid" {
				t.Errorf("%s with %q: %v", app, dir, err)
			}
		}
	})
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
			if err := <-failures; session.CodeOf(err) != "app_open_conflict" {
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
