package agent

import "slipway/backend/session"

// publishVersions passes on what was stored of sessions.
func (a *Agent) publishVersions(versions []session.Session) {
	for _, v := range versions {
		if v.Status.Terminal() {
			a.queue.Forget(v.ID)
			a.apps.Forget(v.ID)
		}
		if v.Status == session.Running && v.StartedAt != nil {
			a.accounts.Begin(a.devices.Moment(), v) // it may end before the next sample
		}
		if v.Status == session.Running || v.Status == session.Terminating || v.Status.Terminal() {
			a.sampler.Wake()
		}
		if v.Status == session.Terminating {
			a.meter.Wake() // its last seconds count
		}
		if v.Status == session.Running || v.Status.Terminal() {
			a.folders.Used(v)
		}
		v = a.Dress(v)
		a.stream.publish(session.Event{Session: &v})
	}
}
