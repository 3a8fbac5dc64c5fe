package hub

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"slipway/backend/notify"
	"slipway/backend/session"
)

// Notifier shows notices on the person's desktop; notify.Desktop is one.
type Notifier interface {
	Available(ctx context.Context) bool
	Show(ctx context.Context, n notify.Notice) error
}

// showTime is how long a desktop may take to show a notice, or to say whether it can.
const showTime = 5 * time.Second

// notices notifies the user of what they wait for.
type notices struct {
	*finder
	watching *watching
	person   *person
	notifier Notifier // nil: no desktop
}

const remindersKey = "hub.reminders"

// loadReminders is called before the hub is shared.
func (nt *notices) loadReminders() {
	for _, id := range read[[]session.ID](nt.shared, remindersKey, "the reminders cannot be read") {
		nt.reminders[id] = true
	}
}

// Remind notifies the person when a session starts, whatever the settings say, or no longer does. It fails with
// session_update_conflict if the session has started or ended.
func (nt *notices) Remind(ctx context.Context, ref string, on bool) (session.Session, error) {
	s, _, err := nt.Get(ctx, ref)
	if err != nil {
		return s, err
	}
	if on && (s.Status == session.Running || s.Status == session.Terminating || !s.Status.Live()) {
		return s, session.NewError(session.CodeSessionConflict, "The session is "+string(s.Status)+".",
			"Only a session that has not started can have a reminder.")
	}
	return s, nt.setReminder(s.ID, on)
}

// setReminder stores and shows whether a session has a reminder. A change that cannot be stored is undone.
func (st *state) setReminder(id session.ID, on bool) error {
	st.saving.Lock()
	defer st.saving.Unlock()
	set := func(on bool) []session.ID {
		st.mu.Lock()
		defer st.mu.Unlock()
		if delete(st.reminders, id); on {
			st.reminders[id] = true
		}
		if k := st.sessions[id]; k != nil {
			st.publishSession(k.member, k.session)
		}
		return slices.Sorted(maps.Keys(st.reminders))
	}
	err := st.shelf.Save(remindersKey, set(on))
	if err != nil {
		set(!on)
	}
	return err
}

// remind returns a notice if a session with a reminder has started or ended. It has none any more then.
func (nt *notices) remind(judge *notify.Judge, s *Session) *notify.Notice {
	if s.LastHeard != nil || !locked(nt.shared, func() bool { return nt.reminders[s.ID] }) {
		return nil
	}
	n := judge.Remind(&s.Session, nt.now())
	if n == nil {
		return nil
	}
	if err := nt.setReminder(s.ID, false); err != nil {
		nt.log.Error("a reminder is not removed", "error", err)
	}
	return n
}

// followNotices shows notices until ctx ends. Pages show those that no desktop does.
func (nt *notices) followNotices(ctx context.Context) {
	watcher := nt.watching.Watch(Cursor{}, false)
	defer watcher.Close()
	var judge *notify.Judge
	shown := allowed{}
	for {
		event, err := watcher.Next(ctx)
		if err != nil {
			return
		}
		switch {
		case event.Snapshot != nil:
			judge = notify.NewJudge(each(event.Snapshot.Sessions, func(s Session) session.Session { return s.Session }))
			judge.Speak(nt.person.Settings().Language)
			for _, s := range event.Snapshot.Sessions {
				if n := nt.remind(judge, &s); n != nil {
					nt.showNotice(ctx, *n)
				}
			}
		case event.Removed != "":
			judge.Forget(session.ID(event.Removed))
		case event.Session != nil && event.Session.LastHeard == nil &&
			(nt.isOwn(event.Session) || event.Session.Reminder):
			choices := nt.person.Settings()
			judge.Speak(choices.Language)
			n := judge.See(&event.Session.Session, nt.now())
			reminder := nt.remind(judge, event.Session)
			n = cmp.Or(reminder, n)
			if n != nil && (choices.Notifications || reminder != nil) &&
				(nt.isLocal(event.Session.ID) || shown.more(event.Session.Agent, nt.now())) {
				nt.showNotice(ctx, *n)
			}
		}
	}
}

// mostNotices is how many notices per minute are shown for an agent of another machine, which somebody else controls.
const mostNotices = 30

// allowed counts the notices of each agent in its current minute.
type allowed map[string]struct {
	since time.Time
	count int
}

func (a allowed) more(agent string, now time.Time) bool {
	of := a[agent]
	if now.Sub(of.since) >= time.Minute {
		of.since, of.count = now, 0
	}
	of.count++
	a[agent] = of
	return of.count <= mostNotices
}

// isOwn reports whether a session is the user's own, whose name on its machine may differ.
func (nt *notices) isOwn(s *Session) bool {
	nt.mu.Lock()
	defer nt.mu.Unlock()
	home := nt.homes[s.ID]
	return home != nil && nt.personAt(home, s.Owner) == ""
}

func (nt *notices) isLocal(id session.ID) bool {
	nt.mu.Lock()
	defer nt.mu.Unlock()
	home := nt.homes[id]
	return home != nil && home.remote == nil
}

// showNotice shows a notice on the desktop, or else on the pages.
func (nt *notices) showNotice(ctx context.Context, n notify.Notice) {
	ctx, cancel := context.WithTimeout(ctx, showTime)
	defer cancel()
	if nt.notifier != nil && nt.notifier.Show(ctx, n) == nil {
		return
	}
	nt.mu.Lock()
	defer nt.mu.Unlock()
	nt.stream.publish(Event{Notice: &n})
}

// Notifies reports whether the desktop shows notices. A desktop that does not answer does not; then pages show them.
func (nt *notices) Notifies(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, showTime)
	defer cancel()
	return nt.notifier != nil && nt.notifier.Available(ctx)
}

// TryNotice shows a test notice. It fails with server_request_unavailable.
func (nt *notices) TryNotice(ctx context.Context) error {
	if nt.notifier == nil {
		return session.NewError(session.CodeServerUnavailable, "The desktop shows no notifications.",
			"A browser may show them instead: allow it on the Settings page.")
	}
	ctx, cancel := context.WithTimeout(ctx, showTime)
	defer cancel()
	text := "Slipway notifies you like this."
	if nt.person.Settings().Language == "ko" {
		text = "기다리는 일이 생기면 이렇게 알려 드립니다."
	}
	return nt.notifier.Show(ctx, notify.Notice{Title: "Slipway", Text: text, At: nt.now()})
}
