//go:build linux

package backend

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"slipway/backend/daemon"
	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/place"
	"slipway/backend/remote"
	"slipway/backend/session"
	"slipway/backend/settings"
)

// nearSide is a hub that reaches other machines for real.
type nearSide struct {
	*hub.Hub
	t         *testing.T
	home      place.Home
	shelf     *hubtest.Shelf
	connector *remote.Connector
	stop      func()
}

// newNearSide opens a hub whose own machine is of no interest. configure changes
// how others are reached, on each start, and change the hub.
func newNearSide(t *testing.T, configure func(*remote.Config), change ...func(*hub.Config)) *nearSide {
	t.Helper()
	n := &nearSide{t: t, home: place.Home{Dir: t.TempDir()}, shelf: &hubtest.Shelf{}}
	n.start(configure, change...)
	t.Cleanup(func() { n.stop() })
	return n
}

func (n *nearSide) start(configure func(*remote.Config), change ...func(*hub.Config)) {
	n.t.Helper()
	config := remote.Config{Home: n.home, User: "ada", Log: discard()}
	configure(&config)
	n.connector = remote.New(config)
	n.t.Cleanup(n.connector.Tidy)
	var err error
	of := hub.Config{
		Members:   []hub.Member{{Name: "local", Local: true, Agent: hubtest.New("local").Agent()}},
		Connector: n.connector, Cloner: n.connector, Shelf: n.shelf,
		Settings: settings.New(n.t.TempDir(), func(string) string { return "" }),
		Owner:    "ada"}
	for _, fn := range change {
		fn(&of)
	}
	n.Hub, err = hub.Open(of)
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() { n.Run(ctx); done <- struct{}{} }()
	go func() { n.connector.Run(ctx); done <- struct{}{} }()
	n.stop = func() { cancel(); <-done; <-done; n.stop = func() {} }
}

// until waits until an agent is as it should be.
func (n *nearSide) until(what, agent string, is func(hub.Agent) bool) hub.Agent {
	n.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		a, err := n.Agent(agent)
		if err == nil && is(a) {
			return a
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("not %s: %+v, %v", what, a, err)
		}
	}
}

// work waits for an operation and answers what it asks.
func (n *nearSide) work(begun hub.Operation, err error, answer func(hub.Prompt) string) hub.Operation {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		now, err := n.Operation(begun.ID)
		switch {
		case err != nil:
			n.t.Fatal(err)
		case now.State.Ended():
			return now
		case now.Prompt != nil:
			if _, err := n.AnswerOperation(now.ID, now.Prompt.ID, answer(*now.Prompt)); err != nil {
				n.t.Fatal(err)
			}
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("it does not end: %+v", now)
		}
	}
}

func online(a hub.Agent) bool { return a.Connection.Online && a.Connection.State == hub.LinkConnected }

