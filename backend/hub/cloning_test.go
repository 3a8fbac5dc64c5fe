package hub_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"slipway/backend/agent"
	"slipway/backend/agent/simulated"
	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
)

// cloningLab is a machine whose clones a test plays.
type cloningLab struct {
	session.Projects
	asked []session.CloneRequest
	play  func(net.Conn) // closes nothing
}

func (l *cloningLab) CloneFolder(_ context.Context, req session.CloneRequest) (io.ReadWriteCloser, error) {
	l.asked = append(l.asked, req)
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		l.play(far)
	}()
	return near, nil
}

// newCloningWorld is a computer with simulated sessions, and a lab.
func newCloningWorld(t *testing.T) (world, *cloningLab) {
	t.Helper()
	near, lab := simulated.Open(t, nil).Agent(), simulated.Open(t, func(*agent.Config) {}).Agent()
	played := &cloningLab{Projects: lab.Projects}
	lab.Projects = played
	w := world{}
	var err error
	w.Hub, err = hub.Open(hub.Config{Shelf: &hubtest.Shelf{}, Settings: noSettings(t), Owner: "ada",
		Members: []hub.Member{{Name: "local", Local: true, Agent: near}, {Name: "lab", Agent: lab}}})
	if err != nil {
		t.Fatal(err)
	}
	w.run(t)
	return w, played
}

func (w world) clone(t *testing.T) hub.Operation {
	t.Helper()
	begun, err := w.CloneProject(t.Context(), hub.ProjectCloning{Address: "https://example.com/paper.git@v2#a",
		Agent: "lab", Directory: "/home/ada"})
	if err != nil {
		t.Fatal(err)
	}
	return begun
}

func TestAnotherMachinesGitClonesWhereThisComputerCannot(t *testing.T) {
	w, lab := newCloningWorld(t)
	heard := make(chan string, 1)
	lab.play = func(conn net.Conn) {
		_, _ = io.WriteString(conn, `{"line":"Receiving objects:  50%"}`+"\n"+
			`{"ask":{"text":"Password\u001b]0;x\u0007 for laptop\u202e:\nhere","secret":true,"again":true}}`+"\n")
		line, _ := bufio.NewReader(conn).ReadString('\n')
		heard <- line
		_, _ = io.WriteString(conn, `{"done":true}`+"\n")
	}
	begun := w.clone(t)
	asking := w.operation(t, begun.ID, func(o hub.Operation) bool { return o.Prompt != nil })
	p := asking.Prompt
	if p.Kind != hub.PromptPassword || !p.Secret || !p.Again || strings.ContainsAny(p.Text, "\x1b\x07\u202e\n") ||
		!strings.HasPrefix(p.Text, "Your answer goes to lab, whose git asks: Password") {
		t.Errorf("it asks %+v", p)
	}
	if asking.Steps[0].Detail != "Receiving objects:  50%" {
		t.Errorf("it shows %+v", asking.Steps)
	}
	if _, err := w.AnswerOperation(begun.ID, p.ID, "correct horse"); err != nil {
		t.Fatal(err)
	}
	done := w.operation(t, begun.ID, ended)
	if done.State != hub.OperationDone || done.Agent != "lab" || done.Folder != "paper" || len(done.Steps) != 1 ||
		done.Steps[0].Title != "Clone the repository with the git of lab" {
		t.Errorf("it ended as %+v", done)
	}
	if got := <-heard; got != `{"answer":"correct horse"}`+"\n" {
		t.Errorf("the machine heard %q", got)
	}
	want := session.CloneRequest{Name: "paper", Address: "https://example.com/paper.git@v2"}
	if !slices.Equal(lab.asked, []session.CloneRequest{want}) {
		t.Errorf("it asked for %+v", lab.asked)
	}
	_, err := w.CloneProject(t.Context(), hub.ProjectCloning{Address: "https://example.com/paper.git"})
	if session.CodeOf(err) != session.CodeEngineUnsupported {
		t.Errorf("for this computer: %v", err)
	}
}

func TestAMachineThatClonesBadly(t *testing.T) {
	w, lab := newCloningWorld(t)
	const question = `{"ask":{"text":"Username"}}` + "\n"
	for name, c := range map[string]struct {
		said string
		want session.Code
	}{
		"a line without end":     {strings.Repeat("x", 2*session.MaxCloneLine), session.CodeAgentReply},
		"a line that is no JSON": {"done\n", session.CodeAgentReply},
		"a failure without code": {`{"failed":{"message":"x"}}` + "\n", session.CodeAgentReply},
		"another type":           {`{"line":["x"]}` + "\n", session.CodeAgentReply},
		"a failure": {`{"failed":{"code":"cli_command_failed","message":"Git\u001b[2J failed"}}` + "\n",
			session.CodeCommandFailed},
		"the end":               {`{"line":"x"}` + "\n", session.CodeAgentUnavailable},
		"the end at a question": {question, session.CodeAgentUnavailable},
		"a failure at a question": {question + `{"failed":{"code":"cli_command_failed","message":"x"}}` + "\n",
			session.CodeCommandFailed},
	} {
		lab.play = func(conn net.Conn) { _, _ = io.WriteString(conn, c.said) }
		done := w.operation(t, w.clone(t).ID, ended)
		if done.State != hub.OperationFailed || done.Error.Code != c.want || done.Prompt != nil ||
			strings.Contains(done.Error.Message, "\x1b") {
			t.Errorf("%s: it ended as %+v: %v", name, done, done.Error)
		}
	}
}

func TestAMachineThatAsksWithoutEnd(t *testing.T) {
	w, lab := newCloningWorld(t)
	lab.play = func(conn net.Conn) {
		for answers := bufio.NewScanner(conn); ; answers.Scan() {
			if _, err := io.WriteString(conn, `{"ask":{"text":"Username"}}`+"\n"); err != nil {
				return
			}
		}
	}
	begun, last := w.clone(t), ""
	for {
		now := w.operation(t, begun.ID, func(o hub.Operation) bool {
			return ended(o) || o.Prompt != nil && o.Prompt.ID != last
		})
		if ended(now) {
			if now.State != hub.OperationFailed || now.Error.Code != session.CodeAgentReply {
				t.Errorf("it ended as %+v: %v", now, now.Error)
			}
			return
		}
		last = now.Prompt.ID
		if _, err := w.AnswerOperation(begun.ID, last, "ada"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestACloneByAnotherMachineIsCancelled(t *testing.T) {
	w, lab := newCloningWorld(t)
	left := make(chan error, 1)
	lab.play = func(conn net.Conn) {
		_, _ = io.WriteString(conn, `{"ask":{"text":"Username"}}`+"\n")
		_, err := conn.Read(make([]byte, 1))
		left <- err
	}
	begun := w.clone(t)
	w.operation(t, begun.ID, func(o hub.Operation) bool { return o.Prompt != nil })
	if _, err := w.CancelOperation(begun.ID); err != nil {
		t.Fatal(err)
	}
	if done := w.operation(t, begun.ID, ended); done.State != hub.OperationCancelled {
		t.Errorf("it ended as %+v", done)
	}
	if err := <-left; err == nil {
		t.Error("the machine heard an answer")
	}
}
