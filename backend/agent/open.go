package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"path/filepath"
	"slices"

	"github.com/shirou/gopsutil/v3/disk"

	"slipway/backend/agent/accounts"
	"slipway/backend/agent/apps"
	"slipway/backend/agent/devices"
	"slipway/backend/agent/folders"
	"slipway/backend/agent/guests"
	"slipway/backend/agent/health"
	"slipway/backend/agent/host"
	"slipway/backend/agent/images"
	"slipway/backend/agent/launch"
	"slipway/backend/agent/ledger"
	"slipway/backend/agent/logs"
	"slipway/backend/agent/meter"
	"slipway/backend/agent/people"
	"slipway/backend/agent/queue"
	"slipway/backend/agent/reclaim"
	"slipway/backend/agent/records"
	"slipway/backend/agent/sessions"
	"slipway/backend/engine"
	"slipway/backend/offlimits"
	"slipway/backend/session"
	"slipway/gpu"
)

// Open returns an agent that answers questions and accepts launches. The engine need not answer yet.
//
// Rooms that need one another are opened with functions that look up the other when they are called: nothing is called
// before Open returns.
func Open(config Config) (*Agent, error) {
	a := &Agent{config: config.withDefaults()}
	a.news = newNews(a, rand.Text())
	h, err := a.openHost()
	for _, open := range []func(host.Host) error{a.openPeople, a.openDevices, a.openGuests, a.openImages,
		a.openLaunch} {
		if err == nil {
			err = open(h)
		}
	}
	if err == nil {
		err = a.resumeAccounts()
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// openHost opens what all rooms share.
func (a *Agent) openHost() (h host.Host, err error) {
	c := &a.config
	if a.accounts, err = accounts.Open(c.Store, c.Clock, c.Log); err != nil {
		return h, err
	}
	a.devices = devices.New(c.Devices.Source, c.Host.Moment)
	a.attached = &devices.Attachment{Engine: c.Engine, Devices: a.devices, Log: c.Log, Call: c.Sessions.Limits.Call}
	a.health = health.New(health.Config{Engine: c.Engine, News: a.news, Reconcile: a.reconcile,
		Changed: func(container engine.State) { a.launch.ContainerChanged(container) },
		Clock:   c.Clock, Log: c.Log, Call: c.Sessions.Limits.Call, Every: c.Sessions.Limits.Reconcile})
	a.records = records.New(records.Config{Store: c.Store, Clock: c.Clock, Ended: a.accounts.Ending,
		Tell: a.publishVersions, Trouble: a.news.PublishMachine,
		Dress: func(s session.Session) session.Session { return a.Dress(s) }})
	return host.Host{Agent: c.Name, Owner: c.Owner, UID: c.UID, GID: c.GID, Engine: c.Engine, Records: a.records,
		Health: a.health, Limits: c.Sessions.Limits, Clock: c.Clock, Log: c.Log, News: a.news}, nil
}

// reconcile compares records and containers, and looks how devices are handed to containers.
func (a *Agent) reconcile(ctx context.Context) error {
	if err := a.launch.Reconcile(ctx); err != nil {
		return err
	}
	return a.attached.Ask(ctx)
}

// openPeople opens what people may have, and the watch of how they use it.
func (a *Agent) openPeople(h host.Host) (err error) {
	c := &a.config
	a.People, err = people.Open(people.Config{Host: h, Processes: c.Sessions.Processes,
		MPSForUsers: c.Devices.MPSForUsers, Giving: c.Devices.Giving, Devices: a.devices, OffLimits: a.offLimits})
	if err != nil {
		return err
	}
	a.reclaim, err = reclaim.Open(reclaim.Config{Host: h, Moment: a.devices.Moment, Policy: c.Sessions.Idle,
		Guest: a.guestNow, EndSession: a.endSession})
	return err
}

// guestNow is the guest of a kernel if there is a link to it now, else nil.
func (a *Agent) guestNow(id session.ID, kernel string) reclaim.Guest {
	if guest := a.guests.Now(id, kernel); guest != nil {
		return guest
	}
	return nil
}

// endSession is [host.EndSession] for rooms that are opened before launch.
func (a *Agent) endSession(id session.ID, reason session.Reason, cause *session.Cause,
	still func(session.Session) bool) (session.Session, error) {
	return a.launch.EndSession(id, reason, cause, still)
}

// openDevices opens what measures the machine and shares it with other agents.
func (a *Agent) openDevices(h host.Host) error {
	c := &a.config
	a.sampler = devices.NewSampler(a.devices, devices.Config{Host: h, Attached: a.attached, Books: a.accounts,
		Guard: c.Devices.Guard, EndProcess: c.Devices.EndProcess, EndSession: a.endSession,
		Used: a.reclaim.DevicesUsed})
	a.others = ledger.NewOthers(ledger.Config{Host: h, Devices: a.devices, Giving: c.Devices.Giving,
		Alone: c.Devices.Alone})
	a.meter = meter.New(meter.Config{Host: h, Dir: c.Dir, Load: c.Host.Load, Devices: a.devices.Loads,
		Measured: a.measured, Sampled: a.reclaim.Sampled})
	return nil
}

// measured hands on what containers used.
func (a *Agent) measured(live, running []session.Session, stats map[string]engine.Stats) {
	a.accounts.Follow(a.devices.Moment(), live)
	for _, s := range running {
		for _, k := range s.Kernels {
			if of, ok := stats[k.Container]; ok {
				a.accounts.Used(of.At, s.ID, k.Container, of.CPU)
				a.launch.OutOfMemory(s.ID, k.Name, of.OOMKills)
				a.SawProcesses(s, of.Pids)
			}
		}
	}
}

// directories says which directories of the machine sessions and folders may have.
type directories struct {
	*people.People
	offLimits func() offlimits.Places
}

func (d directories) OffLimits() offlimits.Places { return d.offLimits() }

// openGuests opens what people reach in their sessions, and their folders.
func (a *Agent) openGuests(h host.Host) error {
	c := &a.config
	a.folders = folders.New(folders.Config{Host: h, Dir: filepath.Join(c.Dir, "folders"),
		Machine: directories{a.People, a.offLimits}})
	a.guests = guests.New(guests.Config{Host: h, Use: a.reclaim, Connect: c.Sessions.Link})
	a.apps = apps.New(apps.Config{Host: h, Use: a.reclaim, Limit: c.Sessions.App,
		Guest: func(ctx context.Context, id session.ID) (apps.Guest, error) { return a.guests.Guest(ctx, id, "") }})
	files := guests.NewFiles(guests.FilesConfig{Guests: a.guests, Use: a.reclaim,
		Folder: func(id session.FolderID) (guests.Tree, error) { return a.folders.Files(id) }})
	a.Terminals, a.SSH, a.Apps, a.Files, a.Uploads = a.guests, a.guests, a.apps, files, files
	a.Folders, a.FolderTrash = a.folders, a.folders
	return nil
}

// openImages opens what sessions start from and what they leave.
func (a *Agent) openImages(h host.Host) (err error) {
	c := &a.config
	a.images, err = images.Open(images.Config{Host: h, Dir: filepath.Join(c.Dir, "transfers"), Free: diskFree,
		Quota: c.Sessions.Arriving, People: a.People})
	if err != nil {
		return err
	}
	a.Images, a.ImageTransfers = a.images, a.images
	a.logs, err = logs.Open(logs.Config{Host: h, Dir: filepath.Join(c.Dir, "logs"), Cap: c.Sessions.LogCap,
		Changed: a.news.next})
	return err
}

// asked is what people ask of the queue and of the watch for idle sessions.
type asked struct {
	*queue.Queue
	*reclaim.Watch
}

// openLaunch opens the way of a session from its launch to its end.
func (a *Agent) openLaunch(h host.Host) (err error) {
	c := &a.config
	a.launch, err = launch.Open(launch.Config{Host: h, Images: a.images, Folders: a.folders, Guests: a.guests,
		Logs: a.logs, Devices: a.devices, Others: a.others, Boot: c.Host.Boot,
		Ended: func(s session.Session) { a.queue.Ended(s) }})
	a.queue = queue.New(queue.Config{Host: h, Giving: c.Devices.Giving, Others: a.others, Launch: a.launch,
		People: a.People, Devices: a.devices, Attached: a.attached, Busy: a.meter.Busy,
		Purge: func() error { return a.Purge() }})
	a.Queue = asked{a.queue, a.reclaim}
	a.Sessions = sessions.New(sessions.Config{Host: h, KeepFinished: c.Sessions.KeepFinished, NewID: c.Sessions.NewID,
		Folders: a.folders, Queue: a.queue, Images: a.images, Launch: a.launch, People: a.People, Idle: a.reclaim,
		Removed: func(s session.Session) {
			a.logs.Remove(s.ID)
			a.news.Publish(session.Event{Removed: &s.ID, Owner: s.Owner})
		}})
	return err
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

// diskFree is the room on the disk of a folder.
func diskFree(dir string) (gpu.Bytes, error) {
	usage, err := disk.Usage(dir)
	if err != nil {
		return 0, err
	}
	return gpu.Bytes(usage.Free), nil
}
