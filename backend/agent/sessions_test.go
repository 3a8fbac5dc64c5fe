package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"slipway/backend/agent/meter"
	"slipway/backend/agent/records"
	"slipway/backend/agent/sessions"
	"slipway/backend/engine"
	"slipway/backend/engine/enginetest"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

func (w *world) log(id session.ID, opts session.LogOptions) string {
	w.t.Helper()
	log, err := w.agent.Logs(context.Background(), id, opts)
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	text, err := io.ReadAll(log)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

func TestContainerHasWhatTheSpecSays(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		dir := t.TempDir()
		s := w.launch(session.Spec{Name: "exact", Resources: session.Resources{CPU: 2, Memory: 5 * gpu.GiB},
			Env:    []session.EnvVar{{Name: "OMP_NUM_THREADS", Value: "9"}, {Name: "A", Value: "b"}},
			Mounts: []session.Mount{{Source: dir, Target: "d", ReadOnly: true}},
			Access: session.Access{Ports: []int{8080}}})
		s = w.awaitStatus(s.ID, session.Running)
		c, _ := w.fake.Container(s.Container())
		if len(c.CPUs) != 2 || c.Memory != 5*gpu.GiB || c.Shm != gpu.GiB || c.Hostname != "main1" ||
			c.Name != "slipway-"+string(s.ID)+"-main1-1" {
			t.Errorf("container %+v", c)
		}
		if len(c.Mounts) != 2 || c.Mounts[0].Target != "/home/work/d" || !c.Mounts[0].ReadOnly ||
			c.Mounts[1].Target != session.CachePath {
			t.Errorf("mounts %+v", c.Mounts)
		}
		env := map[string]string{}
		for _, v := range c.Guest.Env {
			if _, twice := env[v.Name]; twice {
				t.Errorf("%s is set twice", v.Name)
			}
			env[v.Name] = v.Value
		}
		for name, want := range map[string]string{"OMP_NUM_THREADS": "9", "MKL_NUM_THREADS": "2", "A": "b",
			"SLIPWAY_CPUS": "2", "SLIPWAY_MEMORY": "5368709120",
			"SLIPWAY_SESSION_ID": string(s.ID), "SLIPWAY_SESSION_NAME": "exact", "SLIPWAY_KERNEL": "main1",
			"SLIPWAY_PORTS": "8080"} {
			if env[name] != want {
				t.Errorf("%s is %q, want %q", name, env[name], want)
			}
		}
		if c.Guest.UID != 1000 || c.Guest.Command != "" || c.Labels[engine.LabelInstance] != w.store.Instance() ||
			c.Labels[engine.LabelSession] != string(s.ID) {
			t.Errorf("guest %+v, labels %v", c.Guest, c.Labels)
		}
	})
}

func TestKeyIsAnsweredWithTheFirstLaunch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		soon := time.Now().Add(time.Second)
		req := session.LaunchRequest{Key: "wish", Spec: session.Spec{Image: enginetest.ImageMinimal,
			Type: session.Batch, Command: "true", Schedule: session.Schedule{NotBefore: &soon}}}
		first, err := w.agent.Launch(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // the start time is past, and the wish is still the same
		again, err := w.agent.Launch(context.Background(), req)
		if err != nil || again.ID != first.ID {
			t.Errorf("got %s, %v", again.ID, err)
		}
		if states := w.fake.States(); len(states) != 1 {
			t.Errorf("containers %+v", states)
		}
	})
}

func TestStartTimeIsWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{CPUs: 1}), nil)
		at := time.Now().Add(3 * time.Hour)
		spec := batchSpec()
		spec.NotBefore = &at
		s := w.launch(spec)
		s = w.await(s.ID, "waiting for its time", func(s session.Session) bool {
			return s.Wait != nil &&
				s.Wait.Code == session.CodeWaitStart
		})
		if !s.Wait.Until.Equal(at) {
			t.Errorf("waits until %v", s.Wait.Until)
		}
		other := w.launch(batchSpec())
		other = w.awaitStatus(other.ID, session.Running)
		w.fake.Exit(other.Container(), 0)
		time.Sleep(2*time.Hour + 59*time.Minute)
		s = w.awaitStatus(s.ID, session.Running)
		if late := s.StartedAt.Sub(at); late < 0 || late > time.Second {
			t.Errorf("started %v after its time", late)
		}
	})
}

