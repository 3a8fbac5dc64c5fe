package store

import (
	"fmt"
	"path/filepath"
	"testing"

	"slipway/backend/session"
	"slipway/gpu"
)

func TestCheckFindsDevicesPromisedTwice(t *testing.T) {
	whole := gpu.Grant{Device: "GPU-0", Share: 1000, Whole: true}
	half := gpu.Grant{Device: "GPU-0", Share: 600}
	part := gpu.Grant{Device: "GPU-1", Instance: "MIG-a", Share: 100}
	for name, c := range map[string]struct {
		grants [2][]gpu.Grant
		sound  bool
	}{
		"two devices":         {[2][]gpu.Grant{{whole}, {{Device: "GPU-1", Share: 1000, Whole: true}}}, true},
		"shares that fit":     {[2][]gpu.Grant{{half}, {{Device: "GPU-0", Share: 400}}}, true},
		"two instances":       {[2][]gpu.Grant{{part}, {{Device: "GPU-1", Instance: "MIG-b", Share: 100}}}, true},
		"one whole device":    {[2][]gpu.Grant{{whole}, {whole}}, false},
		"whole and a share":   {[2][]gpu.Grant{{whole}, {half}}, false},
		"shares over one":     {[2][]gpu.Grant{{half}, {half}}, false},
		"one instance":        {[2][]gpu.Grant{{part}, {part}}, false},
		"a share, then whole": {[2][]gpu.Grant{{half}, {whole}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, filepath.Join(t.TempDir(), "agent.db"), nil)
			for i, id := range []session.ID{"aaaaaaaaaaaa", "bbbbbbbbbbbb"} {
				r := pending(string(id))
				r.Status, r.Grants.GPUs = session.Running, c.grants[i]
				r.Kernels = []session.Kernel{{Name: session.MainKernel, Grants: r.Grants}}
				create(t, s, r, "")
			}
			if problems, err := s.Check(); err != nil || (len(problems) == 0) != c.sound {
				t.Errorf("%v, %v", problems, err)
			}
		})
	}
	for nodes, sound := range map[[2]string]bool{{"n1", "n2"}: true, {"", "n1"}: true, {"n1", "n1"}: false} {
		t.Run(fmt.Sprintf("the same on %q", nodes), func(t *testing.T) {
			s := open(t, filepath.Join(t.TempDir(), "agent.db"), nil)
			for i, id := range []session.ID{"aaaaaaaaaaaa", "bbbbbbbbbbbb"} {
				r := pending(string(id))
				r.Status, r.Grants = session.Running, session.Grants{CPUs: []int{0}, GPUs: []gpu.Grant{whole}}
				r.Kernels = []session.Kernel{{Name: session.MainKernel, Node: nodes[i], Grants: r.Grants}}
				create(t, s, r, "")
			}
			if problems, err := s.Check(); err != nil || len(problems) != map[bool]int{true: 0, false: 2}[sound] {
				t.Errorf("%v, %v", problems, err)
			}
		})
	}
	t.Run("kernels that hold something else", func(t *testing.T) {
		s := open(t, filepath.Join(t.TempDir(), "agent.db"), nil)
		r := pending("aaaaaaaaaaaa")
		r.Status, r.Grants.GPUs = session.Running, []gpu.Grant{half}
		r.Kernels = []session.Kernel{{Name: session.MainKernel}}
		create(t, s, r, "")
		if problems, err := s.Check(); err != nil || len(problems) != 1 {
			t.Errorf("%v, %v", problems, err)
		}
	})
}
