package backend

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// lonelyVariable tells a test that it runs with nothing but loopback.
const lonelyVariable = "SLIPWAY_TEST_LONELY"

func TestDemoNeedsNothingButLoopback(t *testing.T) {
	if os.Getenv(lonelyVariable) != "" {
		t.Skip("this is the inner one")
	}
	if os.Getuid() != 0 {
		t.Skip("a network namespace takes root")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	inner := exec.CommandContext(t.Context(), "unshare", "--net", "sh", "-c", `ip link set lo up && exec "$0" "$@"`,
		self, "-test.v", "-test.run=^(TestOnlyLoopbackIsThere|TestDemoHasALabBehindTheRealTunnel|TestDemoIsThrownAway)$")
	inner.Env = append(os.Environ(), lonelyVariable+"=1", "DOCKER_HOST=unix:///nowhere/docker.sock")
	said, err := inner.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, want := range []string{"TestOnlyLoopbackIsThere", "TestDemoHasALabBehindTheRealTunnel", "TestDemoIsThrownAway"} {
		if !strings.Contains(string(said), "--- PASS: "+want) {
			t.Errorf("%s did not run\n%s", want, said)
		}
	}
}

func TestOnlyLoopbackIsThere(t *testing.T) {
	if os.Getenv(lonelyVariable) == "" {
		t.Skip("it is for a namespace of its own")
	}
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if one.Flags&net.FlagUp != 0 && one.Flags&net.FlagLoopback == 0 {
			t.Errorf("%s is up", one.Name)
		}
	}
	if conn, err := net.Dial("udp", "192.0.2.1:9"); err == nil {
		t.Errorf("there is a way out: %v", conn.Close())
	}
}
