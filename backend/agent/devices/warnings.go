package devices

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"slipway/backend/agent/accounts"
	"slipway/backend/agent/host"
	"slipway/backend/agent/records"
	"slipway/backend/session"
	"slipway/gpu"
)

type lostDevice struct {
	device gpu.Device // as it was last seen
	loss   gpu.Loss
	since  time.Time // on the wall clock
}

// lookSoon is the pause between two inventories while samples and the inventory name different devices.
const lookSoon = 10 * time.Second

// all are the listed devices and those that are lost. The caller holds d.mu.
func (d *Devices) all() []gpu.Device {
	list := slices.Clone(d.list)
	for i := range list {
		list[i].Lost = nil
	}
	for _, uuid := range slices.Sorted(maps.Keys(d.lost)) {
		one := d.lost[uuid]
		i := slices.IndexFunc(list, func(x gpu.Device) bool { return x.UUID == uuid })
		if i < 0 {
			i, list = len(list), append(list, one.device)
		}
		list[i].Lost = &one.loss
	}
	slices.SortStableFunc(list, func(x, y gpu.Device) int { return cmp.Compare(x.Index, y.Index) })
	return list
}

// loseDevice notes that a device is lost, and reports whether that is news. The caller holds d.mu.
func (d *Devices) loseDevice(device gpu.Device, loss gpu.Loss, at gpu.Moment) bool {
	if old, known := d.lost[device.UUID]; known && old.loss.Kind == loss.Kind {
		return false
	} else if known {
		d.lost[device.UUID] = lostDevice{device: old.device, loss: loss, since: old.since}
		return true
	}
	device.Lost = nil
	d.lost[device.UUID] = lostDevice{device: device, loss: loss, since: at.Wall.UTC()}
	return true
}

// judge finds lost devices: marked in the new list, or held and not in it. before was known until now. It needs d.mu.
func (d *Devices) judge(before []gpu.Device, held []gpu.UUID, at gpu.Moment) {
	listed := map[gpu.UUID]bool{}
	for _, x := range d.list {
		listed[x.UUID] = true
		if x.Lost != nil {
			d.loseDevice(x, *x.Lost, at)
		} else {
			delete(d.lost, x.UUID)
		}
	}
	for uuid := range d.lost {
		if !listed[uuid] && !slices.Contains(held, uuid) {
			delete(d.lost, uuid)
		}
	}
	for _, uuid := range held {
		if listed[uuid] {
			continue
		}
		device := gpu.Device{UUID: uuid}
		if i := slices.IndexFunc(before, func(x gpu.Device) bool { return x.UUID == uuid }); i >= 0 {
			device = before[i]
		}
		d.loseDevice(device, gpu.Loss{Kind: gpu.LossUnlisted, Why: "the driver does not list it any more"}, at)
	}
}

// miss finds in a sample which devices are lost or back, and reports whether that is news. The caller holds d.mu.
func (d *Devices) miss(s gpu.Sample) (news bool) {
	agrees := true
	for _, x := range s.Devices {
		if _, lost := d.lost[x.UUID]; lost {
			delete(d.lost, x.UUID)
			news = true
		}
		agrees = agrees && slices.ContainsFunc(d.list, func(l gpu.Device) bool { return l.UUID == x.UUID })
	}
	for _, gone := range s.Gone {
		if i := slices.IndexFunc(d.list, func(x gpu.Device) bool { return x.UUID == gone.UUID }); i >= 0 {
			news = d.loseDevice(d.list[i], gone.Loss, s.At) || news
		}
	}
	for _, x := range d.list {
		_, sampled := s.Device(x.UUID)
		_, lost := d.lost[x.UUID]
		agrees = agrees && (sampled || lost)
	}
	if !agrees && s.At.Boot-d.looked.Boot >= lookSoon {
		d.looked = gpu.Moment{}
	}
	return news
}

// heldBy are the devices of this machine that sessions hold.
func heldBy(live []session.Session) (held []gpu.UUID) {
	for _, s := range live {
		elsewhere := slices.ContainsFunc(s.Kernels, func(k session.Kernel) bool { return k.Node != "" })
		if !s.Status.HoldsResources() || elsewhere {
			continue
		}
		for _, g := range s.Grants.GPUs {
			if !slices.Contains(held, g.Device) {
				held = append(held, g.Device)
			}
		}
	}
	return held
}

// lostNow are the devices that are lost, and those that the newest sample read.
func (d *Devices) lostNow() (lost map[gpu.UUID]lostDevice, read map[gpu.UUID]bool) {
	at := d.Moment()
	d.mu.Lock()
	defer d.mu.Unlock()
	read = map[gpu.UUID]bool{}
	if recent := fresh(d.recent, at); len(recent) > 0 {
		for _, x := range recent[len(recent)-1].Devices {
			read[x.UUID] = true
		}
	}
	return maps.Clone(d.lost), read
}

