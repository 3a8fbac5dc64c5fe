package agent

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"slipway/backend/agent/accounts"
	"slipway/backend/engine"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// snapshot is what a plan depends on, as it is now.
func (a *Agent) snapshot(live []session.Session, books uint64) (scheduler.Snapshot, error) {
	now := a.clock.Now()
	info := a.health.State().Info
	snapshot := scheduler.Snapshot{Revision: books, Ruler: a.config.Owner, Allowances: map[string]session.Allowance{},
		Machine: scheduler.Machine{Memory: info.Memory, Busy: a.meter.Busy(), Giving: a.config.Giving}}
	for cpu := range info.CPUs {
		snapshot.Machine.CPUs = append(snapshot.Machine.CPUs, cpu)
	}
	for _, s := range live {
		if s.Status.HoldsResources() {
			snapshot.Promised = append(snapshot.Promised, promiseOf(s, now))
			continue
		}
		q, err := a.request(s)
		if err != nil {
			return snapshot, err
		}
		snapshot.Queue = append(snapshot.Queue, q)
		if allowance := a.Allowance(s.Owner); allowance.Limits() {
			snapshot.Allowances[s.Owner] = allowance
		}
	}
	if len(snapshot.Queue) == 0 {
		return snapshot, nil
	}
	snapshot.Promised = append(snapshot.Promised, a.launch.Left()...)
	around := a.neighbours()
	for _, n := range around {
		snapshot.Promised = append(snapshot.Promised, scheduler.Promise{Session: n.holder(), Name: n.String(),
			Grants: session.Grants{GPUs: n.grants}, Since: n.since()})
	}
	book := a.devices.now()
	snapshot.Machine.Devices, snapshot.Machine.NoDevices = book.Devices, book.Text
	snapshot.Machine.Unread, snapshot.Machine.WhyUnread = book.Unread, book.WhyUnread
	snapshot.Machine.Measured = measured(live, around, book, a.config.Giving, now)
	history, err := a.runs.history(a.store)
	snapshot.History = history
	return snapshot, err
}

func promiseOf(s session.Session, now time.Time) scheduler.Promise {
	// A session that is placed and does not run yet is taken to begin soon.
	const soon = time.Minute
	p := scheduler.Promise{Session: s.ID, Name: s.Name, Owner: s.Owner, Grants: s.Grants, Since: s.StartedAt,
		Kinds: kindsOf(s)}
	if s.Spec.Timeout > 0 {
		ends := now.Add(time.Duration(s.Spec.Timeout) + soon)
		if s.StartedAt != nil {
			ends = s.StartedAt.Add(time.Duration(s.Spec.Timeout))
		} else if s.ScheduledAt != nil {
			ends = s.ScheduledAt.Add(time.Duration(s.Spec.Timeout) + soon)
		}
		p.Ends = &ends
	}
	return p
}

// requestOf is a session that waits for nothing but its turn, as the scheduler
// knows it.
func requestOf(s session.Session) scheduler.Request {
	return scheduler.Request{
		Session: s.ID, Name: s.Name, Owner: s.Owner, CPU: s.Spec.Resources.CPU, Memory: s.Spec.Resources.Memory,
		GPU: s.Spec.Accelerator, Kernels: s.Spec.Cluster,
		Priority: s.Priority, NotBefore: s.Spec.NotBefore, Timeout: time.Duration(s.Spec.Timeout), Kinds: kindsOf(s),
	}
}

// request is a waiting session as the scheduler knows it.
func (a *Agent) request(s session.Session) (scheduler.Request, error) {
	q := requestOf(s)
	if s.Spec.PendingTimeout > 0 {
		from := s.CreatedAt
		if s.Spec.NotBefore != nil && s.Spec.NotBefore.After(from) {
			from = *s.Spec.NotBefore
		}
		deadline := from.Add(time.Duration(s.Spec.PendingTimeout))
		q.Deadline = &deadline
	}
	for _, id := range s.DependsOn {
		other, err := a.store.Get(id)
		if err != nil && session.CodeOf(err) != store.CodeNotFound {
			return q, err
		}
		q.After = append(q.After, scheduler.Dependency{Session: id, Name: cmp.Or(other.Name, string(id)),
			Status: other.Status, Result: other.Result, Reason: other.Reason})
	}
	return q, nil
}

