package doctor

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"slipway/backend/engine"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
	"slipway/gpu"
)

func TestRemedyFollowsTheCause(t *testing.T) {
	t.Setenv("DOCKER_HOST", "")
	t.Setenv("PATH", t.TempDir())
	for _, c := range []struct {
		err  error
		want string
	}{{fs.ErrPermission, "usermod"}, {errors.New("no such device or address"), "systemctl start docker"}} {
		if got := dockerRemedy(linux, c.err); !strings.Contains(got, c.want) {
			t.Errorf("%v: %q", c.err, got)
		}
	}
	if c, known := accessCheck(usualSocket, fs.ErrPermission); !known || c.Result != session.CheckFailed ||
		c.Remedy == "" {
		t.Errorf("closed socket: %+v", c)
	}
	if _, known := accessCheck(usualSocket, fs.ErrNotExist); known {
		t.Error("something is said of a socket that is not there")
	}
	if c := noexecCheck("/home/ada", true); c.Result != session.CheckFailed || c.Remedy == "" {
		t.Errorf("noexec: %+v", c)
	}
	if c, known := clockCheck(false, true); !known || c.Result != session.CheckWarning || c.Remedy == "" {
		t.Errorf("a clock of its own: %+v", c)
	}
}

func TestEveryRemedyIsForItsSystem(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	foreign := map[string]*regexp.Regexp{
		"linux":   regexp.MustCompile(`\bdir |brew|Docker Desktop`),
		"windows": regexp.MustCompile(`sudo|apt|systemctl|usermod|docker |unset|export|\bdf\b`),
		"darwin":  regexp.MustCompile(`sudo|apt|systemctl|usermod|docker |\bdir `),
	}
	for system, words := range foreign {
		for name, info := range map[string]engine.Info{
			"simulated": {Name: simulated},
			"another":   {Name: "docker", Cgroup: 2, LiveRestore: true, DataRoot: "/var/lib/docker"},
			"elsewhere": {Name: "docker", Cgroup: 2},
		} {
			if system != linux && info.DataRoot != "" {
				continue // its engine is in a virtual machine
			}
			d := Doctor{Config: Config{Note: "Docker does not answer.", System: system},
				Dir: filepath.Join(t.TempDir(), "gone"), Engine: infoHost{info: info}, Devices: bare{},
				Disk: func(context.Context) (gpu.Bytes, gpu.Bytes, error) { return 1, 2, nil }}
			checks, err := d.Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			failed := 0
			for _, check := range checks {
				if check.Remedy != "" {
					failed++
				}
				if words.MatchString(check.Remedy) {
					t.Errorf("%s, %s engine: %s: %q", system, name, check.ID, check.Remedy)
				}
			}
			if failed < 2 && name != "elsewhere" { // whose disk is not this machine's
				t.Errorf("%s, %s engine: %d remedies: %+v", system, name, failed, checks)
			}
		}
	}
}

// infoHost is an engine that says something else of itself.
type infoHost struct {
	engine.Host
	info engine.Info
}

func (h infoHost) Info(context.Context) (engine.Info, error) { return h.info, nil }

// bare is a machine without devices.
type bare struct{}

func (bare) Inventory(context.Context) ([]gpu.Device, error) { return nil, nil }

func TestDockerIsLookedForWhereItListens(t *testing.T) {
	for host, want := range map[string]string{"": usualSocket,
		"unix:///run/user/7/docker.sock": "/run/user/7/docker.sock"} {
		if path, local := dockerSocket(host); path != want || !local {
			t.Errorf("%q: %q, %v", host, path, local)
		}
	}
	if _, local := dockerSocket("tcp://lab:2375"); local {
		t.Error("another machine's Docker counts as this one's")
	}
}

func TestMachineIsJudgedByWhatItsEngineSays(t *testing.T) {
	for _, c := range []struct {
		name   string
		got    session.Check
		result session.CheckResult
	}{
		{"control groups of version 2", cgroupCheck(engine.Info{Name: "docker", Cgroup: 2}), session.CheckOK},
		{"control groups of version 1", cgroupCheck(engine.Info{Name: "docker", Cgroup: 1}), session.CheckWarning},
		{"control groups that are not told", cgroupCheck(engine.Info{Name: "docker"}), session.CheckWarning},
		{"a simulated engine", cgroupCheck(engine.Info{Name: simulated}), session.CheckOK},
		{"sessions that survive", liveRestoreCheck(engine.Info{LiveRestore: true}), session.CheckOK},
		{"sessions that do not", liveRestoreCheck(engine.Info{}), session.CheckWarning},
	} {
		if c.got.Result != c.result || c.got.Text == "" {
			t.Errorf("%s: %+v", c.name, c.got)
		}
	}
}

func TestPodmanWorksInPart(t *testing.T) {
	c := Doctor{}.engineCheck(linux, engine.Info{Name: podman, Version: "4.3.1", Arch: "amd64",
		Lacks: []session.Feature{session.FeatureNVIDIA, session.FeatureCommit}}, nil)
	for _, part := range []string{"Podman 4.3.1 answers", "works in part", "NVIDIA", "image"} {
		if !strings.Contains(c.Text, part) {
			t.Errorf("%q is missing in %q", part, c.Text)
		}
	}
	if c.Result != session.CheckWarning || c.Remedy != installDocker {
		t.Errorf("got %+v", c)
	}
	if path, local := engineSocket(engine.Info{Socket: "/run/podman/podman.sock"}); path != "/run/podman/podman.sock" ||
		!local {
		t.Errorf("its socket is %q", path)
	}
}

func TestTheProbesEndWithWhoeverAskedForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := simtest.New(t, t.TempDir(), simtest.Config{})
		gate := fake.Block(simtest.CallInfo)
		defer gate.Release()
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			checks, err := Doctor{Dir: t.TempDir(), Engine: fake}.Check(ctx)
			if checks != nil {
				t.Errorf("it found %+v", checks)
			}
			ended <- err
		}()
		<-gate.Entered()
		leave()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
