//go:build linux

package docker_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/session"
	"slipway/gpu"
)

// What a container changed is in its image, what was mounted is not, and the
// image starts what its base starts.
func TestCommitTakesWhatChangedAndNoMore(t *testing.T) {
	e := open(t, docker.Config{Instance: instanceOf(t)})
	mounted := t.TempDir()
	if err := os.WriteFile(filepath.Join(mounted, "data"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(mounted, 0o777); err != nil {
		t.Fatal(err)
	}
	c := newContainer(instanceOf(t), "echo kept > /tmp/kept; echo lost > /home/work/lost; echo lost > /mnt/data/lost")
	c.Mounts = []session.Mount{{Source: mounted, Target: "/mnt/data"}}
	id := started(t, e, c)
	if reader, err := e.Logs(t.Context(), id, session.LogOptions{Follow: true}); err != nil {
		t.Fatal(err)
	} else if _, err := io.Copy(io.Discard, reader); err != nil { // until the command has ended
		t.Fatal(err)
	}
	commit := engine.Commit{Ref: "slipway-test/kept:" + strings.ToLower(rand.Text()[:8]),
		Origin: session.ImageOrigin{Name: "kept", Owner: "ada", Instance: instanceOf(t), Base: c.Image}}
	made, err := e.Commit(t.Context(), id, commit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { evict(t, commit.Ref) })
	base, err := api(t).ImageInspect(t.Context(), c.Image)
	if err != nil {
		t.Fatal(err)
	}
	said, err := api(t).ImageInspect(t.Context(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(said.Config.Entrypoint, base.Config.Entrypoint) ||
		!slices.Equal(said.Config.Cmd, base.Config.Cmd) || !slices.Equal(said.Config.Env, base.Config.Env) ||
		len(said.Config.Volumes) != len(base.Config.Volumes) {
		t.Errorf("the image starts %v %v with %v, its base %v %v with %v", said.Config.Entrypoint, said.Config.Cmd,
			said.Config.Env, base.Config.Entrypoint, base.Config.Cmd, base.Config.Env)
	}
	if label := said.Config.Labels[engine.LabelInstance]; label != "" {
		t.Errorf("whoever runs the image has a container of %s", label)
	}
	again := newContainer(instanceOf(t), "cat /tmp/kept; ls -A /home/work /mnt/data")
	again.Image = commit.Ref
	if got := strings.Fields(output(t, e, again, session.LogOptions{})); !slices.Equal(got,
		[]string{"kept", "/home/work:", "/mnt/data:"}) {
		t.Errorf("inside is %q", got)
	}
}

// Docker goes on with what was given up; it is removed when it is made.
func TestCommitThatIsGivenUpLeavesNothing(t *testing.T) {
	e := open(t, docker.Config{Instance: instanceOf(t)})
	id := started(t, e, newContainer(instanceOf(t), "head -c 200000000 /dev/urandom > /tmp/big; sleep 600"))
	awaitSize(t, e, id, 200_000_000)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	commit := engine.Commit{Ref: "slipway-test/given-up:" + strings.ToLower(rand.Text()[:8]),
		Origin: session.ImageOrigin{Name: "given-up", Owner: "ada", Instance: instanceOf(t)}}
	go func() {
		_, err := e.Commit(ctx, id, commit)
		failed <- err
	}()
	awaitPaused(t, id)
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatalf("given up, it fails with %v", err)
	}
	unnamed := filters.NewArgs(filters.Arg("label", session.LabelImageInstance+"="+instanceOf(t)))
	deadline := time.Now().Add(time.Minute)
	for {
		state, err := api(t).ContainerInspect(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		left, err := api(t).ImageList(t.Context(), image.ListOptions{Filters: unnamed})
		if err != nil {
			t.Fatal(err)
		}
		if !state.State.Paused && len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the container is paused: %v; images: %+v", state.State.Paused, left)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if _, err := e.Image(t.Context(), commit.Ref); session.CodeOf(err) != "engine_image_not-found" {
		t.Errorf("the image is there: %v", err)
	}
}

func awaitSize(t *testing.T, e *docker.Engine, id string, size gpu.Bytes) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		changed, err := e.Changed(t.Context(), id)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("it has changed %s: %v", changed, err)
		}
		if changed >= size {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func awaitPaused(t *testing.T, id string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		state, err := api(t).ContainerInspect(t.Context(), id)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the container is never paused: %v", err)
		}
		if state.State.Paused {
			return
		}
	}
}
