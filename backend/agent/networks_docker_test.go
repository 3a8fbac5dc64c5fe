package agent

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"slipway/backend/engine"
	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
	"slipway/gpu"
)

// networksOf lists this agent's networks on a real Docker.
func (r *real) networksOf() []string {
	r.t.Helper()
	out, err := exec.Command("docker", "-H", enginetest.RequireDocker(r.t), "network", "ls", "--filter",
		"label="+engine.LabelInstance+"="+r.store.Instance(), "--format", "{{.Name}}").Output()
	if err != nil {
		r.t.Fatal(err)
	}
	names := strings.Fields(string(out))
	slices.Sort(names)
	return names
}

func TestRealSessionsAreInNetworksOfTheirOwn(t *testing.T) {
	r := newReal(t, t.TempDir())
	launch := func(owner string) session.Session {
		s, err := r.agent.Launch(context.Background(),
			session.LaunchRequest{Owner: owner, Spec: session.Spec{Image: enginetest.ImageMinimal,
				Resources: session.Resources{CPU: 1, Memory: 128 * gpu.MiB}}})
		if err != nil {
			t.Fatal(err)
		}
		return r.awaitRunning(s.ID)
	}
	subnet := func(s session.Session) string {
		out, code := r.execIn(s.ID, "", "hostname", "-i")
		part := strings.Split(strings.TrimSpace(out), ".")
		if code != 0 || len(part) != 4 {
			t.Fatalf("it has the address %q", out)
		}
		return strings.Join(part[:3], ".")
	}
	end := func(s session.Session) {
		if _, err := r.agent.Terminate(context.Background(), s.ID, false); err != nil {
			t.Fatal(err)
		}
		r.awaitEnd(s.ID)
	}
	first, second := launch("ann"), launch("ann")
	if subnet(first) != subnet(second) {
		t.Errorf("one person's are in %s and %s", subnet(first), subnet(second))
	}
	end(second) // the machine may have two CPUs
	other := launch("bob")
	if subnet(first) == subnet(other) {
		t.Errorf("two persons' are both in %s", subnet(first))
	}
	isPersons := func(name string) bool { return strings.HasPrefix(name, "slipway-of-") }
	if got := r.networksOf(); len(got) != 2 || !isPersons(got[0]) || !isPersons(got[1]) {
		t.Errorf("there are the networks %v, want one of each person", got)
	}
	r.stop() // whoever comes next finds them
	next, err := openReal(r.dir, enginetest.RequireDocker(t))
	if err != nil {
		t.Fatal(err)
	}
	r.engine, r.store, r.agent, r.stop = next.engine, next.store, next.agent, next.stop
	end(first)
	end(other)
	if got := r.networksOf(); len(got) > 0 {
		t.Errorf("left are %v", got)
	}
}
