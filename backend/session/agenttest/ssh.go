package agenttest

import (
	"bufio"
	"strings"

	"slipway/backend/session"
)

// anyKey is a public key without a known private one.
const anyKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA4dFxhTNkEG3nLkFj5bCFKbFFu7MFnbFbIPb4GZ2Cw0"

func caseSSH(s *suite) {
	id := s.running()
	host := func() session.SSHHost { return must(s, with2(s.agent.SSHHost, id, "")) }
	if first, second := host(), host(); first != second || !strings.HasPrefix(first.Key, "ssh-") {
		s.Errorf("a kernel is known by %+v, then by %+v", first, second)
	}
	for _, bulk := range []bool{false, true} {
		s.greeting(id, session.SSHRequest{Key: anyKey, Bulk: bulk})
	}
	refused(s, "a kernel that is not there", session.DetailNotFound, with2(s.agent.SSHHost, id, "sub7"))

	closed := s.launch(session.Spec{Access: session.Access{NoSSH: true}})
	s.awaitStatus(closed.ID, session.Running)
	refused(s, "a session that was launched without ssh", session.CodeSessionConflict,
		with2(s.agent.DialSSH, closed.ID, session.SSHRequest{Key: anyKey}))
	s.terminate(closed.ID, true)
}

// greeting waits until an ssh server greets, which it does first, connecting again if that is lost.
func (s *suite) greeting(id session.ID, req session.SSHRequest) {
	s.Helper()
	for s.ctx.Err() == nil {
		conn := must(s, with2(s.agent.DialSSH, id, req))
		line, err := bufio.NewReader(conn).ReadString('\n')
		conn.Close() //nolint:errcheck // it was only tried
		switch {
		case err == nil && strings.HasPrefix(line, "SSH-2.0-"):
			return
		case err == nil || !s.Mortal:
			s.Errorf("a kernel greets with %q, %v", line, err)
			return
		}
		s.pause()
	}
	s.Error("no kernel greets")
}
