//go:build linux

package guest_test

import (
	"strings"
	"testing"

	"slipway/backend/guest/link"
	"slipway/backend/session"
)

func TestActivityTellsWhatRunsInTheForeground(t *testing.T) {
	client := newBox(t, true).start().connect()
	foreground := func(id string) link.Foreground {
		t.Helper()
		list, err := client.Activity(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			if f.Terminal == id {
				return f
			}
		}
		return link.Foreground{}
	}
	s := open(t, client, session.TerminalRequest{Cols: 80, Rows: 24})
	t.Run("nothing while the shell waits", func(t *testing.T) {
		s.typeLine("echo rea''dy")
		s.expect("ready")
		waitFor(t, "the prompt", func() bool { f := foreground(s.id); return f.Known && f.Program == "" })
	})
	t.Run("nothing while a program runs in the background", func(t *testing.T) {
		s.typeLine("sleep 7773 & echo beh''ind")
		s.expect("behind")
		waitFor(t, "the prompt", func() bool { f := foreground(s.id); return f.Known && f.Program == "" })
	})
	t.Run("the program that has the terminal", func(t *testing.T) {
		s.typeLine("sleep 7774")
		waitFor(t, "the program", func() bool { return foreground(s.id).Program == "sleep 7774" })
	})
	t.Run("a terminal that was opened for a program", func(t *testing.T) {
		other := open(t, client, session.TerminalRequest{Cols: 80, Rows: 24, Command: []string{"sleep", "7775"}})
		waitFor(t, "the program", func() bool {
			f := foreground(other.id)
			return f.Known &&
				f.Program == "sleep 7775"
		})
		must(t, client.CloseTerminal(t.Context(), other.id))
	})
}

func TestNoticesAreShownInTerminals(t *testing.T) {
	client := newBox(t, true).start().connect()
	s := open(t, client, session.TerminalRequest{Cols: 80, Rows: 24})
	s.typeLine("echo rea''dy")
	s.expect("ready")
	must(t, client.Notice(t.Context(), "this session ends in 10 min"))
	s.expect("this session ends in 10 min")
	t.Run("but not over a full-screen program", func(t *testing.T) {
		s.typeLine("printf '\\033[?1049hfull''screen'; read -r line; printf '\\033[?1049lback''again'")
		s.expect("fullscreen")
		must(t, client.Notice(t.Context(), "never to be seen"))
		s.typeLine("")
		s.expect("backagain")
		if strings.Contains(s.text(), "never to be seen") {
			t.Error("it was shown")
		}
	})
	t.Run("and are one plain line", func(t *testing.T) {
		for _, text := range []string{"", "two\nlines", "\x1b[2J", strings.Repeat("x", 501)} {
			if err := client.Notice(t.Context(), text); session.CodeOf(err) != "guest_call_invalid" {
				t.Errorf("%q gave %v", text, err)
			}
		}
	})
}
