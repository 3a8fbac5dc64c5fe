package agent

import (
	"fmt"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// verdict is how a container's end counts.
type verdict struct {
	reason   session.Reason
	result   session.Result
	exitCode *int
	cause    *session.Cause
}

// judge says how the end of one of a session's containers counts, when nobody
// asked for it. state is nil where the container has vanished. oom tells that
// the kernel killed a process of the session for memory.
func judge(s session.Session, number int, state *engine.State, oom bool) verdict {
	if number > 0 {
		return judgeOther(s, number, state, oom)
	}
	if state == nil {
		return verdict{reason: session.ReasonLost, result: lostResult(s), cause: &session.Cause{
			Code: "session_run_container-lost", Message: "The session's container has disappeared.",
			Hint: "Someone removed it, or the engine lost it. Launch the session again.",
		}}
	}
	code := state.ExitCode
	v := verdict{exitCode: &code}
	oom = oom || state.OOMKilled
	if s.Spec.Type == session.Batch {
		switch {
		case code == 0:
			v.reason, v.result = session.ReasonFinished, session.ResultSuccess
		case oom:
			v.reason, v.result, v.cause = session.ReasonOOM, session.ResultFailure, memoryCause(s)
		default:
			v.reason, v.result = session.ReasonTaskFailed, session.ResultFailure
			v.cause = &session.Cause{Code: "session_run_task-failed", Message: fmt.Sprintf("The startup command ended with exit code %d%s.", code, signalName(code)), Hint: "Read the session's log."}
		}
		return v
	}
	v.reason, v.result = session.ReasonSelf, session.ResultUndefined
	switch {
	case oom && code == 137:
		v.reason, v.cause = session.ReasonOOM, memoryCause(s)
	case code != 0:
		v.cause = &session.Cause{Code: "session_run_exited", Message: fmt.Sprintf("The session ended by itself with exit code %d%s.", code, signalName(code)),
			Hint: "Something inside it ended it, or the container engine was stopped. Read its log."}
	}
	return v
}

// judgeOther says how the end of a kernel counts that is not the main one: the
// session cannot go on without it.
func judgeOther(s session.Session, number int, state *engine.State, oom bool) verdict {
	name := s.Kernels[number].Name
	if state == nil {
		return verdict{reason: session.ReasonLost, result: lostResult(s), cause: &session.Cause{
			Code: "session_run_container-lost", Message: fmt.Sprintf("The container of %s has disappeared, and the session ended with it.", name),
			Hint: "Someone removed it, or the engine lost it. Launch the session again.",
		}}
	}
	v := verdict{reason: session.ReasonSelf, result: lostResult(s), cause: &session.Cause{
		Code: "session_run_kernel-ended", Message: fmt.Sprintf("The kernel %s ended with exit code %d%s, and the session with it.", name, state.ExitCode, signalName(state.ExitCode)),
		Hint: "Read the log of that kernel.",
	}}
	if s.Spec.Type == session.Batch {
		v.reason = session.ReasonTaskFailed
	}
	if (oom || state.OOMKilled) && state.ExitCode == 137 {
		v.reason, v.cause = session.ReasonOOM, memoryCause(s)
	}
	return v
}

func lostResult(s session.Session) session.Result {
	if s.Spec.Type == session.Batch {
		return session.ResultFailure
	}
	return session.ResultUndefined
}

func memoryCause(s session.Session) *session.Cause {
	return &session.Cause{
		Code: "session_run_oom-killed", Message: fmt.Sprintf("The session used up its %s of memory, and the kernel ended it.", s.Spec.Resources.Memory),
		Hint: "Launch it again with more memory.",
	}
}

// signalName explains the exit codes that stand for a signal.
func signalName(code int) string {
	names := map[int]string{129: "SIGHUP", 130: "SIGINT", 131: "SIGQUIT", 134: "SIGABRT", 135: "SIGBUS", 136: "SIGFPE", 137: "SIGKILL", 139: "SIGSEGV", 143: "SIGTERM"}
	if name, ok := names[code]; ok {
		return " (" + name + ")"
	}
	return ""
}
