package guest

import (
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"slipway/backend/terminal"
)

// lateProcesses starts a program only once its caller has the reply.
type lateProcesses struct {
	Processes
	replied chan struct{}
}

func (p lateProcesses) Script(string) []string { return []string{"sh"} }

func (p lateProcesses) Start(Command) (terminal.Process, error) {
	<-p.replied
	return nil, errors.New("it does not start")
}

// A command is accepted before it runs, since a short one may have ended before the reply otherwise.
func TestACommandIsAcceptedBeforeItRuns(t *testing.T) {
	host, err := newHostKey()
	if err != nil {
		t.Fatal(err)
	}
	user, err := newHostKey()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	processes := lateProcesses{replied: make(chan struct{})}
	server := &sshServer{processes: processes, config: serverConfig(host, user.PublicKey()), login: time.Minute,
		use: new(sshUse)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if conn, err := listener.Accept(); err == nil {
			server.answer(t.Context(), conn)
		}
	}()
	client, err := ssh.Dial("tcp", listener.Addr().String(), &ssh.ClientConfig{User: User,
		Auth: []ssh.AuthMethod{ssh.PublicKeys(user)}, HostKeyCallback: ssh.FixedHostKey(host.PublicKey())})
	if err != nil {
		t.Fatal(err)
	}
	s, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	waiting := time.AfterFunc(time.Minute, func() { _ = client.Close() })
	err = s.Start("true")
	waiting.Stop()
	close(processes.replied)
	if err != nil {
		t.Fatal(err)
	}
	var exit *ssh.ExitError
	if err := s.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != codeUnstarted {
		t.Errorf("it ended with %v", err)
	}
	_ = client.Close()
	<-served
}
