package access

import (
	"slices"

	"slipway/backend/session"
)

// specRules say what of a machine a person may ask for in a spec.
type specRules struct{ person }

// refused says what a spec asks of this machine that whoever asks may not have,
// whatever the agent itself could give.
func (v specRules) refused(spec session.Spec) []session.FieldError {
	return slices.Concat(v.mounts(spec), v.mps(spec))
}

// mps refuses MPS to users unless the machine's owner has allowed it: its clients
// share /dev/shm with every program of the machine.
func (v specRules) mps(spec session.Spec) []session.FieldError {
	if v.all || !spec.MPS || v.inner.MPSForUsers() {
		return nil
	}
	return []session.FieldError{{
		Field: "mps", Kind: session.KindForbidden,
		Message: "MPS is not open to users of this machine, because it shares the machine's memory in /dev/shm.",
		Hint:    "Launch without MPS, or ask the machine's owner to set gpu.mps.",
	}}
}
