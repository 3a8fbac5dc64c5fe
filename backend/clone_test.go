//go:build linux

package backend

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/hub"
	"slipway/backend/remote"
	"slipway/backend/session"
)

// private serves a git repository to those who know a password. Block holds requests back while it is open.
type private struct {
	url   string
	bare  string // the directory that is served
	block chan struct{}
	asked chan struct{} // holds a token once a request is held back
}

const secret = "correct horse"

func newPrivate(t *testing.T) *private {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", dir + "/work"}, {"-C", dir + "/work", "-c", "user.name=ada", "-c",
			"user.email=ada@example.com", "commit", "-q", "--allow-empty", "-m", "all"},
		{"-C", dir + "/work", "branch", "draft"}, {"clone", "-q", "--bare", dir + "/work", dir + "/paper.git"},
		{"-C", dir + "/paper.git", "update-server-info"},
	} {
		if said, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, said)
		}
	}
	p := &private{block: make(chan struct{}), asked: make(chan struct{}, 1)}
	close(p.block)
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ada" || password != secret {
			w.Header().Set("WWW-Authenticate", `Basic realm="papers"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		select {
		case <-p.block:
		default:
			p.asked <- struct{}{}
			<-r.Context().Done()
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.url, p.bare = server.URL+"/paper.git", dir+"/paper.git"
	return p
}

// person answers what git asks.
func person(password string, kinds *[]hub.PromptKind) func(hub.Prompt) string {
	return func(p hub.Prompt) string {
		*kinds = append(*kinds, p.Kind)
		if p.Kind == hub.PromptUsername {
			return "ada"
		}
		return password
	}
}

func TestARepositoryBecomesAFolder(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // no helper of the person's who runs the tests
	for _, set := range [][]string{{"user.name", "Ada L"}, {"user.email", "ada@example.com"}} {
		if err := exec.Command("git", append([]string{"config", "--global"}, set...)...).Run(); err != nil {
			t.Fatal(err)
		}
	}
	served, into := newPrivate(t), t.TempDir()
	n := newNearSide(t, func(*remote.Config) {})
	clone := func(address, directory, password string) (hub.Operation, []hub.PromptKind) {
		var kinds []hub.PromptKind
		begun, err := n.CloneProject(t.Context(), hub.ProjectCloning{Address: address, Directory: directory})
		return n.work(begun, err, person(password, &kinds)), kinds
	}
	nothing := func(when string) {
		t.Helper()
		if left, err := os.ReadDir(into); err != nil || len(left) > 0 {
			t.Errorf("%s: left is %v, %v", when, left, err)
		}
		if folders, err := n.Folders(t.Context(), ""); err != nil || len(folders) > 0 {
			t.Errorf("%s: there are the folders %v, %v", when, folders, err)
		}
	}
	if work, _ := clone(served.url, into, "wrong"); work.State != hub.OperationFailed ||
		work.Error.Code != session.CodeCommandFailed || !strings.Contains(work.Error.Message, "Authentication failed") {
		t.Errorf("with a wrong password it ended as %s: %v", work.State, work.Error)
	}
	nothing("a wrong password")
	if work, _ := clone(served.url+"@absent", into, secret); work.State != hub.OperationFailed ||
		!strings.Contains(work.Error.Message, "absent") {
		t.Errorf("without the branch it ended as %s: %v", work.State, work.Error)
	}
	nothing("an absent branch")
	if work, _ := clone(served.url, filepath.Join(into, "absent"), secret); work.State != hub.OperationFailed ||
		work.Error.Code != session.CodeFileForbidden {
		t.Errorf("without the directory it ended as %s: %v", work.State, work.Error)
	}
	if work, _ := clone(served.url, "paper", secret); work.State != hub.OperationFailed ||
		work.Error.Code != session.CodeFileInvalid {
		t.Errorf("in a directory below nowhere it ended as %s: %v", work.State, work.Error)
	}

	work, kinds := clone(served.url+"@draft", into, secret)
	if work.State != hub.OperationDone || work.Folder != "paper" || len(kinds) < 2 || kinds[0] != hub.PromptUsername ||
		kinds[1] != hub.PromptPassword {
		t.Fatalf("it ended as %+v, and asked for %v", work, kinds)
	}
	_, folder, err := n.FindFolder(t.Context(), "paper", "local")
	if dir := filepath.Join(into, "paper"); err != nil || folder.Path != dir {
		t.Errorf("the folder is %+v, %v", folder, err)
	}
	head, err := exec.Command("git", "-C", folder.Path, "branch", "--show-current").Output()
	if strings.TrimSpace(string(head)) != "draft" || err != nil {
		t.Errorf("the clone is at %q, %v", head, err)
	}
	author, err := exec.Command("git", "-C", folder.Path, "config", "--local", "--get-regexp", `^user\.`).Output()
	if string(author) != "user.name Ada L\nuser.email ada@example.com\n" || err != nil {
		t.Errorf("the author in the clone is %q, %v", author, err)
	}
	if found, err := exec.Command("grep", "-rlF", secret, into, n.home.Dir).Output(); len(found) > 0 {
		t.Errorf("the password is in %s, %v", found, err)
	}
	if _, err := n.CloneProject(t.Context(), hub.ProjectCloning{Address: served.url}); session.CodeOf(err) !=
		session.CodeFolderExists {
		t.Errorf("once more: %v", err)
	}
}

func TestACloneThatIsCancelledLeavesNothing(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	served, into := newPrivate(t), t.TempDir()
	served.block = make(chan struct{})
	n := newNearSide(t, func(*remote.Config) {})
	begun, err := n.CloneProject(t.Context(), hub.ProjectCloning{Address: served.url, Directory: into})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		<-served.asked // git is at work
		if _, err := n.CancelOperation(begun.ID); err != nil {
			t.Error(err)
		}
	}()
	var kinds []hub.PromptKind
	if work := n.work(begun, err, person(secret, &kinds)); work.State != hub.OperationCancelled {
		t.Errorf("it ended as %s: %v", work.State, work.Error)
	}
	<-ctx.Done()
	if left, err := os.ReadDir(into); err != nil || len(left) > 0 {
		t.Errorf("left is %v, %v", left, err)
	}
}

// What the person's git knows by itself is not asked for: by a helper, or by a key that only the agent of ssh has.
func TestWhatThePersonsHelpersKnowIsNotAsked(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	run := func(name string, args ...string) {
		t.Helper()
		if said, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, said)
		}
	}
	served, dir := newPrivate(t), t.TempDir()
	run("git", "config", "--global", "credential.helper", "!f() { echo username=ada; echo password='"+secret+"'; }; f")

	at := func(name string) string { return filepath.Join(dir, name) }
	run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", at("host"))
	run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", at("key"))
	for name, text := range map[string]string{
		"sshd": fmt.Sprintf("HostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nUsePAM no\n", at("host"),
			at("key.pub")),
		"ssh": fmt.Sprintf("Host papers\n  ProxyCommand /usr/sbin/sshd -i -f %s\n  StrictHostKeyChecking no\n"+
			"  UserKnownHostsFile /dev/null\n", at("sshd")),
	} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // which sshd wants
		t.Fatal(err)
	}
	t.Setenv("GIT_SSH_COMMAND", "ssh -F "+at("ssh"))
	t.Setenv("SSH_AUTH_SOCK", at("agent"))
	agent := exec.Command("ssh-agent", "-D", "-a", at("agent"))
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		agent.Process.Kill() //nolint:errcheck // it has ended
		agent.Wait()         //nolint:errcheck // it was killed
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(at("agent")); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	run("ssh-add", "-q", at("key"))
	if err := os.Remove(at("key")); err != nil { // the agent alone has it
		t.Fatal(err)
	}

	for kind, address := range map[string]string{"http": served.url, "ssh": "ssh://root@papers" + served.bare} {
		n, into := newNearSide(t, func(*remote.Config) {}), t.TempDir()
		var kinds []hub.PromptKind
		begun, err := n.CloneProject(t.Context(), hub.ProjectCloning{Address: address, Directory: into})
		work := n.work(begun, err, person("wrong", &kinds))
		if work.State != hub.OperationDone || len(kinds) > 0 {
			t.Errorf("by %s it ended as %s, %v, and asked for %v", kind, work.State, work.Error, kinds)
		}
		if found, err := exec.Command("grep", "-rlF", secret, into, n.home.Dir).Output(); len(found) > 0 {
			t.Errorf("by %s the password is in %s, %v", kind, found, err)
		}
	}
}
