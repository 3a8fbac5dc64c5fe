package access_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/access"
	"slipway/backend/agent"
	"slipway/backend/session"
	"slipway/backend/session/agenttest"
	"slipway/gpu"
)

// The suite of a hostile user: every method of an agent and of what looks after
// it, on what is one's own, another's and not there, as a user and as an admin.
// A method without a decision fails.

// about is what a method names.
type about int

const (
	ofSession  about = iota // a session
	ofFolder                // a folder
	ofPlace                 // a session or a folder, with files
	ofWork                  // a piece of work on an image
	ofImage                 // an image by its name
	ofTransfer              // an image that is being brought
	ofService               // an inference service by its name
	ofMachine               // nothing: what it tells is made fit for who asks
	ofAdmins                // the agent itself: for admins only
)

// special says what those methods name whose parameters do not say it. A user gets
// the same answer for what is another's and for what is not there; what they may do
// with their own is the agent's to say. An admin may do all.
var special = map[string]about{
	"AwaitImageWork": ofWork, "CancelImageWork": ofWork,
	"RemoveImage": ofImage, "DescribeImage": ofImage, "SendImage": ofImage,
	"ReceiveImage": ofTransfer, "InstallImage": ofTransfer, "ForgetImage": ofTransfer,
	"Machine": ofMachine, "Preview": ofMachine, "Launch": ofMachine, "List": ofMachine, "Watch": ofMachine,
	"Accept":     ofMachine,
	"ListImages": ofMachine, "ImageDisk": ofMachine, "PullImage": ofMachine, "ExpectImage": ofMachine,
	"Devices": ofMachine, "DeviceHistory": ofMachine, "Accounts": ofMachine, "Doctor": ofMachine,
	"ListDirectories": ofMachine, "ListFolders": ofMachine, "CreateFolder": ofMachine,
	"CloneFolder":  ofMachine,
	"ListServices": ofMachine, "DeployService": ofMachine, "DialService": ofMachine, "ServiceAccounts": ofMachine,
	"ChangeService": ofService, "RemoveService": ofService, "AddServiceToken": ofService,
	"RevokeServiceToken": ofService,
}

// decisions say what each method names.
var decisions = func() map[string]about {
	all := maps.Clone(special)
	for _, m := range methods() {
		for i := range m.Type.NumIn() {
			switch m.Type.In(i) {
			case reflect.TypeFor[session.ID]():
				all[m.Name] = ofSession
			case reflect.TypeFor[session.FolderID]():
				all[m.Name] = ofFolder
			case reflect.TypeFor[session.Place]():
				all[m.Name] = ofPlace
			}
		}
	}
	for m := range reflect.TypeFor[session.Admin]().Methods() {
		all[m.Name] = ofAdmins
	}
	return all
}()

// full has everything that somebody may call.
type full struct {
	session.Agent
	session.Admin
}

// methods are those of an agent and of its admins.
func methods() []reflect.Method {
	return slices.AppendSeq(agenttest.Methods(), reflect.TypeFor[session.Admin]().Methods())
}

func TestHostileUserEveryMethodHasADecision(t *testing.T) {
	known := map[string]bool{}
	for _, m := range methods() {
		known[m.Name] = true
		if _, decided := decisions[m.Name]; !decided {
			t.Errorf("no rule says who may call %s: give it one in package access and a line in special",
				m.Name)
		}
	}
	for name := range special {
		if !known[name] {
			t.Errorf("there is no method %s any more", name)
		}
	}
}

// stake is what one person has, by every name that it can be asked for.
type stake struct {
	owner    string
	session  session.ID
	folder   session.FolderID
	work     string
	image    string
	transfer string
	terminal string
	service  string
}

// texts are the names in a stake, none of which may be told to others.
func (s stake) texts() []string {
	return []string{s.image, mark(s.owner), s.owner, string(s.session), string(s.folder), s.work, s.transfer,
		s.terminal, s.service}
}

// nowhere names what is not there, each name as long as one that is.
func nowhere(like stake) stake {
	return stake{owner: "void-of-it", session: session.NewID(), folder: session.FolderID(session.NewID()),
		work:  string(session.NewID()),
		image: strings.Replace(like.image, mark(like.owner), mark("xyz-of-it"), 1), transfer: digestOf(9),
		terminal: "no-such-terminal", service: strings.Replace(like.service, like.owner, "void-of-it", 1)}
}

