package people

import (
	"cmp"
	"fmt"
	"slices"

	"slipway/backend/agent/records"
	"slipway/backend/session"
)

// Processes is the most processes in each container of a person's sessions: their
// own limit, else the machine's.
func (p *People) Processes(owner string) int {
	return cmp.Or(p.Allowance(owner).Processes, p.config.Processes)
}

// SawProcesses warns of a session with a container that has nearly as many processes
// as it may.
func (p *People) SawProcesses(s session.Session, count int) {
	const nearly = 20 // one in so many is left
	told := slices.ContainsFunc(s.Warnings, func(w session.Warning) bool { return w.Code == session.CodeProcessLimit })
	if s.Processes == 0 || count < s.Processes-s.Processes/nearly || told {
		return
	}
	records.Warn(p.config.Records, p.config.Log, s.ID, func(d *records.Draft) {
		d.Warn(session.Warning{Code: session.CodeProcessLimit, Title: "Too many processes",
			Text: fmt.Sprintf("It reached its limit of %d processes and threads. New ones fail to start.",
				s.Processes)})
	})
}
