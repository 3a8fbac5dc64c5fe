package agent

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"slipway/backend/access"
	"slipway/backend/engine"
	"slipway/backend/engine/enginetest"
	"slipway/backend/layers"
	"slipway/backend/session"
	"slipway/gpu"
)

// The image that is sent stands on another one, which stands on the static image.
const (
	baseImage = "slipway-test/sent-base:1"
	sentImage = "slipway-test/sent:1"
)

// An image is laid over another one, sent between the daemons of two agents,
// one old and one of today, over connections that break while the receiver is
// restarted, and comes back.
func TestImageIsSentBetweenAgentsOnDocker(t *testing.T) {
	old, modern := enginetest.RequireDocker(t), enginetest.RequireModernDocker(t)
	source, dir := newRealAt(t, t.TempDir(), old), t.TempDir()
	target := newRealAt(t, dir, modern)
	for _, host := range []string{old, modern} {
		forget(t, host)
		t.Cleanup(func() { forget(t, host) })
	}
	overlay(t, source.engine, enginetest.ImageStatic, baseImage, 1<<20, nil)
	made := overlay(t, source.engine, baseImage, sentImage, 24<<20, nil)
	bring(t, source.agent, target.agent, baseImage)

	parts, err := source.agent.DescribeImage(t.Context(), sentImage)
	if err != nil {
		t.Fatal(err)
	}
	fragile := &fragile{Agent: target.agent, left: 9 << 20}
	var most, last gpu.Bytes
	cuts := 0
	err = layers.Carry(t.Context(), source.agent, fragile, parts, layers.Report{
		Progress: func(done, total gpu.Bytes) { last, most = done, max(most, total) },
		Again: func(_ context.Context, err error) error {
			if code := session.CodeOf(err); code != "" {
				return err
			}
			if cuts++; cuts == 1 {
				target.restart()
				fragile.Agent = target.agent
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if cuts == 0 {
		t.Error("the connection never broke")
	}
	if last != most || most > 25<<20 {
		t.Errorf("%s of %s were sent: the layers below were there already", last, most)
	}
	image, err := target.agent.InstallImage(t.Context(), parts.ID)
	if err != nil || image.ID != made {
		t.Fatalf("the image over there is %s and should be %s (%v)", image.ID, made, err)
	}
	if again, err := target.agent.InstallImage(t.Context(), parts.ID); err != nil || again.ID != made {
		t.Errorf("asked again it is %s (%v)", again.ID, err)
	}

	forget(t, old)
	if image := bring(t, target.agent, source.agent, sentImage); image.ID != made {
		t.Errorf("the image that came back is %s and should be %s", image.ID, made)
	}
}

// A customized image of another agent is shown to those who had it brought, and
// to nobody else, also after the agent was started anew.
func TestAReceivedImageIsItsReceiversOnDocker(t *testing.T) {
	old, modern := enginetest.RequireDocker(t), enginetest.RequireModernDocker(t)
	source, target := newRealAt(t, t.TempDir(), old), newRealAt(t, t.TempDir(), modern)
	for _, host := range []string{old, modern} {
		forget(t, host)
		t.Cleanup(func() { forget(t, host) })
	}
	origin := session.ImageOrigin{Name: "mine", Owner: "bob", Instance: source.store.Instance(), Session: "s1", SessionName: "work", Base: enginetest.ImageStatic}
	made := overlay(t, source.engine, enginetest.ImageStatic, sentImage, 1<<20, origin.Labels())

	as := func(owner string, role session.Role) session.Agent {
		t.Helper()
		audit, err := access.OpenAudit(filepath.Join(t.TempDir(), "audit.jsonl"), time.Now, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = audit.Close() })
		return access.New(target.agent, audit, nil).As(access.Identity{Owner: owner, Role: role})
	}
	seen := func(owner string, role session.Role) []string {
		t.Helper()
		images, err := as(owner, role).ListImages(t.Context())
		disk, failed := as(owner, role).ImageDisk(t.Context())
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		at := slices.IndexFunc(images, func(i session.Image) bool { return i.ID == made })
		if on := slices.IndexFunc(disk.Images, func(r session.ImageRoom) bool { return r.ID == made }); (on < 0) != (at < 0) {
			t.Errorf("%s sees it in the list: %v, on the disk: %v", owner, at >= 0, on >= 0)
		}
		if at < 0 {
			return nil
		}
		return images[at].Received
	}

	bring(t, source.agent, as("ann", session.RoleUser), sentImage)
	target.restart()
	if got := seen("ann", session.RoleUser); !slices.Equal(got, []string{"ann"}) {
		t.Errorf("ann, who brought it, sees it as of %q", got)
	}
	if got := seen("bob", session.RoleUser); got != nil {
		t.Errorf("bob, who has the name of its maker, sees it as of %q", got)
	}
	if _, err := as("bob", session.RoleUser).InstallImage(t.Context(), made); session.CodeOf(err) != "engine_image_not-found" {
		t.Errorf("bob knows its id and gets %v", err)
	}
	preview, err := as("bob", session.RoleUser).Preview(t.Context(), "", session.Spec{Image: sentImage})
	if err != nil || !slices.ContainsFunc(preview.Errors, func(e session.FieldError) bool { return e.Code == "session_create_forbidden-image" }) {
		t.Errorf("bob may use it: %+v, %v", preview.Errors, err)
	}

	bring(t, source.agent, as("carl", session.RoleUser), sentImage)
	if got := seen("root", session.RoleAdmin); !slices.Equal(got, []string{"ann", "carl"}) {
		t.Errorf("who rules sees it as of %q", got)
	}
	if err := as("ann", session.RoleUser).RemoveImage(t.Context(), made); session.CodeOf(err) != "image_remove_forbidden" {
		t.Errorf("ann removes what is carl's as well: %v", err)
	}
	if err := as("root", session.RoleAdmin).RemoveImage(t.Context(), made); err != nil {
		t.Error(err)
	}
	if left := target.agent.received.list; len(left) != 0 {
		t.Errorf("of an image that is gone %v is left", left)
	}
}

// bring sends an image over connections that do not break.
func bring(t *testing.T, from, to session.ImageTransfers, ref string) session.Image {
	t.Helper()
	parts, err := from.DescribeImage(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	report := layers.Report{Progress: func(_, _ gpu.Bytes) {}, Again: func(_ context.Context, err error) error { return err }}
	if err := layers.Carry(t.Context(), from, to, parts, report); err != nil {
		t.Fatal(err)
	}
	image, err := to.InstallImage(t.Context(), parts.ID)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// restart ends the agent's process, as far as one process can, and opens it anew.
func (r *real) restart() {
	r.t.Helper()
	host := enginetest.RequireModernDocker(r.t)
	r.stop()
	fresh, err := openReal(r.dir, host)
	if err != nil {
		r.t.Fatal(err)
	}
	r.engine, r.store, r.agent, r.stop = fresh.engine, fresh.store, fresh.agent, fresh.stop
}

// forget takes the images from a daemon.
func forget(t *testing.T, host string) {
	t.Helper()
	out, err := exec.Command("docker", "-H", host, "image", "rm", "-f", sentImage, baseImage).CombinedOutput()
	if err != nil && !bytes.Contains(out, []byte("No such image")) {
		t.Errorf("docker image rm: %v\n%s", err, out)
	}
}

// overlay makes an image of another one and a layer with a file of noise, and
// returns its id. labels, where there are any, take the place of its own.
func overlay(t *testing.T, e engine.Engine, base, ref string, size int, labels map[string]string) string {
	t.Helper()
	parts, err := e.DescribeImage(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	err = e.ExportImage(t.Context(), parts.ID, func(part string) bool { return part == session.ImageConfig }, func(_ string, content io.Reader) error {
		return json.NewDecoder(content).Decode(&config)
	})
	if err != nil {
		t.Fatal(err)
	}
	layer := archiveOf(t, size)
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(layer))
	rootfs := config["rootfs"].(map[string]any)
	rootfs["diff_ids"] = append(rootfs["diff_ids"].([]any), digest)
	history, _ := config["history"].([]any)
	config["history"] = append(history, map[string]any{"created_by": "noise"})
	if labels != nil {
		config["config"].(map[string]any)["Labels"] = labels
	}
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	parts.Refs = []string{ref}
	parts.Layers = append(parts.Layers, session.ImageLayer{Digest: digest, Size: gpu.Bytes(len(layer))})
	image, err := e.ImportImage(t.Context(), parts, map[string]engine.Content{session.ImageConfig: inMemory(data), digest: inMemory(layer)})
	if err != nil {
		t.Fatal(err)
	}
	return image.ID
}

func inMemory(data []byte) engine.Content {
	return engine.Content{Size: gpu.Bytes(len(data)), Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

// archiveOf is a layer with one file of noise, so that it cannot be compressed.
func archiveOf(t *testing.T, size int) []byte {
	t.Helper()
	noise := make([]byte, size)
	if _, err := rand.NewChaCha8([32]byte{7}).Read(noise); err != nil {
		t.Fatal(err)
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Name: "opt/noise", Mode: 0o644, Size: int64(size)}); err != nil {
		t.Fatal(err)
	}
	_, err := w.Write(noise)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return layer.Bytes()
}

// fragile is an agent whose streams break after some bytes, twice.
type fragile struct {
	*Agent
	left int
	cuts int
}

// ReceiveImage implements [layers.Target].
func (f *fragile) ReceiveImage(ctx context.Context, id string) (io.ReadWriteCloser, error) {
	stream, err := f.Agent.ReceiveImage(ctx, id)
	if err != nil || f.cuts == 2 {
		return stream, err
	}
	f.cuts++
	return &breaking{ReadWriteCloser: stream, left: f.left}, nil
}

type breaking struct {
	io.ReadWriteCloser
	left int
}

// Write implements io.Writer.
func (b *breaking) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.Join(io.ErrUnexpectedEOF, b.Close())
	}
	return b.ReadWriteCloser.Write(p)
}
