package enginetest

import (
	"slices"

	"slipway/backend/guest/link"
)

// SetForeground says what program runs in the foreground of a terminal; "" is
// the shell, as it is from the beginning.
func (g *Guest) SetForeground(id, program string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.programs == nil {
		g.programs = map[string]string{}
	}
	g.programs[id] = program
}

// Notices returns the lines that were shown in the terminals, in their order.
func (g *Guest) Notices() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.notices)
}

func (g *Guest) foregrounds() []link.Foreground {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := []link.Foreground{}
	for _, id := range g.order {
		if g.shells[id].shell.State().ExitCode == nil {
			list = append(list, link.Foreground{Terminal: id, Program: g.programs[id], Known: true})
		}
	}
	return list
}

// notice shows a line in every terminal. It returns what the guest answers: nothing.
func (g *Guest) notice(text string) struct{} {
	g.mu.Lock()
	g.notices = append(g.notices, text)
	var spools []*echoShell
	for _, id := range g.order {
		spools = append(spools, g.shells[id])
	}
	g.mu.Unlock()
	for _, s := range spools {
		s.spool.Notice(text) //nolint:errcheck // an ended shell shows nothing
	}
	return struct{}{}
}
