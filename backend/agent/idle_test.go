package agent

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"slipway/backend/agent/guests"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/guest/link"
	"slipway/backend/session"
	"slipway/gpu"
	"slipway/gpu/sim"
)

const hour = session.Duration(time.Hour)

// idler is a world with a session under an idle policy.
type idler struct {
	*world
	id     session.ID
	unseen atomic.Bool // nothing can tell what runs in its terminals
}

func newIdler(t *testing.T, policy session.IdlePolicy) *idler {
	i := &idler{}
	i.world = newWorld(t, newFake(t, simtest.Config{}), func(c *Config) {
		c.Sessions.Link = func(ctx context.Context, conn net.Conn) (guests.Client, error) {
			client, err := guests.Connect(ctx, conn)
			client.Terminals = unseenTerminals{client.Terminals, &i.unseen}
			return client, err
		}
	})
	s := i.launch(session.Spec{Name: "idler", Lifetime: session.Lifetime{Idle: &policy}})
	i.awaitStatus(s.ID, session.Running)
	i.id = s.ID
	return i
}

type unseenTerminals struct {
	guests.Terminals
	unseen *atomic.Bool
}

func (u unseenTerminals) Activity(ctx context.Context) ([]link.Foreground, error) {
	list, err := u.Terminals.Activity(ctx)
	for i := range list {
		if u.unseen.Load() {
			list[i] = link.Foreground{Terminal: list[i].Terminal}
		}
	}
	return list, err
}

func (i *idler) get() session.Session {
	i.t.Helper()
	s, err := i.agent.Get(context.Background(), i.id)
	if err != nil {
		i.t.Fatal(err)
	}
	return s
}

// lives fails the test where the session does not run after a while.
func (i *idler) lives(after time.Duration) session.Session {
	i.t.Helper()
	time.Sleep(after)
	s := i.get()
	if s.Status != session.Running {
		i.t.Fatalf("after %s it is %s (%s)", after, s.Status, s.Reason)
	}
	return s
}

// ends waits for the end and checks its reason and time since the start.
func (i *idler) ends(reason session.Reason, after time.Duration) {
	i.t.Helper()
	s := i.awaitEnd(i.id)
	took := s.TerminatedAt.Sub(*s.StartedAt)
	// A judgement comes every 15 s, and the end a minute after the first that warns of it.
	if s.Reason != reason || took < after || took > after+time.Minute+15*time.Second {
		i.t.Errorf("it ended as %s after %s, wanted %s after %s", s.Reason, took, reason, after)
	}
	if s.Error == nil || s.Error.Hint == "" {
		i.t.Errorf("the end is explained by %+v", s.Error)
	}
	i.audit()
}

// awaitEnd waits for an end that may be a day away.
func (w *world) awaitEnd(id session.ID) session.Session {
	w.t.Helper()
	for range 24 * 60 {
		s, err := w.agent.Get(context.Background(), id)
		if err != nil {
			w.t.Fatal(err)
		}
		if s.Status.Terminal() {
			return s
		}
		time.Sleep(time.Minute)
	}
	w.t.Fatalf("session %s does not end", id)
	return session.Session{}
}

func hasIdleWarning(s session.Session) bool {
	return slices.ContainsFunc(s.Warnings,
		func(w session.Warning) bool { return strings.HasPrefix(string(w.Code), "session_idle_") })
}

func TestAnUnusedSessionIsReclaimed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		i := newIdler(t, session.IdlePolicy{Network: hour})
		shown := watch(t, i.agent, i.id, "")
		s := i.lives(45 * time.Minute)
		if len(s.Idle) != 1 || s.Idle[0].State != session.IdleIdle || s.Idle[0].ExpiresAt == nil || hasIdleWarning(s) {
			t.Errorf("after 45 minutes: %+v, %+v", s.Idle, s.Warnings)
		}
		s = i.lives(7 * time.Minute)
		if !hasIdleWarning(s) || shown.shows("slipway keep idler") != 1 {
			t.Errorf("after 52 minutes: %+v, the terminal shows %q", s.Warnings, shown)
		}
		i.ends(session.ReasonIdle, time.Hour)
		if shown.shows("slipway keep idler") != 2 {
			t.Errorf("the terminal shows %q", shown)
		}
	})
}

