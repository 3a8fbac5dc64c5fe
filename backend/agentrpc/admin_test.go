package agentrpc

import (
	"encoding/json"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/tunnel"
)

// adminOfBefore answers as the version did that knew only how many entries of
// the log are asked for.
func adminOfBefore(t *testing.T, log []session.AuditEntry) *Client {
	near, far := connect(t)
	opener, err := tunnel.NewMux(near, tunnel.Opener)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opener.Close() })
	accepter, err := tunnel.NewMux(far, tunnel.Accepter)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepter.Close() })
	go func() {
		for {
			conn, err := accepter.Accept()
			if err != nil {
				return
			}
			w := newWire(muxStream{conn, tunnel.Control}, &codec{})
			_, frame, err := w.next()
			var asked request
			var args struct {
				Limit int `json:"limit"`
			}
			if err != nil || json.Unmarshal(frame, &asked) != nil || json.Unmarshal(asked.Args, &args) != nil ||
				asked.Method != "audit" || args.Limit < 1 {
				t.Errorf("the call %q is not one of before: %v", frame, err)
				return
			}
			w.send(kindAnswer, log[max(0, len(log)-args.Limit):]) //nolint:errcheck // what the caller reads shows it
			conn.Close()
		}
	}()
	return NewClient(ClientConfig{Name: func() string { return "lab" }, Opener: muxTunnel{opener}})
}

// An agent of one version before answers what it always did; what was not asked
// for is left out here, and an older page, of which it knows nothing, ends in
// an error instead of beginning anew.
func TestTheLogOfAnAgentOfBeforeIsAskedForWithAQuery(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	log := []session.AuditEntry{
		{At: began, Owner: "ann", Method: "launch", Outcome: "ok"},
		{At: began.Add(time.Second), Owner: "bob", Method: "launch", Outcome: "ok"},
		{At: began.Add(2 * time.Second), Owner: "ann", Method: "terminate", Outcome: "agent_call_forbidden"},
		{At: began.Add(3 * time.Second), Owner: "ann", Method: "rename", Outcome: "ok"},
	}
	c := adminOfBefore(t, log)
	for name, of := range map[string]struct {
		asked session.AuditQuery
		want  []int
	}{
		"the newest":        {session.AuditQuery{Limit: 2}, []int{2, 3}},
		"all":               {session.AuditQuery{Limit: session.MostAudit}, []int{0, 1, 2, 3}},
		"of one person":     {session.AuditQuery{Limit: 10, Owner: "bob"}, []int{1}},
		"by words":          {session.AuditQuery{Limit: 10, Text: "ANN launch"}, []int{0}},
		"what was refused":  {session.AuditQuery{Limit: 10, Failed: true}, []int{2}},
		"of one in the few": {session.AuditQuery{Limit: 1, Owner: "bob"}, nil},
	} {
		got, err := c.Audit(t.Context(), of.asked)
		if err != nil || len(got) != len(of.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
			continue
		}
		for i, at := range of.want {
			if got[i] != log[at] {
				t.Errorf("%s: %+v in the place of %+v", name, got[i], log[at])
			}
		}
	}
	_, err := c.Audit(t.Context(), session.AuditQuery{Limit: 2, Before: log[2].At})
	if session.CodeOf(err) != session.CodeAgentUnsupported {
		t.Errorf("an older page: %v", err)
	}
}
