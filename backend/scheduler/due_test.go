package scheduler

import (
	"slices"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Where another scheduler has the resources, what is left to decide here is
// decided as it is on a machine, however little the machine has.
func TestDueIsWhatWaitsForResourcesOnly(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ask := session.Resources{CPU: 64, Memory: 100 * gpu.GiB}
	soon, gone := now.Add(time.Hour), now.Add(-time.Minute)
	s := Snapshot{
		Allowances: map[string]session.Allowance{"eve": {Sessions: 2, GPU: 2 * gpu.WholeDevice}},
		Promised:   []Promise{{Session: "runs", Owner: "eve", Grants: session.Grants{CPUs: []int{1}}}},
		Queue: []Request{
			{Session: "plain", Owner: "ann", Resources: ask},
			{Session: "later", Owner: "ann", Resources: ask, NotBefore: &soon},
			{Session: "urgent", Owner: "ann", Resources: ask, Priority: 90, GPU: gpu.Request{Devices: 4}},
			{Session: "after", Owner: "ann", Resources: ask,
				After: []Dependency{{Session: "runs", Status: session.Running}}},
			{Session: "failed", Owner: "ann", Resources: ask, After: []Dependency{{Session: "gone"}}},
			{Session: "expired", Owner: "ann", Resources: ask, Deadline: &gone},
			{Session: "eve-1", Owner: "eve", Resources: ask, GPU: gpu.Request{Devices: 1}},
			{Session: "eve-2", Owner: "eve", Resources: ask},
			{Session: "eve-3", Owner: "eve", Resources: ask, GPU: gpu.Request{Devices: 3}},
		},
	}
	due, decided := Due(s, now)
	if want := []session.ID{"urgent", "plain", "eve-1"}; !slices.Equal(due, want) {
		t.Fatalf("due are %v, not %v", due, want)
	}
	want := []struct {
		id       session.ID
		code     session.Code
		position int
		end      session.Reason
	}{
		{id: "later", code: session.CodeWaitStart, position: 5},
		{id: "after", code: session.CodeWaitDependency, position: 6},
		{id: "failed", end: session.ReasonDependency},
		{id: "expired", end: session.ReasonPendingTimeout},
		{id: "eve-2", code: session.CodeWaitLimit, position: 4},
		{id: "eve-3", code: session.CodeWaitLimit, position: 7},
	}
	if len(decided.Decisions) != len(want) {
		t.Fatalf("decided is %+v", decided.Decisions)
	}
	for i, w := range want {
		d := decided.Decisions[i]
		switch {
		case d.Session != w.id:
			t.Errorf("decision %d is on %s, not %s", i, d.Session, w.id)
		case w.end != "":
			if d.End == nil || d.End.Reason != w.end {
				t.Errorf("%s: %+v", w.id, d)
			}
		case d.Wait == nil || d.Wait.Code != w.code || d.Wait.Position != w.position:
			t.Errorf("%s: %+v", w.id, d.Wait)
		}
	}
	if !decided.Next.Equal(soon) {
		t.Errorf("the next plan is at %s", decided.Next)
	}
	again, _ := Due(s, soon)
	if !slices.Contains(again, "later") {
		t.Errorf("once its time has come, due are %v", again)
	}
}

// An answer of another scheduler decides on those that it was asked for, each
// once, and what it keeps of the answer stays its own.
func TestAnotherSchedulerDecidesOnWhatIsDueOnly(t *testing.T) {
	now := time.Now()
	kept := session.Wait{Code: session.CodeWaitResources, Message: "Slurm has no free node."}
	own := Schedule{Next: now.Add(time.Hour),
		Decisions: []Decision{{Session: "later", Wait: &session.Wait{Position: 3}}}}
	all := own.With([]session.ID{"b", "a", "silent"}, Schedule{Next: now, Decisions: []Decision{
		{Session: "a", Wait: &kept},
		{Session: "later", Place: &Placement{}},
		{Session: "b", Place: &Placement{Nodes: []string{"n1"}}},
		{Session: "b", Wait: &kept},
		{Session: "stranger", End: &End{}},
	}})
	if len(all.Decisions) != 3 || all.Decisions[0].Session != "b" || all.Decisions[0].Place == nil ||
		all.Decisions[1].Session != "a" || all.Decisions[1].Wait.Position != 1 ||
		all.Decisions[2].Session != "later" || all.Decisions[2].Wait == nil {
		t.Errorf("the plan is %+v", all.Decisions)
	}
	if kept.Position != 0 {
		t.Error("what the other scheduler keeps was changed")
	}
	if !all.Next.Equal(now) || !own.With(nil, Schedule{}).Next.Equal(own.Next) {
		t.Errorf("the next plan is at %s", all.Next)
	}
}
