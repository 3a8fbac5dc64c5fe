//go:build linux

package backend

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/access"
	"slipway/backend/agentrpc"
	"slipway/backend/daemon"
	"slipway/backend/session"
	"slipway/backend/session/agenttest"
	"slipway/gpu"
	"slipway/tunnel/secure"
)

// pairedAs is a computer that was paired for somebody.
func pairedAs(t *testing.T, control *daemon.Client, request session.PairRequest) *agentrpc.Client {
	t.Helper()
	code, err := control.PairCode(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	address, err := secure.ParseAddress(code.Address)
	if err != nil {
		t.Fatal(err)
	}
	identity, err := secure.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	dial := secure.DialConfig{Identity: identity, Address: address}
	paired, err := secure.Pair(t.Context(), secure.PairConfig{Dial: dial, Code: code.Code,
		Name: request.Owner + "'s laptop"})
	if err != nil {
		t.Fatal(err)
	}
	dial.Key = paired.Key
	dialer, err := secure.NewDialer(dial)
	if err != nil {
		t.Fatal(err)
	}
	return reach(t, dialer)
}

func simSession(name string, cpus int) session.Spec {
	return session.Spec{Name: name, Image: "python:3.12", Type: session.Interactive,
		Resources:   session.Resources{CPU: cpus, Memory: 64 * gpu.MiB},
		Accelerator: gpu.Request{Shares: 200}}
}

// sameAsNothing fails where any method answers something else of another's session
// or folder than of what is not there.
func sameAsNothing(t *testing.T, bob session.Agent, id session.ID, folder session.FolderID) {
	t.Helper()
	unknown := session.NewID()
	nothing := session.FolderID(unknown)
	for _, m := range agenttest.Methods() {
		if m.Type.NumIn() < 2 {
			continue
		}
		for _, pair := range [][2]any{
			{id, unknown}, {folder, nothing},
			{session.Place{Session: id}, session.Place{Session: unknown}},
			{session.Place{Folder: folder}, session.Place{Folder: nothing}},
		} {
			if m.Type.In(1) != reflect.TypeOf(pair[0]) {
				continue
			}
			var said [2]string
			for i, target := range pair {
				err := callWith(t, bob, m, target)
				if err == nil {
					t.Errorf("%s of %v is done", m.Name, target)
				}
				e := *session.AsError(err, "none")
				e.Err = nil
				said[i] = strings.NewReplacer(string(id), "ID", string(folder), "ID", string(unknown), "ID").
					Replace(fmt.Sprintf("%+v", e))
			}
			if said[0] != said[1] {
				t.Errorf("%s: %s, and of what is not there %s", m.Name, said[0], said[1])
			}
		}
	}
}

// callWith calls a method with a target and otherwise nothing.
func callWith(t *testing.T, a session.Agent, m reflect.Method, target any) error {
	t.Helper()
	args := []reflect.Value{reflect.ValueOf(t.Context()), reflect.ValueOf(target)}
	for k := 2; k < m.Type.NumIn(); k++ {
		value := reflect.New(m.Type.In(k)).Elem()
		if m.Type.In(k) == reflect.TypeFor[io.Reader]() {
			value.Set(reflect.ValueOf(strings.NewReader("x")))
		}
		args = append(args, value)
	}
	results := reflect.ValueOf(a).MethodByName(m.Name).Call(args)
	err, _ := results[len(results)-1].Interface().(error)
	return err
}

// until asks again until something is so.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

func TestPeopleShareAnAgentWithoutSeeingOneAnother(t *testing.T) {
	home, control := servedAgent(t, daemon.Settings{Listen: "127.0.0.1:0"})
	ann := pairedAs(t, control, session.PairRequest{Owner: "ann"})
	bob := pairedAs(t, control, session.PairRequest{Owner: "bob", Role: "user"})
	theirs, err := ann.Launch(t.Context(), session.LaunchRequest{Owner: "bob", Spec: simSession("anns-secret", 1)})
	if err != nil || theirs.Owner != "ann" {
		t.Fatalf("%s, %v", theirs.Owner, err)
	}
	until(t, "ann's session does not run", func() bool {
		s, err := ann.Get(t.Context(), theirs.ID)
		return err == nil && s.Status == session.Running
	})
	own, err := bob.Launch(t.Context(), session.LaunchRequest{Spec: simSession("bobs-own", 1)})
	if err != nil {
		t.Fatal(err)
	}
	unknown := session.NewID()
	for name, call := range map[string]func(session.ID) error{
		"by id": func(id session.ID) error { _, err := bob.Get(t.Context(), id); return err },
		"by port": func(id session.ID) error {
			conn, err := bob.DialPort(t.Context(), id, 8888)
			if err == nil {
				_ = conn.Close()
			}
			return err
		},
		"by terminal": func(id session.ID) error {
			_, err := bob.OpenTerminal(t.Context(), id, session.TerminalRequest{Cols: 80, Rows: 24})
			return err
		},
		"by command": func(id session.ID) error {
			_, err := bob.Exec(t.Context(), id, session.ExecRequest{Command: []string{"id"}})
			return err
		},
		"by log": func(id session.ID) error { _, err := bob.Logs(t.Context(), id, session.LogOptions{}); return err },
		"by file": func(id session.ID) error {
			_, err := bob.ListFiles(t.Context(), session.Place{Session: id}, session.ListRequest{})
			return err
		},
		"by end": func(id session.ID) error { _, err := bob.Terminate(t.Context(), id, true); return err },
	} {
		t.Run("another's session "+name+" is as one that there is not", func(t *testing.T) {
			told, never := session.AsError(call(theirs.ID), "none"), session.AsError(call(unknown), "none")
			if told.Code != "session_read_not-found" || told.Code != never.Code ||
				strings.ReplaceAll(told.Message, string(theirs.ID), "") != strings.ReplaceAll(never.Message,
					string(unknown), "") {
				t.Errorf("%v and %v", told, never)
			}
		})
	}
	t.Run("no method tells it from one that there is not", func(t *testing.T) {
		folder, err := ann.CreateFolder(t.Context(), session.FolderRequest{Name: "anns"})
		if err != nil {
			t.Fatal(err)
		}
		sameAsNothing(t, bob.Agent(), theirs.ID, folder.ID)
	})
	t.Run("no folder of the machine is reached", func(t *testing.T) {
		spec := simSession("thief", 1)
		for _, path := range []string{home.Dir, "/data/imagenet-mini"} { // the machine has only the second one
			spec.Mounts = []session.Mount{{Source: path}}
			if _, err := bob.Launch(t.Context(), session.LaunchRequest{Spec: spec}); session.CodeOf(
				err) != session.CodeInvalid {
				t.Errorf("%s is mounted: %v", path, err)
			}
			if _, err := bob.ListDirectories(t.Context(), path); session.CodeOf(err) != "file_use_not-found" {
				t.Errorf("%s is listed: %v", path, err)
			}
		}
		spec.Mounts, spec.After = nil, []string{string(theirs.ID)}
		if _, err := bob.Launch(t.Context(), session.LaunchRequest{Spec: spec}); session.CodeOf(
			err) != session.CodeInvalid {
			t.Errorf("waits for another's session: %v", err)
		}
	})
	t.Run("lists, watches and boards show one's own", func(t *testing.T) {
		if list, err := bob.List(t.Context(), session.Filter{}); err != nil || len(list) != 1 || list[0].ID != own.ID {
			t.Errorf("%+v, %v", list, err)
		}
		until(t, "the board does not show ann's share without her name", func() bool {
			board, err := bob.Devices(t.Context())
			hidden := false
			for _, d := range board.Devices {
				for _, h := range d.Holders {
					if h.Owner == "ann" || h.Session == theirs.ID || strings.Contains(h.Name, "anns") {
						t.Fatalf("the board shows %+v", h)
					}
					hidden = hidden || h.Name == "another person's session" && h.Share > 0
				}
			}
			return err == nil && hidden
		})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, _ = ann.Rename(t.Context(), theirs.ID, "anns-other")
		_, _ = bob.Rename(t.Context(), own.ID, "bobs-other")
		err := bob.Watch(ctx, session.Cursor{}, func(e session.Event) error {
			sessions := []session.Session{}
			if e.Session != nil {
				sessions = append(sessions, *e.Session)
			}
			if e.Reset != nil {
				sessions = append(sessions, e.Reset.Sessions...)
			}
			for _, s := range sessions {
				if s.Owner != "bob" {
					t.Errorf("bob watches %s of %s", s.Name, s.Owner)
				}
				if s.Name == "bobs-other" {
					cancel()
				}
			}
			return nil
		})
		if ctx.Err() != context.Canceled {
			t.Errorf("the watch ended with %v", err)
		}
	})
	t.Run("what they do is written down", func(t *testing.T) { writtenDown(t, control, theirs.ID) })
}

// writtenDown fails unless the log has ann's launch of a session and what bob tried with it.
func writtenDown(t *testing.T, control *daemon.Client, id session.ID) {
	t.Helper()
	entries, err := control.Audit(t.Context(), session.AuditQuery{Limit: session.MostAudit})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []access.Entry{{Owner: "bob", Method: "DialPort", Session: id,
		Outcome: "session_read_not-found"}, {Owner: "ann", Method: "Launch", Session: id, Outcome: "ok"}} {
		if !slices.ContainsFunc(entries, func(e access.Entry) bool {
			return e.Owner == want.Owner && e.Method == want.Method && e.Session == want.Session &&
				e.Outcome == want.Outcome && e.Client != "" && strings.HasPrefix(e.From, "127.0.0.1") &&
				e.Role == "user"
		}) {
			t.Errorf("not written down: %+v", want)
		}
	}
}

func TestOnlyThoseWhoRuleAnAgentLookAfterIt(t *testing.T) {
	_, control := servedAgent(t, daemon.Settings{Listen: "127.0.0.1:0"})
	ann := pairedAs(t, control, session.PairRequest{Owner: "ann", Role: "user"})
	boss := pairedAs(t, control, session.PairRequest{Owner: "boss", Role: "admin"})
	clients, err := boss.PairedClients(t.Context())
	if err != nil || len(clients) != 2 {
		t.Fatalf("%+v, %v", clients, err)
	}
	for name, call := range map[string]func() error{
		"the log":       func() error { _, err := ann.Audit(t.Context(), session.AuditQuery{Limit: 10}); return err },
		"limits":        func() error { _, err := ann.Limits(t.Context()); return err },
		"a limit":       func() error { return ann.SetLimit(t.Context(), "ann", nil) },
		"clients":       func() error { _, err := ann.PairedClients(t.Context()); return err },
		"one's own key": func() error { return ann.RevokeClient(t.Context(), clients[0].Key) },
	} {
		if err := call(); session.CodeOf(err) != "agent_call_forbidden" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := boss.SetLimit(t.Context(), "ann", &session.Allowance{Sessions: 1}); err != nil {
		t.Error(err)
	}
	entries, err := boss.Audit(t.Context(), session.AuditQuery{Limit: 100})
	refused := 0
	for _, e := range entries {
		if e.Owner == "ann" && e.Outcome == "agent_call_forbidden" {
			refused++
		}
	}
	if last := entries[len(entries)-1]; err != nil || refused != 5 || last.Method != "SetLimit" ||
		last.Owner != "boss" || last.Target != "ann" || last.Client == "" {
		t.Errorf("%d refusals are written down, and last %+v; %v", refused, last, err)
	}
	if i := slices.IndexFunc(clients, func(d session.PairedClient) bool { return d.Owner == "ann" }); boss.RevokeClient(
		t.Context(), clients[i].Key) != nil {
		t.Error("ann's computer is not revoked")
	}
	until(t, "a revoked computer is still let in",
		func() bool { _, err := ann.Machine(t.Context()); return err != nil })
}

func TestWhatSomebodyHoldsIsLimited(t *testing.T) {
	_, control := servedAgent(t, daemon.Settings{Listen: "127.0.0.1:0"})
	ann := pairedAs(t, control, session.PairRequest{Owner: "ann"})
	if err := control.SetLimit(t.Context(), "default", &session.Allowance{CPU: 2, Sessions: 5}); err != nil {
		t.Fatal(err)
	}
	if err := control.SetLimit(t.Context(), "bob",
		&session.Allowance{Folders: []string{"not-absolute"}}); session.CodeOf(err) != "agent_call_invalid" {
		t.Errorf("%v", err)
	}
	if m, err := ann.Machine(t.Context()); err != nil || m.Allowance.CPU != 2 || m.Owner != "ann" ||
		m.Role != session.RoleUser {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := ann.Launch(t.Context(), session.LaunchRequest{Spec: simSession("too-large", 3)}); session.CodeOf(
		err) != session.CodeInvalid || !strings.Contains(session.AsError(err, "").Message,
		"Your limit here is 2 CPUs, and this asks for 3.") {
		t.Errorf("%v", err)
	}
	if p, err := ann.Preview(t.Context(), "", simSession("too-large", 3), 1); err != nil || len(p.Errors) == 0 {
		t.Errorf("%+v, %v", p.Errors, err)
	}
	if _, err := ann.Launch(t.Context(), session.LaunchRequest{Spec: simSession("first", 1)}); err != nil {
		t.Fatal(err)
	}
	second, err := ann.Launch(t.Context(), session.LaunchRequest{Spec: simSession("second", 2)})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the second does not wait for the limit", func() bool {
		s, err := ann.Get(t.Context(), second.ID)
		return err == nil && s.Wait != nil && s.Wait.Code == "scheduler_wait_limit" &&
			s.Wait.Message == "Your limit here is 2 CPUs: 1 is in use, this session asks for 2."
	})
	if p, err := ann.Preview(t.Context(), "", simSession("third", 2), 1); err != nil || p.Wait == nil ||
		p.Wait.Code != "scheduler_wait_limit" {
		t.Errorf("%+v, %v", p.Wait, err)
	}
	lab := pairedAs(t, control, session.PairRequest{Owner: "root-of-the-lab", Role: "admin"})
	if err := control.SetLimit(t.Context(), "root-of-the-lab", &session.Allowance{}); err != nil {
		t.Fatal(err)
	}
	if p, err := lab.Preview(t.Context(), "", simSession("second", 3), 1); err != nil || len(p.Errors) > 0 {
		t.Errorf("an admin's own: %+v, %v", p.Errors, err)
	}
	if p, err := lab.Preview(t.Context(), "ann", simSession("second", 3), 1); err != nil || len(p.Errors) != 2 {
		t.Errorf("for ann, who has one of that name and 2 CPUs: %+v, %v", p.Errors, err)
	}
	if p, err := ann.Preview(t.Context(), "root-of-the-lab", simSession("fourth", 3), 1); err != nil ||
		len(p.Errors) == 0 {
		t.Errorf("ann asks for another and is judged by her own limits: %+v, %v", p.Errors, err)
	}
	if err := control.SetLimit(t.Context(), "default", nil); err != nil {
		t.Fatal(err)
	}
	until(t, "without a limit it does not start", func() bool {
		s, err := ann.Get(t.Context(), second.ID)
		return err == nil && s.Status != session.Pending
	})
}

func TestWhoTriesToGetInIsWrittenDown(t *testing.T) {
	_, control := servedAgent(t, daemon.Settings{Listen: "127.0.0.1:0"})
	code, err := control.PairCode(t.Context(), session.PairRequest{Owner: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	address, err := secure.ParseAddress(code.Address)
	if err != nil {
		t.Fatal(err)
	}
	laptop, stranger := newIdentity(t), newIdentity(t)
	pair := func(identity *secure.Identity, code string) error {
		_, err := secure.Pair(t.Context(),
			secure.PairConfig{Dial: secure.DialConfig{Identity: identity, Address: address}, Code: code,
				Name: "a laptop"})
		return err
	}
	last := code.Code[len(code.Code)-1]
	if pair(stranger, code.Code[:len(code.Code)-1]+string('0'+(last-'0'+1)%10)) == nil {
		t.Fatal("paired with a wrong code")
	}
	until(t, "the right code is not taken", func() bool { return pair(laptop, code.Code) == nil })
	moved, err := laptop.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	for _, identity := range []*secure.Identity{moved, stranger} {
		dialer, err := secure.NewDialer(secure.DialConfig{Identity: identity, Address: address, Key: code.Key})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := dialer.Dial(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Read(make([]byte, 1)) // the answer, if it is no
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wanted := []access.Entry{
		{Owner: "", Client: stranger.Fingerprint(), Method: "TryCode", Target: "a laptop",
			Outcome: "agent_pair_wrong-code"},
		{Owner: "ann", Client: laptop.Fingerprint(), Method: "PairDevice", Target: "a laptop", Outcome: "ok"},
		{Owner: "ann", Client: moved.Fingerprint(), Method: "MoveKey", Target: laptop.Fingerprint(), Outcome: "ok"},
		{Owner: "", Client: stranger.Fingerprint(), Method: "Connect", Outcome: "agent_connect_not-paired"},
	}
	until(t, "who tried is not written down", func() bool {
		entries, err := control.Audit(t.Context(), session.AuditQuery{Limit: 100, Security: true})
		if err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(wanted, func(want access.Entry) bool {
			return !slices.ContainsFunc(entries, func(e access.Entry) bool {
				return e.Owner == want.Owner && e.Client == want.Client && e.Method == want.Method &&
					e.Target == want.Target && e.Outcome == want.Outcome && strings.HasPrefix(e.From, "127.0.0.1:")
			})
		})
	})
}

func newIdentity(t *testing.T) *secure.Identity {
	t.Helper()
	identity, err := secure.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return identity
}
