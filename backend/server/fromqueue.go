package server

import (
	"fmt"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
	"slipway/gpu"
)

// queueIn turns what a spec says about devices, the queue, the accounts and
// idle checks, as specIn does with the rest.
func queueIn(in api.Spec, out *session.Spec) []session.FieldError {
	var wrong []session.FieldError
	out.Uncooperative, out.MPS, out.Cluster = in.Uncooperative, in.MPS, in.Cluster
	out.Priority, out.After, out.Label, out.NoSSH = in.Priority, in.After, in.Label, in.NoSSH
	out.CommitOnEnd = in.CommitOnEnd
	var err error
	if out.Accelerator, err = gpu.ParseRequest(in.Accelerator); err != nil {
		out.Accelerator = gpu.Request{}
		wrong = append(wrong, acceleratorFault(err))
	}
	if in.PendingTimeout != "" {
		out.PendingTimeout, err = session.ParseDuration(in.PendingTimeout)
		if err != nil || out.PendingTimeout == 0 {
			out.PendingTimeout = 0
			wrong = append(wrong, session.FieldError{Field: "pendingTimeout", Code: session.CodeInvalidPendingTimeout,
				Message: lengthFault("The longest wait", err),
				Hint:    "Write for example 2h, or leave it empty to wait for ever."})
		}
	}
	if in.Idle != nil {
		policy, faults := idleIn(*in.Idle, "idle.")
		out.Idle = &policy
		wrong = append(wrong, faults...)
	}
	return wrong
}

func acceleratorFault(err error) session.FieldError {
	return session.FieldError{Field: "accelerator", Code: session.CodeInvalidAccelerator, Message: err.Error(),
		Hint: "Write for example 0.5, 2, mig:1g.10gb or vram:12g, or leave it empty."}
}

// lengthFault says what is wrong with a length of time: err, or that it is 0.
func lengthFault(what string, err error) string {
	if err != nil {
		return sentence(err.Error())
	}
	return what + " is at least 1 s."
}

// idleIn turns an idle policy; prefix is put before the names of its fields.
func idleIn(in api.IdlePolicy, prefix string) (session.IdlePolicy, []session.FieldError) {
	var wrong []session.FieldError
	length := func(field, text string) session.Duration {
		if text == "" {
			return 0
		}
		d, err := session.ParseDuration(text)
		if err != nil || d == 0 {
			wrong = append(wrong, session.FieldError{Field: prefix + field, Code: session.CodeInvalidIdle,
				Message: lengthFault("A length of time", err), Hint: "Write for example 30m, or leave it empty."})
			return 0
		}
		return d
	}
	out := session.IdlePolicy{Lifetime: length("lifetime", in.Lifetime), Network: length("network", in.Network)}
	if in.Use != nil {
		out.Use = session.UsePolicy{Window: length("use.window", in.Use.Window),
			Grace: length("use.grace", in.Use.Grace), Any: in.Use.Any,
			CPU: in.Use.CPU, Memory: in.Use.Memory, GPU: in.Use.GPU, VRAM: in.Use.VRAM}
	}
	return out, wrong
}

// maxKeep is the longest time that one wish keeps a session.
const maxKeep = session.Duration(7 * 24 * time.Hour)

// keepIn reads how long a session is to be kept: above 0 and up to a week.
func keepIn(text string) (session.Duration, error) {
	d, err := session.ParseDuration(text)
	var message string
	switch {
	case text == "":
		message = "It is not said for how long."
	case err != nil:
		message = sentence(err.Error())
	case d <= 0 || d > maxKeep:
		message = fmt.Sprintf("%s is not between 1 s and %s.", d, maxKeep)
	default:
		return d, nil
	}
	const hint = "Write for example 4h."
	return 0, &session.Error{Code: "session_keep_invalid", Message: message, Hint: hint,
		Fields: []session.FieldError{{Field: "for", Code: "session_keep_invalid", Message: message, Hint: hint}}}
}
