//go:build linux

package docker_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
)

func TestOthersContainersWithDevicesAreSeen(t *testing.T) {
	mine := instanceOf(t)
	e, other := open(t, docker.Config{Instance: mine}), open(t, docker.Config{Instance: mine + "-other"})
	c := newContainer(mine, "sleep 600")
	c.Labels[engine.LabelGrants] = `{"cpus":[0],"gpus":[{"device":"GPU-of-nobody","share":"0.5"}]}`
	plain := newContainer(mine, "sleep 600")
	before := time.Now().Add(-time.Minute)
	var ids []string
	for _, one := range []engine.Container{c, plain} {
		id, err := e.Create(t.Context(), one)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := e.Remove(context.Background(), id); err != nil {
				t.Logf("%s stays: %v", id, err)
			}
		})
		ids = append(ids, id)
	}
	seen := func(by *docker.Engine) *engine.State {
		t.Helper()
		states, err := by.Others(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(states, func(s engine.State) bool { return s.ID == ids[1] }) {
			t.Error("one without devices is seen")
		}
		if i := slices.IndexFunc(states, func(s engine.State) bool { return s.ID == ids[0] }); i >= 0 {
			return &states[i]
		}
		return nil
	}
	if seen(e) != nil {
		t.Error("its own is another's")
	}
	if s := seen(other); s == nil || !s.Created || s.CreatedAt.Before(before) ||
		s.Labels[engine.LabelGrants] != c.Labels[engine.LabelGrants] {
		t.Errorf("created: %+v", s)
	}
	if err := e.Start(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	if s := seen(other); s == nil || !s.Running {
		t.Errorf("running: %+v", s)
	}
	if err := e.Stop(t.Context(), ids[0], time.Second); err != nil {
		t.Fatal(err)
	}
	if s := seen(other); s != nil {
		t.Errorf("ended: %+v", s)
	}
}
