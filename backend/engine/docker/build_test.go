//go:build linux

package docker_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/client"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
)

// buildOf describes a build with a file and a Dockerfile of the lines, on the minimal image.
func buildOf(file string, lines ...string) engine.Build {
	text := "FROM " + enginetest.ImageMinimal + "\n" + strings.Join(lines, "\n") + "\n"
	return engine.Build{Ref: "slipway-test/built:" + strings.ToLower(rand.Text()[:8]), Dockerfile: "Dockerfile.slipway",
		Labels: map[string]string{"slipway.image.project": "vision"},
		Context: func(_ context.Context, to io.Writer) error {
			return enginetest.Archive(to, "Dockerfile.slipway", text, "file", file)
		}}
}

// onEach runs a test on the engines that build: that of Debian and that of today.
func onEach(t *testing.T, test func(*testing.T, *docker.Engine, *client.Client)) {
	t.Run("Docker 20.10", func(t *testing.T) { test(t, open(t, docker.Config{Instance: instanceOf(t)}), api(t)) })
	t.Run("Docker of today", func(t *testing.T) {
		e, c := modern(t, docker.Config{})
		test(t, e, c)
	})
}

// built builds, and removes the image at the end of the test.
func built(t *testing.T, e *docker.Engine, b engine.Build) (last session.Build, made session.Image, err error) {
	t.Helper()
	made, err = e.Build(t.Context(), b, func(now session.Build) { last = now })
	if err == nil {
		t.Cleanup(func() {
			err := e.RemoveImage(context.Background(), b.Ref)
			if err != nil && session.CodeOf(err) != session.CodeNoImage { // with another name of it
				t.Error(err)
			}
		})
	}
	return last, made, err
}

// ran counts the steps of a build that ran, of those with RUN or COPY.
func ran(b session.Build) (names []string) {
	for _, step := range b.Steps {
		if !step.Cached && (strings.Contains(step.Name, "RUN") || strings.Contains(step.Name, "COPY")) {
			names = append(names, step.Name)
		}
	}
	return names
}

func TestABuildRepeatsOnlyWhatFollowsAChange(t *testing.T) {
	onEach(t, func(t *testing.T, e *docker.Engine, _ *client.Client) {
		once := rand.Text() // so that nothing of it was built before
		lines := []string{"RUN echo first " + once, "COPY file /file",
			"RUN --mount=type=cache,target=/cache cat /file && echo said"}
		first, made, err := built(t, e, buildOf("one", lines...))
		if err != nil {
			t.Fatal(err)
		}
		if made.Labels["slipway.image.project"] != "vision" || len(ran(first)) != 3 ||
			!strings.Contains(first.Log, "said") {
			t.Errorf("made %+v by %+v", made, first)
		}
		for _, step := range first.Steps {
			if step.State != session.WorkDone || step.EndedAt == nil || step.EndedAt.Before(*step.StartedAt) {
				t.Errorf("the step ended as %+v", step)
			}
		}
		again, same, err := built(t, e, buildOf("one", lines...))
		if err != nil || len(ran(again)) != 0 || same.ID != made.ID {
			t.Errorf("built again, it ran %q and made %s of %s, %v", ran(again), same.ID, made.ID, err)
		}
		changed, _, err := built(t, e, buildOf("two", lines...))
		if names := ran(changed); err != nil || len(names) != 2 || strings.Contains(names[0], "first") {
			t.Errorf("with another file it ran %q, %v", names, err)
		}
	})
}

func TestABuildThatFailsSaysWhatTheStepSaid(t *testing.T) {
	onEach(t, func(t *testing.T, e *docker.Engine, _ *client.Client) {
		b := buildOf("", "RUN echo looking for nonsense && exit 3")
		last, _, err := built(t, e, b)
		if session.CodeOf(err) != session.CodeBuildFailed || !strings.Contains(err.Error(), "3") {
			t.Errorf("it fails with %v", err)
		}
		if !strings.Contains(last.Log, "looking for nonsense") ||
			last.Steps[len(last.Steps)-1].State != session.WorkFailed {
			t.Errorf("its progress was %+v", last)
		}
		if _, err := e.Image(t.Context(), b.Ref); session.CodeOf(err) != session.CodeNoImage {
			t.Errorf("there is an image of it: %v", err)
		}
		_, _, err = built(t, e, buildOf("", "NONSENSE"))
		if e := session.AsError(err, ""); e.Code != session.CodeBuildFailed ||
			!strings.HasPrefix(strings.ToLower(e.Message), "the image could not be built: dockerfile parse error") {
			t.Errorf("nonsense fails with %v", err)
		}
	})
}

