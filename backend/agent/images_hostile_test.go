package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"slipway/backend/engine/enginetest"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/layers"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

const everybodys = "python:3.12"

// sharedFake is an agent that others use, with an image that they all launch.
func sharedFake(t *testing.T) (*world, string) {
	t.Helper()
	fake := newFake(t, simtest.Config{})
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
		if err != nil || !slices.ContainsFunc(image.Refs,
			func(ref string) bool { return strings.HasPrefix(ref, "slipway-custom/mallory/") }) {
			t.Errorf("%s arrives as %q, %v", ref, image.Refs, err)
		}
		if parts, err := mallory.DescribeImage(t.Context(), image.Refs[0]); err != nil || parts.ID != image.ID {
			t.Errorf("mallory would launch %s, %v", parts.ID, err)
		}
	}
	if _, err := w.fake.Image(t.Context(), "slipway-custom/ann:Mine"); session.CodeOf(err) != "engine_image_not-found" {
		t.Errorf("there is an image under ann's name: %v", err)
	}
	again := packed(t, w.fake, enginetest.ImageMinimal, 2<<10, nil)
	again.parts.Refs = []string{everybodys}
	if _, err := again.send(t, mallory); session.CodeOf(err) != "image_update_conflict" {
		t.Errorf("a name of one's own is moved: %v", err)
	}
	again.parts.Refs = nil
	if image, err := again.send(t, mallory); err != nil || len(image.Refs) != 1 ||
		!session.OwnRef("mallory", image.Refs[0]) {
		t.Errorf("one without a name arrives as %q, %v", image.Refs, err)
	}
	again.parts.Refs = []string{everybodys}
	if _, err := again.send(t, boss); session.CodeOf(err) != "image_update_conflict" || w.named(everybodys) != before {
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
	w.fake.Publish(everybodys, simtest.PullScript{})
	pulls := w.fake.Calls(simtest.CallPull)
	if _, err := through(t, w.agent, "mallory", session.RoleUser).PullImage(t.Context(),
		session.PullRequest{Ref: everybodys}); session.CodeOf(err) != "agent_call_forbidden" {
		t.Errorf("mallory pulls it: %v", err)
	}
	if now := w.fake.Calls(simtest.CallPull); now != pulls {
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
		if code := session.CodeOf(err); i < layers.DefaultImages && err != nil || i >= layers.DefaultImages &&
			code != session.CodeImageConflict {
			t.Fatalf("image %d of mallory: %v", i, err)
		}
	}
	stolen := theirs.parts
	stolen.Refs = []string{"slipway-custom/ann/stolen:1"}
	if _, err := mallory.ExpectImage(t.Context(), stolen); err != nil &&
		session.CodeOf(err) != "image_update_conflict" {
		t.Fatal(err)
	}
	image, err := theirs.send(t, ann)
	if err != nil || !slices.Equal(image.Refs, []string{"slipway-custom/ann/tool:1"}) {
		t.Errorf("ann's image arrives as %q, %v", image.Refs, err)
	}
}

// put lays an image with labels on the machine, as a pull of it would.
func (w *world) put(ref string, size int, origin session.ImageOrigin) session.Image {
	w.t.Helper()
	p := packed(w.t, w.fake, enginetest.ImageMinimal, size, origin.Labels())
	p.parts.Refs = []string{ref}
	image, err := w.fake.ImportImage(w.t.Context(), p.parts, p.content)
	if err != nil {
		w.t.Fatal(err)
	}
	return image
}

// Whoever builds an image writes what they like into its labels: a series of
// another person, for whose end the image would count and be removed.
func TestForgedLabelsAreNoSeries(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		spec := session.Spec{Name: "nightly", Lifetime: session.Lifetime{CommitOnEnd: 2}}
		w.ended(spec)
		for i := range 3 {
			w.put(fmt.Sprintf("evil/newer:%d", i), 1<<10+i, session.ImageOrigin{
				Name: fmt.Sprintf("nightly-%d", 90+i), Owner: "ada", Instance: w.store.Instance(), Session: "forged",
				SessionName: "nightly", Series: "nightly",
			})
		}
		w.ended(spec)
		last := w.ended(spec)
		if last.EndImage == nil || last.EndImage.Name != "nightly-3" {
			t.Errorf("the last image is %+v", last.EndImage)
		}
		for ref, there := range map[string]bool{
			"slipway-custom/ada:nightly-1": false, "slipway-custom/ada:nightly-2": true,
			"slipway-custom/ada:nightly-3": true,
			"evil/newer:0":                 true, "evil/newer:1": true, "evil/newer:2": true,
		} {
			if _, err := w.fake.Image(t.Context(), ref); there != (err == nil) {
				t.Errorf("%s is there: %v", ref, err == nil)
			}
		}
	})
}

