package docker

import (
	"slices"
	"testing"
)

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
		"a new reason nobody has heard of": "Try again; if it stays, " +
			"read the Docker daemon's log.",
	} {
		if got := startHint(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

func TestNamesOfAnImage(t *testing.T) {
	for name, c := range map[string]struct{ tags, digests, want []string }{
		"its tags": {[]string{"python:3.12", "<none>:<none>"}, []string{"python@sha256:1"},
			[]string{"python:3.12"}},
		"its digests where it has no tag": {[]string{"<none>:<none>"}, []string{"python@sha256:1"},
			[]string{"python@sha256:1"}},
		"none":                           {nil, []string{"<none>@<none>"}, nil},
		"none for that of trials":        {[]string{"slipway-trial:1"}, []string{"slipway-trial@sha256:1"}, nil},
		"only those that others gave it": {[]string{"slipway-trial:1", "scratch:1"}, nil, []string{"scratch:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := names(c.tags, c.digests); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
