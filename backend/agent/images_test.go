package agent

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/engine/enginetest"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/pace"
	"slipway/backend/session"
)

func (w *world) finished(work session.ImageWork, err error) session.ImageWork {
	w.t.Helper()
	for err == nil && work.State == session.WorkRunning {
		work, err = w.agent.AwaitImageWork(context.Background(), work.ID, work.Revision)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return work
}

func (w *world) commit(id session.ID, name string) (session.ImageWork, error) {
	return w.agent.CommitSession(context.Background(), id, session.CommitRequest{Name: name})
}

// commits are the rows of a session's history about commits.
func (w *world) commits(id session.ID) []session.Phase {
	w.t.Helper()
	phases, err := w.agent.History(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(phases, func(p session.Phase) bool { return p.Phase != session.PhaseCommit })
}

func TestCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		w := newWorld(t, fake, nil)
		s := w.launch(session.Spec{Name: "work"})
		w.awaitStatus(s.ID, session.Running)

		gate := fake.Block(simtest.CallCommit)
		first, err := w.commit(s.ID, "Mine-1")
		if err != nil {
			t.Fatal(err)
		}
		<-gate.Entered()
		if _, err := w.commit(s.ID, "other"); session.CodeOf(err) != "image_update_conflict" {
			t.Errorf("a second commit at a time: %v", err)
		}
		if _, err := w.agent.CancelImageWork(t.Context(), first.ID); err != nil {
			t.Fatal(err)
		}
		if got := w.finished(first, nil); got.State != session.WorkCancelled || got.Size == 0 {
			t.Errorf("cancelled it is %+v", got)
		}
		gate.Release()
		if rows := w.commits(s.ID); len(rows) != 1 || rows[0].Result != session.OutcomeStale {
			t.Errorf("its history: %+v", rows)
		}
		done := w.finished(w.commit(s.ID, "Mine-1"))
		if done.State != session.WorkDone || done.Ref != "slipway-custom/ada:Mine-1" {
			t.Errorf("it ended as %+v", done)
		}
		if rows := w.commits(s.ID); len(rows) != 2 || rows[1].Result != session.OutcomeSuccess ||
			rows[1].Steps[0].Message != "Mine-1" {
			t.Errorf("its history: %+v", rows)
		}
		{ // an image of a customized one names what both stand on
			second := w.launch(session.Spec{Image: done.Ref})
			w.awaitStatus(second.ID, session.Running)
			next := w.finished(w.commit(second.ID, "Mine-2"))
			image, err := w.agent.FindImage(t.Context(), next.Ref)
			if err != nil || image.Origin == nil || image.Origin.Base != enginetest.ImageMinimal ||
				image.Origin.Session != second.ID {
				t.Errorf("it is %+v: %v", image.Origin, err)
			}
		}
		{ // an end waits for the image, and one that is forced gives it up
			ending := w.launch(session.Spec{})
			w.awaitStatus(ending.ID, session.Running)
			gate := fake.Block(simtest.CallCommit)
			work, err := w.commit(ending.ID, "Late-1")
			if err != nil {
				t.Fatal(err)
			}
			<-gate.Entered()
			if _, err := w.agent.Terminate(t.Context(), ending.ID, false); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if now, err := w.agent.Get(t.Context(), ending.ID); err != nil || now.Status != session.Terminating ||
				fake.Calls(simtest.CallStop) != 0 {
				t.Errorf("the session is %s while it is made an image: %v", now.Status, err)
			}
			gate.Release()
			w.awaitStatus(ending.ID, session.Terminated)
			if now := w.finished(work, nil); now.State != session.WorkDone {
				t.Errorf("the image ended as %+v", now)
			}
			hurried := w.launch(session.Spec{})
			w.awaitStatus(hurried.ID, session.Running)
			gate = fake.Block(simtest.CallCommit)
			if work, err = w.commit(hurried.ID, "Late-2"); err != nil {
				t.Fatal(err)
			}
			<-gate.Entered()
			if _, err := w.agent.Terminate(t.Context(), hurried.ID, true); err != nil {
				t.Fatal(err)
			}
			w.awaitStatus(hurried.ID, session.Terminated)
			gate.Release()
			if now := w.finished(work, nil); now.State != session.WorkCancelled {
				t.Errorf("the image ended as %+v", now)
			}
		}
		{ // a failure is told and written down
			fake.Fail(simtest.CallCommit, session.NewError("disk_write_no-space", "The disk is full.", "Make room."))
			failed := w.finished(w.commit(s.ID, "Mine-3"))
			rows := w.commits(s.ID)
			if failed.State != session.WorkFailed || failed.Error.Code != "disk_write_no-space" ||
				rows[len(rows)-1].Code != failed.Error.Code {
				t.Errorf("it ended as %+v, history %+v", failed, rows)
			}
		}
		{ // an agent that stops ends what it makes
			gate := fake.Block(simtest.CallCommit)
			if _, err := w.commit(s.ID, "Mine-4"); err != nil {
				t.Fatal(err)
			}
			<-gate.Entered()
			w.halt()
			gate.Release()
			if _, err := fake.Image(t.Context(), "slipway-custom/ada:Mine-4"); session.CodeOf(
				err) != "engine_image_not-found" {
				t.Errorf("half an image is there: %v", err)
			}
			w.start()
		}
		w.audit()
	})
}

