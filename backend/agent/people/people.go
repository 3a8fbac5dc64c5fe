// Package people says what each person may use of a machine: their allowance, opened directories and processes.
package people

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"slipway/backend/agent/devices"
	"slipway/backend/agent/folders"
	"slipway/backend/agent/host"
	"slipway/backend/agent/queue"
	"slipway/backend/agent/records"
	"slipway/backend/offlimits"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

const (
	keyAllowances = "allowances"
	maxAllowances = 1000
)

// Config says what all people may use.
type Config struct {
	host.Host
	Processes   int  // the most processes and threads in a container; 0: no limit
	MPSForUsers bool // people who are not admins may share devices through MPS
	Admins      session.AdminSessions
	Giving      gpu.Config
	Devices     *devices.Devices
	OffLimits   func() offlimits.Places
}

// People are the people whose sessions a machine runs. Its methods are safe for concurrent use.
type People struct {
	config Config

	mu    sync.Mutex                   // guards list
	list  map[string]session.Allowance // as stored
	write sync.Mutex                   // held while one is changed and stored
}

// Open returns the people with the stored allowances.
func Open(config Config) (*People, error) {
	p := &People{config: config, list: map[string]session.Allowance{}}
	_, err := config.Records.Account(keyAllowances, &p.list)
	return p, err
}

// opened are the directories that allowances open, by person.
func opened(list map[string]session.Allowance) map[string][]string {
	dirs := map[string][]string{}
	for owner, allowance := range list {
		dirs[owner] = allowance.Folders
	}
	return dirs
}

// Allowance is the most that a person may hold: their own, else the one for everybody but the agent's own person.
func (p *People) Allowance(owner string) session.Allowance {
	p.mu.Lock()
	defer p.mu.Unlock()
	allowance, own := p.list[owner]
	if !own && owner != p.config.Owner {
		allowance = p.list[session.DefaultOwner]
	}
	return allowance
}

func (p *People) MPSForUsers() bool { return p.config.MPSForUsers }

// AdminSessions says who may launch administrator sessions.
func (p *People) AdminSessions() session.AdminSessions { return p.config.Admins }

func (p *People) Allowances() map[string]session.Allowance {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.list)
}

// Opened returns the directories that allowances open, by person. None is opened or closed until release is called.
func (p *People) Opened() (dirs map[string][]string, release func()) {
	p.write.Lock()
	return opened(p.Allowances()), p.write.Unlock
}

// SetAllowance sets what a person, or [session.DefaultOwner], may hold; nil: the default. They keep what they already
// hold. It fails with agent_call_invalid.
func (p *People) SetAllowance(owner string, allowance *session.Allowance) error {
	p.write.Lock()
	defer p.write.Unlock()
	list := p.Allowances()
	delete(list, owner)
	if allowance != nil {
		linked, err := p.config.Records.Folders()
		if err != nil {
			return err
		}
		list[owner] = *allowance
		if message := p.check(owner, list, linked); message != "" {
			return session.NewError(session.CodeAgentInvalid, message, "See slipway agent limit set --help.")
		}
		for _, folder := range allowance.Folders {
			_, err := p.config.OffLimits().Look(folder, true)
			if session.CodeOf(err) == session.CodeMountForbidden { // a missing one is checked when it is mounted
				refused := session.AsError(err, "")
				return session.WrapError(err, session.CodeAgentForbidden, refused.Message, refused.Hint)
			}
		}
	}
	err := p.config.Records.Update(func(tx *store.Tx) error { return tx.PutAccount(keyAllowances, list) })
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.list = list
	p.mu.Unlock()
	p.config.PlanAgain()
	p.config.PublishMachine()
	return nil
}

// check says why owner's allowance is refused, empty if it is not.
func (p *People) check(owner string, list map[string]session.Allowance, linked []session.Folder) string {
	if owner == "" || len(owner) > 256 || !session.IsPrintable(owner) {
		return "A limit needs the name of a person."
	}
	if len(list) > maxAllowances {
		return fmt.Sprintf("Limits are set for %d people already, the most there can be.", maxAllowances)
	}
	if message := list[owner].Validate(); message != "" {
		return message
	}
	for _, folder := range list[owner].Folders {
		if message := folders.Overlap(folder, owner, p.config.Owner, linked, opened(list)); message != "" {
			return message
		}
	}
	return ""
}

// Check reports a spec that asks for more than its person may ever hold.
func (p *People) Check(owner string, spec session.Spec) []session.FieldError {
	allowance := p.Allowance(owner)
	if !allowance.Limits() || !queue.Plannable(spec) {
		return nil
	}
	kernels := max(1, spec.Cluster)
	ask := session.Ask{CPU: spec.Resources.CPU * kernels, Memory: spec.Resources.Memory * gpu.Bytes(kernels)}
	if allowance.GPU > 0 {
		ask.GPU = scheduler.ShareOf(scheduler.Machine{Devices: p.config.Devices.Now().Devices, Giving: p.config.Giving},
			spec.Accelerator, kernels)
	}
	return allowance.Refuse(ask)
}

// Processes is the limit of processes in each container of a person: their own, else the machine's.
func (p *People) Processes(owner string) int {
	return cmp.Or(p.Allowance(owner).Processes, p.config.Processes)
}

// SawProcesses warns of a container with nearly as many processes as it may have.
func (p *People) SawProcesses(s session.Session, count int) {
	const nearly = 20 // one of so many is left
	told := slices.ContainsFunc(s.Warnings, func(w session.Warning) bool { return w.Code == session.CodeProcessLimit })
	if s.Processes == 0 || count < s.Processes-s.Processes/nearly || told {
		return
	}
	p.config.Records.Warn(p.config.Log, s.ID, func(d *records.Draft) {
		d.Warn(session.Warning{Code: session.CodeProcessLimit, Title: "Too many processes",
			Text: fmt.Sprintf("It reached its limit of %d processes and threads. New ones fail to start.",
				s.Processes)})
	})
}
