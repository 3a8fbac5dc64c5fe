package agent

import (
	"fmt"
	"maps"
	"sync"

	"slipway/backend/agent/folders"
	"slipway/backend/agent/queue"
	"slipway/backend/offlimits"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

const (
	keyAllowances = "allowances"
	// maxAllowances is for how many people there may be one.
	maxAllowances = 1000
)

// allowances are the most that each person may hold, as the store has them.
type allowances struct {
	mu    sync.Mutex // guards list
	list  map[string]session.Allowance
	write sync.Mutex // held while one is changed and stored
}

func openAllowances(books *store.Store) (*allowances, error) {
	a := &allowances{list: map[string]session.Allowance{}}
	_, err := books.Account(keyAllowances, &a.list)
	return a, err
}

func (a *allowances) all() map[string]session.Allowance {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.list)
}

// opened are the directories that allowances open, by person.
func opened(list map[string]session.Allowance) map[string][]string {
	dirs := map[string][]string{}
	for owner, allowance := range list {
		dirs[owner] = allowance.Folders
	}
	return dirs
}

// Allowance is the most that somebody may hold: what was set for them, else
// what was set for everybody, of which the agent's own person is no part.
func (a *Agent) Allowance(owner string) session.Allowance {
	a.allowed.mu.Lock()
	defer a.allowed.mu.Unlock()
	allowance, own := a.allowed.list[owner]
	if !own && owner != a.config.Owner {
		allowance = a.allowed.list[session.DefaultOwner]
	}
	return allowance
}

// MPSForUsers reports whether people who do not rule the agent may share devices
// through MPS.
func (a *Agent) MPSForUsers() bool { return a.config.MPSForUsers }

// Allowances returns what was set, by owner.
func (a *Agent) Allowances() map[string]session.Allowance { return a.allowed.all() }

// SetAllowance sets what somebody may hold, or [session.DefaultOwner]; nil: nothing of
// their own. What they hold already stays theirs. It fails with
// agent_limit_invalid.
func (a *Agent) SetAllowance(owner string, allowance *session.Allowance) error {
	a.allowed.write.Lock()
	defer a.allowed.write.Unlock()
	list := a.allowed.all()
	delete(list, owner)
	if allowance != nil {
		linked, err := a.store.Folders()
		if err != nil {
			return err
		}
		list[owner] = *allowance
		if message := a.checkAllowances(owner, list, linked); message != "" {
			return &session.Error{Code: "agent_limit_invalid", Message: message,
				Hint: "See slipway agent limit set --help."}
		}
		for _, folder := range allowance.Folders {
			if err := a.checkOpening(folder); err != nil {
				return err
			}
		}
	}
	if err := a.records.Update(func(tx *store.Tx) error { return tx.PutAccount(keyAllowances, list) }); err != nil {
		return err
	}
	a.allowed.mu.Lock()
	a.allowed.list = list
	a.allowed.mu.Unlock()
	a.queue.Wake()
	a.publishMachine()
	return nil
}

// checkAllowances says why owner's allowance cannot be among the others.
func (a *Agent) checkAllowances(owner string, list map[string]session.Allowance, linked []session.Folder) string {
	if owner == "" || len(owner) > 256 || !session.IsPrintable(owner) {
		return "A limit is somebody's: name them."
	}
	if len(list) > maxAllowances {
		return fmt.Sprintf("There are limits for %d people already.", maxAllowances)
	}
	if message := list[owner].Validate(); message != "" {
		return message
	}
	for _, folder := range list[owner].Folders {
		if other, whose := folders.Nested(folder, owner, a.config.Owner, linked, opened(list)); other != "" {
			return folders.Overlap(folder, other, whose)
		}
	}
	return ""
}

// checkOpening fails where a directory is none to be opened to other people. One
// that is not there yet is judged when it is mounted.
func (a *Agent) checkOpening(folder string) error {
	_, err := directories{a}.OffLimits().Look(folder, true)
	if session.CodeOf(err) == offlimits.CodeForbidden {
		told := session.AsError(err, "")
		return &session.Error{Code: "agent_limit_forbidden", Message: told.Message, Hint: told.Hint, Err: err}
	}
	return nil
}

// checkAllowance says why a spec alone is more than its person may ever hold.
func (a *Agent) checkAllowance(owner string, spec session.Spec) []session.FieldError {
	allowance := a.Allowance(owner)
	if !allowance.Limits() || !queue.Plannable(spec) {
		return nil
	}
	kernels := max(1, spec.Cluster)
	ask := session.Ask{CPU: spec.Resources.CPU * kernels, Memory: spec.Resources.Memory * gpu.Bytes(kernels)}
	if allowance.GPU > 0 {
		ask.GPU = scheduler.ShareOf(scheduler.Machine{Devices: a.devices.Now().Devices, Giving: a.config.Giving},
			spec.Accelerator, kernels)
	}
	return allowance.Refuse(ask)
}
