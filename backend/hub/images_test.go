package hub_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/gpu"
)

// operation waits until an operation is as wanted.
func (w world) operation(t *testing.T, id string, done func(hub.Operation) bool) hub.Operation {
	t.Helper()
	for limit := time.Now().Add(time.Hour); ; {
		o, err := w.Operation(id)
		if err != nil {
			t.Fatal(err)
		}
		if done(o) {
			return o
		}
		if o.State.Ended() || time.Now().After(limit) {
			t.Fatalf("it is %+v: %v", o, o.Error)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func ended(o hub.Operation) bool { return o.State.Ended() }

func TestPullIsFollowedOverAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "local", "lab")
		w.run(t)
		lab := w.agents[1]
		begun, err := w.PullImage("lab", "far/away:1")
		if err != nil {
			t.Fatal(err)
		}
		w.operation(t, begun.ID, func(o hub.Operation) bool { return o.Image == "far/away:1" })
		lab.MoveWork(func(work *session.ImageWork) {
			work.Pull = session.Pull{Current: 3 * gpu.MiB, Total: 9 * gpu.MiB, Layers: 4, LayersDone: 1}
		})
		o := w.operation(t, begun.ID, func(o hub.Operation) bool { return o.Progress != nil && o.Progress.Done > 0 })
		if o.Agent != "lab" || o.Steps[0].Detail != "1 of 4 layers" || o.Progress.Total != 9<<20 {
			t.Errorf("it is told as %+v", o)
		}
		lab.SetDown(true)
		w.operation(t, begun.ID, func(o hub.Operation) bool { return strings.Contains(o.Steps[0].Detail, "continues") })
		lab.SetDown(false)
		lab.MoveWork(func(work *session.ImageWork) { work.State = session.WorkDone })
		if o := w.operation(t, begun.ID, ended); o.State != hub.OperationDone || len(lab.Works()) != 1 {
			t.Errorf("it ended as %+v after %d tries", o, len(lab.Works()))
		}
		if _, err := w.PullImage("", "Not A Name"); session.CodeOf(err) != "image_update_invalid" {
			t.Errorf("what is no name is pulled: %v", err)
		}
		if _, err := w.PullImage("nobody", "a:1"); session.CodeOf(err) != "agent_find_not-found" {
			t.Errorf("nobody pulls: %v", err)
		}
	})
}

func TestCommitIsAnOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "local")
		w.run(t)
		a := w.agents[0]
		s := a.Put(session.Session{ID: session.NewID(), Name: "work-one", Owner: "ada", Status: session.Running})
		begun, err := w.CommitSession(t.Context(), string(s.ID), "Mine")
		if err != nil {
			t.Fatal(err)
		}
		w.operation(t, begun.ID, func(o hub.Operation) bool { return o.Image == "slipway-custom/ada:Mine" })
		a.MoveWork(func(work *session.ImageWork) { work.Size = 5 * gpu.MiB })
		w.operation(t, begun.ID, func(o hub.Operation) bool { return strings.HasPrefix(o.Steps[0].Detail, "5 MiB") })
		if _, err := w.CancelOperation(begun.ID); err != nil {
			t.Fatal(err)
		}
		if o := w.operation(t, begun.ID, ended); o.State != hub.OperationCancelled ||
			a.Works()[0].State != session.WorkCancelled {
			t.Errorf("cancelled it is %+v and at the agent %+v", o, a.Works()[0])
		}
		again, err := w.CommitSession(t.Context(), s.Name, "Mine")
		if err != nil {
			t.Fatal(err)
		}
		a.MoveWork(func(work *session.ImageWork) {
			work.State, work.Error = session.WorkFailed, &session.Cause{Code: "disk_write_no-space",
				Message: "The disk is full.", Hint: "Make room."}
		})
		if o := w.operation(t, again.ID, ended); o.State != hub.OperationFailed ||
			session.CodeOf(o.Error) != "disk_write_no-space" || o.Steps[0].Remedy != "Make room." {
			t.Errorf("failed it is %+v: %v", o, o.Error)
		}
	})
}

func TestImagesAreRemovedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "local")
		w.run(t)
		a := w.agents[0]
		a.SetImages(session.Image{ID: "a", Refs: []string{"a:1"}, Size: 5 * gpu.MiB},
			session.Image{ID: "b", Refs: []string{"b:1"}, Size: gpu.MiB, UsedBy: []session.ImageUser{{Name: "x"}}},
			session.Image{ID: "c", Refs: []string{"c:1"}, Size: gpu.MiB})
		begun, err := w.RemoveImages("", []string{"a:1", "b:1", "c:1"})
		if err != nil {
			t.Fatal(err)
		}
		o := w.operation(t, begun.ID, ended)
		var states []hub.StepState
		for _, step := range o.Steps {
			states = append(states, step.State)
		}
		if o.State != hub.OperationFailed || session.CodeOf(o.Error) != "image_update_conflict" ||
			!slices.Equal(states, []hub.StepState{hub.StepOK, hub.StepFailed, hub.StepOK, hub.StepOK}) ||
			o.Steps[3].Detail != "6 MiB freed" {
			t.Errorf("it ended as %+v", o)
		}
		if images, err := w.Images(t.Context(), ""); err != nil || len(images) != 1 {
			t.Errorf("left are %+v, %v", images, err)
		}
	})
}

func TestCustomizedImagesStandBesideTheirBase(t *testing.T) {
	w := open(t, "local")
	w.agents[0].SetImages(
		session.Image{ID: "a", Refs: []string{"python:3.12"}},
		session.Image{ID: "b", Refs: []string{"slipway-custom/ada:Mine"},
			Origin: &session.ImageOrigin{Name: "Mine", Owner: "ada", Base: "python:3.12"}})
	families := w.Environments(t.Context())
	if families[0].ID != "python" {
		t.Fatalf("first is %+v", families[0])
	}
	at := slices.IndexFunc(families[0].Versions, func(v hub.EnvironmentVersion) bool { return v.Title == "Mine" })
	if at < 0 || families[0].Versions[at].Custom == nil || !families[0].Versions[at].Installed ||
		!slices.Equal(families[0].Versions[at].Agents, []string{"local"}) {
		t.Errorf("the versions of Python are %+v", families[0].Versions)
	}
}
