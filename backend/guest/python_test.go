//go:build linux

package guest_test

import (
	"strings"
	"testing"

	"slipway/backend/session"
)

// fakeCUDA is what torch.cuda does with calls before and after a device is used.
const fakeCUDA = `
_calls = []
def _lazy_call(call): _calls.append(call)
def device_count(): return 2
def set_per_process_memory_fraction(fraction, device): print("limit", fraction, device)
def init():
    for call in _calls: call()
`

func TestPyTorchKeepsToItsShare(t *testing.T) {
	start := func(t *testing.T, env ...session.EnvVar) *box {
		b := newBox(t, true)
		b.write("own/torch/__init__.py", "")
		b.write("own/torch/cuda/__init__.py", fakeCUDA)
		b.write("own/sitecustomize.py", "print('their own')")
		b.settings.Env = append(b.settings.Env, session.EnvVar{Name: "PYTHONPATH", Value: "/own"},
			session.EnvVar{Name: "SLIPWAY_GPU_FRACTION", Value: "0.479"})
		b.settings.Env = append(b.settings.Env, env...)
		return b.start()
	}
	const program = "import torch.cuda; print('imported'); torch.cuda.init(); import json; print('done')"
	t.Run("when a device is first used, beside the image's own sitecustomize", func(t *testing.T) {
		client := start(t, session.EnvVar{Name: "SLIPWAY_GPU_COOPERATIVE", Value: "1"}).connect()
		got := run(t, client, "/usr/bin/python3", "-c", program)
		if got.out != "their own\nimported\nlimit 0.479 0\nlimit 0.479 1\ndone\n" || got.code != 0 {
			t.Errorf("python said %+v", got)
		}
		if got := run(t, client, "/usr/bin/python3", "-c",
			"import sys; print('torch' in sys.modules)"); got.out != "their own\nFalse\n" {
			t.Errorf("a program without torch gets %+v", got)
		}
	})
	t.Run("and not where nobody wants that", func(t *testing.T) {
		client := start(t).connect()
		if got := run(t, client, "/usr/bin/python3", "-c", program); strings.Contains(got.out, "limit") ||
			got.code != 0 {
			t.Errorf("python said %+v", got)
		}
	})
	t.Run("and a version without the means runs on", func(t *testing.T) {
		b := newBox(t, true)
		b.write("own/torch/__init__.py", "")
		b.write("own/torch/cuda/__init__.py", "")
		b.settings.Env = append(b.settings.Env, session.EnvVar{Name: "PYTHONPATH", Value: "/own"},
			session.EnvVar{Name: "SLIPWAY_GPU_COOPERATIVE", Value: "1"})
		client := b.start().connect()
		if got := run(t, client, "/usr/bin/python3", "-c", "import torch.cuda; print('on')"); got.out != "on\n" ||
			got.code != 0 {
			t.Errorf("python said %+v", got)
		}
	})
}