func TestRename(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		ctx := context.Background()
		s, other := w.launch(session.Spec{Name: "before"}), w.launch(session.Spec{Name: "other"})
		s = w.awaitStatus(s.ID, session.Running)
		if got, err := w.agent.Rename(ctx, s.ID, "after"); err != nil || got.Name != "after" ||
			got.Status != session.Running {
			t.Errorf("%+v, %v", got, err)
		}
		for name, code := range map[string]session.Code{"x": "session_update_invalid", "other": session.CodeNameTaken} {
			if _, err := w.agent.Rename(ctx, s.ID, name); session.CodeOf(err) != code {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := w.agent.Terminate(ctx, other.ID, true); err != nil {
			t.Fatal(err)
		}
		w.await(other.ID, "ended", func(s session.Session) bool { return s.Status.Terminal() })
		if _, err := w.agent.Rename(ctx, other.ID, "again"); session.CodeOf(err) != "session_update_conflict" {
			t.Errorf("an ended one: %v", err)
		}
		if _, err := w.agent.Rename(ctx, s.ID, "other"); err != nil {
			t.Errorf("the name of an ended one: %v", err)
		}
		w.audit()
	})
}

func TestPullIsShown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		fake.Publish("remote", simtest.PullScript{Steps: []session.Pull{{Current: 1, Total: 9, Layers: 3},
			{Current: 5, Total: 9, Layers: 3, LayersDone: 1}, {Current: 9, Total: 9, Layers: 3, LayersDone: 3}},
			Pace: time.Second})
		w := newWorld(t, fake, nil)
		s := w.launch(session.Spec{Image: "remote"})
		s = w.await(s.ID, "half pulled", func(s session.Session) bool { return s.Pull != nil && s.Pull.Current == 5 })
		if s.Status != session.Pulling || s.Pull.LayersDone != 1 {
			t.Errorf("%+v", s)
		}
		if p := w.phaseOf(s.ID, session.PhasePrepare); len(p.Steps) != 2 || p.Steps[1].Step != "pull" ||
			p.Steps[1].Result != session.OutcomeRunning {
			t.Errorf("history says %+v", p)
		}
		if s = w.awaitStatus(s.ID, session.Running); s.Pull != nil {
			t.Errorf("it runs and pulls %+v", s.Pull)
		}
	})
}

func TestEventsFollowTheLifeOfASession(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		events := make(chan session.Event, 100)
		go w.agent.Watch(ctx, session.Cursor{},
			func(e session.Event) error { events <- e; return nil }) //nolint:errcheck // ends with ctx
		first := <-events
		if first.Reset == nil || first.Reset.Machine.Agent != "local" || len(first.Reset.Sessions) != 0 {
			t.Fatalf("begins with %+v", first)
		}
		s := w.launch(session.Spec{})
		w.awaitStatus(s.ID, session.Running)
		if _, err := w.agent.Terminate(ctx, s.ID, false); err != nil {
			t.Fatal(err)
		}
		w.awaitStatus(s.ID, session.Terminated)
		time.Sleep(time.Millisecond)
		var statuses []string
		last := first
		middle := session.Cursor{}
		for len(events) > 0 {
			e := <-events
			if e.Epoch != first.Epoch || e.Seq != last.Seq+1 {
				t.Errorf("event %d follows %d", e.Seq, last.Seq)
			}
			last = e
			if e.Session != nil && (len(statuses) == 0 || statuses[len(statuses)-1] != string(e.Session.Status)) {
				statuses = append(statuses, string(e.Session.Status))
				if e.Session.Status == session.Running {
					middle = session.Cursor{Epoch: e.Epoch, Seq: e.Seq}
				}
			}
		}
		if got, want := strings.Join(statuses, " "),
			"PENDING SCHEDULED PREPARING PREPARED CREATING RUNNING TERMINATING TERMINATED"; got != want {
			t.Errorf("the statuses were %s, want %s", got, want)
		}
		resumes(t, w, middle, last)
	})
}

