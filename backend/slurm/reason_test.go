package slurm

import (
	"os"
	"slices"
	"strings"
	"testing"

	"slipway/backend/session"
)

// testdata/reasons.txt has the names of all reasons in the library of Slurm 22.05.
func TestAllReasonsHaveWords(t *testing.T) {
	list, err := os.ReadFile("testdata/reasons.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(list))
	if len(names) < 190 {
		t.Fatalf("%d reasons", len(names))
	}
	for _, name := range names {
		r := parseReason(name)
		words := r.Words().English()
		if strings.Contains(words, name) || !strings.HasSuffix(words, ".") || strings.Contains(words, "{{") {
			t.Errorf("%s: %q", name, words)
		}
		if !strings.HasPrefix(string(r.Code()), "scheduler_wait_") {
			t.Errorf("%s waits as %s", name, r.Code())
		}
	}
	for name, m := range meanings {
		if name != "" && !slices.Contains(names, name) && name != "RaisedSignal" && name != "SchedDefer" {
			t.Errorf("%s is no reason of Slurm 22.05 (%s)", name, m.say)
		}
	}
}

func TestReasons(t *testing.T) {
	for name, want := range map[string]struct {
		words string
		code  session.Code
		never bool
	}{
		"(Resources)": {"Waiting until enough resources are free.", session.CodeWaitResources, false},
		"None": {"Slurm has not considered the job yet.",
			session.CodeWaitTurn, false},
		"AssocGrpGRES": {"Limit of the account reached: devices.",
			session.CodeWaitLimit, false},
		"AssocMaxJobsLimit": {"You have reached your limit in the account: running jobs.",
			session.CodeWaitLimit, false},
		"QOSMaxGRESPerUser": {"You have reached your limit in the QOS: devices.",
			session.CodeWaitLimit, false},
		"QOSMaxCpuPerJobLimit": {"The session asks for more than the QOS allows: CPUs.",
			session.CodeWaitLimit, true},
		"QOSMinGRES": {"The session asks for less than the QOS requires: devices.",
			session.CodeWaitLimit, true},
		"MaxGRESPerAccount": {"The account has reached its limit in the QOS: devices.",
			session.CodeWaitLimit, false},
		"QOSGrpCPUMinutesLimit": {"Limit of the QOS reached: CPU time.",
			session.CodeWaitLimit, false},
		"ReqNodeNotAvail, UnavailableNodes:n[1-2]": {"A node that the job needs is in use, reserved or down.",
			session.CodeWaitMachine, false},
		"Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions": {
			"A node that the job needs is in use, reserved or down.", session.CodeWaitMachine, false},
		"launch_failed_requeued_held": {"Slurm could not start the job and holds it now.",
			session.CodeWaitStart, true},
		"Waiting_for_the_moon": {"Slurm says: Waiting_for_the_moon",
			session.CodeWaitResources, false},
		"Evil\x1b[31m": {"Slurm says: Evil [31m", session.CodeWaitResources, false},
	} {
		r := parseReason(name)
		if got := r.Words().English(); got != want.words || r.Code() != want.code || r.Never() != want.never {
			t.Errorf("%q says %q, %s, never: %v", name, got, r.Code(), r.Never())
		}
	}
}

func TestStates(t *testing.T) {
	for i, name := range stateNames {
		state, by := parseState(name)
		if state != State(i) || by != "" || state.String() != name {
			t.Errorf("%s is %s", name, state)
		}
		if ended := state >= Completed; state.Ended() != ended || state.Live() != (!ended && state != Unknown) {
			t.Errorf("%s has ended: %v", name, state.Ended())
		}
		if words := state.Words().English(); (state.Ended() || state == Requeued) != strings.HasSuffix(words, ".") {
			t.Errorf("%s says %q", name, words)
		}
	}
	for text, want := range map[string]State{"REQUEUE_HOLD": Requeued, "STAGE_OUT": Completing, "SIGNALING": Running,
		"CANCELLED+": Cancelled, "": Unknown, "DANCING": Unknown, "PENDING\x00": Unknown} {
		if state, _ := parseState(text); state != want {
			t.Errorf("%q is %s", text, state)
		}
	}
	if state, by := parseState("CANCELLED by 1500"); state != Cancelled || by != "1500" {
		t.Errorf("%s by %q", state, by)
	}
}

func FuzzReason(f *testing.F) {
	f.Add("QOSGrpCPUMinutesLimit", "CANCELLED by 1500")
	f.Add("(ReqNodeNotAvail, UnavailableNodes:n1)", "RUNNING")
	f.Fuzz(func(t *testing.T, reason, state string) {
		r := parseReason(reason)
		if words := r.Words().English(); words == "" || strings.ContainsFunc(words, foreign) || len(r) > maxReason {
			t.Errorf("%q says %q", reason, words)
		}
		s, by := parseState(state)
		if s.Ended() && s.Live() || len(by) > maxName || s.String() == "" {
			t.Errorf("%q is %s by %q", state, s, by)
		}
	})
}
