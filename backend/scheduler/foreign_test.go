package scheduler

import (
	"strings"
	"testing"

	"slipway/gpu"
)

func TestProgramsOutsideAreNamedToTheOwnerOnly(t *testing.T) {
	foreign := []Foreign{{PID: 4711, Name: "secret-train.py", User: "carl", Memory: 2 * gpu.GiB},
		{PID: 4712, Name: "jupyter", Memory: gpu.GiB}}
	text := func(viewer string) string {
		var all []string
		for _, p := range foreignText(viewer, foreign) {
			all = append(all, p.English())
		}
		return strings.Join(all, "; ")
	}
	if got := text(""); !strings.Contains(got, "secret-train.py, carl") || !strings.Contains(got, "pid 4712") {
		t.Errorf("the owner is told %q", got)
	}
	if got := text("eve"); got != "3 GiB used by programs outside Slipway" {
		t.Errorf("a user is told %q", got)
	}
}
