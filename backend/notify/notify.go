// Package notify shows notifications on the desktop: a batch session has ended, a session that waited runs, an idle one
// is about to be reclaimed or was. [Judge] decides what to show, and [Desktop] shows it, if there is a desktop.
package notify

import (
	"fmt"
	"strings"
	"time"

	"slipway/backend/session"
)

// Notice is a notification in the user's language: a batch session has ended, one that waited runs, or an idle one is
// about to be reclaimed or was.
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
		_, announced := sessions[i].Deadline()
		j.known[sessions[i].ID] = seen{sessions[i].Status, announced}
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
	deadline, announced := s.Deadline()
	j.known[s.ID] = seen{s.Status, announced}
	if !s.Status.Live() {
		delete(j.known, s.ID)
	}
	switch {
	case s.Status == before.status && announced && !before.warned:
		n := notice(s, now, j.say(`"%s" is about to end`, "%s 세션이 곧 종료됩니다", s.Name),
			j.ends(deadline, now))
		n.Urgent = true
		return n
	case s.Status == before.status:
		return nil
	case s.Status == session.Running && s.StartedAt != nil && s.StartedAt.Sub(s.CreatedAt) >= longWait:
		return j.runs(s, now)
	case !s.Status.Live() && s.Spec.Type == session.Batch && before.status != "":
		return notice(s, now, j.ended(s), j.why(s))
	case !s.Status.Live() && s.Error != nil && s.Error.Code == session.CodeReclaimed && before.status != "":
		return notice(s, now, j.say(`"%s" has ended`, "%s 세션이 종료되었습니다", s.Name), j.why(s))
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

// ends says when and why a session is reclaimed.
func (j *Judge) ends(deadline *session.IdleCheck, now time.Time) string {
	left := max(0, deadline.ExpiresAt.Sub(now)).Round(time.Minute)
	minutes := int(left / time.Minute)
	switch {
	case deadline.Checker == session.CheckLifetime && minutes == 0:
		return j.say("Its maximum lifetime ends in less than a minute. Keep it if you still need it.",
			"1분 안에 최대 수명에 도달합니다. 아직 필요하면 보호하세요.")
	case deadline.Checker == session.CheckLifetime:
		return j.say("Its maximum lifetime ends in %d min. Keep it if you still need it.",
			"%d분 뒤에 최대 수명에 도달합니다. 아직 필요하면 보호하세요.", minutes)
	case deadline.Checker == session.CheckLimit:
		return j.say("Slurm ends it in about %d min. Save your work, or keep it.",
			"약 %d분 뒤에 Slurm이 끝냅니다. 작업을 저장하거나 보호하세요.", minutes)
	case minutes == 0:
		return j.say("It is idle and will be reclaimed in less than a minute unless you use or keep it.",
			"사용하거나 보호하지 않으면 1분 안에 회수됩니다.")
	}
	return j.say("It is idle and will be reclaimed in %d min unless you use or keep it.",
		"사용하거나 보호하지 않으면 %d분 뒤에 회수됩니다.", minutes)
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