func TestForgedLabelsNeitherHideNorGiveAnImage(t *testing.T) {
	w, _ := sharedFake(t)
	ours := w.store.Instance()
	everybodys := w.put("team/tool:1", 1<<10, session.ImageOrigin{Name: "tool", Owner: "ann", Instance: ours,
		Session: "s1", Base: "python:3.12"})
	for _, owner := range []string{"ann", "bob"} {
		a := through(t, w.agent, owner, session.RoleUser)
		images, err := a.ListImages(t.Context())
		at := slices.IndexFunc(images, func(i session.Image) bool { return i.ID == everybodys.ID })
		if err != nil || at < 0 || images[at].Origin != nil {
			t.Errorf("%s sees %+v, %v", owner, images, err)
		}
		if err := a.RemoveImage(t.Context(), everybodys.ID); session.CodeOf(err) != "agent_call_forbidden" {
			t.Errorf("%s removes everybody's image: %v", owner, err)
		}
	}
	theirs := w.put("slipway-custom/ann:Mine", 2<<10, session.ImageOrigin{Name: "Mine", Owner: "bob", Instance: ours,
		Session: "s2"})
	if _, err := through(t, w.agent, "bob", session.RoleUser).DescribeImage(t.Context(), theirs.ID); session.CodeOf(
		err) != "engine_image_not-found" {
		t.Errorf("bob is shown ann's image: %v", err)
	}
	if _, err := through(t, w.agent, "ann", session.RoleUser).DescribeImage(t.Context(), theirs.ID); err != nil {
		t.Errorf("ann is not shown hers: %v", err)
	}
}

// What an image was made of is known again after a crash, and of images of
// before: by the name, which only the agent gives, and the session in it.
func TestClaimsAreComparedWithImages(t *testing.T) {
	w, _ := sharedFake(t)
	ours := w.store.Instance()
	origin := func(name, owner string) session.ImageOrigin {
		return session.ImageOrigin{Name: name, Owner: owner, Instance: ours, Session: "cccccccccccc", Series: "nightly"}
	}
	proved := w.put("slipway-custom/ann:nightly-3", 1<<10, origin("nightly-3", "ann"))
	other := origin("nightly-4", "ann")
	other.Session = "forged"
	unproved := w.put("slipway-custom/ann:nightly-4", 2<<10, other)
	err := w.store.Update(func(tx *store.Tx) error {
		var errs []error
		for _, name := range []string{"nightly-3", "nightly-4", "nightly-5"} {
			errs = append(errs, tx.PutImageClaim("slipway-custom/ann:"+name, origin(name, "ann")))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Fatal(err)
	}
	w.halt()
	w.start()
	images, err := w.agent.ListImages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range images {
		switch image.ID {
		case proved.ID:
			if image.Origin == nil || *image.Origin != origin("nightly-3", "ann") {
				t.Errorf("what was proved is %+v", image.Origin)
			}
		case unproved.ID:
			if image.Origin != nil {
				t.Errorf("what only labels say is %+v", image.Origin)
			}
		}
	}
	known, err := w.store.Images()
	claims, failed := w.store.ImageClaims()
	if err != nil || failed != nil || len(known) != 1 || len(claims) != 0 {
		t.Errorf("known are %v, claimed %v: %v, %v", known, claims, err, failed)
	}
}

// The name of a customized image is anybody's at a registry.
func TestARemovedCustomizedImageIsNeverPulled(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, _ := sharedFake(t)
		synctest.Wait() // until the engine is known to answer
		const gone = "slipway-custom/ann:Mine"
		w.fake.Publish(gone, simtest.PullScript{})
		ann := through(t, w.agent, "ann", session.RoleUser)
		for name, a := range map[string]session.Agent{"ann": ann,
			"an admin": through(t, w.agent, "boss", session.RoleAdmin), "the machine's person": w.agent.Agent()} {
			for _, ref := range []string{gone, "docker.io/" + gone, gone + "@sha256:" + strings.Repeat("5", 64)} {
				if _, err := a.Launch(t.Context(),
					session.LaunchRequest{Spec: session.Spec{Image: ref}}); session.CodeOf(err) != session.CodeInvalid {
					t.Errorf("%s launches %s: %v", name, ref, err)
				}
				p, err := a.Preview(t.Context(), "", session.Spec{Image: ref}, 1)
				if at := slices.IndexFunc(p.Errors,
					func(e session.FieldError) bool { return e.Field == "image" }); err != nil || at < 0 ||
					p.Errors[at].Hint == "" {
					t.Errorf("%s previews %s: %+v, %v", name, ref, p.Errors, err)
				}
				if _, err := a.PullImage(t.Context(), session.PullRequest{Ref: ref}); err == nil {
					t.Errorf("%s pulls %s", name, ref)
				}
			}
		}
		w.fake.AddImage(gone)
		s := w.behind(gone, func() { w.fake.Evict(gone) })
		if s.Error == nil || s.Error.Code != "engine_pull_not-found" || s.Error.Hint == "" {
			t.Errorf("one that was removed while the session waited: %s, %+v", s.Status, s.Error)
		}
		if calls := w.fake.Calls(simtest.CallPull); calls != 0 {
			t.Errorf("a registry was asked %d times", calls)
		}
	})
}

