package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"path/filepath"
	"slices"

	"slipway/backend/agent/accounts"
	"slipway/backend/agent/apps"
	"slipway/backend/agent/devices"
	"slipway/backend/agent/folders"
	"slipway/backend/agent/guests"
	"slipway/backend/agent/health"
	"slipway/backend/agent/images"
	"slipway/backend/agent/launch"
	"slipway/backend/agent/logs"
	"slipway/backend/agent/meter"
	"slipway/backend/agent/networks"
	"slipway/backend/agent/others"
	"slipway/backend/agent/people"
	"slipway/backend/agent/queue"
	"slipway/backend/agent/reclaim"
	"slipway/backend/agent/records"
	"slipway/backend/agent/sessions"
	"slipway/backend/offlimits"
	"slipway/backend/session"
	"slipway/gpu"
)

// Open returns an agent that answers questions and accepts launches. The engine
// need not answer yet.
func Open(_ context.Context, config Config) (*Agent, error) {
	a := &Agent{config: config.withDefaults()}
	n := newNeeds()
	a.news, a.stream = n.news, n.news.stream
	for _, open := range []func(*needs) error{a.openRecords, a.openDevices, a.openGuests, a.openImages, a.openLaunch} {
		if err := open(n); err != nil {
			return nil, err
		}
	}
	a.connect(n)
	if err := a.resumeAccounts(); err != nil {
		return nil, err
	}
	return a, nil
}

// openRecords opens what the agent knows of sessions, people and the engine.
func (a *Agent) openRecords(n *needs) (err error) {
	c := &a.config
	if a.accounts, err = accounts.Open(c.Store, c.Clock, c.Log); err != nil {
		return err
	}
	a.devices = devices.New(c.Devices.Source, c.Host.Moment)
	a.health = health.New(health.Config{Engine: c.Engine, Machine: n.health, Clock: c.Clock, Log: c.Log,
		Sweep: n.sweep, Call: c.Sessions.Limits.Call, Every: c.Sessions.Limits.Reconcile})
	a.records = records.New(records.Config{Store: c.Store, Clock: c.Clock, Ended: a.accounts.Ending,
		Tell:    a.publishVersions,
		Dress:   func(s session.Session) session.Session { return a.Dress(s) }, // it is opened later
		Trouble: a.news.PublishMachine})
	a.people, err = people.Open(people.Config{Owner: c.Owner, Processes: c.Sessions.Processes,
		MPSForUsers: c.Devices.MPSForUsers, Giving: c.Devices.Giving, Records: a.records,
		Devices: func() []gpu.Device { return a.devices.Now().Devices }, OffLimits: a.offLimits, Log: c.Log,
		Changed: func() {
			a.news.PlanAgain()
			a.news.PublishMachine()
		}})
	if err != nil {
		return err
	}
	a.reclaim, err = reclaim.Open(reclaim.Config{Agent: n.reclaim, Sessions: a.records, Store: c.Store,
		Clock: c.Clock, Moment: a.devices.Moment, Log: c.Log, Policy: c.Sessions.Idle})
	return err
}

// openDevices opens what measures the machine and shares it with other agents.
func (a *Agent) openDevices(n *needs) error {
	c := &a.config
	a.attached = &devices.Attachment{Engine: c.Engine, Devices: a.devices, Log: c.Log, Call: c.Sessions.Limits.Call}
	a.sampler = devices.NewSampler(a.devices, devices.Config{Agent: n.sampler, Sessions: a.records,
		Store: c.Store, Books: a.accounts, Clock: c.Clock, Log: c.Log, Call: c.Sessions.Limits.Call,
		Guard: c.Devices.Guard, EndProcess: c.Devices.EndProcess})
	a.others = others.New(others.Config{Machine: othersNeeds{c.Store, a.devices, c.Devices.Giving, c.Clock},
		Engine: c.Engine, Health: a.health, Clock: c.Clock, Log: c.Log, Call: c.Sessions.Limits.Call,
		Alone: c.Devices.Alone})
	a.meter = meter.New(meter.Config{Agent: n.meter, Engine: c.Engine, Health: a.health, Clock: c.Clock,
		Log: c.Log, Dir: c.Dir, Load: c.Host.Load, Call: c.Sessions.Limits.Call})
	return nil
}

// openGuests opens what people reach in their sessions, and their folders.
func (a *Agent) openGuests(*needs) error {
	c := &a.config
	a.folders = folders.New(folders.Config{Dir: filepath.Join(c.Dir, "folders"), UID: c.UID, GID: c.GID,
		Agent: c.Name, Owner: c.Owner, Records: a.records, Machine: directories{a.people, a.offLimits},
		Clock: c.Clock, Log: c.Log})
	a.guests = guests.New(guests.Config{Engine: c.Engine, Records: a.records, Health: a.health, Use: a.reclaim,
		Connect: c.Sessions.Link, Lasting: launch.Lasting, Limit: c.Sessions.Limits.Guest})
	a.apps = apps.New(apps.Config{Guest: func(ctx context.Context, id session.ID) (apps.Guest, error) {
		return a.guests.Guest(ctx, id, "")
	}, Engine: c.Engine, Records: a.records, Use: a.reclaim, Limit: c.Sessions.App, Root: c.UID == 0})
	a.Files = guests.NewFiles(guests.FilesConfig{Guests: a.guests, Use: a.reclaim,
		Folder: func(id session.FolderID) (guests.Tree, error) { return a.folders.Files(id) }})
	return nil
}

