package agent

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
)

var noSpace error = session.NewError("disk_write_no-space", "The disk is full.", "Make room.")

// ended launches a session, waits until it runs, asks for its end, and returns
// it as it ended.
func (w *world) ended(spec session.Spec) session.Session {
	w.t.Helper()
	s := w.launch(spec)
	w.awaitStatus(s.ID, session.Running)
	return w.terminated(s.ID, false)
}

func (w *world) terminated(id session.ID, forced bool) session.Session {
	w.t.Helper()
	if _, err := w.agent.Terminate(context.Background(), id, forced); err != nil {
		w.t.Fatal(err)
	}
	return w.await(id, "ended", func(s session.Session) bool { return s.Status.Terminal() })
}

// madeImages are the names of all customized images.
func (w *world) madeImages() []string {
	w.t.Helper()
	images, err := w.fake.Images(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	names := []string{}
	for _, i := range images {
		if i.Origin != nil {
			names = append(names, i.Origin.Name)
		}
	}
	slices.Sort(names)
	return names
}

// steps are the sub-steps of a session's end, with their messages.
func (w *world) steps(id session.ID) map[string]session.Step {
	w.t.Helper()
	phase := w.phaseOf(id, session.PhaseTerminate)
	steps := map[string]session.Step{}
	for _, step := range phase.Steps {
		steps[step.Step] = step
	}
	return steps
}

func (w *world) wantImages(want ...string) {
	w.t.Helper()
	if got := w.madeImages(); !slices.Equal(got, want) {
		w.t.Errorf("the images are %v and should be %v", got, want)
	}
}

func TestTheNewestImagesOfEndsAreKept(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		spec := session.Spec{Name: "my.work", Lifetime: session.Lifetime{CommitOnEnd: 2}}
		first := w.ended(spec)
		if i := first.EndImage; i == nil || i.State != session.WorkDone || i.Ref != "slipway-custom/ada:my-work-1" ||
			i.Kept || i.Size == 0 {
			t.Fatalf("its image is %+v", i)
		}
		if step := w.steps(first.ID)["image"]; step.Result != session.OutcomeSuccess ||
			step.Message != "my-work-1: 24 MiB of changes" {
			t.Errorf("its step: %+v", step)
		}
		user := w.launch(session.Spec{Image: first.EndImage.Ref})
		w.awaitStatus(user.ID, session.Running)
		w.finished(w.commit(user.ID, "my-work-3")) // a name that the series would take
		for range 3 {
			time.Sleep(time.Second)
			w.ended(spec)
		}
		w.wantImages("my-work-1", "my-work-3", "my-work-4", "my-work-5") // 1 is used, 3 a person's own, 2 was dropped
		w.terminated(user.ID, false)
		last := w.ended(spec)
		w.wantImages("my-work-3", "my-work-5", "my-work-6")
		if step := w.steps(last.ID)["older-images"]; step.Message != "removed my-work-4, my-work-1" {
			t.Errorf("its step: %+v", step)
		}
		image, err := w.agent.FindImage(t.Context(), last.EndImage.Ref)
		if err != nil || image.Origin.Series != "my.work" || image.Origin.Session != last.ID {
			t.Errorf("its origin: %+v, %v", image.Origin, err)
		}
		w.ended(session.Spec{Name: "other", Lifetime: session.Lifetime{CommitOnEnd: 1}})
		w.wantImages("my-work-3", "my-work-5", "my-work-6", "other-1")
		if states := w.fake.States(); len(states) != 0 {
			t.Errorf("containers are left: %+v", states)
		}
		w.audit()
	})
}

