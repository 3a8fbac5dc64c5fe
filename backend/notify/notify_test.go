package notify

import (
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
)

var begin = time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)

func interactive(status session.Status) session.Session {
	return session.Session{ID: "a", Name: "bert", Status: status, CreatedAt: begin,
		Spec: session.Spec{Type: session.Interactive}}
}

func started(s session.Session, after time.Duration) session.Session {
	at := begin.Add(after)
	s.Status, s.StartedAt = session.Running, &at
	return s
}

func TestASessionThatWaitedIsNewsWhenItRuns(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		want  string
	}{"at once": {3 * time.Second, ""}, "after a minute": {time.Minute, `"bert" runs now`}} {
		t.Run(name, func(t *testing.T) {
			j := NewJudge([]session.Session{interactive(session.Pending)})
			s := started(interactive(""), c.after)
			if got := title(j.See(&s, begin)); got != c.want {
				t.Errorf("told %q, want %q", got, c.want)
			}
			if again := j.See(&s, begin); again != nil {
				t.Errorf("told twice: %+v", again)
			}
		})
	}
}

// TestANoticeIsText has an agent send a name that would be commands to whatever
// shows the notice, or no text that the desktop's bus takes.
func TestANoticeIsText(t *testing.T) {
	j := NewJudge([]session.Session{interactive(session.Pending)})
	s := started(interactive(""), time.Minute)
	s.Name = "x\x1b]0;owned\a\n\u202egnp.exe\xff\x00" + strings.Repeat("a", 1<<20)
	n := j.See(&s, begin)
	if n == nil {
		t.Fatal("it is not told")
	}
	if len(n.Title) > 500 || !strings.HasPrefix(n.Title, `"x]0;owned gnp.exe`) ||
		strings.ContainsFunc(n.Title, session.Unprintable) {
		t.Errorf("the title is %.200q", n.Title)
	}
}

func title(n *Notice) string {
	if n == nil {
		return ""
	}
	return n.Title
}

func TestTheEndOfABatchIsNewsAndThatOfOthersIsNot(t *testing.T) {
	three := 3
	for name, c := range map[string]struct {
		kind   session.Type
		status session.Status
		result session.Result
		exit   *int
		title  string
		text   string
	}{
		"success": {session.Batch, session.Terminated, session.ResultSuccess, nil, `"bert" has finished`, ""},
		"failure": {session.Batch, session.Terminated, session.ResultFailure, &three, `"bert" has failed`,
			"Exit code 3."},
		"cancelled":   {session.Batch, session.Cancelled, session.ResultUndefined, nil, `"bert" was cancelled`, ""},
		"interactive": {session.Interactive, session.Terminated, session.ResultSuccess, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := interactive(session.Running)
			s.Spec.Type = c.kind
			j := NewJudge([]session.Session{s})
			s.Status, s.Result, s.ExitCode = c.status, c.result, c.exit
			got := j.See(&s, begin)
			if title(got) != c.title || got != nil && got.Text != c.text {
				t.Errorf("told %+v, want %q %q", got, c.title, c.text)
			}
		})
	}
}

func TestWhatEndedBeforeItWasHeardOfIsNoNews(t *testing.T) {
	s := interactive(session.Terminated)
	s.Spec.Type = session.Batch
	if got := NewJudge(nil).See(&s, begin); got != nil {
		t.Errorf("told %+v", got)
	}
}

// counts returns a running session with a check that ends it after a time, announced or not.
func counts(checker session.IdleChecker, left time.Duration, announced bool) session.Session {
	s := started(interactive(""), time.Second)
	deadline := begin.Add(left)
	s.Idle = []session.IdleCheck{{State: session.IdleActive, Checker: session.CheckNetwork},
		{Checker: checker, State: session.IdleIdle, ExpiresAt: &deadline}}
	if announced {
		s.Warnings = []session.Warning{{Code: checker.Code()}}
	}
	return s
}

func TestAnEndIsAnnouncedOnceForEachCountdown(t *testing.T) {
	s, idle := counts(session.CheckUse, time.Hour, false), counts(session.CheckUse, 10*time.Minute, true)
	j := NewJudge([]session.Session{s})
	if early := j.See(&s, begin); early != nil {
		t.Fatalf("told %+v of an end that is not announced", early)
	}
	first := j.See(&idle, begin)
	if first == nil || !first.Urgent || title(first) != `"bert" is about to end` ||
		first.Text != "It is idle and will be reclaimed in 10 min unless you use or keep it." {
		t.Fatalf("told %+v", first)
	}
	if again := j.See(&idle, begin.Add(time.Minute)); again != nil {
		t.Fatalf("told twice: %+v", again)
	}
	if active := j.See(&s, begin); active != nil {
		t.Fatalf("told %+v of a session in use", active)
	}
	j.Speak("ko")
	if second := j.See(&idle, begin); second == nil || second.Text != "사용하거나 보호하지 않으면 10분 뒤에 회수됩니다." {
		t.Fatalf("the second countdown was told as %+v", second)
	}
}

func TestAnAnnouncementSaysWhatEndsTheSession(t *testing.T) {
	for want, s := range map[string]session.Session{
		"Its maximum lifetime ends in less than a minute. Keep it if you still need it.": counts(session.CheckLifetime,
			20*time.Second, true),
		"Its maximum lifetime ends in 5 min. Keep it if you still need it.": counts(session.CheckLifetime,
			5*time.Minute, true),
		"It is idle and will be reclaimed in less than a minute unless you use or keep it.": counts(session.CheckUse,
			20*time.Second, true),
	} {
		running := started(interactive(""), time.Second)
		if got := NewJudge([]session.Session{running}).See(&s, begin); got == nil || got.Text != want {
			t.Errorf("told %+v, want %q", got, want)
		}
	}
}

func TestASessionThatWasReclaimedIsNews(t *testing.T) {
	s := started(interactive(""), time.Second)
	j := NewJudge([]session.Session{s})
	s.Status, s.Error = session.Terminated, &session.Cause{Code: session.CodeReclaimed, Message: "No activity for 2h."}
	if got := j.See(&s, begin); title(got) != `"bert" has ended` || got.Text != "No activity for 2h." {
		t.Errorf("told %+v", got)
	}
}
