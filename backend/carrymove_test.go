//go:build linux

package backend

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/backend/api"
	"slipway/backend/engine/enginetest"
	"slipway/backend/hub"
	"slipway/backend/session"
)

// What a session that moves has, in bytes, beside what both machines have.
const (
	movedHome    = 64 << 20
	movedLayer   = 48 << 20 // what it installed
	movedSets    = 16 << 20 // in a folder that both machines have
	movedBack    = 8 << 20  // installed on the other machine
	movedAtMost  = 8 << 20  // what else travels: answers, samples, and what a cut or a sleep lost on its way
	movedFurnish = `set -e
cd /home/work
head -c %d /dev/urandom >big
mkdir -p deep/er
echo one >deep/er/note
echo two >deep/er/gone
touch -d 2001-02-03T04:05:06 deep/er/note
ln -s big latest
chmod 700 deep/er
head -c %d /dev/urandom >/var/tmp/installed
`
	// movedTree is all that must be equal on both machines.
	movedTree = `cd /home/work && readlink latest && find big deep sets/set -printf '%p %y %m %Ts\n' | sort &&
		find big deep sets/ /var/tmp -type f -exec sha256sum {} + | sort && echo mode $MODE`
)

// carried is what the cable has carried, in bytes: to the server and from it.
func (w *farWorld) carried() (there, back int64) {
	w.t.Helper()
	for name, to := range map[string]*int64{"tx_bytes": &there, "rx_bytes": &back} {
		text, err := exec.Command("ip", "netns", "exec", w.near, "cat", "/sys/class/net/"+w.cable+"/statistics/"+name).
			Output()
		if err == nil {
			*to, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return there, back
}

// signals sends a signal to all processes of the laptop: it sleeps, and wakes up.
func (l *laptop) signals(signal unix.Signal) {
	l.t.Helper()
	found, err := exec.Command("ip", "netns", "pids", l.near).Output()
	if err != nil {
		l.t.Fatal(err)
	}
	for _, field := range strings.Fields(string(found)) {
		if pid, err := strconv.Atoi(field); err == nil {
			_ = unix.Kill(pid, signal) // it may have ended
		}
	}
}

// reaches waits until a step of a move has carried a part of its bytes.
func (l *laptop) reaches(ctx context.Context, id, step string, part float64) {
	l.t.Helper()
	eventually(ctx, l.t, fmt.Sprintf("%s is at %g", step, part), func() bool {
		var o api.Operation
		l.call("GET", "/api/v1/operations/"+id, "", &o)
		state := stepOf(o, step).State
		if o.State.Ended() || state == hub.StepOK {
			l.t.Fatalf("it is past %s: %+v, %v", step, o.Steps, o.Error)
		}
		return state == hub.StepRunning && o.Progress != nil && o.Progress.Done < o.Progress.Total &&
			float64(o.Progress.Done) >= part*float64(o.Progress.Total)
	})
}

// unplugs takes the cable out until that is noticed, has what should be so meanwhile checked, and puts it back.
func (l *laptop) unplugs(ctx context.Context, meanwhile func()) {
	l.t.Helper()
	connected := func() bool { return l.agent().Connection.State == "connected" }
	l.cut(true)
	eventually(ctx, l.t, "the loss is noticed", func() bool { return !connected() })
	meanwhile()
	l.cut(false)
	eventually(ctx, l.t, "it is connected again", connected)
}

// bridged reports whether the server has an end of a tunnel.
func (w *farWorld) bridged() bool { return w.runs("\x00agent\x00--stdio\x00") }

// TestASessionMovesToALabOverABadNetwork moves a session from the laptop to a lab server with a Docker of its own, and
// back. On the way there the cable is taken out twice, and the laptop sleeps.
func TestASessionMovesToALabOverABadNetwork(t *testing.T) {
	shared := enginetest.RequireDocker(t)
	w := newFarWorldWith(t, func(w *farWorld) string { return w.ownDocker() })
	w.slow()
	l := newLaptop(w, w.build("1.0.1"))
	l.engine = []string{"SLIPWAY_ENGINE=docker", "DOCKER_HOST=" + shared}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	l.do("agent", "add", "lab")
	l.connect()
	here := l.furnished(ctx)
	nearby, there := newCensus(t, shared, "study"), newCensus(t, w.dockerHost, "study")
	runs := func(at, not *census) {
		t.Helper()
		if one, err := at.count(); err != nil || len(one) != 1 {
			t.Errorf("%v run where it is, %v", one, err)
		}
		if none, err := not.count(); err != nil || len(none) > 0 {
			t.Errorf("%v run where it is not, %v", none, err)
		}
	}
	before, first := l.do("exec", "study", "--", "sh", "-c", movedTree), l.session("study")
	apps := l.apps("study")

	t.Run("over two cuts, and while the laptop sleeps", func(t *testing.T) {
		sent, _ := w.carried()
		began := time.Now()
		begun := l.begins("study", "lab")
		l.reaches(ctx, begun.ID, "sync-0", 0.2)
		l.unplugs(ctx, func() { runs(nearby, there) })
		l.reaches(ctx, begun.ID, "sync-0", 0.5)
		l.signals(unix.SIGSTOP)
		slept := time.Now()
		eventually(ctx, t, "the server gives the tunnel up", func() bool { return !w.bridged() })
		runs(nearby, there)
		l.signals(unix.SIGCONT)
		t.Logf("slept for %s", time.Since(slept).Round(time.Millisecond))
		l.reaches(ctx, begun.ID, "send", 0.3)
		l.unplugs(ctx, func() {
			if o := l.move("study"); o.State != hub.OperationRunning {
				t.Errorf("while the cable is out it is %s: %v", o.State, o.Error)
			}
		})
		o := l.ends(ctx, "study", "no")
		now, _ := w.carried()
		t.Logf("moved in %s, %d bytes", time.Since(began).Round(time.Millisecond), now-sent)
		if o.State != hub.OperationDone {
			t.Fatalf("it ended as %s: %v, %+v", o.State, o.Error, o.Steps)
		}
		if all := now - sent; all < movedHome+movedLayer || all > movedHome+movedLayer+movedAtMost {
			t.Errorf("%d bytes travelled; %d were missing there", all, movedHome+movedLayer)
		}
		wantAllBut(t, o, 1)
		runs(there, nearby)
		if got := l.do("exec", "study", "--", "sh", "-c", movedTree); got != before {
			t.Errorf("there it has\n%sand had\n%s", got, before)
		}
		next := l.session("study")
		if next.Agent != "lab" || next.From != first.ID || next.Name != first.Name ||
			!slices.Equal(next.Spec.Ports, first.Spec.Ports) || !slices.Equal(next.Spec.Env, first.Spec.Env) ||
			next.Spec.Resources != first.Spec.Resources {
			t.Errorf("there it is %+v, and was %+v", next, first)
		}
		if got := l.apps("study"); !reflect.DeepEqual(got, apps) {
			t.Errorf("there its apps are %v, and were %v", got, apps)
		}
		l.serves("study")
	})

	t.Run("and back, with what has changed alone", func(t *testing.T) {
		l.do("exec", "study", "--", "sh", "-c", fmt.Sprintf("rm /home/work/deep/er/gone && "+
			"echo three >/home/work/deep/er/new && head -c %d /dev/urandom >/var/tmp/more", movedBack))
		before = l.do("exec", "study", "--", "sh", "-c", movedTree)
		_, sent := w.carried()
		l.do("move", "--yes", "study", here)
		_, now := w.carried()
		o := l.move("study")
		t.Logf("moved back, %d bytes", now-sent)
		if all := now - sent; all < movedBack || all > 2*movedBack {
			t.Errorf("%d bytes travelled; %d were missing here", all, movedBack)
		}
		wantAllBut(t, o, 1)
		runs(nearby, there)
		if got := l.do("exec", "study", "--", "sh", "-c", movedTree); got != before {
			t.Errorf("here it has\n%sand had\n%s", got, before)
		}
		l.serves("study")
		w.wantNothingLeft(t, l)
	})
}

// furnished launches the session on the laptop, and returns the name of that machine.
func (l *laptop) furnished(ctx context.Context) (here string) {
	l.t.Helper()
	eventually(ctx, l.t, "the lab answers", func() bool { return l.agent().Connection.State == "connected" })
	var agents []api.Agent
	l.call("GET", "/api/v1/agents", "", &agents)
	for _, a := range agents {
		if a.Local {
			here = a.Name
		}
	}
	l.do("image", "send", enginetest.ImageMinimal, "--to", "lab")
	for place, on := range map[string]string{"sets-here": here, "sets-there": "lab"} {
		dir := filepath.Join(l.dir, place)
		if err := os.Mkdir(dir, 0o755); err != nil {
			l.t.Fatal(err)
		}
		if on == here {
			writeNoise(l.t, filepath.Join(dir, "set"), movedSets)
		}
		l.do("folder", "link", "sets", dir, "--on", on)
	}
	l.must("cp", "-p", filepath.Join(l.dir, "sets-here", "set"), filepath.Join(l.dir, "sets-there", "set"))
	l.do("run", "--wait", "--on", here, "--image", enginetest.ImageMinimal, "--name", "study", "--cpu", "1", "--mem",
		"256m", "--port", "8000", "-e", "MODE=fast", "--keep-home=30d", "-v", "sets")
	l.t.Cleanup(func() {
		_, _ = l.run("stop", "--force", "--wait", "--wait-timeout", "60s", "study")
		_, _ = l.run("agent", "rm", "lab", "--uninstall", "-y")
	})
	l.do("exec", "study", "--", "sh", "-c", fmt.Sprintf(movedFurnish, movedHome, movedLayer))
	return here
}

// apps are what a session can serve.
func (l *laptop) apps(name string) (all []session.App) {
	l.t.Helper()
	l.call("GET", "/api/v1/sessions/"+name+"/apps", "", &all)
	return all
}

// starts runs a program in a session, in a terminal of its own.
func (l *laptop) starts(name string, command ...string) {
	l.t.Helper()
	request, err := json.Marshal(session.TerminalRequest{Cols: 80, Rows: 24, Command: command})
	if err != nil {
		l.t.Fatal(err)
	}
	l.call("POST", "/api/v1/sessions/"+name+"/terminals", string(request), nil)
}

// serves has the session serve a file of its home at its port.
func (l *laptop) serves(name string) {
	l.t.Helper()
	l.starts(name, "python3", "-m", "http.server", "-b", "127.0.0.1", "-d", "/home/work/deep/er", "8000")
	var opened api.Opened
	eventually(l.t.Context(), l.t, "it listens", func() bool {
		return slices.ContainsFunc(l.apps(name),
			func(a session.App) bool { return a.ID == "port-8000" && a.State == session.AppReady })
	})
	l.call("POST", "/api/v1/sessions/"+name+"/apps/port-8000/open", "{}", &opened)
	fetch(l.t, l.web, "GET", opened.URL, "", nil)
	fetch(l.t, l.web, "GET", strings.TrimSuffix(opened.App.URL, "/")+"/note", "", nil)
}

// wantAllBut wants all layers of the image but some to have been at the machine to which the session moved.
func wantAllBut(t *testing.T, o api.Operation, missing int) {
	t.Helper()
	var present, all int
	detail := stepOf(o, "describe").Detail
	if _, err := fmt.Sscanf(detail, "%d of %d layers", &present, &all); err != nil || present != all-missing {
		t.Errorf("of its image, %s, %v", detail, err)
	}
}

// wantNothingLeft wants nothing of the session at the lab: in its Docker, in Slipway's lists and on its disk.
func (w *farWorld) wantNothingLeft(t *testing.T, l *laptop) {
	t.Helper()
	for _, args := range [][]string{{"ps", "-aq"}, {"volume", "ls", "-q"},
		{"network", "ls", "-q", "--filter", "label=slipway.instance"},
		{"image", "ls", "-q", "--filter", "reference=slipway-custom/*"}} {
		out, err := exec.Command("docker", append([]string{"-H", w.dockerHost}, args...)...).CombinedOutput()
		if err != nil || len(bytes.TrimSpace(out)) > 0 {
			t.Errorf("docker %v says %s, %v", args, out, err)
		}
	}
	var folders []api.Folder
	l.call("GET", "/api/v1/folders", "", &folders)
	for _, f := range folders {
		if f.Agent == "lab" && !f.Auto && f.Name != "sets" {
			t.Errorf("the folder %+v is left", f)
		}
	}
	found, err := exec.Command("find", w.home, "-path", "*/er/*").CombinedOutput()
	if err != nil || len(found) > 0 {
		t.Errorf("on its disk are %s, %v", found, err)
	}
}
