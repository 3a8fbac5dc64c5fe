package records

import (
	"strconv"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// Verdict is how the end of a container counts.
type Verdict struct {
	Reason   session.Reason
	Result   session.Result
	ExitCode *int
	Cause    *session.Cause
}

// Judge judges the end of one of a session's containers that was not requested. state is nil if the container has
// vanished. oom reports that the kernel killed a process of the session for memory.
func Judge(s session.Session, number int, state *engine.State, oom bool) Verdict {
	if state == nil {
		lost := session.Say("containerLost")
		if number > 0 {
			lost = session.Say("kernelLost", session.Fill("name", s.Kernels[number].Name))
		}
		return Verdict{Reason: session.ReasonLost, Result: LostResult(s),
			Cause: session.Because(session.CodeContainerLost, lost, session.Say("containerLostHint"))}
	}
	oom = oom || state.OOMKilled
	code := state.ExitCode
	if number > 0 {
		return judgeOther(s, number, code, oom)
	}
	v := Verdict{ExitCode: &code}
	if s.Spec.Type == session.Batch {
		switch {
		case code == 0:
			v.Reason, v.Result = session.ReasonFinished, session.ResultSuccess
		case oom:
			v.Reason, v.Result, v.Cause = session.ReasonOOM, session.ResultFailure, memoryCause(s)
		default:
			v.Reason, v.Result = session.ReasonTaskFailed, session.ResultFailure
			v.Cause = session.Because(session.CodeTaskFailed, session.Say("taskFailed", exitCode(code)),
				session.Say("readLog"))
		}
		return v
	}
	v.Reason, v.Result = session.ReasonSelf, session.ResultUndefined
	switch {
	case oom && code == 137:
		v.Reason, v.Cause = session.ReasonOOM, memoryCause(s)
	case code != 0:
		v.Cause = session.Because(session.CodeExited, session.Say("exited", exitCode(code)), session.Say("exitedHint"))
	}
	return v
}

// judgeOther judges the end of a kernel that is not the main one. The session cannot continue without it.
func judgeOther(s session.Session, number, code int, oom bool) Verdict {
	name := session.Fill("name", s.Kernels[number].Name)
	v := Verdict{Reason: session.ReasonSelf, Result: LostResult(s), Cause: session.Because(session.CodeKernelEnded,
		session.Say("kernelEnded", name, exitCode(code)), session.Say("kernelEndedHint"))}
	if s.Spec.Type == session.Batch {
		v.Reason = session.ReasonTaskFailed
	}
	if oom && code == 137 {
		v.Reason, v.Cause = session.ReasonOOM, memoryCause(s)
	}
	return v
}

// LostResult is the result of a session that was lost.
func LostResult(s session.Session) session.Result {
	if s.Spec.Type == session.Batch {
		return session.ResultFailure
	}
	return session.ResultUndefined
}

func memoryCause(s session.Session) *session.Cause {
	return session.Because(session.CodeOOM,
		session.Say("outOfMemory", session.Fill("memory", s.Spec.Resources.Memory.String())),
		session.Say("outOfMemoryHint"))
}

// signalNames are the names of signals by the exit codes that they cause.
var signalNames = map[int]string{129: "SIGHUP", 130: "SIGINT", 131: "SIGQUIT", 134: "SIGABRT", 135: "SIGBUS",
	136: "SIGFPE", 137: "SIGKILL", 139: "SIGSEGV", 143: "SIGTERM"}

func exitCode(code int) session.Phrase {
	text := strconv.Itoa(code)
	if name, ok := signalNames[code]; ok {
		text += " (" + name + ")"
	}
	return session.Fill("code", text)
}
