package access

import "slipway/backend/session"

// kept is a call on what looks after the agent, which is for those who rule it.
// What it changes is written down, and who was refused.
func kept[T any](v *view, method, target string, changes bool,
	call func(session.Admin) (T, error)) (result T, err error) {
	switch {
	case !v.all:
		err = &session.Error{Code: session.CodeAgentForbidden, Message: "Only those who rule the agent may do that.",
			Hint: "Ask one of its admins."}
	case v.agent.Admin == nil:
		err = &session.Error{Code: session.CodeAgentUnsupported,
			Message: "This agent is not looked after from elsewhere.",
			Hint:    "Do it on its own machine."}
	default:
		result, err = call(v.agent.Admin)
	}
	if changes || !v.all {
		v.audit.Note(v.who, Act{Method: method, Target: target, Err: err, Security: v.all})
	}
	return result, err
}
