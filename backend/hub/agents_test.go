package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
)

const labAddress = "ssh://ada@lab"

// fleet is a hub with a local agent, and machines to be added.
type fleet struct {
	*hub.Hub
	shelf     *hubtest.Shelf
	local     *hubtest.Agent
	lab       *hubtest.Agent
	connector *hubtest.Connector
	stop      func()
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{shelf: &hubtest.Shelf{}, local: hubtest.New("local"), lab: hubtest.New("itself"),
		connector: &hubtest.Connector{}}
	f.connector.Machine(labAddress, f.lab)
	f.restart(t)
	return f
}

// restart ends the hub, if it runs, and begins another on the same shelf.
func (f *fleet) restart(t *testing.T) {
	t.Helper()
	if f.stop != nil {
		f.stop()
	}
	h, err := hub.Open(hub.Config{Members: []hub.Member{{Name: "local", Local: true, Agent: f.local.Agent()}},
		Connector: f.connector, Shelf: f.shelf, Settings: noSettings(t), Owner: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	f.Hub = h
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.Run(ctx) }()
	f.stop = func() { cancel(); <-done }
	t.Cleanup(f.stop)
	h.WaitHeard(t.Context())
}

// ended waits until an operation has.
func (f *fleet) ended(t *testing.T, begun hub.Operation, err error) hub.Operation {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	watcher := f.Watch(hub.Cursor{}, false)
	defer watcher.Close()
	for {
		now, err := f.Operation(begun.ID)
		if err != nil {
			t.Fatal(err)
		}
		if now.State.Ended() {
			return now
		}
		next(t, watcher)
	}
}

func (f *fleet) add(t *testing.T) *hubtest.Remote {
	t.Helper()
	op, err := f.AddAgent(hub.AgentRequest{Address: labAddress})
	if op = f.ended(t, op, err); op.State != hub.OperationDone || op.Agent != "lab" {
		t.Fatalf("adding ended as %+v", op)
	}
	f.awaitOnline(t, "lab", true)
	return f.connector.Remote(labAddress)
}

func (f *fleet) awaitOnline(t *testing.T, name string, online bool) hub.Agent {
	t.Helper()
	watcher := f.Watch(hub.Cursor{}, false)
	defer watcher.Close()
	for {
		a, err := f.Agent(name)
		if err != nil {
			t.Fatal(err)
		}
		if a.Connection.Online == online {
			return a
		}
		next(t, watcher)
	}
}

func TestAgentsComeAndGoWhileTheHubRuns(t *testing.T) {
	f := newFleet(t)
	f.lab.Put(session.Session{ID: "bbbbbbbbbbbb", Name: "over-there", Status: session.Running})
	remote := f.add(t)
	t.Run("its sessions stand under the name that it has here", func(t *testing.T) {
		all, err := f.List(t.Context(), "", session.Filter{})
		if err != nil || len(all) != 1 || all[0].Agent != "lab" {
			t.Fatalf("%+v, %v", all, err)
		}
		one, stale, err := f.Get(t.Context(), "over-there")
		if err != nil || stale != nil || one.Agent != "lab" {
			t.Fatalf("%+v, %v, %v", one, stale, err)
		}
	})
	t.Run("it is launched at by name and by group", func(t *testing.T) {
		if _, err := f.UpdateAgent("lab", hub.AgentUpdate{Group: new("gpus")}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []session.Spec{{Image: "a:1", Schedule: session.Schedule{Agent: "lab"}}, {Image: "a:1",
			Schedule: session.Schedule{Group: "gpus"}},
			{Image: "a:1", Schedule: session.Schedule{Group: "gpus", Agent: "lab"}}} {
			s, err := f.Launch(t.Context(), hub.LaunchRequest{Spec: want})
			if err != nil || s.Agent != "lab" {
				t.Fatalf("%+v went to %q, %v", want, s.Agent, err)
			}
		}
		for _, wrong := range []session.Spec{{Image: "a:1", Schedule: session.Schedule{Agent: "local", Group: "gpus"}},
			{Image: "a:1", Schedule: session.Schedule{Group: "none"}}} {
			var e *session.Error
			if _, err := f.Launch(t.Context(), hub.LaunchRequest{Spec: wrong}); !errors.As(err, &e) ||
				len(e.Fields) != 1 {
				t.Fatalf("%+v: %v", wrong, err)
			}
		}
	})
	t.Run("a cut greys what is known of it, with the time", func(t *testing.T) {
		watcher := f.Watch(hub.Cursor{}, false)
		defer watcher.Close()
		next(t, watcher)
		remote.SetUp(false)
		a := f.awaitOnline(t, "lab", false)
		if c := a.Connection; c.State != hub.LinkDown && c.State != hub.LinkConnected || c.LastHeard == nil {
			t.Fatalf("%+v", a)
		}
		seen := false
		for !seen {
			e := next(t, watcher)
			seen = e.Session != nil && e.Session.ID == "bbbbbbbbbbbb" && e.Session.LastHeard != nil
		}
		one, stale, err := f.Get(t.Context(), "bbbbbbbbbbbb")
		if err != nil || stale == nil || one.Name != "over-there" {
			t.Fatalf("%+v, %v, %v", one, stale, err)
		}
		if all, err := f.List(t.Context(), "", session.Filter{Live: true}); err != nil || len(all) != 4 {
			t.Fatalf("%d sessions, %v", len(all), err)
		}
		agent, id, err := f.Find(t.Context(), "bbbbbbbbbbbb")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := agent.Terminate(t.Context(), id, false); session.CodeOf(err).
			Detail() != session.DetailUnavailable {
			t.Fatalf("ending it: %v", err)
		}
	})
	t.Run("mended, it is live again", func(t *testing.T) {
		remote.SetUp(true)
		f.awaitOnline(t, "lab", true)
		if at := f.View(session.Session{ID: "bbbbbbbbbbbb"}).LastHeard; at != nil {
			t.Fatalf("still as old as %v", at)
		}
	})
	t.Run("it is live again although its stream outlived the cut and has nothing to tell", func(t *testing.T) {
		link, _ := remote.Link()
		remote.SetLink(hub.Link{State: hub.LinkDown})
		f.awaitOnline(t, "lab", false)
		remote.SetLink(link)
		f.awaitOnline(t, "lab", true)
	})
	t.Run("removed, it is gone with everything of it", func(t *testing.T) {
		op, err := f.RemoveAgent("lab", false)
		if op = f.ended(t, op, err); op.State != hub.OperationDone {
			t.Fatalf("%+v", op)
		}
		if all, err := f.List(t.Context(), "", session.Filter{}); err != nil || len(all) != 0 {
			t.Fatalf("%+v, %v", all, err)
		}
		if _, err := f.Agent("lab"); session.CodeOf(err) != "agent_find_not-found" {
			t.Fatal(err)
		}
		if strings.Contains(f.shelf.Raw("hub.agents"), "lab") {
			t.Fatalf("the shelf still has it: %s", f.shelf.Raw("hub.agents"))
		}
		if state, _ := remote.Link(); state.State != hub.LinkOff {
			t.Fatalf("its line is %s", state.State)
		}
	})
}

func TestSessionsAreLaunchedForOthersWhereOneRules(t *testing.T) {
	for _, c := range []struct {
		name, agent, asked string
		role               session.Role
		want               string
		kind               session.Kind
	}{
		{"an admin launches for another", "lab", "ann", session.RoleAdmin, "ann", ""},
		{"and for themselves by the name that they have there", "lab", "", session.RoleAdmin, "", ""},
		{"a user does not launch for another", "lab", "ann", session.RoleUser, "", "forbidden"},
		{"but may name themselves", "lab", "ada-there", session.RoleUser, "ada-there", ""},
		{"this computer is one's own", "local", "ann", session.RoleUser, "ann", ""},
		{"a name is one", "local", "../ann", session.RoleAdmin, "", "invalid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet(t)
			f.lab.Owner, f.lab.Role = "ada-there", c.role
			f.local.Put(session.Session{ID: "aaaaaaaaaaaa", Name: "old", Owner: "ann", Status: session.Terminated})
			f.restart(t)
			f.add(t).SetClients(session.PairedClient{Key: "k", Owner: "ann"})
			s, err := f.Launch(t.Context(),
				hub.LaunchRequest{Owner: c.asked, Spec: session.Spec{Image: "a:1",
					Schedule: session.Schedule{Agent: c.agent}}})
			if (session.CodeOf(err) == session.CodeInvalid) != (c.kind != "") || s.Owner != c.want {
				t.Fatalf("it is launched for %q, %v", s.Owner, err)
			}
			many, err := f.LaunchMany(t.Context(),
				hub.LaunchRequest{Owner: c.asked, Spec: session.Spec{Image: "a:1",
					Schedule: session.Schedule{Agent: c.agent}}}, 2)
			if c.kind != "" {
				refused := slices.ContainsFunc(session.AsError(err, "").Fields,
					func(e session.FieldError) bool { return e.Field == "owner" && e.Kind == c.kind })
				if len(many) > 0 || !refused {
					t.Fatalf("several: %+v, %v", many, err)
				}
				return
			}
			if err != nil || many[1].Err != nil || many[1].Session.Owner != c.want {
				t.Fatalf("several: %+v, %v", many, err)
			}
		})
	}
}

func TestOfflineAgentIsShownOverARestartAsOldAsItIs(t *testing.T) {
	f := newFleet(t)
	f.lab.Put(session.Session{ID: "bbbbbbbbbbbb", Name: "over-there", Status: session.Running,
		End: session.End{Result: session.ResultUndefined},
		Spec: session.Spec{Image: "a:1", Env: []session.EnvVar{{Name: "API_TOKEN", Value: "hush-hush"},
			{Name: "DEPTH", Value: "50"}}}})
	remote := f.add(t)
	before := f.awaitOnline(t, "lab", true)
	remote.SetUp(false)
	f.awaitOnline(t, "lab", false)
	f.stop()
	for _, key := range []string{"hub.agents", "hub.known." + before.Entry.ID, "hub.recents"} {
		if strings.Contains(f.shelf.Raw(key), "hush-hush") {
			t.Fatalf("a secret is kept under %s", key)
		}
	}
	f.connector.Machine(labAddress, f.lab)
	f.lab.SetDown(true)
	f.restart(t)
	f.connector.Remote(labAddress).SetUp(false)
	a, err := f.Agent("lab")
	if err != nil || a.Fingerprint != "print-of-lab" || a.Live != 1 || a.Connection.LastHeard == nil ||
		a.Entry.ID != before.Entry.ID {
		t.Fatalf("%+v, %v", a, err)
	}
	watcher := f.Watch(hub.Cursor{}, false)
	defer watcher.Close()
	snapshot := next(t, watcher).Snapshot
	if snapshot == nil || len(snapshot.Sessions) != 1 || snapshot.Sessions[0].Agent != "lab" {
		t.Fatalf("%+v", snapshot)
	}
}

func TestAgentIsRenamedWithWhatBelongsToIt(t *testing.T) {
	f := newFleet(t)
	f.add(t)
	s, err := f.Launch(t.Context(), hub.LaunchRequest{Spec: session.Spec{Image: "a:1",
		Schedule: session.Schedule{Agent: "lab"}}})
	if err != nil {
		t.Fatal(err)
	}
	folder, err := f.CreateFolder(t.Context(), "lab", session.FolderRequest{Name: "paper"})
	if err == nil {
		_, err = f.OpenProject(t.Context(), string(folder.ID), "", hub.ProjectOpening{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.UpdateAgent("lab", hub.AgentUpdate{Name: new("cellar")}); err != nil {
		t.Fatal(err)
	}
	one, _, err := f.Get(t.Context(), string(s.ID))
	if err != nil || one.Agent != "cellar" {
		t.Fatalf("%+v, %v", one, err)
	}
	if recents := f.Recents(); len(recents) != 1 || recents[0].Spec.Agent != "cellar" {
		t.Fatalf("%+v", recents)
	}
	if known := f.Projects(); len(known) != 1 || known[0].Agent != "cellar" {
		t.Fatalf("%+v", known)
	}
	f.restart(t)
	if a, err := f.Agent("cellar"); err != nil || a.Address != labAddress {
		t.Fatalf("%+v, %v", a, err)
	}
	for name, update := range map[string]hub.AgentUpdate{
		"a name that is taken": {Name: new("local")}, "a name with a slash": {Name: new("a/b")},
		"an option":     {Name: new("--on")},
		"an empty name": {Name: new("")}, "a wrong group": {Group: new("a b")}, "nothing": {},
	} {
		if _, err := f.UpdateAgent("cellar", update); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if _, err := f.UpdateAgent("local", hub.AgentUpdate{Name: new("mine")}); session.CodeOf(
		err) != "agent_call_conflict" {
		t.Errorf("the local agent: %v", err)
	}
	if a, err := f.UpdateAgent("local", hub.AgentUpdate{Group: new("desk")}); err != nil || a.Group != "desk" {
		t.Errorf("%+v, %v", a, err)
	}
	f.restart(t)
	if a, err := f.Agent("local"); err != nil || a.Group != "desk" {
		t.Errorf("after a restart: %+v, %v", a, err)
	}
}

func TestAgentIsNotAddedTwice(t *testing.T) {
	f := newFleet(t)
	f.add(t)
	for name, req := range map[string]hub.AgentRequest{
		"the same address": {Address: labAddress}, "a name that is taken": {Address: "ssh://other", Name: "lab"},
		"the local one's name": {Address: "ssh://other", Name: "local"},
	} {
		if _, err := f.AddAgent(req); session.CodeOf(err) != "agent_call_conflict" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFailedAddLeavesNothing(t *testing.T) {
	f := newFleet(t)
	f.connector.Adding = func(context.Context, *hub.Work, hub.Entry) error {
		return &session.Error{Code: "agent_install_failed", Message: "There is no Docker.", Hint: "Install it."}
	}
	op, err := f.AddAgent(hub.AgentRequest{Address: labAddress})
	op = f.ended(t, op, err)
	if op.State != hub.OperationFailed || session.CodeOf(op.Error) != "agent_install_failed" ||
		op.Steps[0].State != hub.StepFailed || op.Steps[0].Remedy != "Install it." {
		t.Fatalf("%+v", op)
	}
	if agents := f.Agents(); len(agents) != 1 {
		t.Fatalf("%+v", agents)
	}
}

func TestOneKeyNeverLandsOnTwoAgents(t *testing.T) {
	f := newFleet(t)
	f.add(t)
	for round := range 20 {
		var group sync.WaitGroup
		agents := make([]string, 8)
		ids := make([]session.ID, 8)
		for i := range agents {
			group.Go(func() {
				s, err := f.Launch(context.Background(), hub.LaunchRequest{Key: fmt.Sprint("key-", round),
					Spec: session.Spec{Image: "a:1"}})
				if err != nil {
					t.Error(err)
				}
				agents[i], ids[i] = s.Agent, s.ID
			})
		}
		group.Wait()
		if slices.ContainsFunc(ids, func(id session.ID) bool { return id != ids[0] }) {
			t.Fatalf("one key made the sessions %v on %v", ids, agents)
		}
	}
}

func TestSilentAgentHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t)
		f.lab.SetMute(true)
		begun := time.Now()
		if _, err := f.Launch(t.Context(), hub.LaunchRequest{Spec: session.Spec{Image: "a:1"}}); err != nil {
			t.Fatal(err)
		}
		if all, err := f.List(t.Context(), "", session.Filter{}); err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Fatalf("it took %s", took)
		}
		f.lab.SetMute(false)
		f.stop()
	})
}

func TestOperationAsksAndIsAnswered(t *testing.T) {
	f := newFleet(t)
	answers := make(chan string, 1)
	f.connector.Adding = func(ctx context.Context, work *hub.Work, _ hub.Entry) error {
		text, err := work.Ask(ctx, hub.Prompt{Kind: hub.PromptPassword, Text: "Password:", Secret: true})
		answers <- text
		return err
	}
	op, err := f.AddAgent(hub.AgentRequest{Address: labAddress})
	if err != nil {
		t.Fatal(err)
	}
	prompt := f.prompt(t, op.ID)
	if _, err := f.AnswerOperation(op.ID, "another", "x"); session.CodeOf(err) != "operation_answer_conflict" {
		t.Fatal(err)
	}
	if _, err := f.AnswerOperation(op.ID, prompt.ID, "open-sesame"); err != nil {
		t.Fatal(err)
	}
	if got := <-answers; got != "open-sesame" {
		t.Fatalf("the answer came as %q", got)
	}
	done := f.ended(t, op, nil)
	if done.State != hub.OperationDone || done.Prompt != nil {
		t.Fatalf("%+v", done)
	}
	if strings.Contains(fmt.Sprintf("%+v", done), "open-sesame") {
		t.Fatal("the answer was kept")
	}
	if _, err := f.AnswerOperation(op.ID, prompt.ID, "again"); session.CodeOf(err) != "operation_answer_conflict" {
		t.Fatal(err)
	}
}

func (f *fleet) prompt(t *testing.T, id string) hub.Prompt {
	t.Helper()
	watcher := f.Watch(hub.Cursor{}, false)
	defer watcher.Close()
	for {
		op, err := f.Operation(id)
		if err != nil {
			t.Fatal(err)
		}
		if op.Prompt != nil {
			return *op.Prompt
		}
		next(t, watcher)
	}
}

func TestOperationIsCancelledWhileItAsks(t *testing.T) {
	f := newFleet(t)
	f.connector.Adding = func(ctx context.Context, work *hub.Work, _ hub.Entry) error {
		_, err := work.Ask(ctx, hub.Prompt{Kind: hub.PromptConfirm, Text: "Go on?"})
		return err
	}
	op, err := f.AddAgent(hub.AgentRequest{Address: labAddress})
	if err != nil {
		t.Fatal(err)
	}
	f.prompt(t, op.ID)
	if _, err := f.AddAgent(hub.AgentRequest{Address: labAddress, Name: "twice"}); session.CodeOf(
		err) != "operation_answer_conflict" {
		t.Fatalf("a second one for the same machine: %v", err)
	}
	if _, err := f.CancelOperation(op.ID); err != nil {
		t.Fatal(err)
	}
	if done := f.ended(t, op, nil); done.State != hub.OperationCancelled || done.Prompt != nil || done.Error != nil {
		t.Fatalf("%+v", done)
	}
	if _, err := f.CancelOperation("nonesuch"); session.CodeOf(err) != "operation_read_not-found" {
		t.Fatal(err)
	}
}

func TestOnlyTheLastOperationsAreKept(t *testing.T) {
	f := newFleet(t)
	for range 60 {
		op, err := f.ProbeAddress("ssh://somewhere", "")
		f.ended(t, op, err)
	}
	if all := f.Operations(); len(all) != 50 || all[0].StartedAt.Before(all[49].StartedAt) {
		t.Fatalf("%d are kept", len(all))
	}
}

func TestQuestionIsAnsweredForWhatWasShown(t *testing.T) {
	f := newFleet(t)
	remote := f.add(t)
	remote.SetLink(hub.Link{State: hub.LinkQuestion, Question: &hub.Question{Kind: hub.QuestionRekeyed,
		Pinned: "print-of-lab", Found: "new-print"}})
	f.awaitOnline(t, "lab", false)
	if _, err := f.AnswerAgent(t.Context(), "lab", true, "other-print"); session.CodeOf(
		err) != "agent_call_conflict" {
		t.Fatal(err)
	}
	a, err := f.AnswerAgent(t.Context(), "lab", true, "new-print")
	if err != nil || a.Fingerprint != "new-print" {
		t.Fatalf("%+v, %v", a, err)
	}
	if !strings.Contains(f.shelf.Raw("hub.agents"), "new-print") {
		t.Fatal("it is not remembered")
	}
}

func TestAddressesAreOfKindsThatWeKnow(t *testing.T) {
	for text, want := range map[string]string{
		"lab": "ssh://lab", "ada@lab": "ssh://ada@lab", "ssh://ada@lab:2222": "ssh://ada@lab:2222",
		"SSH://lab":               "ssh://lab",
		"slipway://10.0.0.2:7431": "slipway://10.0.0.2:7431", "slipway://[::1]:7431": "slipway://[::1]:7431",
		"wss://lab.example/agents/a": "wss://lab.example/agents/a",
		" lab ":                      "ssh://lab", "wss://lab.example/": "wss://lab.example",
		"ssh://gpu_box": "ssh://gpu_box", "slurm://ada@login:2222": "slurm://ada@login:2222",
	} {
		if got, err := hub.ParseAddress(text); err != nil || got.String() != want {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "-oProxyCommand=x", "ssh://-oProxyCommand=x", "ssh://-l@lab", "ssh://a:secret@lab", "http://lab",
		"file:///etc/passwd", "ssh://lab/etc", "ssh://lab?x=1",
		"ssh://lab#x", "ssh://lab:0", "ssh://lab:99999", "ssh://la b", "ssh://lab;id", "ssh://$(id)", "ssh://lab\nx",
		"slipway://ada@lab", "wss://lab/../x?y", "wss://lab/a b",
		"ssh:lab", "unix:///run/x", "ssh://", "ssh://lab\x00", "gopher://169.254.169.254", "ssh://%2doProxy",
		"ssh://lab,other", "ssh://`id`@lab",
	} {
		if got, err := hub.ParseAddress(text); err == nil {
			t.Errorf("%q is taken as %q", text, got)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	for _, seed := range []string{"ssh://ada@lab:22", "wss://a/b", "slipway://[::1]:1", "lab", "ssh://-x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := hub.ParseAddress(text)
		if err != nil {
			return
		}
		if strings.HasPrefix(a.Host, "-") || strings.HasPrefix(a.User, "-") ||
			strings.ContainsAny(a.Host+a.User, " \t\r\n\x00;|&$`'\"\\/") {
			t.Fatalf("%q gives %+v", text, a)
		}
		again, err := hub.ParseAddress(a.String())
		if err != nil || again != a {
			t.Fatalf("%q is %+v, read again %+v, %v", text, a, again, err)
		}
	})
}

func TestFolderOfAnAgentIsSpeltAsEveryMachineReadsIt(t *testing.T) {
	f := newFleet(t)
	for _, req := range []hub.AgentRequest{
		{Address: "ssh://new", Dir: "relative"}, {Address: "ssh://new", Dir: "/"},
		{Address: "ssh://new", Dir: "/a/../b"}, {Address: "ssh://new", Dir: "/a/"},
		{Address: "ssh://new", Dir: "/a\nb"}, {Address: "ssh://new", Dir: "/höhle"},
		{Address: "ssh://new", Dir: "/" + strings.Repeat("x", 1000)},
		{Address: "slipway://new", Dir: "/var/tmp/slipway"},
	} {
		_, err := f.AddAgent(req)
		var e *session.Error
		if !errors.As(err, &e) || e.Code != "agent_call_invalid" || len(e.Fields) != 1 || e.Fields[0].Field != "dir" {
			t.Errorf("%.40q: %v", req.Dir, err)
		}
	}
}