func digestOf(n int) string { return fmt.Sprintf("sha256:%064x", n) }

// settle gives a person one of everything.
func settle(t *testing.T, a session.Agent, owner string, number int) stake {
	t.Helper()
	spec := session.Spec{Name: mark(owner), Image: "python:3.12", Label: mark(owner) + "-label",
		Env:       []session.EnvVar{{Name: "NOTE", Value: mark(owner) + "-value"}},
		Resources: session.Resources{CPU: 1, Memory: gpu.GiB}, Accelerator: gpu.Request{Shares: 300}}
	s := running(t, a, spec)
	k := stake{owner: owner, session: s.ID}
	if _, err := a.WriteUpload(t.Context(), session.Place{Session: s.ID},
		session.Upload{Path: "/home/work/kept", Key: "0123456789abcdef"},
		strings.NewReader("a few bytes")); err != nil {
		t.Fatal(err)
	}
	folder, err := a.CreateFolder(t.Context(), session.FolderRequest{Name: mark(owner)})
	if err != nil {
		t.Fatal(err)
	}
	k.folder = folder.ID
	terminal, err := a.OpenTerminal(t.Context(), s.ID, session.TerminalRequest{Title: mark(owner), Cols: 80, Rows: 24})
	if err != nil {
		t.Fatal(err)
	}
	k.terminal = terminal.ID
	work, err := a.CommitSession(t.Context(), s.ID, session.CommitRequest{Name: mark(owner)})
	work = finished(t, a, work, err)
	k.work, k.image = work.ID, work.Ref
	if work.State != session.WorkDone {
		t.Fatalf("the commit ended as %+v", work)
	}
	arrival, err := a.ExpectImage(t.Context(), session.ImageParts{ID: digestOf(number), OS: "linux",
		Layers: []session.ImageLayer{{Digest: digestOf(100 + number), Size: 10}}})
	if err != nil {
		t.Fatal(err)
	}
	k.transfer, k.service = arrival.ID, owner+"-model"
	_, err = a.DeployService(t.Context(), session.DeployRequest{Name: k.service, // with no replica
		Spec: session.Spec{Image: "python:3.12", Access: session.Access{Serving: &session.Serving{Port: 8000}}}})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// arguments are those of a call that names a stake.
func arguments(ctx context.Context, m reflect.Method, of stake, place session.Place) []reflect.Value {
	args := []reflect.Value{reflect.ValueOf(ctx)}
	for k := 1; k < m.Type.NumIn(); k++ {
		args = append(args, argument(m, k, of, place))
	}
	return args
}

// argument is the kth of a call that names a stake in every way that it can.
func argument(m reflect.Method, k int, of stake, place session.Place) reflect.Value {
	upload := session.Upload{Path: "/kept", Key: "0123456789abcdef"}
	if place.Session != "" {
		upload.Path = "/home/work/kept"
	}
	name := mark("eve-of-it") // what somebody writes is their own
	known := map[reflect.Type]any{
		reflect.TypeFor[session.ID]():          of.session,
		reflect.TypeFor[session.FolderID]():    of.folder,
		reflect.TypeFor[session.Place]():       place,
		reflect.TypeFor[session.FilePath]():    upload.Path,
		reflect.TypeFor[session.ListRequest](): session.ListRequest{Path: "/"},
		reflect.TypeFor[session.ReadRequest](): session.ReadRequest{Path: upload.Path},
		reflect.TypeFor[session.Upload]():      upload,
		reflect.TypeFor[session.FinishRequest](): session.FinishRequest{Upload: upload,
			Finish: session.Finish{Size: 11}},
		reflect.TypeFor[io.Reader]():             strings.NewReader("others"),
		reflect.TypeFor[session.Duration]():      session.Duration(time.Hour),
		reflect.TypeFor[session.AttachRequest](): session.AttachRequest{Terminal: of.terminal, Client: "eve"},
		reflect.TypeFor[session.ExecRequest]():   session.ExecRequest{Command: []string{"true"}},
		reflect.TypeFor[session.CommitRequest](): session.CommitRequest{Name: name},
		reflect.TypeFor[session.ImageWish]():     session.ImageWish{ID: of.image},
		reflect.TypeFor[session.AuditQuery]():    session.AuditQuery{Limit: 10, Owner: of.owner},
		reflect.TypeFor[session.Filter]():        session.Filter{Owner: of.owner},
		reflect.TypeFor[session.FolderFilter]():  session.FolderFilter{Owner: of.owner},
		reflect.TypeFor[session.FolderRequest](): session.FolderRequest{Owner: of.owner, Name: name},
		reflect.TypeFor[session.AccountSpan](): session.AccountSpan{From: time.Now().Add(-time.Hour),
			To: time.Now().Add(time.Hour)},
		reflect.TypeFor[session.LaunchRequest](): session.LaunchRequest{Owner: of.owner,
			Spec: session.Spec{Name: name, Image: "python:3.12"}},
		reflect.TypeFor[session.TokenRequest](): session.TokenRequest{Name: name},
		reflect.TypeFor[session.Spec]():         session.Spec{Name: mark(of.owner), Image: "python:3.12"},
		reflect.TypeFor[session.PullRequest]():  session.PullRequest{Ref: "python:3.12-slim", Owner: of.owner},
		reflect.TypeFor[session.ImageParts](): session.ImageParts{ID: digestOf(50), OS: "linux",
			Layers: []session.ImageLayer{{Digest: digestOf(51), Size: 10}}},
	}
	if m.Type.In(k).Kind() == reflect.String && m.Type.In(k).Name() == "string" {
		return reflect.ValueOf(textArgument(m.Name, of))
	}
	if value, ok := known[m.Type.In(k)]; ok {
		return reflect.ValueOf(value).Convert(m.Type.In(k))
	}
	return reflect.New(m.Type.In(k)).Elem()
}

// textArgument is what a method takes as a plain text.
func textArgument(method string, of stake) string {
	switch decisions[method] {
	case ofWork:
		return of.work
	case ofImage:
		return of.image
	case ofTransfer:
		return of.transfer
	case ofService:
		return of.service
	}
	switch method {
	case "CloseTerminal":
		return of.terminal
	case "Preview", "SetLimit":
		return of.owner
	case "Rename":
		return mark("eve-of-it")
	case "StopApp":
		return "jupyterlab"
	}
	return ""
}

// answer is all that a call tells: its result as JSON, and its error.
type answer struct {
	told string
	err  error
}

// ask makes a call and reads what it returns to its end.
func ask(t *testing.T, who session.Agent, m reflect.Method, of stake, place session.Place) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	args := arguments(ctx, m, of, place)
	var told told
	if m.Name == "Watch" {
		args[2] = reflect.ValueOf(func(e session.Event) error {
			told.add(e)
			cancel()
			return nil
		})
	}
	results := reflect.ValueOf(full{who, who.Admin}).MethodByName(m.Name).Call(args)
	err, _ := results[len(results)-1].Interface().(error)
	if err == nil && len(results) > 1 {
		told.add(drained(results[0].Interface()))
	}
	return answer{told.text.String(), err}
}

