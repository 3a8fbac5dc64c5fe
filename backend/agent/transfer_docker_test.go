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

// An image that a user brings is shown under names of their own, to them and to
// admins, also after the agent was started again.
func TestAReceivedImageIsItsReceiversOnDocker(t *testing.T) {
	old, modern := enginetest.RequireDocker(t), enginetest.RequireModernDocker(t)
	source, target := newRealAt(t, t.TempDir(), old), newRealAt(t, t.TempDir(), modern)
	const anns, carls = "slipway-custom/ann/" + sentImage, "slipway-custom/carl/" + sentImage
	for _, host := range []string{old, modern} {
		forget(t, host, anns, carls)
		t.Cleanup(func() { forget(t, host, anns, carls) })
	}
	origin := session.ImageOrigin{Name: "mine", Owner: "bob", Instance: source.store.Instance(), Session: "s1",
		SessionName: "work", Base: enginetest.ImageStatic}
	made := overlay(t, source.engine, enginetest.ImageStatic, sentImage, 1<<20, origin.Labels())

	as := func(owner string, role session.Role) session.Agent { return through(t, target.agent, owner, role) }
	seen := func(owner string, role session.Role) []string {
		t.Helper()
		images, err := as(owner, role).ListImages(t.Context())
		disk, failed := as(owner, role).ImageDisk(t.Context())
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		at := slices.IndexFunc(images, func(i session.Image) bool { return i.ID == made })
		on := slices.IndexFunc(disk.Images, func(r session.ImageRoom) bool { return r.ID == made })
		if (on < 0) != (at < 0) {
			t.Errorf("%s sees it in the list: %v, on the disk: %v", owner, at >= 0, on >= 0)
		}
		if at < 0 {
			return nil
		}
		return images[at].Refs
	}

	image := bring(t, source.agent, as("ann", session.RoleUser), sentImage)
	if image.Origin == nil || image.Origin.Name != "mine" || image.Origin.Owner != "ann" {
		t.Errorf("ann reads that it is %+v", image.Origin)
	}
	target.restart()
	if got := seen("ann", session.RoleUser); !slices.Equal(got, []string{anns}) {
		t.Errorf("ann, who brought it, sees it as %q", got)
	}
	if got := seen("bob", session.RoleUser); got != nil {
		t.Errorf("bob, who has the name of its maker, sees it as %q", got)
	}
	if _, err := as("bob", session.RoleUser).InstallImage(t.Context(),
		made); session.CodeOf(err) != "engine_image_not-found" {
		t.Errorf("bob knows its id and gets %v", err)
	}
	for _, ref := range []string{anns, made} {
		preview, err := as("bob", session.RoleUser).Preview(t.Context(), "", session.Spec{Image: ref}, 1)
		if err != nil || !slices.ContainsFunc(preview.Errors,
			func(e session.FieldError) bool { return e.Kind == "forbidden" }) {
			t.Errorf("bob may use %s: %+v, %v", ref, preview.Errors, err)
		}
	}
	if preview, err := as("ann", session.RoleUser).Preview(t.Context(), "", session.Spec{Image: anns}, 1); err != nil ||
		len(preview.Errors) > 0 {
		t.Errorf("ann may not launch it: %+v, %v", preview.Errors, err)
	}
	if parts, err := as("ann", session.RoleUser).DescribeImage(t.Context(), anns); err != nil || parts.ID != made {
		t.Errorf("what ann would launch is %s, %v", parts.ID, err)
	}

	bring(t, source.agent, as("carl", session.RoleUser), sentImage)
	if got := seen("root", session.RoleAdmin); !slices.Equal(got, []string{anns, carls}) {
		t.Errorf("an admin sees it as %q", got)
	}
	if got := seen("carl", session.RoleUser); !slices.Equal(got, []string{carls}) {
		t.Errorf("carl sees it as %q", got)
	}
	if err := as("ann", session.RoleUser).RemoveImage(t.Context(),
		made); session.CodeOf(err) != "agent_call_forbidden" {
		t.Errorf("ann removes what is carl's as well: %v", err)
	}
	if err := as("root", session.RoleAdmin).RemoveImage(t.Context(), made); err != nil {
		t.Error(err)
	}
	if left, err := target.store.Images(); err != nil || len(left) != 0 {
		t.Errorf("of an image that is gone %v is left, %v", left, err)
	}
}

// A user sends an image under a name that everybody uses. The name stays where
// it was; so it does when an admin sends one and does not say to replace it.
func TestANameOnDockerIsNotMovedByABroughtImage(t *testing.T) {
	for name, host := range map[string]string{"old": enginetest.RequireDocker(t),
		"modern": enginetest.RequireModernDocker(t)} {
		t.Run(name, func(t *testing.T) {
			target := newRealAt(t, t.TempDir(), host)
			const mallorys = "slipway-custom/mallory/" + sentImage
			forget(t, host, mallorys)
			t.Cleanup(func() { forget(t, host, mallorys) })
			everybodys := overlay(t, target.engine, enginetest.ImageMinimal, sentImage, 1<<20, nil)
			forged := packed(t, target.engine, enginetest.ImageMinimal, 2<<20, map[string]string{"who": "mallory"})
			forged.parts.Refs = []string{sentImage}
			named := func(ref string) string {
				image, err := target.engine.Image(t.Context(), ref)
				if err != nil {
					t.Fatal(err)
				}
				return image.ID
			}
			image, err := forged.send(t, through(t, target.agent, "mallory", session.RoleUser))
			if err != nil || !slices.Equal(image.Refs, []string{mallorys}) {
				t.Errorf("mallory's image arrives as %q, %v", image.Refs, err)
			}
			if named(sentImage) != everybodys || named(mallorys) != image.ID {
				t.Errorf("%s is %s and was %s", sentImage, named(sentImage), everybodys)
			}
			boss := through(t, target.agent, "boss", session.RoleAdmin)
			if _, err := forged.send(t, boss); session.CodeOf(err) != "image_update_conflict" ||
				named(sentImage) != everybodys {
				t.Errorf("an admin moves it without saying so: %v", err)
			}
			forged.parts.Replace = true
			if image, err := forged.send(t, boss); err != nil || named(sentImage) != image.ID ||
				image.ID == everybodys {
				t.Errorf("an admin who says so does not move it: %v", err)
			}
		})
	}
}

