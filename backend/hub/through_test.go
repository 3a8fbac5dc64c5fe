package hub_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"

	"slipway/backend/hub"
	"slipway/backend/session"
)

// LendConnection has connections only for the build that was asked for.
func (r *recorder) LendConnection(ctx context.Context, _ session.FolderID,
	token session.ProxyToken) (net.Conn, error) {
	switch {
	case r.old:
		return nil, session.NewError(session.CodeAgentUnsupported, "The agent is too old.", "Upgrade it.")
	case token != r.built.Proxy || token == "":
		return nil, session.NewError(session.CodeOperationNotFound, "There is no such build.", "Build it again.")
	}
	select {
	case conn := <-r.lent:
		return conn, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// building asks for the image of a project on a machine, with the place of the build.
func (w world) building(t *testing.T, agent string, where hub.BuildPlace) hub.Operation {
	t.Helper()
	f, err := w.CreateFolder(t.Context(), agent, session.FolderRequest{Name: "paper"})
	if err != nil {
		t.Fatal(err)
	}
	begun, err := w.BuildProject(t.Context(), string(f.ID), agent, hub.ProjectBuilding{Where: where})
	if err != nil {
		t.Fatal(err)
	}
	return begun
}

func TestABuildGoesThroughThisComputer(t *testing.T) {
	w, lab := openWithVault(t, "local", "lab")
	lab.project = session.Project{Dockerfile: "FROM python:3.12", Image: "new:1", Bases: []string{"python:3.12"}}
	lab.lent = make(chan net.Conn)
	begun := w.building(t, "lab", hub.BuildThrough)
	near, step := net.Pipe()
	lab.lent <- near
	request, err := http.NewRequest(http.MethodGet, "http://127.0.0.1/", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth("slipway", string(lab.built.Proxy))
	request.Header = http.Header{"Proxy-Authorization": request.Header["Authorization"]}
	reader := bufio.NewReader(step)
	for _, want := range []int{http.StatusForbidden, http.StatusProxyAuthRequired} { // its own, then none
		go request.WriteProxy(step) //nolint:errcheck // the answer shows it
		said, err := http.ReadResponse(reader, request)
		if err != nil || said.StatusCode != want {
			t.Fatalf("a step is answered with %+v, %v, want %d", said, err, want)
		}
		if _, err := bufio.NewReader(said.Body).Discard(int(said.ContentLength)); err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{}
	}
	w.agents[1].MoveWork(func(work *session.ImageWork) { work.State = session.WorkDone })
	done := w.operation(t, begun.ID, ended)
	if said, err := json.Marshal(done); err != nil || done.State != hub.OperationDone ||
		strings.Contains(string(said), string(lab.built.Proxy)) {
		t.Errorf("it ended as %s, %v", said, err)
	}
}

func TestWhatIsBuiltHereNeedsNoProxy(t *testing.T) {
	w, local := openWithVault(t, "local")
	local.project = session.Project{Dockerfile: "FROM python:3.12", Image: "new:1", Bases: []string{"python:3.12"}}
	done := w.operation(t, w.building(t, "local", hub.BuildThrough).ID, ended)
	if done.State != hub.OperationDone || local.built.Proxy != "" {
		t.Errorf("it ended as %+v", done)
	}
}

func TestAnAgentThatIsTooOldForAProxyBuildsNothing(t *testing.T) {
	w, lab := openWithVault(t, "local", "lab")
	lab.project = session.Project{Dockerfile: "FROM python:3.12", Image: "new:1", Bases: []string{"python:3.12"}}
	lab.old = true
	done := w.operation(t, w.building(t, "lab", hub.BuildThrough).ID, ended)
	if session.CodeOf(done.Error) != session.CodeAgentUnsupported || lab.built.Proxy != "" {
		t.Errorf("it ended as %+v", done)
	}
}

// A daemon without a connection pulls nothing, so this computer sends what a build extends.
func TestTheBaseOfABuildIsSent(t *testing.T) {
	const base = "ghcr.io/team/base:1"
	w, lab := openWithVault(t, "local", "lab")
	lab.project = session.Project{Dockerfile: "FROM " + base, Image: "new:1", Bases: []string{"python:3.12", base}}
	begun := w.building(t, "lab", hub.BuildThrough)
	w.operation(t, begun.ID, func(o hub.Operation) bool { return o.Image == base })
	w.agents[0].MoveWork(func(work *session.ImageWork) {
		work.State, work.Error = session.WorkFailed, &session.Cause{Code: session.CodePullNotFound,
			Message: "The registry has no such image."}
	})
	done := w.operation(t, begun.ID, ended)
	if session.CodeOf(done.Error) != session.CodePullNotFound || lab.built.Proxy != "" ||
		!strings.HasPrefix(done.Error.Message, "lab lacks the base image "+base+", which this computer cannot send") {
		t.Errorf("without it, the build ended as %v", done.Error)
	}
	w.agents[0].SetImages(session.Image{Refs: []string{base}})
	begun, err := w.BuildProject(t.Context(), "paper", "lab", hub.ProjectBuilding{Where: hub.BuildThrough})
	if err != nil {
		t.Fatal(err)
	}
	done = w.operation(t, begun.ID, ended)
	if len(done.Steps) == 0 || done.Steps[0].Name != "base-1-describe" ||
		done.Steps[0].Title != "Look at "+base || done.Steps[0].State != hub.StepFailed {
		t.Errorf("of agents that send nothing, the build ended as %+v", done.Steps)
	}
}