func TestWhichEndsMakeAnImage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		five := session.Spec{Lifetime: session.Lifetime{CommitOnEnd: 5}}
		batch := five
		batch.Type, batch.Command = session.Batch, "x"
		timed := batch
		timed.Timeout = session.Duration(time.Minute)
		mortal := five
		mortal.Idle = &session.IdlePolicy{Lifetime: session.Duration(time.Minute)}
		for name, test := range map[string]struct {
			spec session.Spec
			end  func(session.Session)
			want bool
		}{
			"success":     {batch, func(s session.Session) { w.fake.Exit(s.Container(), 0) }, true},
			"failure":     {batch, func(s session.Session) { w.fake.Exit(s.Container(), 3) }, false},
			"by itself":   {five, func(s session.Session) { w.fake.Exit(s.Container(), 0) }, true},
			"for memory":  {five, func(s session.Session) { w.fake.OOM(s.Container()) }, true},
			"lost":        {five, func(s session.Session) { w.fake.Lose(s.Container()) }, false},
			"not asked":   {session.Spec{}, func(s session.Session) { w.terminated(s.ID, false) }, false},
			"by force":    {five, func(s session.Session) { w.terminated(s.ID, true) }, false},
			"of lifetime": {mortal, func(session.Session) {}, true},
			"of timeout":  {timed, func(session.Session) {}, true},
		} {
			s := w.launch(test.spec)
			s = w.awaitStatus(s.ID, session.Running)
			test.end(s)
			s = w.await(s.ID, "ended", func(s session.Session) bool { return s.Status.Terminal() })
			if made := s.EndImage != nil && s.EndImage.State == session.WorkDone; made != test.want ||
				s.KeepsContainer() {
				t.Errorf("%s (%s): its image is %+v", name, s.Reason, s.EndImage)
			}
		}
	})
}

func TestAnImageThatCannotBeMadeKeepsTheContainer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{CPUs: 1})
		w := newWorld(t, fake, nil)
		fake.Fail(simtest.CallCommit, noSpace, nil, noSpace)
		s := w.ended(session.Spec{Name: "work", Lifetime: session.Lifetime{CommitOnEnd: 1}})
		if i := s.EndImage; s.Status != session.Terminated || i == nil || i.State != session.WorkFailed ||
			!s.KeepsContainer() || i.Error.Code != "disk_write_no-space" || i.Error.Hint == "" {
			t.Fatalf("it is %s with %+v", s.Status, s.EndImage)
		}
		if step := w.steps(s.ID)["image"]; step.Result != session.OutcomeFailure ||
			step.Code != "disk_write_no-space" {
			t.Errorf("its step: %+v", step)
		}
		// What it held is free, and the container outlives looks at the engine and the agent.
		other := w.ended(session.Spec{Name: "work", Lifetime: session.Lifetime{CommitOnEnd: 1}})
		if !other.KeepsContainer() && other.EndImage.State != session.WorkDone {
			t.Fatalf("the next is %+v", other.EndImage)
		}
		w.halt()
		w.start()
		time.Sleep(5 * time.Minute)
		there := func() bool {
			return slices.ContainsFunc(fake.States(),
				func(state engine.State) bool { return state.ID == s.Container() && !state.Running })
		}
		if !there() {
			t.Fatal("its container is gone")
		}
		if failed := w.finished(w.commit(s.ID, "late-1")); failed.State != session.WorkFailed {
			t.Errorf("a second try ended as %+v", failed)
		}
		if done := w.finished(w.commit(s.ID, "late-1")); done.State != session.WorkDone {
			t.Errorf("a third try ended as %+v", done)
		}
		now, err := w.agent.Get(t.Context(), s.ID)
		if err != nil || now.EndImage.State != session.WorkDone || now.EndImage.Kept || now.EndImage.Name != "late-1" ||
			there() {
			t.Errorf("committed it is %+v, %v", now.EndImage, err)
		}
		if _, err := w.commit(s.ID, "late-2"); session.CodeOf(err) != "image_update_conflict" {
			t.Errorf("without a container: %v", err)
		}
		w.audit()
	})
}

func TestAKeptContainerIsDroppedByForceAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		w := newWorld(t, fake, nil)
		fake.Fail(simtest.CallCommit, noSpace)
		s := w.ended(session.Spec{Name: "work", Lifetime: session.Lifetime{CommitOnEnd: 1}})
		if now := w.terminated(s.ID, false); !now.KeepsContainer() || len(fake.States()) != 1 {
			t.Fatalf("asked to end again it is %+v", now.EndImage)
		}
		dropped, err := w.agent.Terminate(t.Context(), s.ID, true)
		if err != nil || dropped.KeepsContainer() || dropped.EndImage.State != session.WorkCancelled ||
			dropped.EndImage.Error == nil || len(fake.States()) != 0 {
			t.Errorf("dropped it is %+v, %v", dropped.EndImage, err)
		}
	})
}

func TestAForcedEndGivesTheImageUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		w := newWorld(t, fake, nil)
		gate := fake.Block(simtest.CallCommit)
		s := w.launch(session.Spec{Name: "work", Lifetime: session.Lifetime{CommitOnEnd: 1}})
		w.awaitStatus(s.ID, session.Running)
		if _, err := w.agent.Terminate(t.Context(), s.ID, false); err != nil {
			t.Fatal(err)
		}
		<-gate.Entered()
		now := w.await(s.ID, "being made an image", func(s session.Session) bool {
			return s.EndImage != nil &&
				s.EndImage.Size > 0
		})
		if now.Status != session.Terminating || now.EndImage.State != session.WorkRunning ||
			now.EndImage.Name != "work-1" {
			t.Errorf("meanwhile it is %s with %+v", now.Status, now.EndImage)
		}
		if step := w.steps(s.ID)["image"]; step.Result != session.OutcomeRunning ||
			step.Message != "work-1: 24 MiB of changes" {
			t.Errorf("meanwhile its step is %+v", step)
		}
		s = w.terminated(s.ID, true)
		gate.Release()
		synctest.Wait()
		if s.EndImage.State != session.WorkCancelled || s.Reason != session.ReasonForced || len(fake.States()) != 0 {
			t.Errorf("it ended by %s with %+v", s.Reason, s.EndImage)
		}
		w.wantImages()
	})
}

func (m mortal) Commit(ctx context.Context, id string, c engine.Commit) (session.Image, error) {
	return deadly(m.life, func() (session.Image, error) { return m.Engine.Commit(ctx, id, c) })
}
func (m mortal) Images(ctx context.Context) ([]session.Image, error) {
	return deadly(m.life, func() ([]session.Image, error) { return m.Engine.Images(ctx) })
}
func (m mortal) RemoveImage(ctx context.Context, ref string) error {
	_, err := deadly(m.life, func() (int, error) { return 0, m.Engine.RemoveImage(ctx, ref) })
	return err
}

// TestAKilledAgentMakesTheImageOnce kills the agent after each deed of an end
// that makes an image, and wants the next life to bring it about exactly once.
func TestAKilledAgentMakesTheImageOnce(t *testing.T) {
	killed := 0
	for deeds := 1; deeds <= 60; deeds++ {
		inBubble(t, func(t *testing.T) {
			l := &life{}
			fake := newFake(t, simtest.Config{})
			w := &world{t: t, dir: dirInMemory(t), fake: fake, fault: func(string) error { return l.fault("") }}
			w.config = func(c *Config) { c.Engine = engine.Of(mortal{engine.Of(fake), l}) }
			w.start()
			t.Cleanup(w.halt)
			w.ended(session.Spec{Name: "work", Lifetime: session.Lifetime{CommitOnEnd: 1}})
			s := w.launch(session.Spec{Name: "work", Lifetime: session.Lifetime{CommitOnEnd: 1}})
			w.awaitStatus(s.ID, session.Running)
			l.mu.Lock()
			l.left = deeds
			l.mu.Unlock()
			_, err := w.agent.Terminate(t.Context(), s.ID, false)
			synctest.Wait()
			w.halt()
			l.mu.Lock()
			if l.dead {
				killed++
			}
			l.left, l.dead = 0, false
			l.mu.Unlock()
			w.start()
			if err != nil { // it was killed before the wish was stored
				s = w.terminated(s.ID, false)
			} else {
				s = w.await(s.ID, "ended", func(s session.Session) bool { return s.Status.Terminal() })
			}
			synctest.Wait()
			if s.EndImage == nil || s.EndImage.State != session.WorkDone || s.EndImage.Name != "work-2" ||
				len(fake.States()) != 0 {
				t.Errorf("killed after %d deeds it is %s with %+v", deeds, s.Status, s.EndImage)
			}
			if got := w.madeImages(); !slices.Equal(got, []string{"work-2"}) {
				t.Errorf("killed after %d deeds the images are %v", deeds, got)
			}
			w.audit()
		})
	}
	if killed < 15 {
		t.Errorf("only %d ends were killed", killed)
	}
}
