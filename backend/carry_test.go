//go:build linux

package backend

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/engine/enginetest"
)

// The image that is carried is the base and one layer of noise above it. Both
// names are this test's own, on both daemons.
const (
	carriedBase  = "slipway-test/carried-base:1"
	carriedImage = "slipway-test/carried:1"
	carriedNoise = 96 << 20 // bytes; more than is on the way at any one time, so that a cut comes in the middle
)

// TestLaptopCarriesToALabOverABadNetwork brings to a server what is large, with
// the program's own commands, while the cable is taken out and put back. Laptop
// and server have a Docker of their own, one of today and one of years ago.
func TestLaptopCarriesToALabOverABadNetwork(t *testing.T) {
	near := enginetest.RequireModernDocker(t)
	w := newFarWorld(t)
	w.slow() // a cut is to come in the middle, however late the test comes to it
	l := newLaptop(w, w.build("1.0.1"))
	l.engine = []string{"SLIPWAY_ENGINE=docker", "DOCKER_HOST=" + near}
	hosts := []string{near, w.dockerHost}
	t.Cleanup(func() {
		_, _ = l.run("agent", "rm", "lab", "--uninstall", "-y") // where the test fails half-way
		forget(t, hosts, carriedImage, carriedBase)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	forget(t, hosts, carriedImage, carriedBase)
	l.do("agent", "add", "lab")
	l.connect()
	eventually(ctx, t, "the lab answers", func() bool { return l.agent().Connection.State == "connected" })

	w.must("docker", "-H", near, "tag", enginetest.ImageMinimal, carriedBase)
	sum := w.layNoise(near)
	made := imageID(t, near, carriedImage)

	t.Run("an image that a cut interrupts arrives, and only what is missing travels", func(t *testing.T) {
		l.send(ctx, t, 0, carriedBase, "--to", "lab")
		o := l.send(ctx, t, 1, carriedImage, "--to", "lab")
		if o.Progress.Total < carriedNoise || o.Progress.Total > carriedNoise+1<<20 {
			t.Errorf("%d bytes travelled: the layer of noise is what was missing, %d bytes", o.Progress.Total,
				carriedNoise)
		}
		if got := imageID(t, w.dockerHost, carriedImage); got != made {
			t.Errorf("over there it is %s and should be %s", got, made)
		}
	})

	t.Run("a session of it runs there", func(t *testing.T) {
		id := strings.TrimSpace(l.do("run", "-d", "--on", "lab", "--image", carriedImage, "--name", "carried", "--cpu",
			"1", "--mem", "256m"))
		eventually(ctx, t, "the session runs", func() bool { return l.session(id).Status == "RUNNING" })
		if got := l.do("exec", "carried", "--", "sha256sum", "/opt/noise"); !strings.HasPrefix(got, sum) {
			t.Errorf("the file of the image is %q and should be %s", got, sum)
		}
	})

	t.Run("what that session is made into comes here", func(t *testing.T) {
		l.do("exec", "carried", "--", "sh", "-c", "echo made >/var/tmp/made")
		var committed api.Operation
		if err := json.Unmarshal([]byte(l.do("commit", "carried", "made-there", "-o", "json")),
			&committed); err != nil || committed.Image == "" {
			t.Fatalf("%+v, %v", committed, err)
		}
		t.Cleanup(func() { forget(t, hosts, committed.Image) })
		l.send(ctx, t, 0, committed.Image, "--from", "lab")
		if here, there := imageID(t, near, committed.Image), imageID(t, w.dockerHost, committed.Image); here != there {
			t.Errorf("here it is %s and there %s", here, there)
		}
	})

	t.Run("a file that two cuts interrupt arrives whole, and the agent holds none of it", func(t *testing.T) {
		l.upload(ctx, t, "carried")
		l.do("stop", "--force", "--wait", "--wait-timeout", "60s", "carried")
	})

	t.Run("and it comes back over another cut", func(t *testing.T) {
		forget(t, []string{near}, carriedImage)
		o := l.send(ctx, t, 1, carriedImage, "--from", "lab")
		if o.Progress.Total > carriedNoise+1<<20 {
			t.Errorf("%d bytes travelled: the layers below were here already", o.Progress.Total)
		}
		if got := imageID(t, near, carriedImage); got != made {
			t.Errorf("here it is %s and should be %s", got, made)
		}
	})

	t.Run("a project is built here and runs there", func(t *testing.T) { l.buildsHere(ctx, t, near) })

	l.do("agent", "rm", "lab", "--uninstall", "-y")
	eventually(ctx, t, "no process is left", func() bool { return len(w.processes()) == 0 })
}

// send brings an image somewhere with the program's command, takes the cable
// out so many times on the way, and returns how it went. Nobody helps it on.
func (l *laptop) send(ctx context.Context, t *testing.T, cuts int, image string,
	where ...string) (ended api.Operation) {
	t.Helper()
	began := time.Now()
	type result struct {
		out string
		err error
	}
	done := make(chan result, 1)
	go func() {
		out, err := l.run(append([]string{"image", "send", image, "-o", "json"}, where...)...)
		done <- result{out, err}
	}()
	follow := &journey{planned: cuts}
	for {
		select {
		case r := <-done:
			if r.err != nil {
				t.Fatal(r.err)
			}
			if err := json.Unmarshal([]byte(r.out), &ended); err != nil {
				t.Fatalf("%v: %s", err, r.out)
			}
			follow.see(t, ended)
			if follow.cuts != cuts || ended.State != "done" || ended.Progress == nil ||
				ended.Progress.Done != ended.Progress.Total {
				t.Fatalf("after %d of %d cuts it ended as %s", follow.cuts, cuts, r.out)
			}
			t.Logf("%s %v: %d bytes in %s, %d cuts", image, where, ended.Progress.Total,
				time.Since(began).Round(time.Millisecond), cuts)
			return ended
		case <-ctx.Done():
			t.Fatal("the image does not arrive")
		case <-time.After(5 * time.Millisecond):
			if o, ok := l.carrying(image); ok && follow.see(t, o) {
				l.interrupt(ctx, t, image, follow)
			}
		}
	}
}

// carrying is the operation that carries an image at this moment.
func (l *laptop) carrying(image string) (api.Operation, bool) {
	l.t.Helper()
	var all []api.Operation
	l.call("GET", "/api/v1/operations", "", &all)
	for _, o := range all {
		if o.Subject == image && o.EndedAt == nil {
			return o, true
		}
	}
	return api.Operation{}, false
}

// interrupt takes the cable out until both sides know, and puts it back.
func (l *laptop) interrupt(ctx context.Context, t *testing.T, image string, follow *journey) {
	t.Helper()
	l.cut(true)
	out := time.Now()
	follow.cuts++
	eventually(ctx, t, "the loss is noticed", func() bool { return l.agent().Connection.State != "connected" })
	o, ok := l.carrying(image)
	if !ok || o.State != "running" || o.Progress == nil || o.Progress.Done >= o.Progress.Total {
		t.Fatalf("while the cable is out it is %+v", o)
	}
	follow.see(t, o)
	l.cut(false)
	back := time.Now()
	eventually(ctx, t, "it is connected again", func() bool { return l.agent().Connection.State == "connected" })
	connected := time.Since(back)
	eventually(ctx, t, "the transfer goes on", func() bool {
		now, ok := l.carrying(image)
		return !ok || now.Progress.Done > o.Progress.Done
	})
	t.Logf("cut at %d of %d bytes; noticed after %s; with the cable back, connected after %s, going on after %s",
		o.Progress.Done, o.Progress.Total,
		back.Sub(out).Round(time.Millisecond), connected.Round(time.Millisecond),
		time.Since(back).Round(time.Millisecond))
}

// journey is a transfer as somebody sees it who looks at its progress.
type journey struct {
	planned, cuts int
	done          int64
}

// see looks at a transfer, which never goes back, and reports whether it is
// time for the next cut.
func (j *journey) see(t *testing.T, o api.Operation) bool {
	t.Helper()
	if o.Progress == nil {
		return false
	}
	if o.Progress.Done < j.done {
		t.Errorf("progress went back from %d to %d bytes", j.done, o.Progress.Done)
	}
	j.done = o.Progress.Done
	return j.cuts < j.planned && j.done > 0 && j.done >= o.Progress.Total*int64(j.cuts+1)/int64(8*j.planned)
}

// layNoise makes the image with a layer of noise on a daemon, without running
// anything, and returns the SHA-256 of the noise.
func (w *farWorld) layNoise(host string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, "noise")
	sum := writeNoise(w.t, path, carriedNoise)
	name := "carried-" + w.near
	w.must("docker", "-H", host, "create", "--name", name, carriedBase)
	w.t.Cleanup(func() {
		_ = exec.Command("docker", "-H", host, "rm", "-f", name).Run() // where the test fails half-way
	})
	w.must("docker", "-H", host, "cp", path, name+":/opt/noise")
	w.must("docker", "-H", host, "commit", name, carriedImage)
	w.must("docker", "-H", host, "rm", name)
	return sum
}

// writeNoise makes a file that cannot be compressed and returns its SHA-256.
func writeNoise(t *testing.T, path string, size int64) string {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	_, err = io.CopyN(io.MultiWriter(file, sum), rand.NewChaCha8([32]byte{11}), size)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// imageID is the identity that a daemon gives an image.
func imageID(t *testing.T, host, ref string) string {
	t.Helper()
	out, err := exec.Command("docker", "-H", host, "image", "inspect", "-f", "{{.Id}}", ref).Output()
	if err != nil {
		t.Fatalf("%s: %v", ref, err)
	}
	return strings.TrimSpace(string(out))
}

// forget takes images from daemons.
func forget(t *testing.T, hosts []string, refs ...string) {
	t.Helper()
	for _, host := range hosts {
		out, err := exec.Command("docker", append([]string{"-H", host, "image", "rm", "-f"}, refs...)...).
			CombinedOutput()
		if err != nil && !bytes.Contains(out, []byte("No such image")) {
			t.Errorf("docker image rm: %v\n%s", err, out)
		}
	}
}
