package backend

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// lonely is a script that runs its arguments where nothing but loopback is.
const lonely = `ip link set lo up && test "$(ip -o link show up | wc -l)" = 1 && test -z "$(ip route)" && exec "$0" ` +
	`"$@"`

func TestDemoNeedsNothingButLoopback(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--net"}
	if os.Getuid() != 0 {
		args = append(args, "--map-root-user")
	}
	args = append(args, "sh", "-c", lonely, self, "-test.v",
		"-test.run=^(TestDemoHasALabBehindTheRealTunnel|TestDemoIsThrownAway)$")
	inner := exec.CommandContext(t.Context(), "unshare", args...)
	inner.Env = append(os.Environ(), "DOCKER_HOST=unix:///nowhere/docker.sock")
	said, err := inner.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, want := range []string{"TestDemoHasALabBehindTheRealTunnel", "TestDemoIsThrownAway"} {
		if !strings.Contains(string(said), "--- PASS: "+want) {
			t.Errorf("%s did not run\n%s", want, said)
		}
	}
}
