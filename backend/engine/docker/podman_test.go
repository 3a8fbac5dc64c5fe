//go:build linux

package docker_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
)

// withoutOnPodman are the cases that Podman cannot pass.
func withoutOnPodman() map[string]string {
	if os.Getenv(enginetest.PodmanVariable) == "" || os.Getenv(enginetest.PodmanVariable) == "verify" {
		return nil
	}
	const noCommit = "it changes what the image starts, so the engine lacks commit"
	const noNote = "conmon 2.1.6 keeps its note where Podman does not look"
	return map[string]string{
		"a container is committed, running or not, and the image removed": noCommit,
		"a commit that is given up leaves no image":                       noCommit,
		"an image is built, with its steps":                               "it has no BuildKit",
		"running out of memory is reported":                               noNote,
	}
}

func TestPodmanSaysWhatItCannotDo(t *testing.T) {
	host, instance := enginetest.RequirePodman(t), instanceOf(t)
	e := open(t, docker.Config{Host: host, Instance: instance})
	info, err := e.Info(t.Context())
	if err != nil || info.Name != "podman" || !info.LiveRestore || !slices.Equal(info.Lacks,
		[]session.Feature{session.FeatureNVIDIA, session.FeatureCommit, session.FeatureBuild}) {
		t.Fatalf("it says %+v, %v", info, err)
	}
	want := []session.Code{session.CodeNoFilter}
	if rootless() {
		want = []session.Code{session.CodeNoProcessLimit, session.CodeNoLimits, session.CodeNoFilter}
	}
	got := []session.Code{}
	for _, w := range info.Warnings {
		got = append(got, w.Code)
	}
	if !slices.Equal(got, want) {
		t.Errorf("it warns of %+v", info.Warnings)
	}
	for _, way := range []engine.AttachWay{"", engine.AttachCDI, engine.AttachRequest} {
		e := open(t, docker.Config{Host: host, Instance: instance, Attach: way})
		_, err := e.Create(t.Context(), withDevices(newContainer(instance, ""), nvidia(firstGPU)))
		refused(t, err, session.CodeAttachFailed)
		if !strings.Contains(err.Error(), "Podman") {
			t.Errorf("asked for %q it says %v", way, err)
		}
	}
	id := runs(t, e, newContainer(instance, ""))
	_, err = e.Commit(t.Context(), id, engine.Commit{Ref: "slipway-test/commit:podman"})
	refused(t, err, session.CodeEngineUnsupported)
	_, err = e.Build(t.Context(), buildOf(""), func(session.Build) {})
	refused(t, err, session.CodeEngineUnsupported)
}
