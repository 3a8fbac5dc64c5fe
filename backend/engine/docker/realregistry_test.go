//go:build linux

package docker_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"
	typesregistry "github.com/docker/docker/api/types/registry"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
)

// distribution is the registry that Debian packages, on the loopback.
type distribution struct{ addr string }

// publish pushes an image of three layers of noise under a name of the registry
// and takes it from the machine.
func (d distribution) publish(t *testing.T, name, login string, layerSize int) {
	t.Helper()
	own := newRegistry(t, 3, layerSize)
	if _, err := pulled(t, own.ref, engine.Login{Stored: true}); err != nil {
		t.Fatal(err)
	}
	ref := d.addr + "/" + name
	if err := api(t).ImageTag(t.Context(), own.ref, ref); err != nil {
		t.Fatal(err)
	}
	user, password, _ := strings.Cut(login, ":")
	auth, err := typesregistry.EncodeAuthConfig(typesregistry.AuthConfig{Username: user, Password: password,
		ServerAddress: d.addr})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := api(t).ImagePush(t.Context(), ref, image.PushOptions{RegistryAuth: auth})
	if err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(stream)
	if err != nil || strings.Contains(string(said), "errorDetail") {
		t.Fatalf("push: %v\n%s", err, said)
	}
	evict(t, ref)
	evict(t, own.ref)
}

// snipper passes connections on to a registry, and cuts all of them off once so
// many bytes came back, as often as it is told to.
type snipper struct {
	net.Listener
	to    string
	after int64
	cuts  atomic.Int64 // still to come
	made  atomic.Int64
}

func newSnipper(t *testing.T, to string, after int64, cuts int64) *snipper {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &snipper{Listener: listener, to: to, after: after}
	c.cuts.Store(cuts)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go c.pass(conn)
		}
	}()
	return c
}

func (c *snipper) pass(near net.Conn) {
	defer near.Close()
	far, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer far.Close()
	go func() { _, _ = io.Copy(far, near) }() // ends with the connection
	if c.cuts.Load() <= 0 {
		_, _ = io.Copy(near, far)
		return
	}
	if n, _ := io.CopyN(near, far, c.after); n == c.after { // it was a layer
		c.made.Add(1)
		c.cuts.Add(-1)
	}
}

func TestPullFromARealRegistry(t *testing.T) {
	t.Run("goes on over cuts in the middle of layers", func(t *testing.T) {
		d := distribution{enginetest.OpenRegistry(t, "", "")}
		d.publish(t, "team/cut:1", "", 4<<20)
		c := newSnipper(t, d.addr, 1<<20, 2)
		ref := c.Addr().String() + "/team/cut:1"
		t.Cleanup(func() { evict(t, ref) })
		var last session.Pull
		if _, err := open(t, docker.Config{}).Pull(t.Context(), ref, engine.Login{Stored: true},
			func(p session.Pull) { last = p }); err != nil {
			t.Fatalf("after %d cuts: %v", c.made.Load(), err)
		}
		if c.made.Load() < 2 || last.LayersDone != 3 || last.Layers != 3 || last.Current < 12<<20 {
			t.Errorf("after %d cuts it is told as %+v", c.made.Load(), last)
		}
	})
	t.Run("takes the login that Docker kept, for those who may use it", func(t *testing.T) {
		d := distribution{enginetest.OpenRegistry(t, "ada", "sec:ret")}
		d.publish(t, "team/private:1", "ada:sec:ret", 64<<10)
		ref := d.addr + "/team/private:1"
		t.Cleanup(func() { evict(t, ref) })
		if _, err := pulled(t, ref, engine.Login{Stored: true}); session.CodeOf(err) !=
			"engine_pull_forbidden" {
			t.Errorf("without a login: %v", err)
		}
		wrong := engine.Login{Own: &session.RegistryLogin{Server: d.addr, User: "ada", Password: "wrong"}}
		if _, err := pulled(t, ref, wrong); session.CodeOf(err) != "engine_pull_forbidden" {
			t.Errorf("with a wrong login of the person's own: %v", err)
		}
		own := wrong
		own.Own = &session.RegistryLogin{Server: d.addr, User: "ada", Password: "sec:ret"}
		if private, err := pulled(t, ref, own); err != nil || !private {
			t.Errorf("with the person's own login: private %v, %v", private, err)
		}
		own.Own.Server = "elsewhere.test"
		if _, err := pulled(t, ref, own); session.CodeOf(err) != "engine_pull_forbidden" {
			t.Errorf("with a login for another registry: %v", err)
		}
		logins(t, d.addr, "ada:wrong")
		if _, err := pulled(t, ref, engine.Login{Stored: true}); session.CodeOf(err) !=
			"engine_pull_forbidden" {
			t.Errorf("with a wrong password: %v", err)
		}
		logins(t, d.addr, "ada:sec:ret")
		if _, err := pulled(t, ref, engine.Login{}); session.CodeOf(err) !=
			"engine_pull_forbidden" {
			t.Errorf("by one who may not use the login: %v", err)
		}
		if private, err := pulled(t, ref, engine.Login{Stored: true}); err != nil || !private {
			t.Errorf("with the login: private %v, %v", private, err)
		}
	})
	t.Run("knows what needs no login", func(t *testing.T) {
		d := distribution{enginetest.OpenRegistry(t, "", "")}
		d.publish(t, "team/public:1", "", 64<<10)
		ref := d.addr + "/team/public:1"
		t.Cleanup(func() { evict(t, ref) })
		logins(t, d.addr, "ada:sec:ret")
		if private, err := pulled(t, ref, engine.Login{Stored: true}); err != nil || private {
			t.Errorf("of an open registry: private %v, %v", private, err)
		}
	})
}

// The daemon tries a layer again for more than a minute, which other tests use.
func TestPullThatStaysCutFailsAndIsPulledWhenTriedAgain(t *testing.T) {
	t.Parallel()
	d := distribution{enginetest.OpenRegistry(t, "", "")}
	d.publish(t, "team/gone:1", "", 4<<20)
	c := newSnipper(t, d.addr, 256<<10, 1<<40) // more than the daemon's tries bring
	ref := c.Addr().String() + "/team/gone:1"
	t.Cleanup(func() { evict(t, ref) })
	e := open(t, docker.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	_, err := e.Pull(ctx, ref, engine.Login{Stored: true}, func(session.Pull) {})
	if code := session.CodeOf(err); code != "engine_pull_unavailable" && code != "engine_call_internal-error" {
		t.Fatalf("got %v", err)
	}
	if _, err := e.Image(t.Context(), ref); session.CodeOf(err) != "engine_image_not-found" {
		t.Errorf("half an image is there: %v", err)
	}
	c.cuts.Store(0)
	if _, err := e.Pull(t.Context(), ref, engine.Login{Stored: true}, func(session.Pull) {}); err != nil {
		t.Errorf("tried again: %v", err)
	}
}

// pulled pulls an image and reports whether it is private.
func pulled(t *testing.T, ref string, login engine.Login) (private bool, err error) {
	t.Helper()
	return open(t, docker.Config{}).Pull(t.Context(), ref, login, func(session.Pull) {})
}

// logins keeps a login as docker login does.
func logins(t *testing.T, addr, login string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	config := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, addr, base64.StdEncoding.EncodeToString([]byte(login)))
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
}
