package agent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
)

func TestTerminalsAndExecAreTheGuests(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		ctx := context.Background()
		s := w.launch(session.Spec{})
		s = w.awaitStatus(s.ID, session.Running)
		first, err := w.agent.OpenTerminal(ctx, s.ID, session.TerminalRequest{Cols: 80, Rows: 24})
		if err != nil || first.Cols != 80 {
			t.Errorf("%+v, %v", first, err)
		}
		shown := watch(t, w.agent, s.ID, "echo so is $((6*7))")
		synctest.Wait()
		if shown.shows("so is 42") != 1 {
			t.Errorf("a second one shows %q", shown)
		}
		if err := w.agent.CloseTerminal(ctx, s.ID, first.ID); err != nil {
			t.Error(err)
		}
		if stream, err := w.agent.Exec(ctx, s.ID, session.ExecRequest{Command: []string{"nothing"}}); stream != nil ||
			session.CodeOf(err) != "process_start_not-found" {
			t.Errorf("%v, %v", stream, err)
		}
		if _, err := w.agent.Exec(ctx, s.ID, session.ExecRequest{}); session.CodeOf(err) != "session_update_invalid" {
			t.Errorf("no command: %v", err)
		}
		w.fake.DropGuest(s.Container())
		time.Sleep(time.Second)
		if list, err := w.agent.ListTerminals(ctx, s.ID); err != nil || len(list) != 1 {
			t.Errorf("after a loss of the link: %+v, %v", list, err)
		}
		w.fake.SetGuestAbsent(s.Container(), true)
		w.fake.DropGuest(s.Container())
		time.Sleep(time.Second)
		begun := time.Now()
		if _, err := w.agent.ListTerminals(ctx, s.ID); session.CodeOf(err) != "session_use_unavailable" ||
			time.Since(begun) > 15*time.Second {
			t.Errorf("without a guest: %v after %v", err, time.Since(begun))
		}
		if s, _ := w.agent.Get(ctx, s.ID); s.Status != session.Running {
			t.Errorf("it is %s", s.Status)
		}
	})
}

func TestUseNeedsARunningSession(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{CPUs: 1}), nil)
		ctx := context.Background()
		first := w.launch(session.Spec{})
		w.awaitStatus(first.ID, session.Running)
		waiting := w.launch(session.Spec{})
		for id, code := range map[session.ID]session.Code{waiting.ID: "session_update_conflict",
			"nobodynobody": "session_read_not-found"} {
			for name, use := range map[string]func() error{
				"ListTerminals": func() error { _, err := w.agent.ListTerminals(ctx, id); return err },
				"OpenTerminal": func() error {
					_,
						err := w.agent.OpenTerminal(ctx, id, session.TerminalRequest{})
					return err
				},
				"Attach": func() error {
					_,
						err := w.agent.AttachTerminal(ctx, id, session.AttachRequest{})
					return err
				},
				"Close": func() error { return w.agent.CloseTerminal(ctx, id, "t") },
				"Exec": func() error {
					_,
						err := w.agent.Exec(ctx, id, session.ExecRequest{Command: []string{"a"}})
					return err
				},
				"ListApps": func() error { _, err := w.agent.ListApps(ctx, id); return err },
				"StartApp": func() error {
					_,
						err := w.agent.StartApp(ctx, id, session.AppRequest{App: "notebook"})
					return err
				},
				"StopApp":  func() error { return w.agent.StopApp(ctx, id, "notebook") },
				"DialPort": func() error { _, err := w.agent.DialPort(ctx, id, 80); return err },
			} {
				if err := use(); session.CodeOf(err) != code {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	})
}

