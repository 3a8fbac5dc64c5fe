package access

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
	"slipway/backend/session/agenttest"
)

// inner is an agent in memory with what a gate needs.
type inner struct {
	*hubtest.Agent
	folders []string
}

func (i inner) FindImage(ctx context.Context, ref string) (session.Image, error) {
	images, err := i.ListImages(ctx)
	for _, image := range images {
		if image.ID == ref || slices.Contains(image.Refs, ref) {
			return image, nil
		}
	}
	if err == nil {
		err = noImage(ref)
	}
	return session.Image{}, err
}

func (i inner) Arrivals(string) session.ImageArrivals { return i.Agent }
func (inner) MPSForUsers() bool                       { return false }
func (inner) AdminSessions() session.AdminSessions    { return session.AdminsOnly }

func (i inner) Allowance(string) session.Allowance { return session.Allowance{Folders: i.folders} }

func opened(t *testing.T, folders ...string) (*Gate, *Audit) {
	t.Helper()
	audit, err := OpenAudit(filepath.Join(t.TempDir(), "audit.jsonl"), time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = audit.Close() })
	far := inner{hubtest.New("far"), folders}
	return New(far.Agent.Agent(), far, audit), audit
}

func user(name string) Identity {
	return Identity{Owner: name, Role: session.RoleUser, Client: "key-of-" + name, From: "10.0.0.7"}
}

