//go:build linux

package slurm_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine"
	engineslurm "slipway/backend/engine/slurm"
	"slipway/backend/engine/slurm/slurmtest"
	"slipway/backend/guest/node"
	"slipway/backend/session"
)

// copyApptainer puts Apptainer on the nodes, if build/slurm/apptainer.sh has built it.
func copyApptainer(t *testing.T, c *slurmtest.Cluster, dir string) {
	t.Helper()
	const built = "../../../build/.cache/apptainer/"
	found, err := filepath.Glob(built + "*/bin/apptainer")
	if err != nil || len(found) == 0 {
		return
	}
	archive := filepath.Join(t.TempDir(), "apptainer.tar")
	from := filepath.Dir(filepath.Dir(found[0]))
	if out, err := exec.Command("tar", "-C", from, "-cf", archive, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c.Copy(archive, slurmtest.Login, dir+"/apptainer.tar")
	c.Exec(slurmtest.Login, "sh", "-c", "cd "+dir+" && mkdir apptainer && tar -C apptainer -xf apptainer.tar")
	for _, on := range []string{slurmtest.Node1, slurmtest.Node2} {
		const at = "/usr/local/bin/apptainer"
		c.Root(on, "ln", "-sf", dir+"/apptainer/bin/apptainer", at)
		t.Cleanup(func() { c.Root(on, "rm", "-f", at) })
	}
}

// explores has a real job try a node.
func (l login) explores(t *testing.T) {
	began := time.Now()
	checks := l.known(t)
	t.Logf("a job has tried a node after %s", time.Since(began).Round(time.Millisecond))
	for _, id := range []string{"node-containers", "node-network", "node-link", "node-limits", "devices"} {
		if c := checks[id]; c.Result != session.CheckOK {
			t.Errorf("%s: %+v", id, c)
		}
	}
	t.Logf("it found %+v", checks)
}

// known opens an engine that has the nodes tried, and returns what the doctor says of them.
func (l login) known(t *testing.T) map[string]session.Check {
	t.Helper()
	e := l.openWith(t, func(c *engineslurm.Config) { c.Explore = true })
	defer e.Close() //nolint:errcheck // it never fails
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		info, err := e.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]session.Check{}
		for _, c := range info.Checks {
			found[c.ID] = c
		}
		if found["node-limits"].ID != "" {
			return found
		}
		if time.Now().After(deadline) {
			t.Fatalf("the nodes are not tried: %+v", info.Checks)
		}
	}
}

// contains runs a container where user namespaces are said to be refused.
func (l login) contains(t *testing.T) {
	if _, err := os.Stat(filepath.Join(l.dir, "apptainer")); err != nil {
		t.Log("not tried with Apptainer, which build/slurm/apptainer.sh builds")
		return
	}
	found := map[string]any{"at": time.Now(), "direct": true, "probe": node.Probe{Host: "n1", Port: 1,
		OwnReason: "user namespaces are refused"}}
	data, err := json.Marshal(found)
	if err == nil {
		err = os.WriteFile(filepath.Join(l.dir, "probe", "nodes.json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(filepath.Join(l.dir, "probe")) }) //nolint:errcheck // in a folder of the test
	if c := l.known(t)["node-containers"]; !strings.Contains(c.Text, "Apptainer") {
		t.Fatalf("it is remembered as %+v", c)
	}
	e := l.openWith(t, func(c *engineslurm.Config) { c.Explore = true })
	w := wanted(second, "", func(w *engine.Wanted) { w.Kernels[0].Image = loginImage })
	id, err := e.Create(t.Context(), w.Kernels[0])
	if err == nil {
		err = e.Start(t.Context(), id)
	}
	if err != nil {
		t.Fatal(err)
	}
	greeted(t, e, id)
	samples, err := e.Stats(t.Context(), []string{id})
	if err != nil || samples[id].Memory == 0 {
		t.Errorf("its use is %+v, %v", samples, err)
	}
	if err := e.Stop(t.Context(), id, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if state, err := e.Inspect(t.Context(), id); err != nil || state.Running || state.Taken != nil {
		t.Errorf("it is %+v, %v", state, err)
	}
	if err := e.Remove(t.Context(), id); err != nil {
		t.Error(err)
	}
}
