package cli

import (
	"net/http"
	"strings"
	"testing"

	"slipway/backend/api"
	"slipway/backend/recipe"
	"slipway/gpu"
)

func TestCompareShowsWhatDiffersFromTheLastSuccess(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	answer := api.SuccessComparison{This: api.Run{Session: f.sessions[0], MemoryPeak: gpu.GiB}}
	f.handle("GET /api/v1/sessions/{id}/last-success", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, answer)
	})
	name := f.sessions[0].Name
	if got := f.run(t, "compare", name); got.code != ExitOK || !strings.Contains(got.stdout, "No session like it") {
		t.Errorf("without a success: %+v", got)
	}
	success := f.sessions[0]
	success.Agent = "lab"
	answer.Success = &api.Run{Session: success, MemoryPeak: 2 * gpu.GiB, BusyCPUs: 0.5}
	answer.Spec = []recipe.Field{{Field: "image", Left: "a", Right: "a", Same: true},
		{Field: "resources.cpu", Left: "1", Right: "2"}}
	got := f.run(t, "compare", name)
	words := strings.Join(strings.Fields(got.stdout), " ")
	for _, want := range []string{f.sessions[0].Agent + " lab", "memory peak 1 GiB 2 GiB",
		"CPUs in use, average - 0.50", "resources.cpu 1 2"} {
		if !strings.Contains(words, want) {
			t.Errorf("%q is not in\n%s", want, got.stdout)
		}
	}
	if got.code != ExitOK || strings.Contains(words, "image a") {
		t.Errorf("%+v", got)
	}
}