// tellLosses warns running sessions of lost devices, and of those that are back. The goroutine that samples calls it.
func (s *Sampler) tellLosses(live []session.Session) {
	lost, read := s.devices.lostNow()
	for _, one := range live {
		if one.Status != session.Running {
			continue
		}
		for _, uuid := range heldBy([]session.Session{one}) {
			device, gone := lost[uuid]
			told := warned(one, session.CodeDeviceLost, uuid)
			var warning session.Warning
			switch {
			case gone && told == nil:
				warning = lossWarning(device)
			case !gone && told != nil && read[uuid]:
				warning = backWarning(s.devices.name(uuid), uuid, told.At)
			default:
				continue
			}
			s.config.Records.Warn(s.config.Log, one.ID, func(d *records.Draft) {
				d.Unwarn(session.CodeDeviceLost, uuid)
				d.Unwarn(session.CodeDeviceBack, uuid)
				d.Warn(warning)
			})
		}
	}
}

func warned(s session.Session, code session.Code, device gpu.UUID) *session.Warning {
	for _, w := range s.Warnings {
		if w.Code == code && w.Device == device {
			return &w
		}
	}
	return nil
}

func lossWarning(one lostDevice) session.Warning {
	title, verb := "A GPU of the session is lost", "is lost"
	if one.loss.Kind == gpu.LossSilent {
		title, verb = "A GPU of the session does not answer", "does not answer"
	}
	return session.Warning{Code: session.CodeDeviceLost, Device: one.device.UUID, Title: title,
		Text: fmt.Sprintf("%s %s: %s. The session keeps running, but its work there fails. Save what you can. %s",
			lostName(one.device), verb, one.loss.Why, one.loss.Hint())}
}

func backWarning(name string, device gpu.UUID, since time.Time) session.Warning {
	return session.Warning{Code: session.CodeDeviceBack, Device: device,
		Title: "A GPU of the session was lost and is back",
		Text: fmt.Sprintf("%s was lost at %s and answers again. Programs that used it must be restarted.", name,
			since.UTC().Format("2006-01-02 15:04:05 UTC"))}
}

// lostName is what people call a device, with its model, because after a loss another device may have its number.
func lostName(d gpu.Device) string {
	if d.Model == "" {
		return string(d.UUID)
	}
	return fmt.Sprintf("GPU %d (%s)", d.Index, d.Model)
}

// guardDevices has the guard check one sample and acts on its alarms. The guard belongs to the goroutine that samples.
func (s *Sampler) guardDevices(sample gpu.Sample, live []session.Session) {
	holders := gpu.Holders{}
	for _, one := range live {
		if one.Status == session.Running && len(one.Grants.GPUs) > 0 {
			holders = append(holders, accounts.HolderOf(one))
		}
	}
	for _, alarm := range s.guard.Poll(gpu.Readings(sample, holders)) {
		s.heedAlarm(alarm)
	}
}

// heedAlarm shows an alarm on its session and, if the policy says so, ends the session.
func (s *Sampler) heedAlarm(alarm gpu.Alarm) {
	id := session.ID(alarm.Session)
	if alarm.Act == gpu.PolicyEndSession {
		cause := session.Because(session.CodeMemoryOver,
			session.Say("overShare", session.Fill("device", s.devices.name(alarm.Device)),
				session.Fill("used", alarm.Used.String()), session.Fill("limit", alarm.Limit.String())),
			session.Say("overShareHint"))
		_, err := s.config.EndSession(id, host.Ending{Reason: session.ReasonDeviceMemory, Cause: cause})
		if err != nil {
			s.config.Log.Warn("a session that takes too much of a device was not ended", "session", id, "err", err)
		}
		return
	}
	text := s.devices.name(alarm.Device) + ": " + alarm.Message
	if alarm.Act == gpu.PolicyEndProcess {
		err := errors.New("processes cannot be ended here")
		if end := s.config.EndProcess; end != nil {
			err = end(alarm.Process.PID, alarm.Process.Start)
		}
		if err != nil {
			s.config.Log.Warn("a process that takes too much of a device was not ended", "session", id, "pid",
				alarm.Process.PID, "err", err)
			text += " It cannot be ended: " + err.Error() + "."
		}
	}
	s.config.Records.Warn(s.config.Log, id, func(d *records.Draft) {
		d.Unwarn(session.CodeMemoryNear, alarm.Device)
		d.Unwarn(session.CodeMemoryOver, alarm.Device)
		switch alarm.Stage {
		case gpu.StageWarn:
			d.Warn(session.Warning{Code: session.CodeMemoryNear, Device: alarm.Device,
				Title: "Nearly all of its device memory is used", Text: text})
		case gpu.StageOver:
			d.Warn(session.Warning{Code: session.CodeMemoryOver, Device: alarm.Device,
				Title: "More device memory is used than was granted",
				Text:  text + " Others on the device may run out of it."})
		}
	})
}

// recallAlarms restores the guard's alarms from the stored warnings, so that it removes those that no longer apply.
func (s *Sampler) recallAlarms(live []session.Session) {
	for _, one := range live {
		for _, w := range one.Warnings {
			switch w.Code {
			case session.CodeMemoryNear:
				s.guard.Recall(string(one.ID), w.Device, gpu.StageWarn)
			case session.CodeMemoryOver:
				s.guard.Recall(string(one.ID), w.Device, gpu.StageOver)
			}
		}
	}
}

func (d *Devices) name(id gpu.UUID) string {
	for _, one := range d.Now().Devices {
		if one.UUID == id {
			return fmt.Sprintf("GPU %d", one.Index)
		}
	}
	return string(id)
}
