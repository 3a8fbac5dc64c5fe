package provision

import (
	"strings"
	"testing"
	"unicode/utf8"

	"slipway/backend/session"
	"slipway/tunnel/sshstdio"
)

func FuzzProblem(f *testing.F) {
	f.Add([]byte("warning\n{\"code\":\"agent_call_conflict\",\"message\":\"It is ruled.\",\"hint\":\"End that.\"}\n"),
		1)
	f.Add([]byte("sh: \x1b[2Jslipway: Exec format error"), 126)
	f.Add([]byte(`{"code":"\u009b2J","message":"`+strings.Repeat("x", 1000)+`"}`), 1)
	f.Add([]byte("{\"code\":\"\x7f\"}"), 2)
	f.Fuzz(func(t *testing.T, stderr []byte, exit int) {
		told := session.AsError(problemOf(sshstdio.Result{Exit: exit, Stderr: stderr}), "")
		if told.Code == "" {
			t.Errorf("no code: %+v", told)
		}
		for _, text := range []string{string(told.Code), told.Message, told.Hint} {
			if !utf8.ValidString(text) || utf8.RuneCountInString(text) > 500 ||
				strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
				t.Errorf("%q cannot be shown", text)
			}
		}
	})
}
