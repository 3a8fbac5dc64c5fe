package records

import (
	"strconv"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// Verdict is how a container's end counts.
type Verdict struct {
	Reason   session.Reason
	Result   session.Result
	ExitCode *int
	Cause    *session.Cause
}

// Judge says how the end of one of a session's containers counts, when nobody asked for it. state is nil where the
// container has vanished. oom tells that the kernel killed a process of the session for memory.
func Judge(s session.Session, number int, state *engine.State, oom bool) Verdict {
	if number > 0 {
		return judgeOther(s, number, state, oom)
	}
	if state == nil {
		return Verdict{Reason: session.ReasonLost, Result: LostResult(s),
			Cause: session.Because(session.CodeContainerLost,
				session.Say("containerLost"), session.Say("containerLostHint"))}
	}
	code := state.ExitCode
	v := Verdict{ExitCode: &code}
	oom = oom || state.OOMKilled
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
		v.Cause = session.Because(session.CodeExited, session.Say("exited", exitCode(code)),
			session.Say("exitedHint"))
	}
	return v
}

// judgeOther says how the end of a kernel counts that is not the main one: the session cannot go on without it.
func judgeOther(s session.Session, number int, state *engine.State, oom bool) Verdict {
	name := s.Kernels[number].Name
	if state == nil {
		return Verdict{Reason: session.ReasonLost, Result: LostResult(s),
			Cause: session.Because(session.CodeContainerLost,
				session.Say("kernelLost", session.Fill("name", name)), session.Say("containerLostHint"))}
	}
	v := Verdict{Reason: session.ReasonSelf, Result: LostResult(s), Cause: session.Because(session.CodeKernelEnded,
		session.Say("kernelEnded", session.Fill("name", name), exitCode(state.ExitCode)),
		session.Say("kernelEndedHint"))}
	if s.Spec.Type == session.Batch {
		v.Reason = session.ReasonTaskFailed
	}
	if (oom || state.OOMKilled) && state.ExitCode == 137 {
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

// exitCode fills the hole of an exit code.
func exitCode(code int) session.Phrase {
	return session.Fill("code", strconv.Itoa(code)+signalName(code))
}

// signalName explains the exit codes that stand for a signal.
func signalName(code int) string {
	names := map[int]string{129: "SIGHUP", 130: "SIGINT", 131: "SIGQUIT", 134: "SIGABRT", 135: "SIGBUS", 136: "SIGFPE",
		137: "SIGKILL", 139: "SIGSEGV", 143: "SIGTERM"}
	if name, ok := names[code]; ok {
		return " (" + name + ")"
	}
	return ""
}
