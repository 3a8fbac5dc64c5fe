package server

import (
	"time"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
)

// each turns every item of a list; the result is never nil, so that it is
// written as [] and not as null.
func each[A, B any](items []A, turn func(A) B) []B {
	out := make([]B, len(items))
	for i, item := range items {
		out[i] = turn(item)
	}
	return out
}

// maybe turns what a pointer points to.
func maybe[A, B any](p *A, turn func(A) B) *B {
	if p == nil {
		return nil
	}
	out := turn(*p)
	return &out
}

// sessionOut is a session as it leaves the server, without secrets, with its
// newest sample, if there is one, and those that wait for it.
func sessionOut(s session.Session, usage *session.Usage, dependents []session.ID) api.Session {
	s.Spec = s.Spec.Redacted(session.Hidden)
	return api.Session{Session: s, Type: s.Spec.Type, Image: s.Spec.Image, Usage: usage, Dependents: dependents}
}

func machineOut(m hub.Machine) api.Machine {
	return api.Machine{
		Agent: m.Agent, Online: m.Online, LastHeard: m.LastHeard, Platform: m.Platform, Capacity: m.Capacity,
		LoadCPU: m.Load.CPU, LoadMemory: m.Load.Memory, DiskFree: m.Load.DiskFree, DiskTotal: m.Load.DiskTotal,
		Warnings: m.Warnings,
	}
}

// recentOut is an entry of the launch history as it leaves the server, without
// secrets.
func recentOut(r hub.Recent) hub.Recent {
	r.Spec, r.Count = r.Spec.Redacted(""), max(r.Count, 1)
	return r
}

func versionOut(v hub.Version) api.Version { return api.Version(v) }

// eventOut turns an event of the hub into one message of the stream.
func eventOut(e hub.Event) api.Event {
	out := api.Event{
		Epoch: e.Epoch, Seq: e.Seq, Snapshot: maybe(e.Snapshot, snapshotOut), Machine: maybe(e.Machine, machineOut),
		Session: maybe(e.Session, func(s session.Session) api.Session {
			return heard(sessionOut(s, nil, e.Dependents),
				e.LastHeard)
		}),
		Agent: maybe(e.Agent, agentOut), Operation: e.Operation,
		Devices:  maybe(e.Devices, boardOut),
		Presets:  e.Presets,
		Settings: e.Settings,
		Notice:   maybe(e.Notice, noticeOut),
		Window:   maybe(e.Window, func(w hub.Window) api.Window { return api.Window(w) }),
		Recents:  maybe(e.Recents, func(r []hub.Recent) []hub.Recent { return each(r, recentOut) }),
	}
	if e.Removed != nil {
		out.Removed = string(*e.Removed)
	}
	if len(e.Usage) > 0 {
		out.Usage = e.Usage
	}
	return out
}

func snapshotOut(s hub.Snapshot) api.Snapshot {
	return api.Snapshot{
		Sessions: each(s.Sessions, func(one session.Session) api.Session {
			var sample *session.Usage
			if u, ok := s.Usage[one.ID]; ok {
				sample = &u
			}
			out := sessionOut(one, sample, s.Dependents[one.ID])
			if at, stale := s.Stale[one.ID]; stale {
				return heard(out, &at)
			}
			return out
		}),
		Devices: each(s.Devices, boardOut), Presets: s.Presets,
		Agents: each(s.Agents, agentOut), Operations: s.Operations,
		Machines: each(s.Machines, machineOut), Recents: each(s.Recents, recentOut), Settings: s.Settings,
		Version: versionOut(s.Version),
	}
}

// heard says of a session when it was heard of, where its agent is not reached.
// A sample of its use would be as old and is left out.
func heard(s api.Session, at *time.Time) api.Session {
	if at != nil {
		s.LastHeard, s.Usage = at, nil
	}
	return s
}
