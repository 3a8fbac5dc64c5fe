//go:build linux

package backend

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/agent"
	"slipway/backend/agent/simulated"
	"slipway/backend/daemon"
	"slipway/backend/hub"
	"slipway/backend/remote"
	"slipway/backend/session"
)

// cloningMachine is an agent whose own configuration of git would know the password.
type cloningMachine struct {
	*agent.Agent
	t   *testing.T
	dir string
}

func newCloningMachine(t *testing.T) *cloningMachine {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("GIT_CONFIG_COUNT", "0")
	login := base64.StdEncoding.EncodeToString([]byte("ada:" + secret))
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"),
		[]byte("[http]\n\textraHeader = Authorization: Basic "+login+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := &cloningMachine{t: t}
	m.Agent = simulated.Open(t, func(c *agent.Config) { m.dir = c.Dir })
	return m
}

// talk is the caller's side of a clone.
type talk struct {
	io.ReadWriteCloser
	lines *bufio.Scanner
}

func (m *cloningMachine) clone(address string) *talk {
	m.t.Helper()
	stream, err := m.CloneFolder(m.t.Context(), session.CloneRequest{Name: "paper", Address: address})
	if err != nil {
		m.t.Fatal(err)
	}
	return &talk{stream, bufio.NewScanner(stream)}
}

// until answers questions until one that has no answer, or the end.
func (c *talk) until(answers map[string]string) (last session.CloneNews, asked []session.CloneQuestion) {
	for c.lines.Scan() {
		last = session.CloneNews{}
		if err := json.Unmarshal(c.lines.Bytes(), &last); err != nil {
			return last, asked
		}
		if last.Ask == nil {
			continue
		}
		asked = append(asked, *last.Ask)
		kind, _, _ := strings.Cut(last.Ask.Text, " for ")
		answer, known := answers[kind]
		if !known {
			return last, asked
		}
		_ = json.NewEncoder(c).Encode(session.CloneAnswer{Answer: answer})
	}
	return last, asked
}

// nothing fails unless all that a clone makes has gone: folders, directories and processes.
func (m *cloningMachine) nothing(when string) {
	m.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		left, _ := filepath.Glob(filepath.Join(m.dir, "folders", "*"))
		hidden, _ := filepath.Glob(filepath.Join(m.dir, "folders", ".*"))
		sockets, _ := filepath.Glob(filepath.Join(m.dir, "git", "*"))
		folders, err := m.ListFolders(m.t.Context(), session.FolderFilter{})
		if err != nil {
			m.t.Fatal(err)
		}
		left = append(append(append(left, hidden...), sockets...), processes(m.t, m.dir, "cmdline")...)
		if len(left)+len(folders) == 0 {
			return
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("%s: left are %q and the folders %+v", when, left, folders)
		}
	}
}

// processes are those of which a file in /proc has a text.
func processes(t *testing.T, text, file string) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), text) {
			found = append(found, path+": "+strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	return found
}

func TestTheGitOfAMachineClones(t *testing.T) {
	m, served := newCloningMachine(t), newPrivate(t)
	right := map[string]string{"Username": "ada", "Password": secret}

	last, asked := m.clone(served.url).until(map[string]string{"Username": "ada", "Password": "wrong"})
	if last.Failed == nil || last.Failed.Code != session.CodeCommandFailed ||
		!strings.Contains(last.Failed.Message, "Authentication failed") || len(asked) == 0 {
		t.Errorf("with a wrong password it ended as %+v, after %+v", last, asked)
	}
	m.nothing("a wrong password")
	if last, _ := m.clone(served.url + "@absent").until(right); last.Failed == nil ||
		!strings.Contains(last.Failed.Message, "absent") {
		t.Errorf("without the branch it ended as %+v", last)
	}
	m.nothing("an absent branch")
	waiting := m.clone(served.url)
	if last, _ := waiting.until(map[string]string{"Username": "ada"}); last.Ask == nil || !last.Ask.Secret {
		t.Errorf("it asks %+v", last)
	}
	if err := waiting.Close(); err != nil {
		t.Error(err)
	}
	m.nothing("cancelled at the question")

	last, asked = m.clone(served.url + "@draft").until(right)
	if !last.Done || len(asked) < 2 || asked[0].Secret || !asked[1].Secret {
		t.Fatalf("it ended as %+v: %+v, after %+v", last, last.Failed, asked)
	}
	folders, err := m.ListFolders(t.Context(), session.FolderFilter{})
	if err != nil || len(folders) != 1 || folders[0].Name != "paper" || folders[0].Owner != "ada" ||
		folders[0].Linked() || folders[0].Missing {
		t.Fatalf("the folders are %+v, %v", folders, err)
	}
	clone := filepath.Join(m.dir, "folders", string(folders[0].ID))
	head, err := exec.Command("git", "-C", clone, "branch", "--show-current").Output()
	if strings.TrimSpace(string(head)) != "draft" || err != nil {
		t.Errorf("the clone is at %q, %v", head, err)
	}
	if info, err := os.Stat(clone); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the folder is %v, %v", info, err)
	}
	if found, err := exec.Command("grep", "-rlF", secret, m.dir).Output(); len(found) > 0 {
		t.Errorf("the password is in %s, %v", found, err)
	}
	_, err = m.CloneFolder(t.Context(), session.CloneRequest{Name: "paper", Address: served.url})
	if session.CodeOf(err) != session.CodeFolderExists {
		t.Errorf("once more: %v", err)
	}
}

