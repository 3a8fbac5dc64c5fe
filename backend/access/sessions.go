package access

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"slipway/backend/session"
)

func (v *view) Machine(ctx context.Context) (session.Machine, error) {
	m, err := v.agent.Machine(ctx)
	return v.machine(m), err
}

// machine tells somebody of the machine who they are there.
func (v *view) machine(m session.Machine) session.Machine {
	m.Owner, m.Role, m.Allowance = v.who.Owner, v.who.Role, v.inner.Allowance(v.who.Owner)
	return m
}

// Preview implements [session.Sessions]. An admin may ask for another owner, by
// whose limits and sessions it is judged.
func (v *view) Preview(ctx context.Context, owner string, spec session.Spec) (session.Preview, error) {
	if owner == "" || !v.all {
		owner = v.who.Owner
	}
	wrong := v.refused(spec)
	hidden, err := v.hidden(ctx, spec.Image)
	if err != nil {
		return session.Preview{}, err
	}
	if hidden {
		wrong = append(wrong, forbiddenImage(spec.Image))
	}
	if len(wrong) == 0 {
		return v.agent.Preview(ctx, owner, spec)
	}
	without := spec
	without.Mounts = nil // what is not theirs to see is not looked at
	p, err := v.agent.Preview(ctx, owner, without)
	if hidden { // whether it is here at all is not for them to know
		p.Image = nil
		p.Errors = slices.DeleteFunc(p.Errors, func(e session.FieldError) bool { return e.Field == "image" })
	}
	p.Spec.Mounts, p.Errors = spec.WithDefaults().Mounts, append(p.Errors, wrong...)
	p.Warnings = slices.DeleteFunc(p.Warnings, func(w session.FieldError) bool { return w.Field == "mounts" })
	return p, err
}

// refused says what a spec asks of this machine that whoever asks may not have,
// whatever the agent itself could give.
func (v person) refused(spec session.Spec) []session.FieldError {
	return slices.Concat(v.mounts(spec), v.mps(spec))
}

// mps refuses MPS to users unless the machine's owner has allowed it: its clients
// share /dev/shm with every program of the machine.
func (v person) mps(spec session.Spec) []session.FieldError {
	if v.all || !spec.MPS || v.inner.MPSForUsers() {
		return nil
	}
	return []session.FieldError{{
		Field: "mps", Kind: session.KindForbidden,
		Message: "MPS is not open to users of this machine, because it shares the machine's memory in /dev/shm.",
		Hint:    "Launch without MPS, or ask the machine's owner to set gpu.mps.",
	}}
}

// mounts says which of the directories that a spec mounts are not open to
// whoever asks.
func (v person) mounts(spec session.Spec) []session.FieldError {
	if v.all || len(spec.Mounts) == 0 {
		return nil
	}
	folders := v.inner.Allowance(v.who.Owner).Folders
	hint := "No folder of this machine is open to you; ask an admin for one."
	if len(folders) > 0 {
		hint = "Open to you: " + strings.Join(folders, ", ") + "."
	}
	var wrong []session.FieldError
	for i, m := range spec.Mounts {
		if m.Folder != "" && m.Source == "" {
			continue // the agent looks among those that are theirs
		}
		if !slices.Contains(folders, m.Source) {
			wrong = append(wrong, session.FieldError{Field: fmt.Sprintf("mounts[%d].source", i),
				Kind:    session.KindForbidden,
				Message: "You may not mount that folder of this machine.", Hint: hint})
		}
	}
	return wrong
}

// Launch implements [session.Sessions]. An admin may launch for another owner.
func (v *view) Launch(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	if req.Owner == "" || !v.all {
		req.Owner = v.who.Owner
	}
	req.ByAdmin = v.all
	var s session.Session
	wrong := v.refused(req.Spec)
	hidden, err := v.hidden(ctx, req.Spec.Image)
	if hidden {
		wrong = append(wrong, forbiddenImage(req.Spec.Image))
	}
	switch {
	case err != nil:
	case len(wrong) > 0:
		err = session.Refused(session.CodeInvalid, wrong...)
	default:
		s, err = v.agent.Launch(ctx, req)
	}
	target := ""
	if req.Owner != v.who.Owner {
		target = "for " + req.Owner
	}
	v.note("Launch", s.ID, target, err)
	return s, err
}

func (v *view) List(ctx context.Context, filter session.Filter) ([]session.Session, error) {
	if !v.all {
		filter.Owner = v.who.Owner
	}
	list, err := v.agent.List(ctx, filter)
	if !v.all {
		list = slices.DeleteFunc(list, v.anothers)
	}
	return list, err
}

// anothers reports whether a session is not shown to whoever asks.
func (v *view) anothers(s session.Session) bool { return !v.all && s.Owner != v.who.Owner }