// behind launches a session of ann's that waits for another one, does something
// meanwhile, and returns it as it ended or as it runs.
func (w *world) behind(image string, meanwhile func()) session.Session {
	w.t.Helper()
	full := w.launch(session.Spec{Resources: session.Resources{CPU: 8, Memory: gpu.GiB}})
	w.awaitStatus(full.ID, session.Running)
	s, err := through(w.t, w.agent, "ann", session.RoleUser).Launch(w.t.Context(), session.LaunchRequest{
		Spec: session.Spec{Image: image, Resources: session.Resources{CPU: 1, Memory: gpu.GiB}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	meanwhile()
	w.terminated(full.ID, true)
	return w.await(s.ID, "started or ended", func(s session.Session) bool {
		return s.Status == session.Running ||
			s.Status.Terminal()
	})
}

// pulled pulls an image and returns how that ended.
func pulled(t *testing.T, a session.Agent, ref string) session.ImageWork {
	t.Helper()
	// a gate believes neither
	work, err := a.PullImage(t.Context(), session.PullRequest{Ref: ref, Owner: "ada", ByAdmin: true})
	for err == nil && work.State == session.WorkRunning {
		work, err = a.AwaitImageWork(t.Context(), work.ID, work.Revision)
	}
	if err != nil {
		t.Fatal(err)
	}
	return work
}

// The registry logins of the machine are for its admins, and for those to whom
// they were opened; so is what can be had only with them.
func TestRegistryLoginsAreForThoseWhoMayUseThem(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, _ := sharedFake(t)
		synctest.Wait() // until the engine is known to answer
		const private, public = "registry.test/secret:1", "registry.test/open:1"
		w.fake.Publish(private, simtest.PullScript{Private: true})
		w.fake.Publish(public, simtest.PullScript{})
		ann, boss := through(t, w.agent, "ann", session.RoleUser), through(t, w.agent, "boss", session.RoleAdmin)
		if work := pulled(t, ann, private); work.State != session.WorkFailed ||
			work.Error.Code != "engine_pull_forbidden" {
			t.Errorf("ann pulls with the logins: %+v", work)
		}
		s := w.behind(private, func() {})
		if s.Error == nil || s.Error.Code != "engine_pull_forbidden" {
			t.Errorf("ann's launch pulls with the logins: %s, %+v", s.Status, s.Error)
		}
		s = w.behind(private, func() { pulled(t, boss, private) })
		if s.Error == nil || s.Error.Code != "session_start_forbidden" {
			t.Errorf("ann's session runs what came while it waited: %s, %+v", s.Status, s.Error)
		}
		pulled(t, boss, public)
		sees := func(a session.Agent, ref string, want bool) {
			t.Helper()
			images, err := a.ListImages(t.Context())
			if listed := slices.ContainsFunc(images,
				func(i session.Image) bool { return slices.Contains(i.Refs, ref) }); err != nil || listed != want {
				t.Errorf("%s is listed: %v, %v", ref, listed, err)
			}
			_, err = a.DescribeImage(t.Context(), ref)
			stream, failed := a.SendImage(t.Context(), session.ImageWish{ID: ref})
			if failed == nil {
				_ = stream.Close()
			}
			if (err == nil) != want || (failed == nil) != want {
				t.Errorf("%s is described: %v, sent: %v", ref, err, failed)
			}
			p, err := a.Preview(t.Context(), "", session.Spec{Image: ref}, 1)
			if err != nil || (p.Image != nil) != want || (len(p.Errors) == 0) != want {
				t.Errorf("%s is previewed as %+v, %+v, %v", ref, p.Image, p.Errors, err)
			}
		}
		sees(boss, private, true)
		sees(w.agent.Agent(), private, true)
		sees(ann, private, false)
		sees(ann, public, true)
		if _, err := ann.PullImage(t.Context(), session.PullRequest{Ref: private}); session.CodeOf(
			err) != "agent_call_forbidden" {
			t.Errorf("ann pulls over what she may not see: %v", err)
		}
		if err := w.agent.SetAllowance("ann", &session.Allowance{Logins: true}); err != nil {
			t.Fatal(err)
		}
		sees(ann, private, true)
		if s := w.behind(private, func() { w.fake.Evict(private) }); s.Status != session.Running {
			t.Errorf("ann's session, now that the logins are open to her: %s, %+v", s.Status, s.Error)
		}
		w.terminated(w.liveOf("ann"), true)
		if err := w.agent.SetAllowance("ann", nil); err != nil {
			t.Fatal(err)
		}
		sees(ann, private, false)
		w.fake.Publish(private, simtest.PullScript{}) // it was opened to everybody
		pulled(t, boss, private)
		sees(ann, private, true)
	})
}

// liveOf is the live session of a person.
func (w *world) liveOf(owner string) session.ID {
	w.t.Helper()
	live, err := w.agent.List(w.t.Context(), session.Filter{Live: true, Owner: owner})
	if err != nil || len(live) != 1 {
		w.t.Fatalf("%d sessions of %s, %v", len(live), owner, err)
	}
	return live[0].ID
}
