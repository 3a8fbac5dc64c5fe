package agent

import (
	"context"
	"testing"
	"time"

	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
	"slipway/gpu"
	"slipway/gpu/sim"
)

// rows counts what is remembered under a prefix.
func (w *world) rows(prefix string) (n int) {
	w.t.Helper()
	if err := w.store.EachAccount(prefix, prefix+"~", func(string, []byte) error { n++; return nil }); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// newWatched is a world with two sessions on devices, one of which works, and
// an idle policy.
func newWatched(t *testing.T, policy session.IdlePolicy) (g *gpuWorld, busy, idle session.Session) {
	g = newGPUWorld(t, newFake(t, simtest.Config{}), sim.Config{Seed: 8},
		func(c *Config) { c.Sessions.Idle = policy })
	busy, idle = g.run("busy", 500), g.run("idle", 500)
	g.machine.RunGranted(busy.Container(), sim.Training, busy.Grants.GPUs)
	g.machine.RunGranted(idle.Container(), sim.Holding, idle.Grants.GPUs)
	return g, busy, idle
}

func TestRestartsBlindNobody(t *testing.T) {
	threshold := 5.0
	policy := session.IdlePolicy{Use: session.UsePolicy{Window: hour, GPU: &threshold}}
	for name, restart := range map[string]func(*gpuWorld){
		"in good order": func(g *gpuWorld) { g.halt(); g.start() },
		"by a crash":    func(g *gpuWorld) { g.kill(10 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				g, busy, idle := newWatched(t, policy)
				for range 2 {
					time.Sleep(25 * time.Minute)
					restart(g)
				}
				ended := g.awaitEnd(idle.ID)
				if took := ended.TerminatedAt.Sub(*ended.StartedAt); ended.Reason != session.ReasonUnused ||
					took < 70*time.Minute || took > 75*time.Minute {
					t.Errorf("ended as %s after %s", ended.Reason, took)
				}
				if s, err := g.agent.Get(context.Background(), busy.ID); err != nil || s.Status != session.Running {
					t.Errorf("the busy one is %s, %v", s.Status, err)
				}
			})
		})
	}
}

func TestWhoWorkedBeforeARestartIsNotTakenForIdleSinceItsStart(t *testing.T) {
	for name, restart := range map[string]func(*gpuWorld){
		"in good order": func(g *gpuWorld) { g.halt(); g.start() },
		"by a crash":    func(g *gpuWorld) { g.kill(10 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				g, busy, _ := newWatched(t, session.IdlePolicy{Network: hour})
				time.Sleep(75 * time.Minute)
				g.machine.EndContainer(busy.Container())
				ended := time.Now()
				time.Sleep(30 * time.Second)
				restart(g)
				if s := g.awaitEnd(busy.ID); s.Reason != session.ReasonIdle ||
					s.TerminatedAt.Sub(ended) < 58*time.Minute || s.TerminatedAt.Sub(ended) > 62*time.Minute {
					t.Errorf("ended as %s %s after its last work", s.Reason, s.TerminatedAt.Sub(ended))
				}
			})
		})
	}
}

func TestAMachineThatSleptWhileTheAgentWasAwayDidNotIdle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGPUWorld(t, newFake(t, simtest.Config{}), sim.Config{Seed: 9},
			func(c *Config) { c.Sessions.Idle = session.IdlePolicy{Network: hour} })
		s := g.run("laptop", gpu.Share(500))
		g.agent.reclaim.Seen(s.ID, false)
		time.Sleep(30 * time.Minute)
		g.halt()
		g.clocks.sleep(10 * time.Hour)
		g.start()
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

func TestWhatIsStoredOfUseIsKeptSmallAndForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g, busy, idle := newWatched(t, session.IdlePolicy{Lifetime: 1000 * hour})
		devices := len(g.agent.devices.Now().Devices)
		time.Sleep(2 * time.Hour)
		before := busy.Grants.GPUs[0].Device
		history, err := g.agent.DeviceHistory(context.Background(), before, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		g.halt()
		g.start()
		if series, tracks := g.rows("idle/series/"), g.rows("track/"); series > 2*(2*12+3) || series < 2*2*12-4 ||
			tracks > devices*(2*60+5) || tracks < devices*(2*60-5) {
			t.Errorf("%d points of two sessions and %d of %d devices are kept", series, tracks, devices)
		}
		again, err := g.agent.DeviceHistory(context.Background(), before, time.Time{})
		if err != nil || len(again) < 2*60-5 || again[0].At.Sub(history[0].At).Abs() > 3*time.Minute ||
			again[len(again)/2].MemoryUsed == nil {
			t.Errorf("the history has %d points, %v; before the restart it had %d", len(again), err, len(history))
		}
		g.clocks.setWall(3 * time.Hour) // which moves what is remembered
		time.Sleep(10 * time.Minute)
		if series := g.rows("idle/series/"); series > 2*(3*12+3) || series < 2*2*12-4 {
			t.Errorf("after the clock was set there are %d points", series)
		}
		for _, s := range []session.Session{busy, idle} {
			if _, err := g.agent.Terminate(context.Background(), s.ID, true); err != nil {
				t.Fatal(err)
			}
			g.awaitStatus(s.ID, session.Terminated)
		}
		time.Sleep(5 * time.Minute)
		if n := g.rows("idle/series/"); n != 0 {
			t.Errorf("of ended sessions %d points are kept", n)
		}
	})
}