// TestAPasswordIsInNoProcess holds git back after it has logged in.
func TestAPasswordIsInNoProcess(t *testing.T) {
	m, served := newCloningMachine(t), newPrivate(t)
	served.block = make(chan struct{})
	at := m.clone(served.url)
	ended := make(chan session.CloneNews, 1)
	go func() {
		last, _ := at.until(map[string]string{"Username": "ada", "Password": secret})
		ended <- last
	}()
	<-served.asked
	if len(processes(t, m.dir, "cmdline")) == 0 {
		t.Error("there is no git")
	}
	for _, file := range []string{"cmdline", "environ"} {
		if found := processes(t, secret, file); len(found) > 0 {
			t.Errorf("the password is in %q", found)
		}
	}
	at.Close()
	if last := <-ended; last.Done {
		t.Error("it was cloned all the same")
	}
	m.nothing("cancelled")
}

func TestWhatTheGitOfAMachineDoesNotClone(t *testing.T) {
	m, served := newCloningMachine(t), newPrivate(t)
	refused := func(address string, want session.Code) {
		t.Helper()
		stream, err := m.CloneFolder(t.Context(), session.CloneRequest{Name: "paper", Address: address})
		if e := session.AsError(err, ""); err == nil || e.Code != want || e.Hint == "" ||
			strings.Contains(e.Message+e.Hint, secret) {
			t.Errorf("%s: %v, %v", address, stream, err)
		}
	}
	for _, address := range []string{"file://" + t.TempDir(), "ssh://git@127.0.0.1/paper.git", "git@127.0.0.1:paper",
		"git://127.0.0.1/paper.git", "ext::sh -c id", "/srv/paper", "http://ada:" + secret + "@127.0.0.1/paper.git",
		"https://127.0.0.1/x@--upload-pack=id"} {
		refused(address, session.CodeFileInvalid)
	}
	t.Setenv("PATH", t.TempDir())
	refused(served.url, session.CodeEngineUnsupported)
	m.nothing("refused")
}

// withoutGit is a computer that has no git.
type withoutGit struct{ hub.Cloner }

func (withoutGit) HasGit() bool { return false }

// TestALaptopWithoutGitClones goes from the hub through a real tunnel to the git of another machine.
func TestALaptopWithoutGitClones(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	served := newPrivate(t)
	home, control := servedAgent(t, daemon.Settings{Listen: "127.0.0.1:0"})
	status, err := control.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := newNearSide(t, func(*remote.Config) {}, func(c *hub.Config) { c.Cloner = withoutGit{c.Cloner} })
	begun, err := n.AddAgent(hub.AgentRequest{Address: "slipway://" + status.Listen, Name: "box"})
	if added := n.work(begun, err, func(hub.Prompt) string {
		offer, err := control.PairCode(t.Context(), session.PairRequest{})
		if err != nil {
			t.Error(err)
		}
		return offer.Code
	}); added.State != hub.OperationDone {
		t.Fatalf("%+v: %v", added, added.Error)
	}
	n.until("reached", "box", online)
	var texts []string
	clone := func(password string) hub.Operation {
		texts = nil
		begun, err := n.CloneProject(t.Context(), hub.ProjectCloning{Address: served.url, Agent: "box"})
		var kinds []hub.PromptKind
		answer := person(password, &kinds)
		return n.work(begun, err, func(p hub.Prompt) string {
			texts = append(texts, p.Text)
			return answer(p)
		})
	}
	if work := clone("wrong"); work.State != hub.OperationFailed || work.Error.Code != session.CodeCommandFailed {
		t.Errorf("with a wrong password it ended as %s: %v", work.State, work.Error)
	}
	work := clone(secret)
	if work.State != hub.OperationDone || work.Agent != "box" || work.Folder != "paper" || len(work.Steps) != 1 {
		t.Fatalf("it ended as %+v: %v", work, work.Error)
	}
	for _, text := range texts {
		if !strings.HasPrefix(text, "Your answer goes to box, ") || !strings.Contains(text, "127.0.0.1") {
			t.Errorf("it asks %q", text)
		}
	}
	files, _, err := n.FilesIn(t.Context(), "paper", "box")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := files.StatFile(t.Context(), files.Place, ".git/HEAD"); err != nil || info.Size == 0 {
		t.Errorf("the clone has %+v, %v", info, err)
	}
	for _, dir := range []string{home.Dir, n.home.Dir} {
		if found, err := exec.Command("grep", "-rlF", secret, dir).Output(); len(found) > 0 {
			t.Errorf("the password is in %s, %v", found, err)
		}
	}
	if kept := fmt.Sprint(n.Operations()); strings.Contains(kept, secret) {
		t.Error("the password is in an operation")
	}
}
