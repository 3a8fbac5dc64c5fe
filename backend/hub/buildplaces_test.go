package hub_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/backend/agent"
	"slipway/backend/agent/simulated"
	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
)

// bothHave are a simulated computer and a simulated machine, whose people have different names there.
type bothHave struct {
	near, lab         session.Agent
	nearDisk, labDisk string
	world
}

const projectBase = "python:3.12-slim"

// newBoth opens a project with these lines in its Dockerfile on both machines.
func newBoth(t *testing.T, lines int) *bothHave {
	t.Helper()
	b := &bothHave{}
	open := func(name, owner string, disk *string) session.Agent {
		return simulated.Open(t, func(c *agent.Config) {
			c.Name, c.Owner = name, owner
			*disk = filepath.Join(c.Dir, "disk", "scratch", "paper")
		}).Agent()
	}
	b.near, b.lab = open("local", "ada", &b.nearDisk), open("lab", "Ada L.", &b.labDisk)
	for _, disk := range []string{b.nearDisk, b.labDisk} {
		b.write(t, disk, "Dockerfile", "FROM "+projectBase+"\n"+strings.Repeat("RUN true\n", lines))
	}
	return b
}

func (b *bothHave) write(t *testing.T, disk, file, content string) {
	t.Helper()
	if err := os.MkdirAll(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(disk, file), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run opens a hub over both, and makes the project a folder of these.
func (b *bothHave) run(t *testing.T, folders ...string) {
	t.Helper()
	b.Hub = openOn(t, &hubtest.Shelf{}, []hub.Member{{Name: "local", Local: true, Agent: b.near},
		{Name: "lab", Agent: b.lab}})
	b.world.run(t)
	for _, name := range folders {
		a := map[string]session.Agent{"local": b.near, "lab": b.lab}[name]
		_, err := a.CreateFolder(t.Context(), session.FolderRequest{Name: "paper", Path: "/scratch/paper"})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bothHave) read(t *testing.T, agent string) session.Project {
	t.Helper()
	found, err := b.ReadProject(t.Context(), "paper", agent, session.ProjectRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (b *bothHave) begin(t *testing.T, where hub.BuildPlace) hub.Operation {
	t.Helper()
	begun, err := b.BuildProject(t.Context(), "paper", "lab", hub.ProjectBuilding{Where: where})
	if err != nil {
		t.Fatal(err)
	}
	return begun
}

func stepOf(o hub.Operation, name string) hub.Step {
	i := slices.IndexFunc(o.Steps, func(s hub.Step) bool { return s.Name == name })
	if i < 0 {
		return hub.Step{}
	}
	return o.Steps[i]
}

func TestAnImageIsBuiltHereAndSent(t *testing.T) {
	b := newBoth(t, 2)
	b.run(t, "local", "lab")
	want := b.read(t, "lab").Image
	if want == b.read(t, "local").Image {
		t.Fatalf("both call it %s, although they know their person by different names", want)
	}
	done := b.operation(t, b.begin(t, hub.BuildHere).ID, ended)
	if done.State != hub.OperationDone || done.Kind != hub.ImageBuild || done.Agent != "lab" || done.Image != want ||
		stepOf(done, "build-1").State != hub.StepOK || done.Progress == nil || done.Progress.Done == 0 {
		t.Fatalf("it ended as %+v: %v", done, done.Error)
	}
	for _, agent := range []string{"local", "lab"} {
		if !b.read(t, agent).Present {
			t.Errorf("%s does not have the image", agent)
		}
	}
	s, err := b.lab.Launch(t.Context(), session.LaunchRequest{Spec: session.Spec{Name: "study", Image: want}})
	if err != nil {
		t.Fatal(err)
	}
	awaitIn(t, b.lab, s.ID, session.Running)

	again := b.operation(t, b.begin(t, hub.BuildHere).ID, ended)
	if detail := stepOf(again, "send").Detail; again.State != hub.OperationDone || detail != "0 B sent" ||
		stepOf(again, "build-0").Name != "" {
		t.Errorf("once more it ended as %+v: %v", again, again.Error)
	}
}

func TestThePlaceOfABuildMustBeKnown(t *testing.T) {
	b := newBoth(t, 1)
	b.run(t, "local", "lab")
	_, err := b.BuildProject(t.Context(), "paper", "lab", hub.ProjectBuilding{Where: "everywhere"})
	if e := session.AsError(err, ""); e.Code != session.CodeRequestInvalid || len(e.Fields) != 1 ||
		e.Fields[0].Field != "where" {
		t.Errorf("an unknown place is answered with %+v", e)
	}
	begun, err := b.BuildProject(t.Context(), "paper", "local", hub.ProjectBuilding{Where: hub.BuildHere})
	if err != nil {
		t.Fatal(err)
	}
	if done := b.operation(t, begun.ID, ended); done.State != hub.OperationDone || stepOf(done, "send").Name != "" {
		t.Errorf("for this computer itself it ended as %+v", done)
	}
}

// platform is a machine that says what it is.
type platform struct {
	session.Host
	change func(*session.Machine)
}

func (p platform) Machine(ctx context.Context) (session.Machine, error) {
	m, err := p.Host.Machine(ctx)
	p.change(&m)
	return m, err
}

// owned is a machine whose folders belong to somebody else.
type owned struct{ session.Folders }

func (o owned) ListFolders(ctx context.Context, filter session.FolderFilter) ([]session.Folder, error) {
	all, err := o.Folders.ListFolders(ctx, filter)
	for i := range all {
		all[i].Owner = "bob"
	}
	return all, err
}

func TestABuildHereIsRefusedWithItsReason(t *testing.T) {
	at := func(host *session.Host, change func(*session.Machine)) { *host = platform{*host, change} }
	both := []string{"local", "lab"}
	for name, c := range map[string]struct {
		prepare func(*testing.T, *bothHave)
		folders []string
		code    session.Code
		says    string
	}{
		"an engine that builds nothing": {func(_ *testing.T, b *bothHave) {
			at(&b.near.Host, func(m *session.Machine) { m.Lacks = []session.Feature{session.FeatureBuild} })
		}, both, session.CodeEngineUnsupported, "buildHereLacks"},
		"a simulated one for a real machine": {func(_ *testing.T, b *bothHave) {
			at(&b.lab.Host, func(m *session.Machine) { m.Engine = "docker" })
		}, both, session.CodeEngineUnsupported, "buildHereLacks"},
		"another processor": {func(_ *testing.T, b *bothHave) {
			at(&b.lab.Host, func(m *session.Machine) { m.Arch = "riscv64" })
		}, both, session.CodeEngineUnsupported, "buildHereArch"},
		"a folder of another person": {func(_ *testing.T, b *bothHave) { b.lab.Folders = owned{b.lab.Folders} }, both,
			session.CodeAgentForbidden, "buildHereOwner"},
		"no folder here": {func(*testing.T, *bothHave) {}, []string{"lab"}, session.CodeFolderNotFound,
			"buildHereFolder"},
		"other files here": {func(t *testing.T, b *bothHave) { b.write(t, b.nearDisk, "main.py", "print(1)\n") }, both,
			session.CodeFileChanged, "buildHereDiffers"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBoth(t, 1)
			c.prepare(t, b)
			b.run(t, c.folders...)
			_, err := b.BuildProject(t.Context(), "paper", "lab", hub.ProjectBuilding{Where: hub.BuildHere})
			e := session.AsError(err, "")
			if e.Code != c.code || len(e.Said) != 1 || e.Said[0].Say != c.says || e.Hint == "" ||
				strings.Contains(e.Message, "{{") {
				t.Errorf("it is refused as %+v", e)
			}
			choices, err := b.BuildChoices(t.Context(), "paper", "lab", session.ProjectRequest{})
			if err != nil || len(choices) != 3 || choices[0].Why != nil || choices[1].Why != nil ||
				choices[2].Why == nil || choices[2].Why.Say != c.says {
				t.Errorf("the choices are %+v, %v", choices, err)
			}
			if len(b.Operations()) > 0 {
				t.Errorf("it has begun: %+v", b.Operations())
			}
		})
	}
}

func TestTheChoiceOfAPlaceSaysWhatItCosts(t *testing.T) {
	b := newBoth(t, 1)
	b.run(t, "local", "lab")
	choose := func(agent string) []hub.BuildChoice {
		t.Helper()
		choices, err := b.BuildChoices(t.Context(), "paper", agent, session.ProjectRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return choices
	}
	if got := choose("local"); len(got) > 0 {
		t.Errorf("for this computer itself there are %+v", got)
	}
	places := []hub.BuildPlace{hub.BuildThere, hub.BuildThrough, hub.BuildHere}
	if err := b.lab.RemoveImage(t.Context(), projectBase); err != nil && session.CodeOf(err) != session.CodeNoImage {
		t.Fatal(err)
	}
	for i, one := range choose("lab") {
		if one.Where != places[i] || one.Why != nil || one.More || (one.Bytes > 0) != (i > 0) || one.Seconds != nil {
			t.Errorf("without its base: %+v", one)
		}
	}
	b.write(t, b.nearDisk, "Dockerfile", "FROM example.com/unknown:1\n")
	b.write(t, b.labDisk, "Dockerfile", "FROM example.com/unknown:1\n")
	for i, one := range choose("lab") {
		if one.More != (i > 0) || one.Bytes != 0 {
			t.Errorf("with an unknown base: %+v", one)
		}
	}
	b.lab.Host = platform{b.lab.Host, func(m *session.Machine) { m.Role = session.RoleUser }}
	b.run(t)
	if got := choose("lab"); got[0].Why == nil || got[1].Why == nil || got[2].Why != nil {
		t.Errorf("for a person who may not build there: %+v", got)
	}
}

// stuck is a machine that notes what it is to forget, and is not reached when an image is to arrive.
type stuck struct {
	session.ImageTransfers
	arrives, forgets chan string
}

func (s stuck) ReceiveImage(ctx context.Context, id string) (io.ReadWriteCloser, error) {
	s.arrives <- id
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s stuck) ForgetImage(ctx context.Context, id string) error {
	s.forgets <- id
	return s.ImageTransfers.ForgetImage(ctx, id)
}

func TestABuildHereIsCancelledInBothHalves(t *testing.T) {
	t.Run("while it is built", func(t *testing.T) {
		b := newBoth(t, 5000)
		b.run(t, "local", "lab")
		begun := b.begin(t, hub.BuildHere)
		b.operation(t, begun.ID, func(o hub.Operation) bool { return stepOf(o, "build-1").Name != "" })
		b.cancel(t, begun.ID)
		if b.read(t, "local").Present || b.read(t, "lab").Present {
			t.Error("the image is there")
		}
	})
	t.Run("while it is sent", func(t *testing.T) {
		b := newBoth(t, 1)
		there := stuck{b.lab.ImageTransfers, make(chan string, 1), make(chan string, 1)}
		b.lab.ImageTransfers = there
		b.run(t, "local", "lab")
		begun := b.begin(t, hub.BuildHere)
		id := <-there.arrives
		b.cancel(t, begun.ID)
		if got := <-there.forgets; got != id {
			t.Errorf("%s was to arrive, and %s is forgotten", id, got)
		}
		if !b.read(t, "local").Present || b.read(t, "lab").Present {
			t.Error("the image is not here, or is there")
		}
	})
}

func (b *bothHave) cancel(t *testing.T, id string) {
	t.Helper()
	if _, err := b.CancelOperation(id); err != nil {
		t.Fatal(err)
	}
	if o := b.operation(t, id, ended); o.State != hub.OperationCancelled {
		t.Errorf("it ended as %+v", o)
	}
}

func TestABuildWithoutInternetNamesTheOtherPlaces(t *testing.T) {
	for log, hinted := range map[string]bool{
		"E: Temporary failure resolving 'deb.debian.org'\n":                                          true,
		"pip: Failed to establish a new connection: [Errno -3] Temporary failure in name resolution": true,
		"ERROR: No matching distribution found for tprch\n":                                          false,
	} {
		b := newBoth(t, 1)
		b.lab.Projects = failing{b.lab.Projects, log}
		b.run(t, "lab")
		done := b.operation(t, b.begin(t, hub.BuildThere).ID, ended)
		if done.Error == nil || strings.Contains(done.Error.Hint, "--build here") != hinted ||
			stepOf(done, "build").Remedy != done.Error.Hint {
			t.Errorf("after %q the hint is %+v", log, done.Error)
		}
	}
}

// failing is a machine whose builds print something and fail.
type failing struct {
	session.Projects
	log string
}

func (f failing) BuildProject(context.Context, session.FolderID,
	session.ProjectBuild) (session.ImageWork, error) {
	return session.ImageWork{Kind: session.WorkBuild, State: session.WorkFailed, Ref: "new:1",
		Build: &session.Build{Log: f.log}, Error: session.Because(session.CodeBuildFailed,
			session.Say("buildFailed", session.Fill("why", "A step failed.")), session.Say("buildFailedHint"))}, nil
}
