//go:build linux

package slurm_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	engineslurm "slipway/backend/engine/slurm"
	"slipway/backend/engine/slurm/slurmtest"
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

// contains runs sessions where a job has found that user namespaces are refused to all but Apptainer.
func (l login) contains(t *testing.T) {
	if _, err := os.Stat(filepath.Join(l.dir, "apptainer")); err != nil {
		t.Log("not tried with Apptainer, which build/slurm/apptainer.sh builds")
		return
	}
	forget := func() {
		if err := os.RemoveAll(filepath.Join(l.dir, "probe")); err != nil {
			t.Error(err)
		}
	}
	forget()
	l.chore(choreRefuse)
	t.Cleanup(func() {
		l.chore(choreAllow)
		forget()
	})
	if c := l.known(t)["node-containers"]; c.Result != session.CheckOK ||
		!strings.Contains(c.Text, "Apptainer makes them") || !strings.Contains(c.Text, "operation not permitted") {
		t.Fatalf("the job has found %+v", c)
	}
	m := l.manage(t, func(c *engineslurm.Config) { c.Explore = true })
	lasting, command := m.launch("lasting", ""), m.launch("command", "echo begins; exit 4")
	m.becomes(lasting, "RUNNING", running)
	out, err := m.in(lasting, "main1", "sh", "-c", "echo $APPTAINER_CONTAINER; id -u; touch mine; ls")
	if err != nil || !strings.Contains(out, fmt.Sprint(os.Getuid())) || !strings.Contains(out, "mine") {
		t.Errorf("in the session: %q, %v", out, err)
	}
	if s := m.becomes(command, "its end", over); s.ExitCode == nil || *s.ExitCode != 4 {
		t.Errorf("the command ended as %s, %+v, %+v", s.Reason, s.ExitCode, s.Error)
	}
	if log := m.log(command); strings.Count(log, "begins") != 1 {
		t.Errorf("its log is %q", log)
	}
	if _, err := m.Terminate(t.Context(), lasting, false); err != nil {
		t.Fatal(err)
	}
	if s := m.becomes(lasting, "its end", over); s.Reason != session.ReasonUser {
		t.Errorf("it ended as %s, %+v", s.Reason, s.Error)
	}
	l.nothingLeft(t)
}
