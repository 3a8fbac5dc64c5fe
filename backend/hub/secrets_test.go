package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
	"slipway/backend/vault"
)

// recorder remembers what an agent is asked for.
type recorder struct {
	session.Sessions
	session.Images
	session.Moves
	session.Projects
	launched session.LaunchRequest
	accepted session.LaunchRequest
	pulled   session.PullRequest
	built    session.ProjectBuild
	project  session.Project // that is in each of its folders
	lent     chan net.Conn   // of the steps of its builds with a proxy
	old      bool            // it does not know of secrets, nor of proxies
}

func (r *recorder) Launch(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	r.launched = req
	if r.old {
		req.Spec.Secrets = nil
	}
	return r.Sessions.Launch(ctx, req)
}

func (r *recorder) Accept(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	r.accepted = req
	return r.Moves.Accept(ctx, req)
}

func (r *recorder) PullImage(ctx context.Context, req session.PullRequest) (session.ImageWork, error) {
	r.pulled = req
	return r.Images.PullImage(ctx, req)
}

func (r *recorder) ReadProject(context.Context, session.FolderID,
	session.ProjectRequest) (session.Project, error) {
	return r.project, nil
}

func (r *recorder) BuildProject(ctx context.Context, _ session.FolderID,
	req session.ProjectBuild) (session.ImageWork, error) {
	r.built = req
	if req.Proxy != "" {
		return r.Images.PullImage(ctx, session.PullRequest{Ref: "new:1"}) // which a test ends
	}
	return session.ImageWork{Kind: session.WorkBuild, State: session.WorkDone, Ref: "new:1"}, nil
}

// openWithVault opens a hub over agents, and records what the last one is asked for.
func openWithVault(t *testing.T, names ...string) (world, *recorder) {
	t.Helper()
	w, r := world{shelf: &hubtest.Shelf{}}, &recorder{}
	var members []hub.Member
	for _, name := range names {
		fake := hubtest.New(name)
		fake.SetImages(session.Image{Refs: []string{"python:3.12"}})
		w.agents = append(w.agents, fake)
		members = append(members, hub.Member{Name: name, Local: name == "local", Agent: fake.Agent()})
	}
	agent := &members[len(members)-1].Agent
	r.Sessions, r.Images, r.Moves = agent.Sessions, agent.Images, agent.Moves
	agent.Sessions, agent.Images, agent.Moves, agent.Projects = r, r, r, r
	var err error
	w.Hub, err = hub.Open(hub.Config{Members: members, Shelf: w.shelf, Settings: noSettings(t),
		Vault: vault.New("", filepath.Join(t.TempDir(), "secrets.json")), Owner: "ada",
		Author: func(context.Context) session.GitAuthor { return ada }})
	if err != nil {
		t.Fatal(err)
	}
	w.run(t)
	return w, r
}

var ada = session.GitAuthor{Name: "Ada L", Email: "ada@example.com"}

func TestALaunchTakesTheAuthorOfCommitsAlong(t *testing.T) {
	w, agent := openWithVault(t, "local")
	folder := []session.Mount{{Folder: "paper"}}
	var root session.Spec
	root.Admin = true
	for name, c := range map[string]struct {
		spec session.Spec
		want session.GitAuthor
	}{
		"with a folder":       {session.Spec{Mounts: folder}, ada},
		"a batch session":     {session.Spec{Mounts: folder, Type: session.Batch, Command: "true"}, ada},
		"as an administrator": {root, ada},
		"without a folder":    {session.Spec{}, session.GitAuthor{}},
		"for transfers":       {session.Spec{Mounts: folder, Type: session.System}, session.GitAuthor{}},
	} {
		if c.spec.Type != session.System {
			c.spec.Image = "python:3.12"
		}
		s, err := w.Launch(t.Context(), hub.LaunchRequest{Spec: c.spec})
		if err != nil {
			t.Fatal(err)
		}
		if got := agent.launched.Confidential.Author; got != c.want {
			t.Errorf("a session %s takes along %+v", name, got)
		}
		recipe, err := w.SessionRecipe(t.Context(), string(s.ID))
		if shown := fmt.Sprintf("%+v %+v %s", s, recipe, w.shelf.Raw("hub.recents")); err != nil ||
			strings.Contains(shown, ada.Email) {
			t.Errorf("a session %s shows the address: %s, %v", name, shown, err)
		}
	}
}

