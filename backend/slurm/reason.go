package slurm

import (
	"strings"

	"slipway/backend/session"
)

// Reason is why a job waits, or why it failed, as Slurm says it: printable text of at most 200 bytes. Empty: none.
type Reason string

// parseReason reads a reason, which some versions put in brackets.
func parseReason(text string) Reason {
	text = strings.Trim(clean(text, maxReason), "()")
	if text == "None" || text == "null" {
		return ""
	}
	return Reason(text)
}

// meaning is what a reason means.
type meaning struct {
	say   string       // key of the phrase
	code  session.Code // as a reason to wait
	never bool         // a job that waits for it will never start as it is
}

// meanings are the reasons of Slurm 22.05 other than limits, which [limitOf] reads.
var meanings = map[string]meaning{
	"":                         {"slurmNew", session.CodeWaitTurn, false},
	"WaitingForScheduling":     {"slurmNew", session.CodeWaitTurn, false},
	"SchedDefer":               {"slurmNew", session.CodeWaitTurn, false},
	"Priority":                 {"slurmPriority", session.CodeWaitTurn, false},
	"FedJobLock":               {"slurmOtherCluster", session.CodeWaitTurn, false},
	"Resources":                {"slurmResources", session.CodeWaitResources, false},
	"Licenses":                 {"slurmLicenses", session.CodeWaitResources, false},
	"BurstBufferResources":     {"slurmBurstBuffer", session.CodeWaitResources, false},
	"BurstBufferStageIn":       {"slurmBurstBufferData", session.CodeWaitResources, false},
	"BurstBufferOperation":     {"slurmBurstBufferFailed", session.CodeWaitResources, true},
	"BeginTime":                {"slurmBeginTime", session.CodeWaitStart, false},
	"Reservation":              {"slurmReservation", session.CodeWaitStart, false},
	"ReservationDeleted":       {"slurmReservationGone", session.CodeWaitStart, true},
	"Dependency":               {"slurmDependency", session.CodeWaitDependency, false},
	"DependencyNeverSatisfied": {"slurmDependencyNever", session.CodeWaitDependency, true},
	"JobHeldUser":              {"slurmHeld", session.CodeWaitStart, true},
	"JobHeldAdmin":             {"slurmHeldAdmin", session.CodeWaitStart, true},
	"JobHoldMaxRequeue":        {"slurmHeldRequeue", session.CodeWaitStart, true},
	"Prolog":                   {"slurmProlog", session.CodeWaitMachine, false},
	"Cleaning":                 {"slurmCleaning", session.CodeWaitMachine, false},
	"NodeDown":                 {"slurmNodeDown", session.CodeWaitMachine, false},
	"FrontEndDown":             {"slurmNodeDown", session.CodeWaitMachine, false},
	"ReqNodeNotAvail":          {"slurmNodeUnavailable", session.CodeWaitMachine, false},
	"PartitionDown":            {"slurmPartitionDown", session.CodeWaitMachine, false},
	"PartitionInactive":        {"slurmPartitionDown", session.CodeWaitMachine, false},
	"PartitionNodeLimit":       {"slurmPartitionNodes", session.CodeWaitLimit, false},
	"PartitionTimeLimit":       {"slurmPartitionTime", session.CodeWaitLimit, true},
	"PartitionConfig":          {"slurmPartitionConfig", session.CodeWaitLimit, true},
	"BadConstraints":           {"slurmConstraints", session.CodeWaitResources, true},
	"MaxMemPerLimit":           {"slurmMemoryLimit", session.CodeWaitLimit, true},
	"InvalidAccount":           {"slurmAccountInvalid", session.CodeWaitLimit, true},
	"AccountNotAllowed":        {"slurmAccountForbidden", session.CodeWaitLimit, true},
	"InvalidQOS":               {"slurmQOSInvalid", session.CodeWaitLimit, true},
	"QOSNotAllowed":            {"slurmQOSForbidden", session.CodeWaitLimit, true},
	"QOSUsageThreshold":        {"slurmUsageThreshold", session.CodeWaitLimit, false},
	"AccountingPolicy":         {"slurmPolicy", session.CodeWaitLimit, false},
	"JobArrayTaskLimit":        {"slurmArrayLimit", session.CodeWaitLimit, false},
	"SystemFailure":            {"slurmSystemFailure", session.CodeWaitMachine, false},
	"JobLaunchFailure":         {"slurmLaunchFailed", session.CodeWaitMachine, true},
	"NonZeroExitCode":          {"slurmFailed", session.CodeWaitMachine, true},
	"RaisedSignal":             {"slurmFailed", session.CodeWaitMachine, true},
	"TimeLimit":                {"slurmTimeout", session.CodeWaitMachine, true},
	"InactiveLimit":            {"slurmInactive", session.CodeWaitMachine, true},
	"OutOfMemory":              {"slurmOutOfMemory", session.CodeWaitMachine, true},
	"DeadLine":                 {"slurmDeadline", session.CodeWaitMachine, true},
}

// sentences are reasons that Slurm says in a sentence, which it writes with underscores in some versions.
var sentences = map[string]meaning{
	"Nodes required for job are DOWN":         meanings["ReqNodeNotAvail"],
	"launch failed requeued held":             {"slurmHeldLaunch", session.CodeWaitStart, true},
	"launch failure limit exceeded":           {"slurmHeldLaunch", session.CodeWaitStart, true},
	"job requeued in held state":              meanings["JobHeldUser"],
	"user env retrieval failed requeued held": {"slurmHeldLaunch", session.CodeWaitStart, true},
}

// meaning returns what a reason means. ok is false for one that is not in the tables.
func (r Reason) meaning() (m meaning, ok bool) {
	name, _, _ := strings.Cut(string(r), ",")
	if m, ok = meanings[name]; ok {
		return m, true
	}
	m, ok = sentences[strings.ReplaceAll(name, "_", " ")]
	return m, ok
}

// Words says the reason in a sentence. One that is not in the tables is said as Slurm says it.
func (r Reason) Words() session.Phrase {
	if m, ok := r.meaning(); ok {
		return session.Say(m.say)
	}
	if l, ok := limitOf(r); ok {
		return l.words()
	}
	return session.Say("slurmReason", session.Fill("reason", string(r)))
}

// Never reports whether a job that waits for this reason will never start as it is.
func (r Reason) Never() bool {
	if m, ok := r.meaning(); ok {
		return m.never
	}
	l, _ := limitOf(r)
	return l.never()
}

// Code is what kind of reason to wait it is.
func (r Reason) Code() session.Code {
	if m, ok := r.meaning(); ok {
		return m.code
	}
	if _, ok := limitOf(r); ok {
		return session.CodeWaitLimit
	}
	return session.CodeWaitResources
}
