//go:build linux

package docker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
)

// desktop serves the daemon for tests at a socket, or at a port, as Docker Desktop does: with the name and the system
// of its virtual machine.
func desktop(t testing.TB, network string) (host string) {
	t.Helper()
	address := map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "docker.sock")}[network]
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	socket := strings.TrimPrefix(enginetest.RequireDocker(t), "unix://")
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "docker" },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", socket)
		}},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // calls that tests give up
		ModifyResponse: func(r *http.Response) error {
			if path.Base(r.Request.URL.Path) != "info" {
				return nil
			}
			var said map[string]any
			err := json.NewDecoder(r.Body).Decode(&said)
			said["Name"], said["OperatingSystem"] = "docker-desktop", "Docker Desktop"
			data, encoded := json.Marshal(said)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
			r.Header.Set("Content-Length", strconv.Itoa(len(data)))
			return errors.Join(err, encoded)
		},
	}
	server := &http.Server{Handler: proxy}
	go server.Serve(listener)            //nolint:errcheck // until it is closed
	t.Cleanup(func() { server.Close() }) //nolint:errcheck // nothing to lose
	return network + "://" + listener.Addr().String()
}

func TestEngineOfAnotherMachineKeepsItsPromises(t *testing.T) {
	t.Parallel()
	instance, host := instanceOf(t), desktop(t, "unix")
	options := promised(instance, newRegistry(t, 2, 100_000).ref, true)
	options.Without = map[string]string{
		"an administrator changes the image's files, and has no mounts": "it refuses them",
	}
	maps.Copy(options.Without, without())
	enginetest.Run(t, func(t *testing.T) engine.Engine {
		return enginetest.Attended(t, engine.Of(open(t, docker.Config{Host: host, Instance: instance, Guest: real})))
	}, options)
}

func TestGuestOfAnotherMachine(t *testing.T) {
	t.Parallel()
	host, dir, instance := desktop(t, "tcp"), t.TempDir(), instanceOf(t)
	first := open(t, docker.Config{Host: host, Dir: dir, Instance: instance, Guest: real})
	spec := newContainer(instance, "")
	spec.Guest.UID, spec.Guest.GID = person, person
	id := started(t, first, spec)
	for range 3 { // each takes the guest from the one before
		if _, err := begun(t, first, id); err != nil {
			t.Fatal(err)
		}
	}
	first.Close() //nolint:errcheck // as if its process had ended
	next := open(t, docker.Config{Host: host, Dir: dir, Instance: instance, Guest: real})
	client, err := begun(t, next, id)
	if err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]string{
		"cd /.slipway; stat -c '%U %a' link spool guest config.json": "root 700\nroot 700\nroot 755\nroot 600\n",
		"cat /.slipway/config.json 2>/dev/null || echo no":           "no\n",
		"touch /.slipway/x 2>/dev/null || echo no":                   "no\n",
	} {
		if got := execute(t, client, script); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	t.Run("leaves nothing of Slipway's in an image of the session", func(t *testing.T) {
		const ref = "slipway-test/remote:1"
		if _, err := next.Commit(t.Context(), id, engine.Commit{Ref: ref}); err != nil {
			t.Fatal(err)
		}
		defer next.RemoveImage(t.Context(), ref) //nolint:errcheck // a leftover does no harm
		probe, err := api(t).ContainerCreate(t.Context(), &container.Config{Image: ref, Cmd: []string{"true"}}, nil,
			nil, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		defer api(t).ContainerRemove(t.Context(), probe.ID, container.RemoveOptions{}) //nolint:errcheck // it is new
		for _, file := range []string{"guest", "config.json"} {
			if _, err := api(t).ContainerStatPath(t.Context(), probe.ID, "/.slipway/"+file); err == nil {
				t.Errorf("%s is in the image", file)
			}
		}
	})
}

func TestWhatADaemonOfAnotherMachineCannotDo(t *testing.T) {
	t.Parallel()
	e := open(t, docker.Config{Host: desktop(t, "tcp"), Instance: instanceOf(t)})
	info, err := e.Info(t.Context())
	if err != nil || len(info.Warnings) == 0 || info.Warnings[0].Code != session.CodeRemoteEngine ||
		!slices.Contains(info.Lacks, session.FeatureMounts) {
		t.Errorf("it says %+v, %v", info, err)
	}
	for what, change := range map[string]func(*engine.Container){
		"administrators": func(c *engine.Container) { c.Guest.Admin, c.Guest.UID, c.Guest.GID = true, 0, 0 },
		"directories": func(c *engine.Container) {
			c.Mounts = []session.Mount{{Source: t.TempDir(), Target: "/data"}}
		},
	} {
		c := newContainer(instanceOf(t), "")
		change(&c)
		if _, err := e.Create(t.Context(), c); session.CodeOf(err) != session.CodeEngineUnsupported ||
			session.AsError(err, "").Hint == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}
