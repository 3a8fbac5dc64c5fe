package launch

import (
	"slices"
	"testing"

	"slipway/backend/session"
	"slipway/gpu"
)

// A kernel with several devices runs several processes, which only their launcher can number.
func TestProcessesAreNumberedWhereAKernelHasOne(t *testing.T) {
	for name, c := range map[string]struct {
		asked    gpu.Request
		numbered bool
	}{
		"no device":     {gpu.Request{}, true},
		"a device":      {gpu.Request{Devices: 1}, true},
		"a part":        {gpu.Request{Shares: gpu.WholeDevice / 2}, true},
		"devices":       {gpu.Request{Devices: 2}, false},
		"several parts": {gpu.Request{Shares: 2 * gpu.WholeDevice}, false},
		"an instance":   {gpu.Request{Profile: "1g.10gb"}, true},
		"more than one": {gpu.Request{Profile: "1g.10gb", Count: 2}, false},
		"memory of one": {gpu.Request{Memory: gpu.GiB}, true},
	} {
		s := session.Session{ID: "aaaaaaaaaaaa", Spec: session.Spec{Accelerator: c.asked}}
		s.Kernels = make([]session.Kernel, 2)
		for _, variable := range []string{"RANK", "WORLD_SIZE"} {
			if got := slices.ContainsFunc(meetingEnv(s, 1), func(v session.EnvVar) bool {
				return v.Name == variable
			}); got != c.numbered {
				t.Errorf("%s: %s is set: %t", name, variable, got)
			}
		}
	}
}
