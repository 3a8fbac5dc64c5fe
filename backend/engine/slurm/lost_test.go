//go:build linux

package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/backend/slurm"
)

// One kernel that is lost ends the other, and both say which it was.
func TestALostKernelOfACluster(t *testing.T) {
	for state, want := range map[string]string{
		"NODE_FAIL": "Node n2 failed, and the session ended with it.",
		"FAILED":    "The container sub1 on node n2 was killed, and the session ended with it.",
	} {
		t.Run(state, func(t *testing.T) {
			p := newPlanned(t, 0)
			w := wanted(first, "", paired)
			p.plan("a job", []engine.Wanted{w}, nil, func([]scheduler.Decision) bool {
				return p.cluster.count(slurm.NameOf(first, 1)) == 1
			})
			at := time.Now().UTC().Format(time.RFC3339)
			for file, text := range map[string]string{
				"main1.begun": fmt.Sprintf(`{"job":"1","host":"n1","at":%q}`, at),
				"sub1.begun":  fmt.Sprintf(`{"job":"1","host":"n2","at":%q}`, at),
				"main1.exit":  fmt.Sprintf(`{"code":143,"started":%q,"ended":%q,"host":"n1","job":"1"}`, at, at),
			} {
				if err := os.WriteFile(filepath.Join(p.run(first), file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, c := range w.Kernels {
				if _, err := p.engine.Create(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			p.cluster.change(func(on *cluster) {
				on.jobs[0].state, on.jobs[0].start, on.jobs[0].end = state, time.Now(), time.Now()
			})
			for _, c := range w.Kernels {
				end := p.ended(c.Name)
				if end.Taken == nil || end.Taken.Reason != session.ReasonLost || end.Taken.Cause.Message != want {
					t.Errorf("%s ended as %+v, taken %+v", c.Name, end, end.Taken)
				}
			}
		})
	}
}
