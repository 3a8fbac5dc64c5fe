//go:build linux

package docker_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/session"
)

func TestPull(t *testing.T) {
	t.Run("tells bytes and layers to the end", func(t *testing.T) {
		e, r := open(t, docker.Config{}), newRegistry(t, 4, 300_000)
		var last session.Pull
		if _, err := e.Pull(t.Context(), r.ref, engine.Login{Stored: true},
			func(p session.Pull) { last = p }); err != nil {
			t.Fatal(err)
		}
		if last.Layers != 4 || last.LayersDone != 4 || int64(last.Current) != r.size || last.Total != last.Current {
			t.Errorf("got %+v at the end, want 4 of 4 layers and %d bytes", last, r.size)
		}
		image, err := e.Image(t.Context(), r.ref)
		if err != nil || image.Labels["kind"] != "test" || image.CreatedAt.Year() != 2024 {
			t.Errorf("pulled %+v, %v", image, err)
		}
	})
	t.Run("what is there already is done at once", func(t *testing.T) {
		e, r := open(t, docker.Config{}), newRegistry(t, 2, 1000)
		for range 2 {
			if _, err := e.Pull(t.Context(), r.ref, engine.Login{Stored: true}, func(session.Pull) {}); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("stops in the middle when cancelled", func(t *testing.T) {
		e, r := open(t, docker.Config{}), newRegistry(t, 1, 3_000_000)
		r.set(func(r *registry) { r.stall = make(chan struct{}) })
		ctx, cancel := context.WithCancel(t.Context())
		begun := false
		_, err := e.Pull(ctx, r.ref, engine.Login{Stored: true}, func(p session.Pull) {
			begun = begun || p.Current > 0
			if begun {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || !begun {
			t.Errorf("got %v with progress %v, want context.Canceled after some", err, begun)
		}
		if _, err := e.Image(t.Context(), r.ref); session.CodeOf(err) != "engine_image_not-found" {
			t.Errorf("half an image is there: %v", err)
		}
	})
}

func TestPullFailuresAreDistinct(t *testing.T) {
	for _, c := range []struct {
		name   string
		ref    string // of the registry's own when empty
		change func(*registry)
		want   session.Code
	}{
		{"unknown tag", ":other", nil, "engine_pull_not-found"},
		{"forbidden", "", func(r *registry) { r.status = 403 }, "engine_pull_forbidden"},
		{"login wanted", "", func(r *registry) { r.login = "ada:secret" }, "engine_pull_forbidden"},
		{"too many pulls", "", func(r *registry) { r.status = 429 }, "engine_pull_forbidden"},
		{"nobody listens", "gone", nil, "engine_pull_unavailable"},
		{"no name of an image", "Not An Image", nil, "engine_call_invalid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, r := open(t, docker.Config{}), newRegistry(t, 1, 1000)
			if c.change != nil {
				r.set(c.change)
			}
			ref := r.ref
			switch {
			case strings.HasPrefix(c.ref, ":"):
				ref = strings.TrimSuffix(ref, ":1") + c.ref
			case c.ref == "gone":
				r.server.Close()
			case c.ref != "":
				ref = c.ref
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			_, err := e.Pull(ctx, ref, engine.Login{Stored: true}, func(session.Pull) {})
			var known *session.Error
			if !errors.As(err, &known) || known.Code != c.want {
				t.Fatalf("got %v, want %s", err, c.want)
			}
			if known.Message == "" || known.Hint == "" {
				t.Errorf("%s says neither what happened nor what to do: %+v", c.want, known)
			}
		})
	}
}

func TestPullUsesTheLoginThatDockerKept(t *testing.T) {
	r := newRegistry(t, 1, 1000)
	r.set(func(r *registry) { r.login = "ada:se:cret" })
	dir := t.TempDir()
	server := strings.TrimPrefix(r.server.URL, "http://")
	config := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, server,
		base64.StdEncoding.EncodeToString([]byte("ada:se:cret")))
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", dir)
	if _, err := pulled(t, r.ref, engine.Login{Stored: true}); err != nil {
		t.Error(err)
	}
}