// openImages opens what sessions start from and what they leave.
func (a *Agent) openImages(*needs) (err error) {
	c := &a.config
	a.images, err = images.Open(images.Config{Dir: filepath.Join(c.Dir, "transfers"), Free: diskFree,
		Quota: c.Sessions.Arriving, Owner: c.Owner, Engine: c.Engine, Records: a.records, People: a.people,
		Health: a.health, Limits: c.Sessions.Limits.Limits, Clock: c.Clock, Log: c.Log})
	if err != nil {
		return err
	}
	a.logs, err = logs.Open(logs.Config{Dir: filepath.Join(c.Dir, "logs"), Cap: c.Sessions.LogCap,
		Engine: c.Engine, Records: a.records, Health: a.health, Changed: a.stream.next, Log: c.Log})
	if err != nil {
		return err
	}
	a.networks, err = networks.Open(networks.Config{Agent: c.Name, Engine: c.Engine, Records: c.Store,
		Limit: c.Sessions.Limits.Call, Log: c.Log})
	return err
}

// openLaunch opens the way of a session from its launch to its end.
func (a *Agent) openLaunch(n *needs) error {
	c := &a.config
	a.launch = launch.New(launch.Config{Self: launch.Self{Agent: c.Name, UID: c.UID, GID: c.GID}, Engine: c.Engine,
		Records: a.records, Networks: a.networks, Images: a.images, Commits: a.images, Health: a.health,
		Machine: launchNeeds{a.news, c.Host.Boot, a.meter, n.sweep}, Folders: a.folders, Guests: a.guests, Logs: a.logs,
		Devices: launchDevices{a.devices, a.others}, Limits: c.Sessions.Limits, Clock: c.Clock, Log: c.Log})
	a.queue = queue.New(queue.Config{Owner: c.Owner, Giving: c.Devices.Giving, Records: a.records, Health: a.health,
		Others: a.others, Launch: a.launch, People: a.people, Machine: a.news, Devices: a.devices.Now,
		Attached: a.attached.Now, Busy: a.meter.Busy, Purge: func() error { return a.Purge() },
		Pause: c.Sessions.Limits.Pause, Clock: c.Clock, Log: c.Log})
	a.Sessions = sessions.New(sessions.Config{Agent: c.Name, Owner: c.Owner, KeepFinished: c.Sessions.KeepFinished,
		NewID: c.Sessions.NewID, Store: c.Store, Records: a.records, Folders: a.folders, Queue: a.queue,
		Images: a.images, Launch: a.launch, Health: a.health, People: a.people, Idle: a.reclaim, Clock: c.Clock,
		Removed: func(s session.Session) {
			a.logs.Remove(s.ID)
			a.news.Publish(session.Event{Removed: &s.ID, Owner: s.Owner})
		}})
	return nil
}

// connect tells rooms of those that were opened after them, and says which of
// them answer calls themselves.
func (a *Agent) connect(n *needs) {
	a.machine = &machine{config: &a.config, health: a.health, records: a.records, people: a.people, queue: a.queue,
		meter: a.meter, devices: a.devices, attached: a.attached, others: a.others, accounts: a.accounts}
	a.news.machine, a.news.sessions, a.news.queue = a.machine, a.Sessions, a.queue
	a.news.measure = func() {
		a.meter.Wake()
		a.sampler.Wake()
	}
	n.ending.launch = a.launch
	n.health.launch, n.health.attached, n.health.networks = a.launch, a.attached, a.networks
	n.sampler.attached, n.sampler.reclaim = a.attached, a.reclaim
	n.meter.store, n.meter.devices, n.meter.accounts = a.config.Store, a.devices, a.accounts
	n.meter.launch, n.meter.people, n.meter.reclaim = a.launch, a.people, a.reclaim
	n.reclaim.guests = a.guests
	a.Terminals, a.SSH, a.Apps, a.Folders = a.guests, a.guests, a.apps, a.folders
	a.Images, a.ImageTransfers, a.Queue = a.images, a.images, asked{a.queue, a.reclaim}
	a.Accelerators, a.Host, a.allowances = a.machine, a.machine, a.people
}

// resumeAccounts goes on with the accounts, and with what is stored beside them.
func (a *Agent) resumeAccounts() error {
	books := a.config.Store
	live, err := books.LiveSessions()
	if err != nil {
		return err
	}
	now := a.devices.Moment()
	last, _, err := a.accounts.LastCheckpoint()
	if err == nil {
		err = errors.Join(a.reclaim.Resume(now, last, live), a.devices.Resume(books))
	}
	if err != nil {
		a.config.Log.Warn("idle checks and device histories start over", "err", err)
	}
	a.accounts.Add(a.reclaim)
	a.accounts.Add(a.devices)
	return a.accounts.Resume(now, live)
}

// offLimits are the directories that no session may see.
func (a *Agent) offLimits() offlimits.Places {
	info := a.health.State().Info
	places := a.config.OffLimits
	places.Own = append(slices.Clip(places.Own), a.config.Dir)
	places.Engine, places.Socket = info.DataRoot, info.Socket
	return places
}

func randomHex() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: see the documentation of crypto/rand
	return hex.EncodeToString(b[:])
}