func (w world) store(t *testing.T, kind hub.SecretKind, name, user, value string) {
	t.Helper()
	if _, err := w.SetSecret(hub.SecretContent{Kind: kind, Name: name, User: user, Value: value}); err != nil {
		t.Fatal(err)
	}
}

func TestALaunchTakesTheValuesOfItsSecretsAlong(t *testing.T) {
	w, agent := openWithVault(t, "local")
	wanted := session.Spec{Image: "ghcr.io/team/train:1", Secrets: []string{"HF_TOKEN"}}
	p, err := w.Preview(t.Context(), "", wanted, 1)
	if err != nil || len(p.Errors) != 1 || p.Errors[0].Field != "secrets[0]" {
		t.Errorf("a preview without the secret: %+v, %v", p.Errors, err)
	}
	if _, err := w.Launch(t.Context(), hub.LaunchRequest{Spec: wanted}); session.CodeOf(err) != session.CodeInvalid {
		t.Errorf("a launch without the secret: %v", err)
	}
	w.store(t, hub.SecretVariable, "HF_TOKEN", "", "old")
	w.store(t, hub.SecretVariable, "HF_TOKEN", "", "hush")
	w.store(t, hub.SecretVariable, "OTHER", "", "hush too")
	w.store(t, hub.SecretRegistry, "https://GHCR.io/", "ada", "hush three")
	s, err := w.Launch(t.Context(), hub.LaunchRequest{Spec: wanted})
	if err != nil {
		t.Fatal(err)
	}
	c := agent.launched.Confidential
	if len(c.Secrets) != 1 || c.Secrets[0] != (session.EnvVar{Name: "HF_TOKEN", Value: "hush"}) ||
		c.Login == nil || *c.Login != (session.RegistryLogin{Server: "ghcr.io", User: "ada", Password: "hush three"}) {
		t.Errorf("the launch takes along %+v", c)
	}
	recents := w.Recents()
	if len(recents) != 1 || len(recents[0].Spec.Secrets) != 1 || len(s.Spec.Env) > 0 {
		t.Errorf("history %+v, spec %+v", recents, s.Spec)
	}
	if kept := w.shelf.Raw("hub.recents") + w.shelf.Raw("hub.secrets"); strings.Contains(kept, "hush") {
		t.Errorf("a value is stored: %s", kept)
	}
	agent.old = true
	if _, err := w.Launch(t.Context(), hub.LaunchRequest{Spec: wanted}); session.CodeOf(err) !=
		session.CodeAgentUnsupported {
		t.Errorf("by an agent that does not know of secrets: %v", err)
	}
}

func TestASessionThatMovesTakesItsSecretsAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, lab := openWithVault(t, "local", "lab")
		w.store(t, hub.SecretVariable, "HF_TOKEN", "", "hush")
		waitingAt(t, w, session.Spec{Name: "here", Secrets: []string{"HF_TOKEN"}}, "local")
		if moved, err := w.Move(t.Context(), "here", "lab"); err != nil || moved.Agent != "lab" {
			t.Fatalf("moved %+v, %v", moved, err)
		}
		if got := lab.accepted.Confidential.Secrets; len(got) != 1 || got[0].Value != "hush" {
			t.Errorf("it takes along %+v", got)
		}
	})
}

func TestAPullUsesTheLoginForItsRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, agent := openWithVault(t, "local")
		w.store(t, hub.SecretRegistry, "docker.io", "ada", "hush")
		for ref, want := range map[string]bool{"team/train:1": true, "ghcr.io/team/train:1": false} {
			begun, err := w.PullImage("local", ref)
			if err != nil {
				t.Fatal(err)
			}
			w.operation(t, begun.ID, func(o hub.Operation) bool { return o.Image == ref })
			if got := agent.pulled.Login != nil; agent.pulled.Ref != ref || got != want {
				t.Errorf("the pull of %s takes a login along: %v", agent.pulled.Ref, got)
			}
		}
	})
}