// The process of the step ends with a build that is given up.
func TestABuildThatIsGivenUpEnds(t *testing.T) {
	onEach(t, func(t *testing.T, e *docker.Engine, _ *client.Client) {
		mark := fmt.Sprintf("sleep 3%09d", time.Now().UnixNano()%1e9)
		b := buildOf("", "RUN echo begun && "+mark)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := e.Build(ctx, b, func(now session.Build) {
			for strings.Contains(now.Log, "begun") && ctx.Err() == nil {
				if running(t, mark) {
					cancel()
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
		if session.CodeOf(err) != session.CodeOperationCancelled {
			t.Errorf("it ends with %v", err)
		}
		given := time.Now()
		for running(t, mark) {
			if time.Since(given) > time.Minute { // a machine that has much else to do
				t.Fatal("its step still runs")
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Logf("its step ended after %s", time.Since(given).Round(time.Millisecond))
		if _, err := e.Image(t.Context(), b.Ref); session.CodeOf(err) != session.CodeNoImage {
			t.Errorf("there is an image of it: %v", err)
		}
	})
}

// The value is readable in the step that mounts it, and found nowhere afterwards.
func TestABuildReadsASecretThatIsNowhereAfterwards(t *testing.T) {
	onEach(t, func(t *testing.T, e *docker.Engine, c *client.Client) {
		hush, began := rand.Text(), time.Now()
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(hush)))
		b := buildOf(rand.Text(), "COPY file /file", // so that no step was run before
			"RUN --mount=type=secret,id=TOKEN,required=true sha256sum /run/secrets/TOKEN && sleep 1",
			"RUN test ! -e /run/secrets/TOKEN")
		_, _, err := built(t, e, b)
		if session.CodeOf(err) != session.CodeBuildFailed || !strings.Contains(err.Error(), "TOKEN") {
			t.Errorf("without the secret it ends with %v", err)
		}
		b.Secrets = []session.EnvVar{{Name: "OTHER", Value: "other"}, {Name: "TOKEN", Value: hush}}
		var last session.Build
		made, err := e.Build(t.Context(), b, func(now session.Build) {
			if last = now; strings.Contains(now.Log, sum) && commandWith(t, hush) {
				t.Error("the secret is in the list of processes")
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := e.RemoveImage(context.Background(), b.Ref); err != nil {
				t.Error(err)
			}
		})
		if !strings.Contains(last.Log, sum) {
			t.Errorf("the step did not read the secret: %s", last.Log)
		}
		isNowhere(t, e, c, hush, fmt.Sprintf("%+v %+v", last, made), b.Ref, made.ID, began, false)
	})
}

// What a build extends is pulled with the login for its registry, and with no other.
func TestABuildPullsWithALogin(t *testing.T) {
	onEach(t, func(t *testing.T, e *docker.Engine, _ *client.Client) {
		r := newRegistry(t, 1, 1000)
		r.set(func(r *registry) { r.login = "ada:hush" })
		b := buildOf("")
		b.Context = func(_ context.Context, to io.Writer) error {
			return enginetest.Archive(to, b.Dockerfile, "FROM "+r.ref+"\nCOPY file /\n", "file", "")
		}
		server, _, _ := strings.Cut(r.ref, "/")
		b.Logins = []session.RegistryLogin{{Server: "other.test", User: "ada", Password: "hush"}}
		if _, _, err := built(t, e, b); session.CodeOf(err) != session.CodeBuildFailed {
			t.Errorf("without its login it ends with %v", err)
		}
		b.Logins = append(b.Logins, session.RegistryLogin{Server: server, User: "ada", Password: "hush"})
		if _, _, err := built(t, e, b); err != nil {
			t.Errorf("with its login it ends with %v", err)
		}
	})
}

// filesWith returns the files below dir that were changed after began and contain a text.
func filesWith(t *testing.T, dir, text string, began time.Time) (found []string) {
	t.Helper()
	looked := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // it has gone since
		}
		if info, err := entry.Info(); err != nil || info.ModTime().Before(began) {
			return nil
		}
		looked++
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(text)) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil || looked == 0 {
		t.Errorf("looked at %d files of %s: %v", looked, dir, err)
	}
	return found
}

// commandWith reports whether the command line of a process of this machine has a text.
func commandWith(t *testing.T, text string) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		line, err := os.ReadFile(file)
		return err == nil && bytes.Contains(line, []byte(text))
	})
}

// running reports whether a process of this machine has this command line.
func running(t *testing.T, command string) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && strings.TrimRight(strings.ReplaceAll(string(line), "\x00", " "), " ") == command {
			return true
		}
	}
	return false
}
