// Package notify shows notifications on the desktop: a batch session has ended, a session that waited runs, an idle one
// is about to be reclaimed. [Judge] decides what to show, and [Desktop] shows it, if there is a desktop.
package notify

import (
	"fmt"
	"strings"
	"time"

	"slipway/backend/session"
)

// Notice is a notification in the user's language: a batch session has ended, one that waited runs, or an idle one is
// about to be reclaimed.
type Notice struct {
	Session session.ID `json:"session"` // its id
	Title   string     `json:"title"`
	Text    string     `json:"text"`
	Urgent  bool       `json:"urgent"` // it needs an answer
	At      time.Time  `json:"at"`
}

// Limits in characters, because names and reasons come from agents.
const longestTitle, longestText = 120, 500

func clip(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// longWait is how long a session must have waited for a notice that it runs.
const longWait = 15 * time.Second

// Judge follows the states of sessions. It is not safe for concurrent use.
type Judge struct {
	known  map[session.ID]seen
	korean bool
}

// seen is the last known state of a session.
type seen struct {
	status session.Status
	warned bool // that it is about to be reclaimed
}

// NewJudge returns a judge that knows these sessions.
func NewJudge(sessions []session.Session) *Judge {
	j := &Judge{known: map[session.ID]seen{}}
	for i := range sessions {
		j.known[sessions[i].ID] = seen{sessions[i].Status, expires(&sessions[i]) != nil}
	}
	return j
}

// Speak sets the language of the notices: Korean for ko, else English.
func (j *Judge) Speak(language string) { j.korean = language == "ko" }

// Forget forgets a session that was removed.
func (j *Judge) Forget(id session.ID) { delete(j.known, id) }

// See returns a notice about the new state of a session, or nil.
func (j *Judge) See(s *session.Session, now time.Time) *Notice {
	before := j.known[s.ID]
	deadline := expires(s)
	j.known[s.ID] = seen{s.Status, deadline != nil}
	if !s.Status.Live() {
		delete(j.known, s.ID)
	}
	switch {
	case s.Status == before.status && deadline != nil && !before.warned:
		minutes := max(1, int(deadline.Sub(now).Round(time.Minute)/time.Minute))
		n := notice(s, now, j.say(`"%s" is idle and about to end`, "유휴 세션 %s이(가) 곧 종료됩니다", s.Name),
			j.say("It will be reclaimed in %d min unless you use or keep it.", "사용하거나 보호하지 않으면 %d분 뒤에 회수됩니다.", minutes))
		n.Urgent = true
		return n
	case s.Status == before.status:
		return nil
	case s.Status == session.Running && s.StartedAt != nil && s.StartedAt.Sub(s.CreatedAt) >= longWait:
		return j.runs(s, now)
	case !s.Status.Live() && s.Spec.Type == session.Batch && before.status != "":
		return notice(s, now, j.ended(s), j.why(s))
	}
	return nil
}

// Remind returns a notice that a session has started, or that it ended before; nil while it waits.
func (j *Judge) Remind(s *session.Session, now time.Time) *Notice {
	switch {
	case s.Status == session.Running && s.StartedAt != nil:
		return j.runs(s, now)
	case !s.Status.Live():
		return notice(s, now, j.ended(s), j.why(s))
	}
	return nil
}

func (j *Judge) runs(s *session.Session, now time.Time) *Notice {
	return notice(s, now, j.say(`"%s" runs now`, "%s 세션이 시작되었습니다", s.Name),
		j.say("Ready after %s.", "준비까지 %s 걸렸습니다.", s.StartedAt.Sub(s.CreatedAt).Round(time.Second)))
}

func notice(s *session.Session, now time.Time, title, text string) *Notice {
	title = clip(strings.ReplaceAll(session.Printable(title), "\n", " "), longestTitle)
	return &Notice{Session: s.ID, Title: title, Text: clip(session.Printable(text), longestText), At: now}
}

// expires returns when an idle session is reclaimed, or nil if it is not idle.
func expires(s *session.Session) *time.Time {
	if s.Status != session.Running {
		return nil
	}
	var first *time.Time
	for _, check := range s.Idle {
		if check.State == session.IdleIdle && check.ExpiresAt != nil &&
			(first == nil || check.ExpiresAt.Before(*first)) {
			first = check.ExpiresAt
		}
	}
	return first
}

func (j *Judge) say(english, korean string, args ...any) string {
	if j.korean {
		return fmt.Sprintf(korean, args...)
	}
	return fmt.Sprintf(english, args...)
}

func (j *Judge) ended(s *session.Session) string {
	switch {
	case s.Result == session.ResultSuccess:
		return j.say(`"%s" has finished`, "%s 작업이 끝났습니다", s.Name)
	case s.Status == session.Cancelled:
		return j.say(`"%s" was cancelled`, "%s 작업이 취소되었습니다", s.Name)
	}
	return j.say(`"%s" has failed`, "%s 작업이 실패했습니다", s.Name)
}

func (j *Judge) why(s *session.Session) string {
	switch {
	case s.Error != nil:
		return s.Error.Message
	case s.ExitCode != nil:
		return j.say("Exit code %d.", "종료 코드 %d.", *s.ExitCode)
	}
	return ""
}

func unavailable(err error) error {
	return session.WrapError(err, session.CodeServerUnavailable, "The desktop shows no notifications.",
		"A browser may show them instead: allow it on the Settings page.")
}