// measured is the second book of each device that was measured lately.
func measured(live []session.Session, around []neighbour, book deviceBook, giving gpu.Config,
	now time.Time) []scheduler.Measured {
	if len(book.Recent) == 0 {
		return nil
	}
	grants, age := map[string][]gpu.Grant{}, gpu.Age{}
	var holders gpu.Holders
	for _, s := range live {
		if !s.Status.HoldsResources() {
			continue
		}
		// Of devices it may hold none: its processes are known all the same.
		holders = append(holders, accounts.HolderOf(s))
		if len(s.Grants.GPUs) > 0 {
			grants[string(s.ID)] = s.Grants.GPUs
		}
		if s.StartedAt != nil {
			age[string(s.ID)] = now.Sub(*s.StartedAt)
		}
	}
	for _, n := range around {
		holder := string(n.holder())
		holders, grants[holder] = append(holders, gpu.Holder{Session: holder, Grants: n.grants,
			Containers: []string{n.state.ID}}), n.grants
		if since := n.since(); since != nil {
			age[holder] = now.Sub(*since)
		}
	}
	ledger := gpu.Restore(book.Devices, giving, grants)
	foreign := map[gpu.UUID]gpu.Foreign{}
	settles := map[gpu.UUID]time.Time{}
	newest := book.Recent[len(book.Recent)-1]
	final := map[gpu.UUID]gpu.Bytes{}
	for _, b := range gpu.Books(ledger, newest, holders, age, nil) {
		final[b.Device] = b.Foreign
	}
	for _, sample := range book.Recent {
		for _, b := range gpu.Books(ledger, sample, holders, age, nil) {
			foreign[b.Device] = foreign[b.Device].Observe(sample.At.Boot, b.Foreign)
			if b.Foreign > final[b.Device] {
				settles[b.Device] = now.Add(sample.At.Boot - newest.At.Boot + gpu.ForeignWindow)
			}
		}
	}
	var list []scheduler.Measured
	for _, b := range gpu.Books(ledger, newest, holders, age, foreign) {
		if b.DriverFree == nil {
			continue
		}
		m := scheduler.Measured{Device: b.Device, Free: *b.DriverFree - b.Unclaimed,
			Used: usedOf(newest, holders, b.Device), Settles: settles[b.Device]}
		if m.Returned = max(0, b.Peak-b.Foreign); m.Returned > 0 && m.Settles.IsZero() {
			m.Settles = now.Add(gpu.ForeignWindow)
		}
		for _, p := range b.Others {
			if p.Memory != nil {
				m.Foreign = append(m.Foreign, scheduler.Foreign{PID: p.PID, Name: p.Name, User: p.User,
					Memory: *p.Memory})
			}
		}
		list = append(list, m)
	}
	return list
}

// usedOf is the memory of a device that each session's processes hold.
func usedOf(sample gpu.Sample, holders gpu.Holders, device gpu.UUID) map[session.ID]gpu.Bytes {
	used := map[session.ID]gpu.Bytes{}
	for _, p := range sample.Processes {
		if id, ours := holders.Of(p); ours && p.Device == device && p.Memory != nil {
			used[session.ID(id)] += *p.Memory
		}
	}
	return used
}

// enforcement is the weakest level by which the grants of a session are kept,
// empty where it holds no devices.
func (a *Agent) enforcement(s session.Session, devices []gpu.Device, grants session.Grants) gpu.Level {
	attached := a.attachment()
	return weakest(gpu.Enforcement{HardLimit: attached.HardLimit, MPS: s.Spec.MPS && attached.MPS, Guard: true},
		devices, grants)
}

func weakest(with gpu.Enforcement, devices []gpu.Device, grants session.Grants) gpu.Level {
	order := []gpu.Level{gpu.LevelNone, gpu.LevelWatched, gpu.LevelPerProcess, gpu.LevelHard, gpu.LevelHardware}
	for _, level := range order {
		for _, g := range grants.GPUs {
			for _, d := range devices {
				if d.UUID == g.Device && gpu.LevelOf(d, g, with) == level {
					return level
				}
			}
		}
	}
	return ""
}

// attachment is how devices are handed to containers, as far as the engine has
// told.
func (a *Agent) attachment() engine.Attachment {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.attach
}

// askAttachment asks the engine how it hands devices to containers, where there
// are any.
func (a *Agent) askAttachment(ctx context.Context) error {
	if len(a.devices.now().Devices) == 0 {
		return nil
	}
	return engine.Within(ctx, a.limits.Call, "attachment", func(ctx context.Context) error {
		attach, err := a.engine.Attachment(ctx, false)
		if err != nil {
			if engine.Unavailable(err) {
				return err
			}
			a.log.Warn("it is not known how devices are handed to containers", "err", err)
			return nil
		}
		a.mu.Lock()
		a.attach = attach
		a.mu.Unlock()
		return nil
	})
}

// positionText says where a session stands in line.
func positionText(position int) string { return fmt.Sprintf("Number %d in line.", position) }

// kindsOf says of what kind a session is, so that it can be told how long such
// sessions run: by its owner, image and name without a number, then without the
// name.
func kindsOf(s session.Session) []string {
	stem := strings.TrimRight(s.Spec.Name, "0123456789")
	image := strings.Join([]string{s.Owner, string(s.Spec.Type), s.Spec.Image}, "\x00")
	return []string{image + "\x00" + stem, image}
}
