//go:build linux

package docker

import "testing"

func TestStartHints(t *testing.T) {
	for text, want := range map[string]string{
		"exec /.slipway/guest: exec format error": "The image is made for " +
			"another kind of processor; choose one for this machine.",
		"error mounting \"/data\" to rootfs at \"/data\": not a " +
			"directory: unknown": "A mounted directory " +
			"vanished or its target is a file in the image; check the mounts.",
		"failed to write 9: write " +
			"/sys/fs/cgroup/cpuset/docker/x/cpuset.cpus: invalid": "The machine refuses the CPU " +
			"limit; check that its cgroups are set up.",
		"a new reason nobody has heard of": "Try again. If it fails again, " +
			"read the Docker daemon's log.",
	} {
		if got := startHints.Of(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}