// drained is a result, of a stream that it ends: a user gets as far as that.
func drained(value any) any {
	switch stream := value.(type) {
	case net.Conn:
		_ = stream.Close()
		return "a connection"
	case io.ReadWriteCloser:
		_ = stream.Close()
		return "a stream"
	case io.ReadCloser:
		text, _ := io.ReadAll(io.LimitReader(stream, 1<<16))
		_ = stream.Close()
		return string(text)
	}
	return value
}

// refusal is an error without the names that were asked for.
func (a answer) refusal(of stake) string {
	if a.err == nil {
		return "done: " + strings.TrimSpace(a.told)
	}
	return masked(fmt.Sprintf("%+v", *session.AsError(a.err, "none")), of)
}

// masked is a text without the names that were asked for.
func masked(text string, of stake) string {
	for _, name := range of.texts() {
		if name != "" {
			text = strings.ReplaceAll(text, name, "<asked>")
		}
	}
	return text
}

// places are the places of a stake.
func places(kind about, of stake) []session.Place {
	if kind != ofPlace {
		return []session.Place{{Session: of.session}}
	}
	return []session.Place{{Session: of.session}, {Folder: of.folder}}
}

func TestHostileUserReachesNothingOfOthers(t *testing.T) {
	gate, inner := newGate(t)
	as := func(owner string) session.Agent {
		return gate.As(access.Identity{Owner: owner, Role: session.RoleUser})
	}
	ann, eve := settle(t, as("ann-of-it"), "ann-of-it", 1), settle(t, as("eve-of-it"), "eve-of-it", 2)
	void := nowhere(ann)
	before := state(t, inner, ann)
	for _, m := range methods() {
		kind := decisions[m.Name]
		if kind == ofMachine || kind == ofAdmins {
			continue
		}
		for i := range places(kind, ann) {
			t.Run(fmt.Sprint(m.Name, " ", i), func(t *testing.T) {
				theirs, none := ask(t, as("eve-of-it"), m, ann, places(kind, ann)[i]),
					ask(t, as("eve-of-it"), m, void, places(kind, void)[i])
				forgotten := m.Name == "ForgetImage" && theirs.err == nil // what there is not is forgotten already
				if (theirs.err == nil || none.err == nil) && !forgotten || theirs.refusal(ann) != none.refusal(void) {
					t.Errorf("another's: %s\nnobody's:  %s", theirs.refusal(ann), none.refusal(void))
				}
			})
		}
	}
	if after := state(t, inner, ann); before != after {
		t.Errorf("what is ann's changed:\n%s\n%s", before, after)
	}
	t.Run("and has their own", func(t *testing.T) {
		for _, m := range methods() {
			kind := decisions[m.Name]
			if kind == ofMachine || kind == ofAdmins || kind == ofTransfer || slices.Contains(ending, m.Name) {
				continue
			}
			for _, place := range places(kind, eve) {
				refusesOwn(t, as("eve-of-it"), m, eve, place)
			}
		}
	})
}