func TestUseKeepsASession(t *testing.T) {
	for name, use := range map[string]func(*idler){
		"a program in a terminal": func(i *idler) { watch(i.t, i.agent, i.id, "sleep 100000") },
		"a terminal that cannot be looked at": func(i *idler) {
			i.unseen.Store(true)
			watch(i.t, i.agent, i.id, "")
		},
		"an app with traffic": func(i *idler) {
			app := i.starts("tensorboard", "tensorboard", func(_ http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body) //nolint:errcheck // it ends with the request
			})
			conn, err := i.agent.DialPort(context.Background(), i.id, app.Port)
			if err != nil {
				i.t.Fatal(err)
			}
			const head = "POST / HTTP/1.1\r\nHost: app\r\nContent-Length: 100\r\n\r\n"
			if _, err := io.WriteString(conn, head); err != nil {
				i.t.Fatal(err)
			}
			over := make(chan struct{})
			i.t.Cleanup(func() { close(over); conn.Close() })
			go func() {
				for {
					if _, err := conn.Write([]byte("x")); err != nil {
						return
					}
					select {
					case <-time.After(10 * time.Minute):
					case <-over:
						return
					}
				}
			}()
		},
		"a file that is read": func(i *idler) {
			i.run(i.id, "sh", "-c", "echo content > a")
			i.often(func(ctx context.Context) {
				content, err := i.agent.ReadFile(ctx, session.Place{Session: i.id}, session.ReadRequest{Path: "a"})
				if err != nil {
					return // the test has ended
				}
				_, _ = io.Copy(io.Discard, content) // it goes through the watch
				_ = content.Close()
			})
		},
		"a file that is written": func(i *idler) {
			i.often(func(ctx context.Context) {
				// it fails when the test has ended
				_, _ = i.agent.WriteUpload(ctx, session.Place{Session: i.id}, session.Upload{Path: "a", Key: "k"},
					strings.NewReader("x"))
			})
		},
		"a busy notebook": func(i *idler) {
			i.starts("notebook", "jupyter-notebook", answerKernels(func() string {
				return `[{"name":"python3","execution_state":"busy","last_activity":"2000-01-01T00:00:00Z"}]`
			}))
		},
		"a notebook that was used lately": func(i *idler) {
			i.starts("jupyterlab", "jupyter-lab", answerKernels(func() string {
				return fmt.Sprintf(`[{"name":"python3","execution_state":"idle","last_activity":%q}]`,
					time.Now().UTC().Truncate(10*time.Minute).Format(time.RFC3339Nano))
			}))
		},
		"a guest that cannot be reached": func(i *idler) {
			id := i.get().Container()
			i.fake.SetGuestAbsent(id, true)
			i.fake.DropGuest(id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				i := newIdler(t, session.IdlePolicy{Network: hour / 3})
				use(i)
				if s := i.lives(50 * time.Minute); hasIdleWarning(s) {
					t.Errorf("%+v", s.Warnings)
				}
			})
		})
	}
}

// often does something at once and every ten minutes until the test ends.
func (i *idler) often(do func(context.Context)) {
	ctx, over := context.WithCancel(context.Background())
	i.t.Cleanup(over)
	go func() {
		for ctx.Err() == nil {
			do(ctx)
			select {
			case <-time.After(10 * time.Minute):
			case <-ctx.Done():
			}
		}
	}()
}

// starts installs a program that answers requests and starts it as an app.
func (i *idler) starts(app, program string, answer http.HandlerFunc) session.App {
	i.t.Helper()
	i.inside(i.get()).World.Install(program, answer)
	started, err := i.agent.StartApp(context.Background(), i.id, session.AppRequest{App: app})
	if err != nil {
		i.t.Fatal(err)
	}
	return started
}

// answerKernels is a notebook's server that tells of its kernels.
func answerKernels(kernels func() string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/kernels" {
			io.WriteString(w, kernels()) //nolint:errcheck // who asks has left
		}
	}
}

func TestAWishKeepsASession(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		i := newIdler(t, session.IdlePolicy{Lifetime: 2 * hour})
		s := i.lives(115 * time.Minute)
		if !hasIdleWarning(s) {
			t.Fatalf("%+v", s.Warnings)
		}
		if _, err := i.agent.Keep(context.Background(), i.id, 3*hour); err != nil {
			t.Fatal(err)
		}
		s = i.lives(time.Minute)
		if hasIdleWarning(s) || s.KeepUntil == nil || len(s.Idle) != 1 || s.Idle[0].State != session.IdleActive ||
			!s.Idle[0].ExpiresAt.Equal(*s.KeepUntil) {
			t.Errorf("kept: %+v, %+v", s.Idle, s.Warnings)
		}
		i.ends(session.ReasonLifetime, 115*time.Minute+3*time.Hour)
		for _, length := range []session.Duration{-1, session.Duration(time.Second), 1000 * hour} {
			if _, err := i.agent.Keep(context.Background(), i.id,
				length); session.CodeOf(err) != "session_update_invalid" {
				t.Errorf("kept for %s: %v", length, err)
			}
		}
		if _, err := i.agent.Keep(context.Background(), i.id, hour); session.CodeOf(err) != "session_update_conflict" {
			t.Errorf("kept after its end: %v", err)
		}
	})
}

