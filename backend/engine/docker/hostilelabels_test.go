//go:build linux

package docker_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
)

// forger makes an image whose labels look like those of a session's container.
func forger(t testing.TB, instance string) (ref string, forged map[string]string) {
	t.Helper()
	forged = map[string]string{
		"slipway.session": "aaaaaaaaaaaa", "slipway.kernel": "main1", "slipway.attempt": "1", "slipway.owner": "eve",
		"slipway.agent":    "far",
		"slipway.instance": instance, "slipway.grants": `{"cpus":[0],"gpus":[{"device":"GPU-of-eve","share":"1"}]}`,
		"slipway.name": "work", "slipway.folders": `[{"folder":"f","owner":"ada"}]`, "slipway.trial": instance,
		"slipway.apps": "[]",
	}
	var changes []string
	for name, value := range forged {
		changes = append(changes, fmt.Sprintf("LABEL %s=%q", name, value))
	}
	return importImage(t, []entry{linkTo("nothing", "nowhere")}, append(changes, `CMD ["/nothing"]`)...), forged
}

// The labels of an image are not those of a container that is made of it.
func TestLabelsOfAnImageDoNotStayOnContainers(t *testing.T) {
	instance := instanceOf(t)
	e := open(t, docker.Config{Instance: instance})
	ref, forged := forger(t, instance)
	c := newContainer(instance, "")
	c.Image = ref
	id := created(t, e, c)
	state, err := e.Inspect(t.Context(), id)
	if err != nil || !maps.Equal(state.Labels, c.Labels) {
		t.Errorf("its labels are %v, %v, want %v", state.Labels, err, c.Labels)
	}
	raw, err := api(t).ContainerInspect(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range forged {
		if raw.Config.Labels[name] == value && c.Labels[name] != value &&
			name != "slipway.apps" { // which only an image tells of
			t.Errorf("%s is the image's: %q", name, value)
		}
	}
	if again, err := e.Create(t.Context(), c); err != nil || again != id {
		t.Errorf("creating it again gives %q, %v", again, err)
	}
	if others, err := open(t, docker.Config{Instance: instance + "-other"}).Others(t.Context()); err != nil ||
		slices.ContainsFunc(others, func(s engine.State) bool { return s.ID == id }) {
		t.Errorf("another agent counts devices for it: %v", err)
	}
}

// What somebody runs by hand is no session, whatever labels its image has: no
// agent adopts or removes it, or counts what it claims to hold.
func TestAnImageRunByHandIsNoSession(t *testing.T) {
	instance, dir := instanceOf(t), t.TempDir()
	e := open(t, docker.Config{Instance: instance, Dir: dir})
	ref, _ := forger(t, instance)
	seen := make(chan engine.State, 100)
	if _, err := e.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	watching, stop := context.WithCancel(t.Context())
	defer stop()
	go e.Watch(watching, func(s engine.State) { seen <- s }) //nolint:errcheck // the test waits for what it tells
	made, err := api(t).ContainerCreate(t.Context(), &container.Config{Image: ref}, nil, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	client := api(t)
	t.Cleanup(func() {
		client.ContainerRemove(context.Background(), made.ID,
			container.RemoveOptions{Force: true}) //nolint:errcheck // the daemon goes
	})
	ours := newContainer(instance, "")
	ours.Image = ref
	created(t, e, ours) // of which the watch tells after the one by hand
	for told := false; !told; {
		select {
		case s := <-seen:
			if s.ID == made.ID {
				t.Errorf("the watch tells of it: %+v", s)
			}
			told = s.Name == ours.Name
		case <-time.After(time.Minute):
			t.Fatal("the watch tells nothing")
		}
	}
	next := open(t, docker.Config{Instance: instance, Dir: t.TempDir()}) // whose first list sweeps
	for name, list := range map[string]func(context.Context) ([]engine.State, error){
		"list": e.List, "the first list": next.List, "others": open(t, docker.Config{Instance: instance + "-other"}).
			Others,
	} {
		states, err := list(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range states {
			if s.ID == made.ID {
				t.Errorf("%s has it: %+v", name, s)
			}
		}
	}
	for _, id := range []string{made.ID, ours.Name} {
		if _, err := api(t).ContainerInspect(t.Context(), id); err != nil {
			t.Errorf("it was removed: %v", err)
		}
	}
	if state, err := e.Inspect(t.Context(), made.ID); err != nil || len(state.Labels) > 0 {
		t.Errorf("it is known by %v, %v", state.Labels, err)
	}
}