// ending are methods after which there is nothing left to ask for, or that only an admin may call with their own.
var ending = []string{"Terminate", "DeleteFolder", "RemoveImage", "BuildProject", "LendConnection"}

// refusesOwn fails where a person's own is told as what is not there.
func refusesOwn(t *testing.T, a session.Agent, m reflect.Method, own stake, place session.Place) {
	t.Helper()
	got := ask(t, a, m, own, place)
	if code := session.CodeOf(got.err); code == "session_read_not-found" || code == "folder_read_not-found" ||
		code == "operation_read_not-found" ||
		code == "agent_call_forbidden" || code == "engine_image_not-found" {
		t.Errorf("%s of one's own: %v", m.Name, got.err)
	}
}

// state is what others could have changed of what is somebody's.
func state(t *testing.T, a *agent.Agent, of stake) string {
	t.Helper()
	s, err := a.Get(t.Context(), of.session)
	if err != nil {
		t.Fatal(err)
	}
	s.Idle, s.Revision = nil, 0
	folder, err := a.GetFolder(t.Context(), of.folder)
	if err != nil {
		t.Fatal(err)
	}
	folder.Usage, folder.Counting = nil, false
	terminals, err := a.ListTerminals(t.Context(), of.session)
	if err != nil {
		t.Fatal(err)
	}
	image, err := a.FindImage(t.Context(), of.image)
	if err != nil {
		t.Fatal(err)
	}
	_, transfer := a.Arrivals(of.owner).InstallImage(t.Context(), of.transfer)
	if session.CodeOf(transfer) != "image_update_invalid" {
		t.Fatalf("the transfer of %s: %v", of.owner, transfer)
	}
	offset, err := a.UploadOffset(t.Context(), session.Place{Session: of.session},
		session.Upload{Path: "/home/work/kept", Key: "0123456789abcdef"})
	if err != nil {
		t.Fatal(err)
	}
	files, err := a.ListFiles(t.Context(), session.Place{Session: of.session}, session.ListRequest{Path: "/home/work"})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal([]any{s, folder, len(terminals), image, session.CodeOf(transfer), offset,
		len(files.Entries)})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// wishes are launches that name something: what is another's is as what is not
// there, in a preview as well.
var wishes = map[string]func(of stake) session.Spec{
	"after id": func(of stake) session.Spec {
		return session.Spec{Schedule: session.Schedule{After: []string{string(of.session)}}}
	},
	"after name": func(of stake) session.Spec {
		return session.Spec{Schedule: session.Schedule{After: []string{mark(of.owner)}}}
	},
	"image": func(of stake) session.Spec { return session.Spec{Image: of.image} },
	"folder id": func(of stake) session.Spec {
		return session.Spec{Mounts: []session.Mount{{Folder: string(of.folder)}}}
	},
	"folder name": func(of stake) session.Spec {
		return session.Spec{Mounts: []session.Mount{{Folder: mark(of.owner)}}}
	},
	"both at once": func(of stake) session.Spec {
		return session.Spec{Mounts: []session.Mount{{Folder: mark(of.owner), Source: "/etc"}}}
	},
	"path": func(of stake) session.Spec { return session.Spec{Mounts: []session.Mount{{Source: "/" + of.owner}}} },
}

func TestHostileUserLearnsNothingFromALaunch(t *testing.T) {
	gate, _ := newGate(t)
	as := func(owner string) session.Agent {
		return gate.As(access.Identity{Owner: owner, Role: session.RoleUser})
	}
	ann := settle(t, as("ann-of-it"), "ann-of-it", 1)
	void := nowhere(ann)
	for name, wish := range wishes {
		t.Run(name, func(t *testing.T) {
			said := func(of stake) (texts []string) {
				spec := wish(of)
				if spec.Image == "" {
					spec.Image = "python:3.12"
				}
				spec.Name = "one-name"
				preview, err := as("eve-of-it").Preview(t.Context(), of.owner, spec, 1)
				if len(preview.Errors) == 0 || preview.Image != nil && spec.Image == of.image {
					t.Errorf("the preview of %s is %+v, %v", name, preview, err)
				}
				preview.Spec = session.Spec{}
				_, refused := as("eve-of-it").Launch(t.Context(), session.LaunchRequest{Owner: of.owner, Spec: spec})
				if refused == nil {
					t.Errorf("launched with %s of another's", name)
				}
				return []string{answer{err: refused}.refusal(of),
					masked(fmt.Sprintf("%+v %v", preview.Errors, preview.Wait), of)}
			}
			if theirs, none := said(ann), said(void); !slices.Equal(theirs, none) {
				t.Errorf("another's: %s\nnobody's:  %s", theirs, none)
			}
		})
	}
	t.Run("nor by a name or a key that another uses", func(t *testing.T) {
		spec := session.Spec{Name: mark("ann-of-it"), Image: "python:3.12"}
		for _, owner := range []string{"ann-of-it", "eve-of-it"} {
			s, err := as(owner).Launch(t.Context(),
				session.LaunchRequest{Key: "one-key", Spec: session.Spec{Name: spec.Name + "-2", Image: spec.Image}})
			if err != nil || s.Owner != owner {
				t.Errorf("%s launched under a key: a session of %s, %v", owner, s.Owner, err)
			}
		}
		if _, err := as("eve-of-it").Launch(t.Context(), session.LaunchRequest{Spec: spec}); err != nil {
			t.Errorf("a name that ann's session has: %v", err)
		}
		if _, err := as("eve-of-it").CreateFolder(t.Context(),
			session.FolderRequest{Name: mark("ann-of-it")}); err != nil {
			t.Errorf("a name that ann's folder has: %v", err)
		}
	})
}

func TestHostileUserIsToldNothingOfOthers(t *testing.T) {
	gate, _ := newGate(t)
	as := func(owner string, role session.Role) session.Agent {
		return gate.As(access.Identity{Owner: owner, Role: role})
	}
	ann := settle(t, as("ann-of-it", session.RoleUser), "ann-of-it", 1)
	mine := settle(t, as("eve-of-it", session.RoleUser), "eve-of-it", 2)
	waiting, err := as("eve-of-it", session.RoleUser).Launch(t.Context(),
		session.LaunchRequest{Spec: session.Spec{Image: "python:3.12", Accelerator: gpu.Request{Devices: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range methods() {
		if decisions[m.Name] != ofMachine {
			continue
		}
		for _, owner := range []string{"eve-of-it", "new-of-it"} {
			got := ask(t, as(owner, session.RoleUser), m, ann, session.Place{})
			text := got.told
			if got.err != nil {
				text = fmt.Sprintf("%+v", *session.AsError(got.err, "none"))
			}
			if m.Name == "Preview" { // it repeats what was asked for
				text = strings.ReplaceAll(text, mark(ann.owner), "<asked>")
			}
			for _, secret := range ann.texts() {
				if at := strings.Index(text, secret); at >= 0 {
					t.Errorf("%s tells %s %q: …%s…", m.Name, owner, secret, text[max(0, at-200):min(len(text), at+100)])
				}
			}
		}
		if got := ask(t, as(ruler, session.RoleAdmin), m, ann, session.Place{}); session.CodeOf(got.err).
			Detail() == session.DetailForbidden {
			t.Errorf("%s is forbidden to an admin: %v", m.Name, got.err)
		}
	}
	s, err := as("eve-of-it", session.RoleUser).Get(t.Context(), waiting.ID)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(s)
	if err != nil || strings.Contains(string(raw), "ann-of-it") {
		t.Errorf("why eve's waits: %s, %v", raw, err)
	}
	if mine.session == ann.session {
		t.Error("two people have one session")
	}
}

func TestHostileUserAndAdmin(t *testing.T) {
	gate, _ := newGate(t)
	user := func(owner string) session.Agent {
		return gate.As(access.Identity{Owner: owner, Role: session.RoleUser})
	}
	boss := gate.As(access.Identity{Owner: "boss", Role: session.RoleAdmin})
	ann := settle(t, user("ann-of-it"), "ann-of-it", 1)
	void := nowhere(ann)
	for _, m := range methods() {
		kind := decisions[m.Name]
		if kind == ofMachine || slices.Contains(ending, m.Name) {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			if kind == ofAdmins {
				if got := ask(t, user("eve-of-it"), m, ann, session.Place{}); session.CodeOf(
					got.err) != "agent_call_forbidden" {
					t.Errorf("a user: %v", got.err)
				}
				if got := ask(t, boss, m, ann, session.Place{}); got.err != nil {
					t.Errorf("an admin: %v", got.err)
				}
				return
			}
			for i, place := range places(kind, ann) {
				refusesOwn(t, boss, m, ann, place)
				if got := ask(t, boss, m, void, places(kind, void)[i]); got.err == nil && m.Name != "ForgetImage" {
					t.Errorf("an admin gets %s of what is not there", got.told)
				}
			}
		})
	}
}

func TestHostileUserGetsNoMPSUnlessItIsAllowed(t *testing.T) {
	gate, inner := newGate(t)
	spec := session.Spec{Image: "python:3.12", Accelerator: gpu.Request{Shares: 300}, Tuning: session.Tuning{MPS: true}}
	refused := func(who access.Identity) bool {
		t.Helper()
		p, err := gate.As(who).Preview(t.Context(), "", spec, 1)
		if err != nil {
			t.Fatal(err)
		}
		preview := slices.ContainsFunc(p.Errors, func(e session.FieldError) bool {
			return e.Field == "mps" && e.Kind == "forbidden" && e.Hint != ""
		})
		s, err := gate.As(who).Launch(t.Context(), session.LaunchRequest{Spec: spec})
		if launch := session.CodeOf(err) == session.CodeInvalid; launch != preview {
			t.Errorf("%s: refused in the preview is %v, at launch %v: %v", who.Role, preview, launch, err)
		}
		if err == nil {
			if _, err := inner.Terminate(t.Context(), s.ID, true); err != nil {
				t.Fatal(err)
			}
		}
		return preview
	}
	if !refused(access.Identity{Owner: "eve-of-it", Role: session.RoleUser}) {
		t.Error("a user opens the machine's shared memory")
	}
	if refused(access.Identity{Owner: "boss", Role: session.RoleAdmin}) {
		t.Error("an admin is refused")
	}
}

// Only admins may be root in a container, unless the machine's owner has said otherwise.
func TestHostileUserIsNoAdministratorUnlessItIsAllowed(t *testing.T) {
	gate, _ := newGate(t)
	spec := session.Spec{Image: "python:3.12", Access: session.Access{Admin: true}}
	for role, refused := range map[session.Role]bool{session.RoleUser: true, session.RoleAdmin: false} {
		who := gate.As(access.Identity{Owner: "eve-of-it", Role: role})
		p, err := who.Preview(t.Context(), "", spec, 1)
		if err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(p.Errors, func(e session.FieldError) bool {
			return e.Field == "admin" && e.Kind == session.KindForbidden && e.Hint != ""
		})
		_, err = who.Launch(t.Context(), session.LaunchRequest{Spec: spec})
		if launch := session.CodeOf(err) == session.CodeInvalid; said != refused || launch != refused {
			t.Errorf("%s: refused in the preview is %v, at launch %v: %v", role, said, launch, err)
		}
	}
}

// admin looks after nothing.
type admin struct{}

func (admin) Audit(context.Context, session.AuditQuery) ([]session.AuditEntry, error) {
	return nil, nil
}
func (admin) Limits(context.Context) (map[string]session.Allowance, error)  { return nil, nil }
func (admin) SetLimit(context.Context, string, *session.Allowance) error    { return nil }
func (admin) PairedClients(context.Context) ([]session.PairedClient, error) { return nil, nil }
func (admin) RevokeClient(context.Context, string) error                    { return nil }
