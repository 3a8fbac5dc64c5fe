//go:build linux

package docker_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/docker/docker/client"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/engine/enginetest"
)

// The guests that tests deliver, built once: the real one, and a stand-in that
// does just what the engine needs of it.
var realGuest, guestBinary string

func TestMain(m *testing.M) {
	if what := os.Getenv(holdVariable); what != "" {
		hold(what)
	}
	if path := os.Getenv("SLIPWAY_TEST_DIAL"); path != "" {
		os.Exit(dial(path))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "slipway-engine-docker")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover in the temporary directory harms nobody
	if guests := os.Getenv(guestsVariable); guests != "" {
		realGuest, guestBinary = filepath.Join(guests, "real"), filepath.Join(guests, "stand-in")
		return m.Run()
	}
	realGuest, guestBinary = filepath.Join(dir, "real"), filepath.Join(dir, "stand-in")
	for target, source := range map[string]string{realGuest: "slipway/backend/guest/slipway-guest",
		guestBinary: "./testdata/guest"} {
		build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", target, source)
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building the guest for tests: %v\n%s", err, out)
			return 1
		}
	}
	if owner, ok := engineOwner(); ok {
		return runAs(owner, dir)
	}
	return m.Run()
}

func standIn(string) ([]byte, error) { return os.ReadFile(guestBinary) }

// open opens an engine on the daemon for tests.
func open(t testing.TB, config docker.Config) *docker.Engine {
	t.Helper()
	if config.Host == "" {
		config.Host = enginetest.RequireDocker(t)
	}
	if config.Dir == "" {
		config.Dir = t.TempDir()
	}
	if config.Guest == nil {
		config.Guest = standIn
	}
	e, err := docker.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e
}

// api talks to the daemon for tests past the engine.
func api(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.NewClientWithOpts(client.WithHost(enginetest.RequireDocker(t)), client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() }) //nolint:errcheck // nothing to lose
	return c
}

func TestEngineKeepsItsPromises(t *testing.T) {
	t.Parallel()
	enginetest.RequireDocker(t)
	instance := instanceOf(t)
	slow := newRegistry(t, 2, 100_000)
	slow.set(func(r *registry) { r.delay = time.Second })
	for name, guest := range map[string]string{"with the real guest": realGuest, "with a stand-in": guestBinary} {
		t.Run(name, func(t *testing.T) {
			newEngine := func(t *testing.T) engine.Engine {
				e := open(t, docker.Config{Instance: instance,
					Guest: func(string) ([]byte, error) { return os.ReadFile(guest) }})
				if guest == realGuest {
					return enginetest.Attended(t, engine.Of(e))
				}
				return engine.Of(e)
			}
			enginetest.Run(t, newEngine, promised(instance, slow.ref, guest == realGuest))
		})
	}
}

// promised is what the suite of engines expects of the daemon for tests.
func promised(instance, image string, guest bool) enginetest.Options {
	return enginetest.Options{
		Instance: instance, Image: enginetest.ImageMinimal, Guest: guest,
		Serve:     []string{"python3", "-m", "http.server", fmt.Sprint(enginetest.ServePort)},
		OOM:       `exec python3 -c 'x = bytearray(1 << 30)'`,
		PullImage: image, Evict: evict, Without: without(),
		HomeExists: func(t *testing.T, c engine.Container) bool {
			_, err := api(t).VolumeInspect(t.Context(), "slipway-"+c.Labels[engine.LabelSession])
			return err == nil
		},
	}
}

// instanceOf gives each test of each run an instance label of its own, so that
// what runs at the same time is not in its lists.
func instanceOf(t testing.TB) string {
	return fmt.Sprintf("%s-%d", url.PathEscape(t.Name()), os.Getpid())
}