func TestApps(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		ctx := context.Background()
		s := w.launch(session.Spec{Access: session.Access{Ports: []int{8000, 8001}}})
		s = w.awaitStatus(s.ID, session.Running)
		book := install(w.inside(s), "jupyter-notebook")
		book.hold.Store(true)
		w.listen(s.ID, 8001)
		synctest.Wait()
		states := func() string {
			apps, err := w.agent.ListApps(ctx, s.ID)
			if err != nil {
				t.Fatal(err)
			}
			var text []string
			for _, a := range apps {
				text = append(text, fmt.Sprint(a.ID, " ", a.State, " ", a.Port))
			}
			return strings.Join(text, ", ")
		}
		if got := states(); got != "notebook stopped 7431, port-8000 stopped 8000, port-8001 ready 8001" {
			t.Errorf("apps: %s", got)
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if a, err := w.agent.StartApp(ctx, s.ID, session.AppRequest{App: "notebook"}); err != nil ||
					a.State != session.AppReady || a.Port != 7431 {
					t.Errorf("started as %+v, %v", a, err)
				}
			})
		}
		impatient, cancel := context.WithCancel(ctx)
		all.Go(func() {
			if _, err := w.agent.StartApp(impatient, s.ID, session.AppRequest{App: "notebook"}); err == nil {
				t.Error("one who left was answered")
			}
		})
		time.Sleep(time.Second)
		cancel()
		if got := states(); !strings.HasPrefix(got, "notebook starting") {
			t.Errorf("while it starts: %s", got)
		}
		if _, count := book.runs(); count != 1 {
			t.Errorf("it was started %d times", count)
		}
		book.hold.Store(false)
		all.Wait()
		if got := states(); !strings.HasPrefix(got, "notebook ready") {
			t.Errorf("then: %s", got)
		}
		if err := w.agent.StopApp(ctx, s.ID, "notebook"); err != nil ||
			!strings.HasPrefix(states(), "notebook stopped") {
			t.Errorf("stopped: %s, %v", states(), err)
		}
		for app, code := range map[string]session.Code{
			"jupyterlab": "app_start_not-installed", "port-8000": "app_start_timeout",
			"port-9000": "app_open_not-found", "port-x": "app_open_not-found", "nothing": "app_open_not-found",
		} {
			if _, err := w.agent.StartApp(ctx, s.ID, session.AppRequest{App: app}); session.CodeOf(err) != code {
				t.Errorf("%s: %v", app, err)
			}
		}
		if a, err := w.agent.StartApp(ctx, s.ID, session.AppRequest{App: "port-8001"}); err != nil ||
			a.State != session.AppReady {
			t.Errorf("%+v, %v", a, err)
		}
		conn, err := w.agent.DialPort(ctx, s.ID, 8001)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		if _, err := w.agent.DialPort(ctx, s.ID, 70000); session.CodeOf(err) != "session_update_invalid" {
			t.Errorf("port 70000: %v", err)
		}
		if err := w.agent.StopApp(ctx, s.ID, "port-8001"); session.CodeOf(err) != "app_open_not-found" {
			t.Errorf("%v", err)
		}
	})
}

func TestFollowedLogBeginsWhenTheSessionDoes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		w := newWorld(t, fake, nil)
		gate := fake.Block(simtest.CallCreate)
		s := w.launch(batchSpec())
		<-gate.Entered()
		if got := w.log(s.ID, session.LogOptions{}); got != "" {
			t.Errorf("before it runs: %q", got)
		}
		followed := make(chan string, 1)
		go func() { followed <- w.log(s.ID, session.LogOptions{Follow: true}) }()
		time.Sleep(time.Second)
		gate.Release()
		s = w.awaitStatus(s.ID, session.Running)
		fake.WriteLog(s.Container(), "one", "two")
		time.Sleep(time.Second)
		fake.Exit(s.Container(), 0)
		if got := <-followed; got != "one\ntwo\n" {
			t.Errorf("followed %q", got)
		}
		w.awaitStatus(s.ID, session.Terminated)
		for opts, want := range map[session.LogOptions]string{{}: "one\ntwo\n", {Tail: 1}: "two\n",
			{Tail: 9}: "one\ntwo\n", {Follow: true}: "one\ntwo\n"} {
			if got := w.log(s.ID, opts); got != want {
				t.Errorf("%+v: kept %q", opts, got)
			}
		}
		if got := w.log(s.ID, session.LogOptions{Timestamps: true}); !strings.HasPrefix(got, "2000-01-01T00:00:0") ||
			strings.Count(got, "Z ") != 2 {
			t.Errorf("with timestamps %q", got)
		}
		if _, err := w.agent.Logs(context.Background(), s.ID,
			session.LogOptions{Kernel: "../../agent.db"}); session.CodeOf(err) != "session_use_not-found" {
			t.Errorf("another file: %v", err)
		}
	})
}

func TestFollowedLogOfASessionThatNeverRunsEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		w := newWorld(t, fake, nil)
		gate := fake.Block(simtest.CallCreate)
		defer gate.Release()
		s := w.launch(batchSpec())
		<-gate.Entered()
		followed := make(chan string, 1)
		go func() { followed <- w.log(s.ID, session.LogOptions{Follow: true}) }()
		time.Sleep(time.Second)
		if _, err := w.agent.Terminate(context.Background(), s.ID, false); err != nil {
			t.Fatal(err)
		}
		if got := <-followed; got != "" {
			t.Errorf("followed %q", got)
		}
	})
}