// resumes checks that a watcher goes on after a cursor without a reset, and
// begins with one after a cursor of another epoch or of the future.
func resumes(t *testing.T, w *world, middle session.Cursor, last session.Event) {
	stop := errors.New("stop")
	next := middle.Seq
	err := w.agent.Watch(context.Background(), middle, func(e session.Event) error {
		if next++; e.Seq != next || e.Reset != nil {
			t.Errorf("resumed with %+v, want %d", e, next)
		}
		if e.Seq == last.Seq {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Error(err)
	}
	for _, cursor := range []session.Cursor{{Epoch: "other", Seq: 1}, {Epoch: last.Epoch, Seq: last.Seq + 1000}} {
		err := w.agent.Watch(context.Background(), cursor, func(e session.Event) error {
			if e.Reset == nil {
				t.Errorf("after %+v comes %+v", cursor, e)
			}
			return stop
		})
		if !errors.Is(err, stop) {
			t.Error(err)
		}
	}
}

func TestSlowWatcherIsResetAndDelaysNobody(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		time.Sleep(time.Second)
		hold, resets := make(chan struct{}), 0
		stop := errors.New("stop")
		ended := make(chan error, 1)
		go func() {
			ended <- w.agent.Watch(context.Background(), session.Cursor{}, func(e session.Event) error {
				if e.Reset == nil {
					return nil
				}
				if resets++; resets == 2 {
					return stop
				}
				<-hold
				return nil
			})
		}()
		time.Sleep(time.Second)
		for i := range ringSize + 10 {
			w.agent.news.Publish(session.Event{Usage: []session.Usage{{Pids: i}}})
		}
		close(hold)
		if err := <-ended; !errors.Is(err, stop) {
			t.Error(err)
		}
	})
}

func TestUsageIsSampledAndThinned(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		s := w.launch(session.Spec{})
		s = w.awaitStatus(s.ID, session.Running)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var samples, machines atomic.Int64
		go w.agent.Watch(ctx, session.Cursor{}, func(e session.Event) error { //nolint:errcheck // ends with ctx
			samples.Add(int64(len(e.Usage)))
			if e.Machine != nil {
				machines.Add(1)
			}
			return nil
		})
		time.Sleep(2*time.Hour + time.Second) // between two samples
		got, err := w.agent.Usage(context.Background(), s.ID, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		oldest, newest := got[0].At, got[len(got)-1].At
		if age := newest.Sub(oldest); age > time.Hour || age < 59*time.Minute {
			t.Errorf("samples of %v", age)
		}
		if len(got) < 450 || len(got) > 600 {
			t.Errorf("%d samples are kept", len(got))
		}
		if samples.Load() < 3500 || machines.Load() < 3500 {
			t.Errorf("%d samples and %d machines were told in two hours", samples.Load(), machines.Load())
		}
		if cpu := got[len(got)-1].CPU; cpu < 0.09 || cpu > 0.11 {
			t.Errorf("%v busy CPUs, want 0.1", cpu)
		}
		if recent, err := w.agent.Usage(context.Background(), s.ID, newest.Add(-20*time.Second)); err != nil ||
			len(recent) != 10 {
			t.Errorf("%d samples since 20 s, %v", len(recent), err)
		}
		cancel()
		time.Sleep(time.Minute)
		before := w.fake.Calls(simtest.CallStats)
		time.Sleep(10 * time.Minute)
		if calls := w.fake.Calls(simtest.CallStats) - before; calls < 55 || calls > 65 {
			t.Errorf("%d samples in ten minutes while nobody watches", calls)
		}
		if ended := w.terminated(s.ID, false); ended.PeakMemory < got[0].Memory || ended.PeakMemory > 2*got[0].Memory {
			t.Errorf("it used %s of memory, and its peak is kept as %s", got[0].Memory, ended.PeakMemory)
		}
	})
}

func TestIdleAgentAsksNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var loads atomic.Int64
		w := newWorld(t, newFake(t, simtest.Config{}), func(c *Config) {
			c.Host.Load = func(string) (meter.Load, error) { loads.Add(1); return meter.Load{}, nil }
		})
		time.Sleep(time.Minute)
		before, lists := loads.Load(), w.fake.Calls(simtest.CallList)
		time.Sleep(time.Hour)
		if loads.Load()-before > 1 || w.fake.Calls(simtest.CallStats) > 0 {
			t.Errorf("%d loads, %d stats", loads.Load()-before, w.fake.Calls(simtest.CallStats))
		}
		if n := w.fake.Calls(simtest.CallList) - lists; n < 59 || n > 61 {
			t.Errorf("%d comparisons in an hour", n)
		}
	})
}

func TestMemoryKillsAreWarnedOf(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		s := w.launch(session.Spec{})
		s = w.awaitStatus(s.ID, session.Running)
		w.inside(s).Guest.OOM(1)
		got := w.await(s.ID, "warned", func(s session.Session) bool { return len(s.Warnings) == 1 })
		if got.Warnings[0].Code != session.CodeOOM || !strings.Contains(got.Warnings[0].Text, s.Name) {
			t.Errorf("%+v", got.Warnings)
		}
		w.fake.SetStats(s.Container(), engine.Stats{At: time.Now(), OOMKills: 3})
		got = w.await(s.ID, "warned again",
			func(s session.Session) bool { return strings.Contains(s.Warnings[0].Text, "3 processes") })
		if len(got.Warnings) != 1 || got.Status != session.Running {
			t.Errorf("%+v", got)
		}
	})
}

