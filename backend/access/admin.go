package access

import "slipway/backend/session"

// administered makes a call that is only for admins. The log gets what it changes,
// and who was refused.
func administered[T any](v *view, method, target string, changes bool,
	call func(session.Admin) (T, error)) (result T, err error) {
	switch {
	case !v.all:
		err = session.NewError(session.CodeAgentForbidden, "Only an admin of the agent may do that.",
			"Ask one of its admins.")
	case v.agent.Admin == nil:
		err = session.NewError(session.CodeAgentUnsupported, "This agent cannot be administered remotely.",
			"Do it on its own machine.")
	default:
		result, err = call(v.agent.Admin)
	}
	if changes || !v.all {
		v.audit.Note(v.who, Act{Method: method, Target: target, Err: err, Security: v.all})
	}
	return result, err
}
