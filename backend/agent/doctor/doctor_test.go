package doctor

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"

	"slipway/backend/engine"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
)

func TestRemedyFollowsTheCause(t *testing.T) {
	t.Setenv("DOCKER_HOST", "")
	t.Setenv("PATH", t.TempDir())
	for _, c := range []struct {
		err  error
		want string
	}{{fs.ErrPermission, "usermod"}, {errors.New("no such device or address"), "systemctl start docker"}} {
		if got := dockerRemedy(c.err); !strings.Contains(got, c.want) {
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
