package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/engine/enginetest"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
	"slipway/gpu"
)

// TestSecretsOutliveARestartAndNotTheirSession launches behind a session that has all CPUs, restarts the agent, and
// looks where the value is.
func TestSecretsOutliveARestartAndNotTheirSession(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		full := w.launch(session.Spec{Resources: session.Resources{CPU: 8, Memory: gpu.GiB}})
		w.awaitStatus(full.ID, session.Running)
		const value = "hf_very-secret"
		request := session.LaunchRequest{Key: "once", Spec: session.Spec{Image: enginetest.ImageMinimal,
			Secrets: []string{"HF_TOKEN"}}, Confidential: session.Confidential{
			Secrets: []session.EnvVar{{Name: "HF_TOKEN", Value: value}},
			Author:  session.GitAuthor{Name: "Ada", Email: "ada@example.com"}}}
		without := request
		without.Key, without.Confidential = "", session.Confidential{}
		if _, err := w.agent.Launch(t.Context(), without); session.CodeOf(err) != session.CodeInvalid {
			t.Errorf("without its value: %v", err)
		}
		s, err := w.agent.Launch(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		kept := filepath.Join(w.dir, "confidential", string(s.ID))
		w.halt()
		stray := filepath.Join(w.dir, "confidential", "0123456789ab")
		if err := os.WriteFile(stray, []byte(value), 0o600); err != nil { // as a crash leaves it
			t.Fatal(err)
		}
		if found := w.filesWith(value); len(found) != 2 {
			t.Errorf("while it waits, the value is in %q", found)
		}
		w.start()
		if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("what is kept: %v, %v", info, err)
		}
		if _, err := os.Stat(stray); err == nil {
			t.Error("what a crash left stays")
		}
		w.terminated(full.ID, true)
		s = w.awaitStatus(s.ID, session.Running)
		c, _ := w.fake.Container(s.Container())
		if last := c.Guest.Env[len(c.Guest.Env)-1]; last != (session.EnvVar{Name: "HF_TOKEN", Value: value}) {
			t.Errorf("the guest gets %+v", last)
		}
		if c.Guest.Author != request.Confidential.Author {
			t.Errorf("the guest gets the author %+v", c.Guest.Author)
		}
		if again, err := w.agent.Launch(t.Context(), request); err != nil || again.ID != s.ID {
			t.Errorf("the same launch again: %s, %v", again.ID, err)
		}
		if _, err := w.agent.Terminate(context.Background(), s.ID, true); err != nil {
			t.Fatal(err)
		}
		w.awaitStatus(s.ID, session.Terminated)
		w.halt()
		if found := w.filesWith(value); len(found) > 0 {
			t.Errorf("after the end, the value is in %q", found)
		}
		w.start()
	})
}

func TestASessionWhoseSecretsAreLostFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		full, s := w.waitingWith("b")
		if err := os.Remove(filepath.Join(w.dir, "confidential", string(s.ID))); err != nil {
			t.Fatal(err)
		}
		w.terminated(full.ID, true)
		s = w.awaitStatus(s.ID, session.Failed)
		if s.Error == nil || s.Error.Code != session.CodeInvalid || !strings.Contains(s.Error.Message, "lost") {
			t.Errorf("it ends with %+v", s.Error)
		}
	})
}

// filesWith returns the files of the agent that have a text.
func (w *world) filesWith(text string) (found []string) {
	w.t.Helper()
	err := filepath.WalkDir(w.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), text) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// TestAUserPullsWithTheirOwnLogin pulls a private image as a user who may not use the logins of the machine. The image
// is then that user's alone.
func TestAUserPullsWithTheirOwnLogin(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, _ := sharedFake(t)
		const private = "registry.test/secret:1"
		w.fake.Publish(private, simtest.PullScript{Private: true})
		ann, bob := through(t, w.agent, "ann", session.RoleUser), through(t, w.agent, "bob", session.RoleUser)
		login := session.Confidential{Login: &session.RegistryLogin{Server: "registry.test", User: "ann",
			Password: "p"}}
		s, err := ann.Launch(t.Context(), session.LaunchRequest{Confidential: login, Spec: session.Spec{Image: private,
			Resources: session.Resources{CPU: 1, Memory: gpu.GiB}}})
		if err != nil {
			t.Fatal(err)
		}
		if s = w.awaitStatus(s.ID, session.Running); s.Pinned == "" {
			t.Errorf("ann's session: %+v", s)
		}
		sees := func(who string, a session.Agent, want bool) {
			t.Helper()
			if _, err := a.DescribeImage(t.Context(), private); (err == nil) != want {
				t.Errorf("for %s it is described: %v", who, err)
			}
		}
		sees("ann", ann, true)
		sees("bob", bob, false)
		boss := through(t, w.agent, "boss", session.RoleAdmin)
		pulled(t, boss, private) // with a login of the machine
		if err := w.agent.SetAllowance("bob", &session.Allowance{Logins: true}); err != nil {
			t.Fatal(err)
		}
		sees("ann", ann, true)
		sees("bob", bob, true)
		sees("carl", through(t, w.agent, "carl", session.RoleUser), false)
		w.fake.Publish(private, simtest.PullScript{}) // it was opened to everybody
		pulled(t, boss, private)
		sees("carl", through(t, w.agent, "carl", session.RoleUser), true)
	})
}

func TestASessionThatMovedAwayLeavesNoSecrets(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		_, s := w.waitingWith("hf_moves")
		if err := w.agent.Yield(t.Context(), s.ID, session.NewID()); err != nil {
			t.Fatal(err)
		}
		if found := w.filesWith("hf_moves"); len(found) > 0 {
			t.Errorf("the value is in %q", found)
		}
	})
}

// waitingWith returns a session that holds all CPUs, and one with the secret A that waits for them.
func (w *world) waitingWith(value string) (full, waits session.Session) {
	w.t.Helper()
	full = w.launch(session.Spec{Resources: session.Resources{CPU: 8, Memory: gpu.GiB}})
	w.awaitStatus(full.ID, session.Running)
	waits, err := w.agent.Launch(w.t.Context(), session.LaunchRequest{Spec: session.Spec{
		Image: enginetest.ImageMinimal, Secrets: []string{"A"}},
		Confidential: session.Confidential{Secrets: []session.EnvVar{{Name: "A", Value: value}}}})
	if err != nil {
		w.t.Fatal(err)
	}
	return full, waits
}
