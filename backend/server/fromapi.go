package server

import (
	"fmt"
	"strings"

	"slipway/backend/api"
	"slipway/backend/session"
	"slipway/gpu"
)

// hidden stands for the value of a secret-looking variable in every answer.
const hidden = "••••••"

// specIn turns a spec of the API into one of ours. What cannot be turned, such
// as an amount that is no amount, is told by field and left out of the spec, so
// that the rest can be judged all the same.
func specIn(in api.Spec) (session.Spec, []session.FieldError) {
	var wrong []session.FieldError
	bad := func(field string, code session.Code, err error, hint string) {
		wrong = append(wrong, session.FieldError{Field: field, Code: code, Message: sentence(err.Error()), Hint: hint})
	}
	out := session.Spec{
		Name: in.Name, Type: session.Type(in.Type), Image: in.Image, Command: in.Command, NotBefore: in.NotBefore,
		Threads: in.Threads, Ports: in.Ports, Agent: in.Agent, Group: in.Group,
	}
	timeout, err := session.ParseDuration(in.Timeout)
	if in.Timeout != "" && err != nil {
		bad("timeout", session.CodeInvalidTimeout, err, "Write for example 30m, or leave it empty.")
	} else if in.Timeout != "" {
		out.Timeout = timeout
		if timeout == 0 {
			bad("timeout", session.CodeInvalidTimeout, fmt.Errorf("a timeout is at least 1 s"),
				"Leave it empty for no timeout.")
		}
	}
	out.Resources.CPU = in.Resources.CPU
	if out.Resources.Memory, err = bytesIn(in.Resources.Memory); err != nil {
		bad("resources.memory", session.CodeInvalidMemory, err, "Write for example 2g.")
	}
	if out.Resources.Shm, err = bytesIn(in.Resources.Shm); err != nil {
		bad("resources.shm", session.CodeInvalidShm, err,
			"Write for example 64m, or leave it empty for an automatic amount.")
	}
	for i, v := range in.Env {
		out.Env = append(out.Env, session.EnvVar(v))
		if v.Value == hidden {
			bad(fmt.Sprintf("env[%d].value", i), session.CodeInvalidEnvValue,
				fmt.Errorf("the value of %s was hidden and is not known", v.Name), "Enter it again.")
		}
	}
	for _, m := range in.Mounts {
		out.Mounts = append(out.Mounts, session.Mount{Source: m.Source, Folder: m.Folder, Path: m.Path,
			Target: m.Target, ReadOnly: m.ReadOnly})
	}
	return out, append(wrong, queueIn(in, &out)...)
}

func bytesIn(b api.Bytes) (gpu.Bytes, error) {
	if b.Text == "" {
		return gpu.Bytes(b.N), nil
	}
	return gpu.ParseBytes(b.Text)
}

// sentence begins with a capital and ends with a full stop.
func sentence(text string) string {
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

func envIn(in []api.EnvVar) []session.EnvVar {
	out := make([]session.EnvVar, len(in))
	for i, v := range in {
		out[i] = session.EnvVar(v)
	}
	return out
}