func TestPullImage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		w := newWorld(t, fake, nil)
		hold := make(chan struct{})
		fake.Publish("far:1", simtest.PullScript{
			Steps: []session.Pull{{Current: 4, Total: 9, Layers: 2, LayersDone: 1}}, Hold: hold})
		pull := func(owner string) session.ImageWork {
			t.Helper()
			work, err := w.agent.PullImage(t.Context(), session.PullRequest{Ref: "far:1", Owner: owner})
			if err != nil {
				t.Fatal(err)
			}
			return work
		}
		first := pull("ada")
		if again := pull("ada"); again.ID != first.ID {
			t.Error("the same wish begins a second pull")
		}
		if other := pull("bob"); other.ID == first.ID {
			t.Error("another person joins the pull, and could cancel it")
		}
		now, err := w.agent.AwaitImageWork(t.Context(), first.ID, first.Revision)
		for err == nil && now.Pull.Current == 0 {
			now, err = w.agent.AwaitImageWork(t.Context(), first.ID, now.Revision)
		}
		if err != nil || now.Pull.LayersDone != 1 {
			t.Errorf("it is told as %+v: %v", now, err)
		}
		if same, err := w.agent.AwaitImageWork(t.Context(), first.ID, now.Revision); err != nil ||
			same.Revision != now.Revision {
			t.Errorf("without news it is %+v: %v", same, err)
		}
		close(hold)
		if now = w.finished(now, nil); now.State != session.WorkDone || now.EndedAt == nil {
			t.Errorf("it ended as %+v", now)
		}
		{ // one that stands still is given up
			fake.Publish("still:1", simtest.PullScript{Steps: []session.Pull{{Current: 4, Total: 9}},
				Hold: make(chan struct{})})
			stuck := w.finished(w.agent.PullImage(t.Context(), session.PullRequest{Ref: "still:1", Owner: "ada"}))
			if stuck.State != session.WorkFailed || stuck.Error.Code != "engine_call_timeout" {
				t.Errorf("it ended as %+v", stuck)
			}
		}
	})
}

func TestRemoveImage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{CPUs: 1})
		fake.AddImage("waited:1")
		w := newWorld(t, fake, nil)
		holder := w.launch(session.Spec{})
		w.awaitStatus(holder.ID, session.Running)
		waiting := w.launch(session.Spec{Image: "waited:1", Name: "waiting-one"})
		if waiting = w.await(waiting.ID, "waiting",
			func(s session.Session) bool { return s.Wait != nil }); waiting.Status != session.Pending {
			t.Fatalf("it is %s", waiting.Status)
		}
		err := w.agent.RemoveImage(t.Context(), "waited:1")
		if session.CodeOf(err) != "image_update_conflict" || !strings.Contains(err.Error(), "waiting-one") {
			t.Errorf("an image that a session waits to use is removed: %v", err)
		}
		if _, err := w.agent.Terminate(t.Context(), waiting.ID, false); err != nil {
			t.Fatal(err)
		}
		if err := w.agent.RemoveImage(t.Context(), "waited:1"); err != nil {
			t.Error(err)
		}
	})
}

// TestReplacedImagesOfProjectsAreRemoved builds a project twice, long before its newest image was made, and waits for
// the first sweep.
func TestReplacedImagesOfProjectsAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		w := newWorld(t, fake, func(c *Config) {
			c.Clock = pace.New(6000, time.Now(), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
		})
		dir := t.TempDir()
		f, err := w.agent.CreateFolder(t.Context(), session.FolderRequest{Name: "paper", Path: dir})
		if err != nil {
			t.Fatal(err)
		}
		build := func(line string) string {
			t.Helper()
			enginetest.WriteFiles(t, dir, "Dockerfile", "FROM "+enginetest.ImageMinimal+"\n"+line)
			work := w.finished(w.agent.BuildProject(t.Context(), f.ID, session.ProjectBuild{}))
			if work.State != session.WorkDone {
				t.Fatalf("it ended as %+v", work)
			}
			return work.Ref
		}
		first, used := build("RUN true"), build("RUN false")
		newest := session.ProjectRef("ada", "paper", []byte{1})
		fake.AddImage(newest)
		holder := w.launch(session.Spec{Image: used})
		w.awaitStatus(holder.ID, session.Running)
		time.Sleep(time.Second) // 100 minutes of the machine's clock
		images, err := w.agent.ListImages(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for ref, want := range map[string]bool{first: false, used: true, newest: true, enginetest.ImageMinimal: true} {
			there := slices.ContainsFunc(images, func(i session.Image) bool { return slices.Contains(i.Refs, ref) })
			if there != want {
				t.Errorf("%s is there: %t", ref, there)
			}
		}
	})
}
