package devices

import (
	"errors"
	"fmt"

	"slipway/backend/agent/accounts"
	"slipway/backend/agent/records"
	"slipway/backend/session"
	"slipway/gpu"
)

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
		if _, err := s.config.EndSession(id, session.ReasonDeviceMemory, cause, nil); err != nil {
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
