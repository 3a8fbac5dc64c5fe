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

// sessionOut adds to a session its newest sample, if there is one, and those
// that wait for it.
func sessionOut(s session.Session, usage *session.Usage, dependents []session.ID) api.Session {
	return api.Session{
		ID: string(s.ID), Name: s.Name, Type: string(s.Spec.Type), Status: string(s.Status), Result: string(s.Result),
		Reason:   string(s.Reason),
		ExitCode: s.ExitCode, Image: s.Spec.Image, Agent: s.Agent, Owner: s.Owner,
		CreatedAt: s.CreatedAt, ScheduledAt: s.ScheduledAt, StartedAt: s.StartedAt, TerminatedAt: s.TerminatedAt,
		Spec: specOut(s.Spec, hidden), Error: maybe(s.Error, causeOut), Wait: maybe(s.Wait, waitOut),
		Pull:    maybe(s.Pull, pullOut),
		Kernels: each(s.Kernels, kernelOut), Warnings: each(s.Warnings, warningOut),
		CPUs:  append([]int{}, s.Grants.CPUs...),
		Usage: maybe(usage, usageOut), Revision: s.Revision,
		Priority: s.Priority, DependsOn: each(s.DependsOn, idOut), Dependents: each(dependents, idOut),
		Accelerator: acceleratorOut(s.Spec.Accelerator),
		GPUs:        each(s.Grants.GPUs, grantOut), Enforcement: string(s.Enforcement), Processes: s.Processes,
		Idle: each(s.Idle, idleCheckOut), KeepUntil: s.KeepUntil,
		Folders: each(s.Folders, folderMountOut), Tags: append([]string{}, s.Tags...),
		EndImage: maybe(s.EndImage, endImageOut),
	}
}

func endImageOut(i session.EndImage) api.EndImage {
	return api.EndImage{State: string(i.State), Name: i.Name, Ref: i.Ref, Size: int64(i.Size), Kept: i.Kept,
		Error: maybe(i.Error, causeOut)}
}

// specOut hides the values of secret-looking variables behind mask.
func specOut(s session.Spec, mask string) api.Spec {
	s = s.Redacted(mask)
	out := api.Spec{
		Name: s.Name, Type: string(s.Type), Image: s.Image, Command: s.Command, NotBefore: s.NotBefore,
		Threads: s.Threads, Ports: s.Ports, Agent: s.Agent, Group: s.Group, Resources: resourcesOut(s.Resources),
	}
	if s.Timeout != 0 {
		out.Timeout = s.Timeout.String()
	}
	queueOut(s, &out)
	for _, v := range s.Env {
		out.Env = append(out.Env, api.EnvVar(v))
	}
	for _, m := range s.Mounts {
		out.Mounts = append(out.Mounts, api.Mount{Source: m.Source, Folder: m.Folder, Path: m.Path, Target: m.Target,
			ReadOnly: m.ReadOnly})
	}
	return out
}

func resourcesOut(r session.Resources) api.Resources {
	return api.Resources{CPU: r.CPU, Memory: api.Bytes{N: int64(r.Memory)}, Shm: api.Bytes{N: int64(r.Shm)}}
}

func causeOut(c session.Cause) api.Problem {
	return api.Problem{Code: string(c.Code), Message: c.Message, Hint: c.Hint, Said: phrasesOut(c.Said),
		Advice: phrasesOut(c.Advice)}
}

func phrasesOut(phrases []session.Phrase) []api.Phrase {
	var out []api.Phrase
	for _, p := range phrases {
		out = append(out, api.Phrase{Hole: p.Hole, Say: p.Say, Count: p.Count, Text: p.Text, With: phrasesOut(p.With)})
	}
	return out
}

func waitOut(w session.Wait) api.Wait {
	return api.Wait{Code: string(w.Code), Message: w.Message, Said: phrasesOut(w.Said), Position: w.Position,
		Until: w.Until, Start: w.Start, Margin: lengthOut(w.Margin)}
}

func pullOut(p session.Pull) api.Pull {
	return api.Pull{Current: int64(p.Current), Total: int64(p.Total), Rate: int64(p.Rate), LayersDone: p.LayersDone,
		Layers: p.Layers}
}

func kernelOut(k session.Kernel) api.Kernel {
	return api.Kernel{Name: k.Name, Hostname: k.Hostname, Container: k.Container, Status: string(k.Status),
		ExitCode: k.ExitCode,
		CPUs:     append([]int{}, k.Grants.CPUs...), Memory: int64(k.Grants.Memory),
		GPUs: each(k.Grants.GPUs, grantOut)}
}

func warningOut(w session.Warning) api.Warning {
	return api.Warning{Code: string(w.Code), Title: w.Title, Text: w.Text, At: w.At, Device: string(w.Device)}
}