func launch(t *testing.T, a session.Agent, req session.LaunchRequest) session.Session {
	t.Helper()
	req.Spec.Image = "python:3.13"
	s, err := a.Launch(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// open are the methods without a session that everybody may call, each with a
// test or a rule of its own: what they return is made fit for who asks.
var open = []string{
	"Machine", "Preview", "Launch", "Accept",
	"List", "Watch", "ListImages", "Devices", "DeviceHistory", "Accounts", "ServiceAccounts", "Doctor",
	"ListDirectories",
	"ListFolders", "CreateFolder", "CloneFolder",
	"DescribeImage", "SendImage", "ExpectImage", "ReceiveImage", "InstallImage", "ForgetImage",
	"PullImage", "AwaitImageWork", "CancelImageWork", "RemoveImage", "ImageDisk",
	"ListServices", "DeployService", "ChangeService", "RemoveService", "AddServiceToken", "RevokeServiceToken",
	"DialService",
}

func TestEveryMethodHasARule(t *testing.T) {
	gate, audit := opened(t)
	theirs := launch(t, gate.As(user("ann")), session.LaunchRequest{Spec: session.Spec{Name: "anns-secret"}})
	folder, err := gate.As(user("ann")).CreateFolder(t.Context(), session.FolderRequest{Name: "anns"})
	if err != nil {
		t.Fatal(err)
	}
	bob := reflect.ValueOf(gate.As(user("bob")))
	methods := agenttest.Methods()
	for _, method := range methods {
		if slices.Contains(open, method.Name) {
			continue
		}
		t.Run(method.Name, func(t *testing.T) {
			args := []reflect.Value{reflect.ValueOf(t.Context())}
			named, want := false, session.NoSession(theirs.ID)
			for k := 1; k < method.Type.NumIn(); k++ {
				value := reflect.New(method.Type.In(k)).Elem()
				switch value.Interface().(type) {
				case session.ID:
					value.SetString(string(theirs.ID))
					named = true
				case session.FolderID:
					value.SetString(string(folder.ID))
					named, want = true, session.NoFolder(string(folder.ID))
				case session.Place:
					value.Set(reflect.ValueOf(session.Place{Session: theirs.ID}))
					named = true
				}
				args = append(args, value)
			}
			if !named {
				t.Fatalf("no rule says who may call %s: give it one in package access, and name it in this test",
					method.Name)
			}
			results := bob.MethodByName(method.Name).Call(args)
			err, _ := results[len(results)-1].Interface().(error)
			if got := session.AsError(err, "none"); err == nil || got.Code != want.Code ||
				got.Message != want.Message || got.Hint != want.Hint {
				t.Errorf("another's session gives %v", err)
			}
		})
	}
	entries, err := audit.Read(session.AuditQuery{Limit: 1000})
	if err != nil || len(entries) < len(methods)-len(open) {
		t.Errorf("%d tries are written down, %v", len(entries), err)
	}
}

func TestUsersSeeTheirOwnOnly(t *testing.T) {
	gate, audit := opened(t, "/data/bob")
	ann, bob, boss := gate.As(user("ann")), gate.As(user("bob")),
		gate.As(Identity{Owner: "boss", Role: session.RoleAdmin})
	theirs := launch(t, ann, session.LaunchRequest{Spec: session.Spec{Name: "anns-secret"}})
	own := launch(t, bob, session.LaunchRequest{Owner: "ann", Spec: session.Spec{Name: "bobs-own"}})
	if own.Owner != "bob" {
		t.Errorf("launched as %s by bob", own.Owner)
	}
	if s := launch(t, boss, session.LaunchRequest{Owner: "ann",
		Spec: session.Spec{Name: "for-ann"}}); s.Owner != "ann" {
		t.Errorf("launched for ann: %s", s.Owner)
	}
	if entries, err := audit.Read(session.AuditQuery{Limit: 1}); err != nil || len(entries) != 1 ||
		entries[0].Owner != "boss" || entries[0].Target != "for ann" {
		t.Errorf("it is written down as %+v, %v", entries, err)
	}
	reveals := func(what string, told any) {
		t.Helper()
		for _, name := range []string{"anns-secret", string(theirs.ID), `"ann"`, "for-ann"} {
			if text := fmt.Sprintf("%+q", fmt.Sprintf("%+v", told)); strings.Contains(text, name) {
				t.Errorf("%s reveals %s: %s", what, name, text)
			}
		}
	}
	if list, err := bob.List(t.Context(), session.Filter{Owner: "ann"}); err != nil || len(list) != 1 ||
		list[0].ID != own.ID {
		t.Errorf("bob lists %v, %v", list, err)
	}
	if list, err := boss.List(t.Context(), session.Filter{}); err != nil || len(list) != 3 {
		t.Errorf("an admin lists %d, %v", len(list), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_ = bob.Watch(ctx, session.Cursor{}, func(e session.Event) error {
		reveals("watch", e)
		if e.Reset == nil || len(e.Reset.Sessions) != 1 || e.Reset.Machine.Owner != "bob" ||
			e.Reset.Machine.Role != session.RoleUser {
			t.Errorf("first %+v", e)
		}
		cancel()
		return nil
	})
	v := bob.Sessions.(*view)
	for name, e := range map[string]session.Event{
		"another's": {Session: &theirs}, "another's end": {Removed: &theirs.ID, Owner: "ann"},
		"another's use": {Usage: []session.Usage{{Session: theirs.ID}}}, "a kind unknown": {},
	} {
		if told, err := v.event(t.Context(), map[session.ID]bool{}, e); told != nil || err != nil {
			t.Errorf("%s is told: %+v, %v", name, told, err)
		}
	}
	board := session.DeviceBoard{Devices: []session.DeviceState{
		{DeviceStatus: session.DeviceStatus{Holders: []session.DeviceHolder{
			{Session: theirs.ID, Name: "anns-secret", Owner: "ann", Share: 500},
			{Session: own.ID, Name: "bobs-own", Owner: "bob"}, {Name: "x (of ann)", Owner: "ann"},
			{Name: "python", Owner: "carl", PID: 7}}}}}}
	told := v.board(board)
	reveals("board", told)
	if h := told.Devices[0].Holders; h[0].Share != 500 || h[0].Name != anothers || h[1].Name != "bobs-own" ||
		h[2].Name != anothers || h[3].Name != outside || h[3].Owner != "" || h[3].PID != 0 ||
		board.Devices[0].Holders[0].Name != "anns-secret" {
		t.Errorf("holders %+v", h)
	}
	t.Run("and mount and list only the folders open to them", func(t *testing.T) {
		for _, path := range []string{"/", "/data", "/data/bob/sub", "/data/bob/..", "/home/ann"} {
			_, err := bob.Launch(t.Context(),
				session.LaunchRequest{Spec: session.Spec{Image: "python:3.13",
					Mounts: []session.Mount{{Source: path}}}})
			if session.CodeOf(err) != session.CodeInvalid {
				t.Errorf("mounting %s: %v", path, err)
			}
			if p, err := bob.Preview(t.Context(), "",
				session.Spec{Image: "python:3.13", Mounts: []session.Mount{{Source: path}}}, 1); err != nil ||
				len(p.Errors) == 0 {
				t.Errorf("previewing %s: %+v, %v", path, p.Errors, err)
			}
		}
		launch(t, bob, session.LaunchRequest{Spec: session.Spec{Mounts: []session.Mount{{Source: "/data/bob"}}}})
		if l, err := bob.ListDirectories(t.Context(), ""); err != nil || len(l.Entries) != 1 ||
			l.Entries[0].Name != "data/bob" {
			t.Errorf("%+v, %v", l, err)
		}
		if _, err := bob.ListDirectories(t.Context(), "/data/bob/../ann"); session.CodeOf(
			err) != "file_use_not-found" {
			t.Errorf("%v", err)
		}
	})
	entries, err := audit.Read(session.AuditQuery{Limit: 2})
	if err != nil || len(entries) != 2 || entries[1].Method != "ListDirectories" || entries[1].Owner != "bob" ||
		entries[1].Client != "key-of-bob" || entries[1].From != "10.0.0.7" ||
		entries[1].Outcome != "file_use_not-found" {
		t.Errorf("%+v, %v", entries, err)
	}
}

func TestFoldersAreTheirOwnersOnly(t *testing.T) {
	gate, _ := opened(t)
	ann, bob, boss := gate.As(user("ann")), gate.As(user("bob")),
		gate.As(Identity{Owner: "boss", Role: session.RoleAdmin})
	theirs, err := ann.CreateFolder(t.Context(), session.FolderRequest{Name: "anns", Owner: "bob"})
	if err != nil || theirs.Owner != "ann" {
		t.Fatalf("%+v, %v", theirs, err)
	}
	if list, err := bob.ListFolders(t.Context(), session.FolderFilter{Owner: "ann"}); err != nil || len(list) != 0 {
		t.Errorf("bob sees %v, %v", list, err)
	}
	if list, err := boss.ListFolders(t.Context(), session.FolderFilter{}); err != nil || len(list) != 1 {
		t.Errorf("an admin sees %v, %v", list, err)
	}
	own := launch(t, bob, session.LaunchRequest{Spec: session.Spec{Name: "bobs-own"}})
	for _, place := range []session.Place{{Folder: theirs.ID}, {Session: own.ID, Folder: theirs.ID}} {
		if _, err := bob.StatFile(t.Context(), place, "x"); session.CodeOf(err) != "folder_read_not-found" {
			t.Errorf("%+v: %v", place, err)
		}
	}
	if _, err := ann.StatFile(t.Context(), session.Place{Session: own.ID, Folder: theirs.ID},
		"x"); session.CodeOf(err) != "session_read_not-found" {
		t.Errorf("a folder of one's own opens another's session: %v", err)
	}
	if _, err := ann.CreateFolder(t.Context(), session.FolderRequest{Name: "etc", Path: "/etc"}); session.CodeOf(
		err) != "agent_call_forbidden" {
		t.Errorf("a user links a directory: %v", err)
	}
	if f, err := boss.CreateFolder(t.Context(), session.FolderRequest{Name: "data", Path: "/data",
		Owner: "ann"}); err != nil || f.Owner != "ann" {
		t.Errorf("an admin links a directory: %+v, %v", f, err)
	}
}

// cloner notes for whom it clones.
type cloner struct {
	session.Projects
	owners []string
}

func (c *cloner) CloneFolder(_ context.Context, req session.CloneRequest) (io.ReadWriteCloser, error) {
	c.owners = append(c.owners, req.Owner)
	return nil, session.NewError(session.CodeEngineUnsupported, "There is no git.", "Install it.")
}

func TestClonesAreTheirOwners(t *testing.T) {
	gate, audit := opened(t)
	clones := &cloner{}
	gate.agent.Projects = clones
	const address = "https://token-of-ann@git.example.com:8443/ann/secret-paper.git?key=hidden"
	for _, owner := range []string{"", "bob"} {
		for _, who := range []Identity{user("ann"), {Owner: "boss", Role: session.RoleAdmin}} {
			_, err := gate.As(who).CloneFolder(t.Context(), session.CloneRequest{Owner: owner, Address: address})
			if session.CodeOf(err) != session.CodeEngineUnsupported {
				t.Error(err)
			}
		}
	}
	if want := []string{"ann", "boss", "ann", "bob"}; !slices.Equal(clones.owners, want) {
		t.Errorf("cloned for %q, want %q", clones.owners, want)
	}
	entries, err := audit.Read(session.AuditQuery{Limit: 10})
	if err != nil || len(entries) == 0 {
		t.Fatalf("%+v, %v", entries, err)
	}
	for _, entry := range entries {
		if entry.Method != "CloneFolder" || entry.Target != "git.example.com" {
			t.Errorf("the log has %+v", entry)
		}
	}
}