func TestPairedAgentThroughTheHub(t *testing.T) {
	_, control := servedAgent(t, daemon.Settings{Listen: "127.0.0.1:0"})
	status, err := control.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := newNearSide(t, func(*remote.Config) {})
	address := "slipway://" + status.Listen
	code := func() string {
		offer, err := control.PairCode(t.Context(), session.PairRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return offer.Code
	}
	asked := 0
	begun, err := n.AddAgent(hub.AgentRequest{Address: address, Name: "box"})
	added := n.work(begun, err, func(p hub.Prompt) string {
		if asked++; asked == 1 {
			return "1234" // mistyped
		}
		if p.Kind != hub.PromptPairCode || !p.Again {
			t.Errorf("asked %+v", p)
		}
		return code()
	})
	if added.State != hub.OperationDone || added.Agent != "box" {
		t.Fatalf("%+v: %v", added, added.Error)
	}
	a := n.until("reached", "box", online)
	if a.Fingerprint != status.Key || a.Connection.Transport != "tls" || a.Connection.RTTMs == nil {
		t.Errorf("%+v", a)
	}
	t.Run("it is used as any agent", func(t *testing.T) {
		s, err := n.Launch(t.Context(),
			hub.LaunchRequest{Key: "k", Spec: session.Spec{Image: "python:3.12",
				Schedule: session.Schedule{Agent: "box"}}})
		if err != nil || s.Agent != "box" {
			t.Fatalf("%+v, %v", s, err)
		}
		if checks, err := n.Doctor(t.Context(), "box"); err != nil || len(checks) == 0 {
			t.Errorf("%+v, %v", checks, err)
		}
		if listing, err := n.ListDirectories(t.Context(), "box", "/data"); err != nil || listing.Path != "/data" {
			t.Errorf("%+v, %v", listing, err)
		}
		probed, err := n.ProbeAgent("box")
		if probed = n.work(probed, err, nil); probed.State != hub.OperationDone || len(probed.Steps) == 0 {
			t.Errorf("%+v", probed)
		}
	})
	t.Run("no secret is kept with it", func(t *testing.T) {
		for _, key := range []string{"hub.agents", "hub.known." + a.Entry.ID} {
			if kept := n.shelf.Raw(key); strings.Contains(kept, "PRIVATE") || strings.Contains(kept, "1234") {
				t.Errorf("%s: %s", key, kept)
			}
		}
	})
	t.Run("revoked, it waits for a person, and is paired again", func(t *testing.T) {
		clients, err := control.PairedClients(t.Context())
		if err != nil || len(clients) != 1 {
			t.Fatalf("%+v, %v", clients, err)
		}
		if err := control.RevokeClient(t.Context(), clients[0].Key); err != nil {
			t.Fatal(err)
		}
		down := n.until("waiting for a person", "box",
			func(a hub.Agent) bool { return a.Connection.State == hub.LinkQuestion })
		if session.CodeOf(down.Connection.Error) != "agent_connect_not-paired" || down.Connection.Waits == "" {
			t.Errorf("%+v", down.Connection)
		}
		begun, err := n.ReconnectAgent("box")
		if ended := n.work(begun, err, func(hub.Prompt) string { return code() }); ended.State != hub.OperationDone {
			t.Fatalf("%+v: %v", ended, ended.Error)
		}
		n.until("reached again", "box", online)
	})
	t.Run("what needs a login there says so", func(t *testing.T) {
		upgrade, err := n.UpgradeAgent("box")
		if upgrade = n.work(upgrade, err, nil); session.CodeOf(upgrade.Error) != "agent_call_unavailable" {
			t.Errorf("%+v", upgrade)
		}
		_, err = n.PairCode(t.Context(), "box", session.PairRequest{})
		if session.CodeOf(err) != "agent_pair_unavailable" {
			t.Error(err)
		}
	})
	t.Run("whoever rules it looks after it from here", func(t *testing.T) {
		clients, err := n.PairedClients(t.Context(), "box")
		if err != nil || len(clients) != 1 || !clients[0].This || clients[0].Role != "admin" {
			t.Errorf("%+v, %v", clients, err)
		}
		admin, err := n.Admin("box")
		if err != nil {
			t.Fatal(err)
		}
		if err := admin.SetLimit(t.Context(), "ann", &session.Allowance{CPU: 2}); err != nil {
			t.Error(err)
		}
		if limits, err := admin.Limits(t.Context()); err != nil || limits["ann"].CPU != 2 {
			t.Errorf("%+v, %v", limits, err)
		}
		if entries, err := admin.Audit(t.Context(), session.AuditQuery{Limit: 1}); err != nil || len(entries) != 1 ||
			entries[0].Method != "SetLimit" || entries[0].Target != "ann" ||
			entries[0].Client != clients[0].Key {
			t.Errorf("%+v, %v", entries, err)
		}
		if _, err := admin.Audit(t.Context(), session.AuditQuery{}); session.CodeOf(err) != "agent_call_invalid" {
			t.Error(err)
		}
	})
	t.Run("after a restart it is reached without a question", func(t *testing.T) {
		n.stop()
		n.start(func(*remote.Config) {})
		n.until("reached", "box", online)
	})
}

func TestUnknownKeyIsAQuestion(t *testing.T) {
	_, control := servedAgent(t, daemon.Settings{Listen: "127.0.0.1:0"})
	status, err := control.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := newNearSide(t, func(*remote.Config) {})
	begun, err := n.AddAgent(hub.AgentRequest{Address: "slipway://" + status.Listen, Name: "box"})
	n.work(begun, err, func(hub.Prompt) string {
		offer, err := control.PairCode(t.Context(), session.PairRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return offer.Code
	})
	n.until("reached", "box", online)
	n.stop()
	// What is remembered is another agent's key: as if this one had been set up anew.
	other := "a" + status.Key[1:]
	if other == status.Key {
		other = "b" + status.Key[1:]
	}
	n.shelf.SetRaw("hub.agents", []byte(strings.ReplaceAll(n.shelf.Raw("hub.agents"), status.Key, other)))
	n.start(func(*remote.Config) {})
	a := n.until("asking", "box", func(a hub.Agent) bool { return a.Question != nil })
	if q := a.Question; q.Kind != hub.QuestionRekeyed || q.Pinned != other || q.Found != status.Key {
		t.Fatalf("%+v", q)
	}
	if _, err := n.AnswerAgent(t.Context(), "box", true, other); session.CodeOf(err) != "agent_call_conflict" {
		t.Errorf("another key than was shown: %v", err)
	}
	if a, err := n.AnswerAgent(t.Context(), "box", true, status.Key); err != nil || a.Fingerprint != status.Key {
		t.Fatalf("%+v, %v", a, err)
	}
	n.until("reached", "box", online)
}

func TestProbeOfAnAddressTellsWhatAnswers(t *testing.T) {
	_, control := servedAgent(t, daemon.Settings{Listen: "127.0.0.1:0"})
	status, err := control.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := newNearSide(t, func(*remote.Config) {})
	for address, want := range map[string]hub.OperationState{"slipway://" + status.Listen: hub.OperationDone,
		"slipway://127.0.0.1:1": hub.OperationFailed} {
		begun, err := n.ProbeAddress(address, "")
		if ended := n.work(begun, err, nil); ended.State != want || len(ended.Steps) != 1 ||
			fmt.Sprint(ended.Steps[0].Detail) == "" {
			t.Errorf("%s: %+v", address, ended)
		}
	}
	if agents := n.Agents(); len(agents) != 1 {
		t.Errorf("a probe added %+v", agents)
	}
}