func usageOut(u session.Usage) api.Usage {
	return api.Usage{
		Session: string(u.Session), At: u.At, CPU: u.CPU, Memory: int64(u.Memory), MemLimit: int64(u.MemLimit),
		NetRx: int64(u.NetRx), NetTx: int64(u.NetTx), DiskRead: int64(u.DiskRead), DiskWrite: int64(u.DiskWrite),
		Pids: u.Pids,
		GPUs: each(u.GPUs, loadOut),
	}
}

func phaseOut(p session.Phase) api.Phase {
	return api.Phase{
		ID: p.ID, Session: string(p.Session), Phase: string(p.Phase), Result: string(p.Result), From: string(p.From),
		To:       string(p.To),
		Attempts: p.Attempts, Code: string(p.Code), Message: p.Message, Said: phrasesOut(p.Said),
		Steps: each(p.Steps, stepOut), CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt,
	}
}

func stepOut(s session.Step) api.Step {
	return api.Step{Step: s.Step, Result: string(s.Result), Message: s.Message, Said: phrasesOut(s.Said),
		Code: string(s.Code), StartedAt: s.StartedAt, EndedAt: s.EndedAt}
}

func machineOut(m hub.Machine) api.Machine {
	return api.Machine{
		Agent: m.Agent, Online: m.Online, LastHeard: m.LastHeard, Engine: m.Engine, EngineVersion: m.EngineVersion,
		Version:  m.Version,
		Hostname: m.Hostname, OS: m.OS, Arch: m.Arch, CPUs: m.CPUs, Memory: int64(m.Memory), UsedCPUs: m.UsedCPUs,
		UsedMemory: int64(m.UsedMemory),
		LoadCPU:    m.Load.CPU, LoadMemory: int64(m.Load.Memory), DiskFree: int64(m.Load.DiskFree),
		DiskTotal: int64(m.Load.DiskTotal),
		Warnings:  each(m.Warnings, warningOut),
	}
}

func checkOut(c session.Check) api.Check {
	return api.Check{ID: c.ID, Title: c.Title, Result: string(c.Result), Text: c.Text, Remedy: c.Remedy}
}

func listingOut(l session.DirectoryListing) api.DirectoryListing {
	return api.DirectoryListing{Path: l.Path, Parent: l.Parent,
		Entries: each(l.Entries, func(e session.DirectoryEntry) api.DirectoryEntry { return api.DirectoryEntry(e) })}
}

func presetOut(p hub.Preset) api.Preset {
	return api.Preset{ID: p.ID, Name: p.Name, Builtin: p.Builtin, Resources: resourcesOut(p.Resources),
		Accelerator: requestOut(p.Accelerator)}
}

func fieldsOut(fields []session.FieldError) []api.FieldProblem {
	return each(fields, func(f session.FieldError) api.FieldProblem {
		return api.FieldProblem{Field: f.Field, Code: string(f.Code), Message: f.Message, Hint: f.Hint}
	})
}

func recentOut(r hub.Recent) api.Recent {
	return api.Recent{ID: r.ID, Name: r.Name, Pinned: r.Pinned, Spec: specOut(r.Spec, ""), Count: max(r.Count, 1),
		Owner: r.Owner, LaunchedAt: r.LaunchedAt}
}

func settingsOut(s hub.Settings) api.Settings { return api.Settings(s) }

func versionOut(v hub.Version) api.Version { return api.Version(v) }

func terminalOut(t session.Terminal) api.Terminal { return api.Terminal(t) }

// eventOut turns an event of the hub into one message of the stream.
func eventOut(e hub.Event) api.Event {
	out := api.Event{
		Epoch: e.Epoch, Seq: e.Seq, Snapshot: maybe(e.Snapshot, snapshotOut), Machine: maybe(e.Machine, machineOut),
		Session: maybe(e.Session, func(s session.Session) api.Session {
			return heard(sessionOut(s, nil, e.Dependents),
				e.LastHeard)
		}),
		Agent: maybe(e.Agent, agentOut), Operation: maybe(e.Operation, operationOut),
		Devices:  maybe(e.Devices, boardOut),
		Presets:  maybe(e.Presets, func(p []hub.Preset) []api.Preset { return each(p, presetOut) }),
		Settings: maybe(e.Settings, settingsOut),
		Notice:   maybe(e.Notice, noticeOut),
		Window:   maybe(e.Window, func(w hub.Window) api.Window { return api.Window(w) }),
		Recents:  maybe(e.Recents, func(r []hub.Recent) []api.Recent { return each(r, recentOut) }),
	}
	if e.Removed != nil {
		out.Removed = string(*e.Removed)
	}
	if len(e.Usage) > 0 {
		out.Usage = each(e.Usage, usageOut)
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
		Devices: each(s.Devices, boardOut), Presets: each(s.Presets, presetOut),
		Agents: each(s.Agents, agentOut), Operations: each(s.Operations, operationOut),
		Machines: each(s.Machines, machineOut), Recents: each(s.Recents, recentOut), Settings: settingsOut(s.Settings),
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