func TestWarningsAndTrafficOutliveTheAgent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		i := newIdler(t, session.IdlePolicy{Network: hour})
		watch(t, i.agent, i.id, "")
		time.Sleep(20 * time.Minute)
		i.agent.reclaim.Seen(i.id, true)
		i.lives(50 * time.Minute) // quiet for 50 minutes
		i.halt()
		i.start()
		if s := i.lives(3 * time.Minute); !hasIdleWarning(s) {
			t.Errorf("not warned: %+v", s.Idle)
		}
		i.halt()
		i.start()
		i.ends(session.ReasonIdle, 80*time.Minute)
	})
}

func TestTooLittleUseOfADeviceEndsASession(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		threshold := 5.0
		policy := session.IdlePolicy{Use: session.UsePolicy{Window: hour, GPU: &threshold}}
		g := newGPUWorld(t, newFake(t, simtest.Config{}), sim.Config{Seed: 8},
			func(c *Config) { c.Sessions.Idle = policy })
		busy, idle := g.run("busy", 500), g.run("idle", 500)
		g.machine.RunGranted(busy.Container(), sim.Training, busy.Grants.GPUs)
		g.machine.RunGranted(idle.Container(), sim.Holding, idle.Grants.GPUs)
		ended := g.awaitEnd(idle.ID)
		if took := ended.TerminatedAt.Sub(*ended.StartedAt); ended.Reason != session.ReasonUnused ||
			took < 70*time.Minute || took > 72*time.Minute {
			t.Errorf("ended as %s after %s", ended.Reason, took)
		}
		s, err := g.agent.Get(context.Background(), busy.ID)
		if err != nil || s.Status != session.Running || len(s.Idle) != 1 || s.Idle[0].State != session.IdleActive ||
			s.Idle[0].Metrics[0].Average < 50 {
			t.Errorf("the busy one is %s, %+v", s.Status, s.Idle)
		}
		sim, err := g.agent.SimulateIdle(context.Background(), idle.ID,
			session.IdlePolicy{Use: session.UsePolicy{Window: hour / 2, GPU: &threshold}})
		if err != nil || !sim.Ended || sim.Checker != session.CheckUse ||
			sim.At.Sub(*ended.StartedAt) > 40*time.Minute {
			t.Errorf("simulated: %+v, %v", sim, err)
		}
		if sim, err = g.agent.SimulateIdle(context.Background(), busy.ID,
			session.IdlePolicy{Use: session.UsePolicy{Window: hour / 2, GPU: &threshold}}); err != nil || sim.Ended {
			t.Errorf("simulated: %+v, %v", sim, err)
		}
		if _, err := g.agent.SimulateIdle(context.Background(), busy.ID,
			session.IdlePolicy{Lifetime: 1}); session.CodeOf(err) != "session_update_invalid" {
			t.Errorf("a policy that is wrong: %v", err)
		}
	})
}

func TestAMachineThatSleptCountsNoTimeWithoutUse(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGPUWorld(t, newFake(t, simtest.Config{}), sim.Config{Seed: 9},
			func(c *Config) { c.Sessions.Idle = session.IdlePolicy{Network: hour} })
		s := g.run("laptop", gpu.Share(500))
		g.agent.reclaim.Seen(s.ID, false)
		time.Sleep(30 * time.Minute)
		g.clocks.sleep(10 * time.Hour)
		time.Sleep(15 * time.Minute)
		if s, _ := g.agent.Get(context.Background(), s.ID); s.Status != session.Running || hasIdleWarning(s) {
			t.Fatalf("it is %s, %+v", s.Status, s.Warnings)
		}
		ended := g.awaitEnd(s.ID)
		if took := ended.TerminatedAt.Sub(*ended.StartedAt); took < time.Hour || took > 62*time.Minute {
			t.Errorf("ended after %s awake", took)
		}
	})
}

// A window of one minute holds few samples, and is judged all the same.
func TestAShortWindowIsJudged(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		low := 50.0
		i := newIdler(t, session.IdlePolicy{Use: session.UsePolicy{Window: session.Duration(time.Minute), CPU: &low}})
		if _, err := i.agent.OpenTerminal(context.Background(), i.id, session.TerminalRequest{}); err != nil {
			t.Fatal(err)
		}
		i.ends(session.ReasonUnused, time.Minute)
	})
}