func TestRestartAdoptsAndFinishes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		w := newWorld(t, fake, nil)
		stays, ends, waits := w.launch(session.Spec{}), w.launch(batchSpec()),
			w.launch(session.Spec{Resources: session.Resources{CPU: 7}})
		stays, ends = w.awaitStatus(stays.ID, session.Running), w.awaitStatus(ends.ID, session.Running)
		w.await(waits.ID, "waiting", func(s session.Session) bool { return s.Wait != nil })
		w.halt()
		fake.WriteLog(ends.Container(), "while away")
		fake.Exit(ends.Container(), 4)
		w.start()
		e := w.awaitStatus(ends.ID, session.Terminated)
		if e.Reason != session.ReasonTaskFailed || *e.ExitCode != 4 ||
			w.log(e.ID, session.LogOptions{}) != "while away\n" {
			t.Errorf("the batch ended as %+v", e)
		}
		w.awaitStatus(waits.ID, session.Running)
		if s, _ := w.agent.Get(context.Background(), stays.ID); s.Status != session.Running ||
			s.Container() != stays.Container() {
			t.Errorf("the running one is %+v", s)
		}
		if _, err := w.agent.ListTerminals(context.Background(), stays.ID); err != nil {
			t.Errorf("and answers %v", err)
		}
		w.audit()
	})
}

func TestStraysAreAdoptedOrRemoved(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		w := newWorld(t, fake, nil)
		known := w.launch(session.Spec{Name: "known"})
		w.awaitStatus(known.ID, session.Running)
		make := func(id session.ID, attempt string, start bool) string {
			grants, _ := json.Marshal(session.Grants{CPUs: []int{6}, Memory: gpu.GiB})
			c := engine.Container{Name: "slipway-" + string(id) + "-" + attempt, Image: enginetest.ImageMinimal,
				Memory: session.MinMemory,
				Labels: map[string]string{
					engine.LabelSession: string(id), engine.LabelInstance: w.store.Instance(),
					engine.LabelAttempt: attempt,
					engine.LabelName:    "known",
					engine.LabelOwner:   "ada", engine.LabelGrants: string(grants), engine.LabelKernel: "main1",
					engine.LabelAgent: "local"}}
			made, err := fake.Create(context.Background(), c)
			if err != nil {
				t.Fatal(err)
			}
			if start {
				if err := fake.Start(context.Background(), made); err != nil {
					t.Fatal(err)
				}
			}
			return made
		}
		old := make(known.ID, "7", true)                  // another attempt of a known session
		lost := make("losttherecor", "1", true)           // running, without a record
		dead := make("deadnorecord", "1", false)          // not running, without a record
		odd := make("Not-An-Id!!!", "not a number", true) // running, with labels that say nothing
		time.Sleep(2 * time.Minute)
		if _, ok := fake.Container(old); ok {
			t.Error("another attempt's container is kept")
		}
		s, err := w.agent.Get(context.Background(), "losttherecor")
		if err != nil || s.Status != session.Running || s.Container() != lost || s.Name == "known" ||
			len(s.Warnings) != 1 || s.Grants.CPUs[0] != 6 {
			t.Errorf("adopted as %+v, %v", s, err)
		}
		if _, ok := fake.Container(dead); !ok {
			t.Error("a stray is removed without grace")
		}
		time.Sleep(10 * time.Minute)
		for name, id := range map[string]string{"dead": dead, "odd": odd} {
			if _, ok := fake.Container(id); ok {
				t.Errorf("the %s stray is kept", name)
			}
		}
		if _, err := w.agent.Terminate(context.Background(), s.ID, false); err != nil {
			t.Fatal(err)
		}
		w.awaitStatus(s.ID, session.Terminated)
		w.audit()
	})
}

