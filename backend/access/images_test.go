package access_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/access"
	"slipway/backend/session"
)

// finished waits for a piece of work on an image.
func finished(t *testing.T, a session.Agent, w session.ImageWork, err error) session.ImageWork {
	t.Helper()
	for err == nil && w.State == session.WorkRunning {
		w, err = a.AwaitImageWork(t.Context(), w.ID, w.Revision)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func running(t *testing.T, a session.Agent, spec session.Spec) session.Session {
	t.Helper()
	s, err := a.Launch(t.Context(), session.LaunchRequest{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for s.Status != session.Running {
		if s.Status.Terminal() || time.Now().After(deadline) {
			t.Fatalf("the session is %s: %+v %+v", s.Status, s.Error, s.Wait)
		}
		time.Sleep(10 * time.Millisecond)
		if s, err = a.Get(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestCustomizedImagesAreTheirOwners(t *testing.T) {
	gate, _ := newGate(t)
	ann, bob := gate.As(access.Identity{Owner: "ann", Role: session.RoleUser}),
		gate.As(access.Identity{Owner: "bob", Role: session.RoleUser})
	boss := gate.As(access.Identity{Owner: ruler, Role: session.RoleAdmin})
	spec := session.Spec{Image: "python:3.12"}
	s := running(t, ann, spec)
	work, err := ann.CommitSession(t.Context(), s.ID, session.CommitRequest{Name: "Secret"})
	if _, err := bob.AwaitImageWork(t.Context(), work.ID, 0); session.CodeOf(err) != "operation_read_not-found" {
		t.Errorf("bob reads of ann's work: %v", err)
	}
	if _, err := bob.CancelImageWork(t.Context(), work.ID); session.CodeOf(err) != "operation_read_not-found" {
		t.Errorf("bob cancels ann's work: %v", err)
	}
	if work = finished(t, ann, work, err); work.State != session.WorkDone {
		t.Fatalf("the commit ended as %+v", work)
	}
	image := func(a session.Agent) (session.Image, bool) {
		images, err := a.ListImages(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(images, func(i session.Image) bool { return slices.Contains(i.Refs, work.Ref) })
		if at < 0 {
			return session.Image{}, false
		}
		return images[at], true
	}
	made, _ := image(ann)
	if _, seen := image(boss); made.Origin == nil || made.Origin.Owner != "ann" || !seen {
		t.Errorf("ann has %+v, and who rules sees it: %v", made, seen)
	}
	if _, seen := image(bob); seen {
		t.Error("bob sees ann's image")
	}
	if disk, err := bob.ImageDisk(t.Context()); err != nil ||
		slices.ContainsFunc(disk.Images, func(r session.ImageRoom) bool { return r.ID == made.ID }) {
		t.Errorf("bob sees ann's image on the disk: %v", err)
	}
	t.Run("another can neither use, take nor remove it", func(t *testing.T) {
		for _, ref := range []string{work.Ref, made.ID} {
			p, err := bob.Preview(t.Context(), "", session.Spec{Image: ref}, 1)
			if err != nil || p.Image != nil ||
				!slices.ContainsFunc(p.Errors, func(e session.FieldError) bool { return e.Field == "image" }) {
				t.Errorf("bob's preview of %s: %+v, %v", ref, p, err)
			}
			if _, err := bob.Launch(t.Context(), session.LaunchRequest{Spec: session.Spec{Image: ref}}); session.CodeOf(
				err) != session.CodeInvalid {
				t.Errorf("bob launches %s: %v", ref, err)
			}
			if _, err := bob.DescribeImage(t.Context(), ref); session.CodeOf(err) != "engine_image_not-found" {
				t.Errorf("bob describes %s: %v", ref, err)
			}
			if _, err := bob.SendImage(t.Context(), session.ImageWish{ID: ref}); session.CodeOf(
				err) != "engine_image_not-found" {
				t.Errorf("bob takes %s: %v", ref, err)
			}
			if err := bob.RemoveImage(t.Context(), ref); session.CodeOf(err) != "engine_image_not-found" {
				t.Errorf("bob removes %s: %v", ref, err)
			}
		}
	})
	t.Run("one that is not there yet is not waited for", func(t *testing.T) {
		later := strings.Replace(work.Ref, "Secret", "Later", 1)
		if _, err := bob.Launch(t.Context(), session.LaunchRequest{Spec: session.Spec{Image: later}}); session.CodeOf(
			err) != session.CodeInvalid {
			t.Errorf("bob launches what ann may make one day: %v", err)
		}
	})
	t.Run("its owner uses it and removes it", func(t *testing.T) {
		mine := running(t, ann, session.Spec{Image: work.Ref})
		if err := ann.RemoveImage(t.Context(), work.Ref); session.CodeOf(err) != "image_update_conflict" ||
			!strings.Contains(err.Error(), mine.Name) {
			t.Errorf("ann removes what her session uses: %v", err)
		}
		for _, id := range []session.ID{mine.ID, s.ID} {
			if _, err := ann.Terminate(t.Context(), id, true); err != nil {
				t.Fatal(err)
			}
		}
		deadline := time.Now().Add(time.Minute)
		for err = ann.RemoveImage(t.Context(), work.Ref); session.CodeOf(
			err) == "image_update_conflict" && time.Now().Before(deadline); err = ann.RemoveImage(t.Context(),
			work.Ref) {
			time.Sleep(10 * time.Millisecond)
		}
		if _, there := image(boss); err != nil || there {
			t.Errorf("ann's image is there: %v, %v", there, err)
		}
	})
	if err := bob.RemoveImage(t.Context(), "python:3.12"); session.CodeOf(err) != "agent_call_forbidden" {
		t.Errorf("bob removes everybody's image: %v", err)
	}
}