func TestABuildTakesOnlyWhatItsPersonAllowsAndItsProjectNames(t *testing.T) {
	w, agent := openWithVault(t, "local")
	w.store(t, hub.SecretVariable, "HF_TOKEN", "", "hush")
	w.store(t, hub.SecretVariable, "NOT_ALLOWED", "", "hush two")
	w.store(t, hub.SecretVariable, "NOT_NAMED", "", "hush three")
	w.store(t, hub.SecretRegistry, "ghcr.io", "ada", "hush four")
	w.store(t, hub.SecretRegistry, "nvcr.io", "ada", "hush five")
	f, err := w.CreateFolder(t.Context(), "local", session.FolderRequest{Name: "paper"})
	if err != nil {
		t.Fatal(err)
	}
	agent.project = session.Project{Dockerfile: "FROM python", Image: "new:1",
		Bases:   []string{"python:3.12", "ghcr.io/team/a:1", "ghcr.io/team/b:1"},
		Secrets: []string{"NOT_STORED", "HF_TOKEN", "NOT_ALLOWED"}}
	begun, err := w.BuildProject(t.Context(), string(f.ID), "local", hub.ProjectBuilding{
		Secrets: []string{"HF_TOKEN", "NOT_STORED", "NOT_NAMED"}})
	if err != nil {
		t.Fatal(err)
	}
	done := w.operation(t, begun.ID, ended)
	if want := []session.EnvVar{{Name: "HF_TOKEN", Value: "hush"}}; !slices.Equal(agent.built.Secrets, want) {
		t.Errorf("it takes the secrets %+v along, want %+v", agent.built.Secrets, want)
	}
	if want := []session.RegistryLogin{{Server: "ghcr.io", User: "ada", Password: "hush four"}}; !slices.Equal(
		agent.built.Logins, want) {
		t.Errorf("it takes the logins %+v along, want %+v", agent.built.Logins, want)
	}
	if said, err := json.Marshal(done); err != nil || strings.Contains(string(said), "hush") {
		t.Errorf("the operation has a value: %s, %v", said, err)
	}
}

func TestSecretsAreListedWithoutValuesAndDeleted(t *testing.T) {
	w, _ := openWithVault(t, "local")
	for _, wrong := range []hub.SecretContent{
		{Kind: hub.SecretVariable, Name: "NAME=value", Value: "x"}, {Kind: hub.SecretVariable, Name: "EMPTY"},
		{Kind: hub.SecretVariable, Name: "SLIPWAY_X", Value: "x"}, {Kind: "other", Name: "A", Value: "x"},
		{Kind: hub.SecretRegistry, Name: "nowhere", User: "ada", Value: "x"},
		{Kind: hub.SecretRegistry, Name: "ghcr.io", Value: "x"},
	} {
		if _, err := w.SetSecret(wrong); session.CodeOf(err) != session.CodeSettingsInvalid {
			t.Errorf("%+v is stored: %v", wrong, err)
		}
	}
	w.store(t, hub.SecretRegistry, "ghcr.io", "ada", "hush")
	w.store(t, hub.SecretVariable, "B", "", "hush")
	w.store(t, hub.SecretVariable, "A", "", "hush")
	again, err := hub.Open(hub.Config{Shelf: w.shelf, Settings: noSettings(t), Owner: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range again.Secrets() {
		names = append(names, one.Name+" "+one.User+" "+one.Kept)
	}
	if got := strings.Join(names, ", "); got != "A  file, B  file, ghcr.io ada file" {
		t.Errorf("listed: %s", got)
	}
	for range 2 {
		if err = w.DeleteSecret(hub.SecretVariable, "A"); err != nil {
			break
		}
	}
	if session.CodeOf(err) != session.CodeRecipeNotFound || len(w.Secrets()) != 2 {
		t.Errorf("deleted twice: %v, %+v", err, w.Secrets())
	}
	if err := w.DeleteSecret(hub.SecretRegistry, "https://ghcr.io"); err != nil || len(w.Secrets()) != 1 {
		t.Errorf("%v, %+v", err, w.Secrets())
	}
}