func TestAnAdoptedSessionKeepsItsFolders(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		ctx := context.Background()
		folder, err := w.agent.CreateFolder(ctx, session.FolderRequest{Name: "data"})
		if err != nil {
			t.Fatal(err)
		}
		first := w.launch(session.Spec{Name: "first", Mounts: []session.Mount{{Folder: "data", ReadOnly: true}}})
		running := w.awaitStatus(first.ID, session.Running)
		c, _ := w.fake.Container(running.Container())
		labels := maps.Clone(c.Labels)
		if _, err := w.agent.Terminate(ctx, first.ID, true); err != nil {
			t.Fatal(err)
		}
		w.awaitStatus(first.ID, session.Terminated)
		labels[engine.LabelSession], labels[engine.LabelName] = "losttherecor", "lost"
		made, err := w.fake.Create(ctx, engine.Container{Name: "slipway-losttherecor", Image: enginetest.ImageMinimal,
			Labels: labels, Memory: session.MinMemory})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.fake.Start(ctx, made); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		lost, err := w.agent.Get(ctx, "losttherecor")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(lost.Folders, running.Folders) || len(lost.Folders) != 2 || !lost.Folders[0].ReadOnly {
			t.Errorf("it has %+v mounted, not %+v", lost.Folders, running.Folders)
		}
		if _, err := w.agent.TrashFolder(ctx, folder.ID); session.CodeOf(err) != "folder_update_conflict" {
			t.Errorf("a folder in use goes into the trash: %v", err)
		}
		if _, err := w.agent.Terminate(ctx, lost.ID, true); err != nil {
			t.Fatal(err)
		}
		w.awaitStatus(lost.ID, session.Terminated)
		if _, err := w.agent.TrashFolder(ctx, folder.ID); err != nil {
			t.Error(err)
		}
		w.audit()
	})
}

func TestOldRecordsArePurgedWithTheirLogs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), func(c *Config) { c.Sessions.KeepFinished = 5 })
		var first session.Session
		for i := range 105 {
			s := w.launch(session.Spec{})
			w.awaitStatus(s.ID, session.Running)
			w.fake.WriteLog(w.fake.States()[0].ID, "x")
			if _, err := w.agent.Terminate(context.Background(), s.ID, false); err != nil {
				t.Fatal(err)
			}
			w.awaitStatus(s.ID, session.Terminated)
			if i == 0 {
				first = s
				if got := w.log(s.ID, session.LogOptions{}); got != "x\n" {
					t.Errorf("log %q", got)
				}
			}
		}
		time.Sleep(time.Second)
		list, err := w.agent.List(context.Background(), session.Filter{})
		if err != nil || len(list) != 5 {
			t.Errorf("%d records are kept, %v", len(list), err)
		}
		if _, err := w.agent.Get(context.Background(), first.ID); session.CodeOf(err) != "session_read_not-found" {
			t.Errorf("the oldest: %v", err)
		}
		if _, err := os.Stat(filepath.Join(w.dir, "logs", string(first.ID))); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("its log is kept: %v", err)
		}
		w.audit()
	})
}

func TestNobodyPurgesTheRecordsOfOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), func(c *Config) { c.Sessions.KeepFinished = 10 })
		theirs := w.launchAs("ann", session.Spec{})
		w.awaitStatus(theirs.ID, session.Running)
		w.fake.WriteLog(w.fake.States()[0].ID, "x")
		if _, err := w.agent.Terminate(context.Background(), theirs.ID, false); err != nil {
			t.Fatal(err)
		}
		w.awaitStatus(theirs.ID, session.Terminated)
		later := time.Now().Add(time.Hour)
		for range 200 { // none of which ever runs
			s := w.launchAs("eve", session.Spec{Type: session.Batch, Command: "true",
				Schedule: session.Schedule{NotBefore: &later}})
			if _, err := w.agent.Terminate(context.Background(), s.ID, false); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if got := w.log(theirs.ID, session.LogOptions{}); got != "x\n" {
			t.Errorf("ann's log is %q", got)
		}
		if phases, err := w.agent.History(context.Background(), theirs.ID); err != nil || len(phases) == 0 {
			t.Errorf("ann's history has %d phases, %v", len(phases), err)
		}
		list, err := w.agent.List(context.Background(), session.Filter{Finished: true})
		if err != nil || len(list) > 10+sessions.PurgeSlack {
			t.Errorf("%d records are kept, %v", len(list), err)
		}
		w.audit()
	})
}

func TestNobodyFillsTheQueueForOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		err := w.agent.records.Update(func(tx *store.Tx) error {
			for range sessions.MostLive - 1 {
				id := session.NewID()
				spec := session.Spec{Image: enginetest.ImageMinimal, Name: string(id)}
				s := records.NewSession(session.LaunchRequest{Owner: "eve", Spec: spec}, id, "local", time.Now().UTC())
				if err := tx.Create(&s, ""); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		spec := session.Spec{Image: enginetest.ImageMinimal}
		if _, err := w.agent.Launch(context.Background(), session.LaunchRequest{Owner: "eve", Spec: spec}); err != nil {
			t.Error(err)
		}
		if _, err := w.agent.Launch(context.Background(),
			session.LaunchRequest{Owner: "eve", Spec: spec}); session.CodeOf(err) != session.CodeTooManySessions {
			t.Errorf("one more of eve's: %v", err)
		}
		w.launchAs("ann", spec)
	})
}
