package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"slipway/backend/engine/enginetest"
	"slipway/backend/layers"
	"slipway/backend/session"
)

const everybodys = "python:3.12"

// sharedFake is an agent that others use, with an image that they all launch.
func sharedFake(t *testing.T) (*world, string) {
	t.Helper()
	fake := enginetest.NewFake(enginetest.FakeConfig{})
	fake.AddImage(everybodys)
	image, err := fake.Image(t.Context(), everybodys)
	if err != nil {
		t.Fatal(err)
	}
	return newWorld(t, fake, nil), image.ID
}

// forged is an image that another person has made, with a name and labels.
func (w *world) forged(ref string, labels map[string]string) *packedImage {
	w.t.Helper()
	p := packed(w.t, w.fake, enginetest.ImageMinimal, 1<<10, labels)
	p.parts.Refs = []string{ref}
	return p
}

func (w *world) named(ref string) string {
	w.t.Helper()
	image, err := w.fake.Image(w.t.Context(), ref)
	if err != nil {
		w.t.Fatal(err)
	}
	return image.ID
}

func TestHostileUserMovesNoName(t *testing.T) {
	w, before := sharedFake(t)
	mallory, boss := through(t, w.agent, "mallory", session.RoleUser), through(t, w.agent, "boss", session.RoleAdmin)
	for _, ref := range []string{everybodys, "docker.io/library/python:3.12", "slipway-custom/ann:Mine"} {
		forged := w.forged(ref, nil)
		forged.parts.Replace = true
		image, err := forged.send(t, mallory)
		if w.named(everybodys) != before {
			t.Fatalf("%s is mallory's: %v", everybodys, err)
		}
		if err != nil || !slices.ContainsFunc(image.Refs, func(ref string) bool { return strings.HasPrefix(ref, "slipway-custom/mallory/") }) {
			t.Errorf("%s arrives as %q, %v", ref, image.Refs, err)
		}
		if p, err := mallory.Preview(t.Context(), "", session.Spec{Image: image.Refs[0]}); err != nil || p.Image == nil || p.Image.ID != image.ID {
			t.Errorf("mallory would launch %+v: %+v, %v", p.Image, p.Errors, err)
		}
	}
	if _, err := w.fake.Image(t.Context(), "slipway-custom/ann:Mine"); session.CodeOf(err) != "engine_image_not-found" {
		t.Errorf("there is an image under ann's name: %v", err)
	}
	again := packed(t, w.fake, enginetest.ImageMinimal, 2<<10, nil)
	again.parts.Refs = []string{everybodys}
	if _, err := again.send(t, mallory); session.CodeOf(err) != "image_receive_conflict" {
		t.Errorf("a name of one's own is moved: %v", err)
	}
	again.parts.Refs = nil
	if image, err := again.send(t, mallory); err != nil || len(image.Refs) != 1 || !session.OwnRef("mallory", image.Refs[0]) {
		t.Errorf("one without a name arrives as %q, %v", image.Refs, err)
	}
	again.parts.Refs = []string{everybodys}
	if _, err := again.send(t, boss); session.CodeOf(err) != "image_receive_conflict" || w.named(everybodys) != before {
		t.Errorf("an admin moves a name without saying so: %v", err)
	}
	again.parts.Replace = true
	if image, err := again.send(t, boss); err != nil || w.named(everybodys) != image.ID || image.ID == before {
		t.Errorf("an admin who says so does not move it: %v", err)
	}
}

// The name of a registry moves to what the registry has at the moment, so an
// image that is there is pulled again by admins only.
func TestHostileUserUpdatesNoName(t *testing.T) {
	w, _ := sharedFake(t)
	w.fake.Publish(everybodys, enginetest.PullScript{})
	pulls := w.fake.Calls(enginetest.CallPull)
	if _, err := through(t, w.agent, "mallory", session.RoleUser).PullImage(t.Context(), session.PullRequest{Ref: everybodys}); session.CodeOf(err) != "image_pull_forbidden" {
		t.Errorf("mallory pulls it: %v", err)
	}
	if now := w.fake.Calls(enginetest.CallPull); now != pulls {
		t.Errorf("the registry was asked")
	}
	boss := through(t, w.agent, "boss", session.RoleAdmin)
	work, err := boss.PullImage(t.Context(), session.PullRequest{Ref: everybodys})
	for err == nil && work.State == session.WorkRunning {
		work, err = boss.AwaitImageWork(t.Context(), work.ID, work.Revision)
	}
	if err != nil || work.State != session.WorkDone {
		t.Errorf("an admin's pull is %+v, %v", work, err)
	}
}

func TestHostileUserTouchesNoTransfer(t *testing.T) {
	w, _ := sharedFake(t)
	ann, mallory := through(t, w.agent, "ann", session.RoleUser), through(t, w.agent, "mallory", session.RoleUser)
	theirs := w.forged("tool:1", nil)
	if _, err := ann.ExpectImage(t.Context(), theirs.parts); err != nil {
		t.Fatal(err)
	}
	if _, err := mallory.ReceiveImage(t.Context(), theirs.parts.ID); session.CodeOf(err) != "image_receive_not-found" {
		t.Errorf("mallory writes into what ann brings: %v", err)
	}
	if err := mallory.ForgetImage(t.Context(), theirs.parts.ID); err != nil {
		t.Error(err)
	}
	for i := range 20 {
		full := *theirs
		full.parts.ID = fmt.Sprintf("sha256:%064x", i)
		_, err := mallory.ExpectImage(t.Context(), full.parts)
		if code := session.CodeOf(err); i < layers.DefaultImages && err != nil || i >= layers.DefaultImages && code != layers.CodeBusy {
			t.Fatalf("image %d of mallory: %v", i, err)
		}
	}
	stolen := theirs.parts
	stolen.Refs = []string{"slipway-custom/ann/stolen:1"}
	if _, err := mallory.ExpectImage(t.Context(), stolen); err != nil && session.CodeOf(err) != "image_receive_busy" {
		t.Fatal(err)
	}
	image, err := theirs.send(t, ann)
	if err != nil || !slices.Equal(image.Refs, []string{"slipway-custom/ann/tool:1"}) {
		t.Errorf("ann's image arrives as %q, %v", image.Refs, err)
	}
}
