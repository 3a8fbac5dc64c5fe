package agent

import (
	"errors"
	"fmt"

	"slipway/backend/agent/accounts"
	"slipway/backend/agent/records"
	"slipway/backend/session"
	"slipway/gpu"
)

// The codes of what the guard says on a session.
const (
	codeNearShare = session.Code("session_run_device-memory-near")
	codeOverShare = session.Code("session_run_device-memory-over")
)

// guardDevices lets the guard look at one sample and does what it says. The
// guard belongs to the goroutine that samples.
func (a *Agent) guardDevices(sample gpu.Sample, live []session.Session) {
	holders := gpu.Holders{}
	for _, s := range live {
		if s.Status == session.Running && len(s.Grants.GPUs) > 0 {
			holders = append(holders, accounts.HolderOf(s))
		}
	}
	for _, alarm := range a.guard.Poll(gpu.Readings(sample, holders)) {
		a.heedAlarm(alarm)
	}
}

// heedAlarm shows an alarm on its session and, where the policy says so, ends
// the session.
func (a *Agent) heedAlarm(alarm gpu.Alarm) {
	id := session.ID(alarm.Session)
	if alarm.Act == gpu.PolicyEndSession {
		cause := session.Because(codeOverShare,
			session.Say("overShare", session.Fill("device", a.deviceName(alarm.Device)),
				session.Fill("used", alarm.Used.String()), session.Fill("limit", alarm.Limit.String())),
			session.Say("overShareHint"))
		if _, err := a.launch.EndFor(id, session.ReasonDeviceMemory, cause, nil); err != nil {
			a.log.Warn("a session that takes too much of a device was not ended", "session", id, "err", err)
		}
		return
	}
	text := a.deviceName(alarm.Device) + ": " + alarm.Message
	if alarm.Act == gpu.PolicyEndProcess {
		if err := a.endProcess(*alarm.Process); err != nil {
			a.log.Warn("a process that takes too much of a device was not ended", "session", id, "pid",
				alarm.Process.PID, "err", err)
			text += " It cannot be ended: " + err.Error() + "."
		}
	}
	_, err := a.records.Change(id, func(d *records.Draft) error {
		if d.Status != session.Running {
			return nil
		}
		d.UnwarnDevice(codeNearShare, alarm.Device)
		d.UnwarnDevice(codeOverShare, alarm.Device)
		switch alarm.Stage {
		case gpu.StageWarn:
			d.Warn(session.Warning{Code: codeNearShare, Device: alarm.Device,
				Title: "Nearly all of its device memory is used", Text: text})
		case gpu.StageOver:
			d.Warn(session.Warning{Code: codeOverShare, Device: alarm.Device,
				Title: "More device memory is used than was granted",
				Text:  text + " Others on the device may run out of it."})
		}
		return nil
	})
	if err != nil {
		a.log.Warn("a warning could not be stored", "session", id, "err", err)
	}
}

// endProcess asks the process that the guard names to end.
func (a *Agent) endProcess(p gpu.ProcessSample) error {
	if a.config.EndProcess == nil {
		return errors.New("processes cannot be ended here")
	}
	return a.config.EndProcess(p.PID, p.Start)
}

// recallAlarms tells the guard what was said before the agent was started, so
// that it is taken back when it is no longer so.
func (a *Agent) recallAlarms(live []session.Session) {
	for _, s := range live {
		for _, w := range s.Warnings {
			switch w.Code {
			case codeNearShare:
				a.guard.Recall(string(s.ID), w.Device, gpu.StageWarn)
			case codeOverShare:
				a.guard.Recall(string(s.ID), w.Device, gpu.StageOver)
			}
		}
	}
}

// deviceName is what people call a device.
func (a *Agent) deviceName(id gpu.UUID) string {
	for _, d := range a.devices.now().Devices {
		if d.UUID == id {
			return fmt.Sprintf("GPU %d", d.Index)
		}
	}
	return string(id)
}