// packedImage is an image that is nowhere but in memory.
type packedImage struct {
	parts   session.ImageParts
	content map[string]engine.Content
}

// send brings it to an agent.
func (p *packedImage) send(t *testing.T, to session.Agent) (session.Image, error) {
	t.Helper()
	report := layers.Report{Progress: func(_, _ gpu.Bytes) {},
		Again: func(_ context.Context, err error) error { return err }}
	if err := layers.Carry(t.Context(), p, to, p.parts, report); err != nil {
		return session.Image{}, err
	}
	return to.InstallImage(t.Context(), p.parts.ID)
}

func (p *packedImage) SendImage(_ context.Context, wish session.ImageWish) (io.ReadCloser, error) {
	var stream bytes.Buffer
	w, err := layers.NewWriter(&stream)
	for _, mark := range wish.Parts {
		if err != nil {
			return nil, err
		}
		var content io.ReadCloser
		if content, err = p.content[mark.Part].Open(); err == nil {
			_, err = io.CopyN(io.Discard, content, int64(mark.Offset))
		}
		if err == nil {
			err = w.Part(mark, content)
		}
	}
	if err == nil {
		err = w.Close()
	}
	return io.NopCloser(&stream), err
}

// through is an agent as the gate gives it to a person.
func through(t *testing.T, a *Agent, owner string, role session.Role) session.Agent {
	t.Helper()
	audit, err := access.OpenAudit(filepath.Join(t.TempDir(), "audit.jsonl"), time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = audit.Close() })
	return access.New(a.Agent(), a, audit).As(access.Identity{Owner: owner, Role: role})
}

// bring sends an image over connections that do not break.
func bring(t *testing.T, from, to session.ImageTransfers, ref string) session.Image {
	t.Helper()
	parts, err := from.DescribeImage(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	report := layers.Report{Progress: func(_, _ gpu.Bytes) {},
		Again: func(_ context.Context, err error) error { return err }}
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
	r.reopenAt(enginetest.RequireModernDocker(r.t))
}

// reopen is like restart at the usual daemon.
func (r *real) reopen(change ...func(*Config)) {
	r.t.Helper()
	r.reopenAt(enginetest.RequireDocker(r.t), change...)
}

func (r *real) reopenAt(host string, change ...func(*Config)) {
	r.t.Helper()
	r.stop()
	fresh, err := openReal(r.dir, host, change...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.engine, r.store, r.agent, r.stop = fresh.engine, fresh.store, fresh.agent, fresh.stop
}

// forget takes the images from a daemon.
func forget(t *testing.T, host string, more ...string) {
	t.Helper()
	out, err := exec.Command("docker", append([]string{"-H", host, "image", "rm", "-f", sentImage, baseImage},
		more...)...).CombinedOutput()
	if err != nil && !bytes.Contains(out, []byte("No such image")) {
		t.Errorf("docker image rm: %v\n%s", err, out)
	}
}

// overlay makes an image of another one and a layer with a file of noise, and
// returns its id. labels, where there are any, take the place of its own.
func overlay(t *testing.T, e engine.Transfers, base, ref string, size int, labels map[string]string) string {
	t.Helper()
	p := packed(t, e, base, size, labels)
	p.parts.Refs = []string{ref}
	image, err := e.ImportImage(t.Context(), p.parts, p.content)
	if err != nil {
		t.Fatal(err)
	}
	return image.ID
}

// packed is an image of another one and a layer with a file of noise.
func packed(t *testing.T, e engine.Transfers, base string, size int, labels map[string]string) *packedImage {
	t.Helper()
	parts, err := e.DescribeImage(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	err = e.ExportImage(t.Context(), parts.ID, func(part string) bool { return part == session.ImageConfig },
		func(_ string, content io.Reader) error {
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
		inner, _ := config["config"].(map[string]any)
		if inner == nil {
			inner = map[string]any{}
		}
		inner["Labels"] = labels
		config["config"] = inner
	}
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	parts.ID, parts.Refs = fmt.Sprintf("sha256:%x", sha256.Sum256(data)), nil
	parts.Layers = append(parts.Layers, session.ImageLayer{Digest: digest, Size: gpu.Bytes(len(layer))})
	return &packedImage{parts: parts, content: map[string]engine.Content{session.ImageConfig: inMemory(data),
		digest: inMemory(layer)}}
}

func inMemory(data []byte) engine.Content {
	return engine.Content{Size: gpu.Bytes(len(data)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
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
