//go:build unix

package sshstdio

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"slipway/tunnel"
	"slipway/tunnel/askpass"
)

// asker answers by kind and remembers what it was asked.
type asker struct {
	answers map[askpass.Kind][]string // in their order; the last one again and again

	mu    sync.Mutex
	asked []askpass.Question
}

func (a *asker) Ask(_ context.Context, q askpass.Question) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, q)
	list := a.answers[q.Kind]
	if len(list) == 0 {
		return "", fmt.Errorf("an unexpected question: %+v", q)
	}
	if len(list) > 1 {
		a.answers[q.Kind] = list[1:]
	}
	return list[0], nil
}

func (a *asker) kinds() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for _, q := range a.asked {
		kind := string(q.Kind)
		if q.Again {
			kind += " again"
		}
		out = append(out, kind)
	}
	return strings.Join(out, ", ")
}

const (
	testPassword = "correct horse"
	testFactor   = "918273"
)

// askingServer is an ssh server that wants a password, a password and then a
// second factor, or only what the keyboard gives. It runs no program: every
// command answers as the far side's sh and cat would.
func askingServer(t *testing.T, p *place, change func(*ssh.ServerConfig)) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{}
	change(config)
	config.AddHostKey(signer)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serveSSH(conn, config)
		}
	}()
	p.know(t, listener.Addr().(*net.TCPAddr).Port, string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	return listener.Addr().String()
}

func serveSSH(conn net.Conn, config *ssh.ServerConfig) {
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	defer server.Close()
	go ssh.DiscardRequests(requests)
	for wanted := range channels {
		channel, requests, err := wanted.Accept()
		if err != nil {
			return
		}
		go func() {
			for request := range requests {
				_ = request.Reply(request.Type == "exec", nil)
				if request.Type == "exec" {
					go answerCommand(channel, string(request.Payload))
				}
			}
		}()
	}
}

// answerCommand prints the mark that it finds in the command and echoes.
func answerCommand(channel ssh.Channel, command string) {
	defer channel.Close()
	at := strings.Index(command, "slipway-")
	mark, _, _ := strings.Cut(command[at:], "'")
	_, _ = fmt.Fprintf(channel, "\n%s\n", mark)
	_, _ = io.Copy(channel, channel)
	if strings.Contains(command, "%03d") {
		_, _ = fmt.Fprintf(channel, "\n%s 000\n", mark)
	}
	_, _ = channel.SendRequest("exit-status", false, []byte{0, 0, 0, 0})
}

func byPassword(c *ssh.ServerConfig) {
	c.PasswordCallback = func(_ ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
		if string(password) != testPassword {
			return nil, errors.New("no")
		}
		return nil, nil
	}
}

func byKeyboard(c *ssh.ServerConfig) {
	c.KeyboardInteractiveCallback = func(_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions,
		error) {
		answers, err := ask("lab", "", []string{"Password: ", "Verification code: "}, []bool{false, false})
		if err != nil || answers[0] != testPassword || answers[1] != testFactor {
			return nil, errors.New("no")
		}
		return nil, nil
	}
}

func TestPasswordsAndFactorsAreAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		server  func(*ssh.ServerConfig)
		answers map[askpass.Kind][]string
		asked   string
	}{
		"a password": {byPassword, map[askpass.Kind][]string{askpass.KindPassword: {testPassword}}, "password"},
		"a wrong password": {byPassword, map[askpass.Kind][]string{askpass.KindPassword: {"wrong", testPassword}},
			"password, password again"},
		"a second factor": {byKeyboard,
			map[askpass.Kind][]string{askpass.KindPassword: {testPassword}, askpass.KindMFA: {testFactor}},
			"password, mfa"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			address := askingServer(t, p, c.server)
			person := &asker{answers: c.answers}
			r := p.remote(t, address, person)
			conn, err := r.Dial(soon(t), false)
			if err != nil {
				t.Fatalf("%v; asked %s", err, person.kinds())
			}
			defer conn.Close()
			echo(t, conn)
			if person.kinds() != c.asked {
				t.Errorf("asked %s, not %s", person.kinds(), c.asked)
			}
			for _, q := range person.asked {
				if !q.Secret {
					t.Errorf("%q is not secret", q.Text)
				}
			}
			_, err = r.Dial(soon(t), true)
			if wantCode(t, err, "agent_connect_asks"); !errors.Is(err, tunnel.ErrWouldAsk) {
				t.Errorf("a silent dial fails with %v", err)
			}
		})
	}
}

func TestOnePasswordServesCommandsAndACarrier(t *testing.T) {
	p := newPlace(t)
	address := askingServer(t, p, byPassword)
	person := &asker{answers: map[askpass.Kind][]string{askpass.KindPassword: {testPassword}}}
	r := p.remote(t, address, person)
	for range 3 {
		if result, err := r.Run(soon(t), []string{"cat"}, strings.NewReader("x")); err != nil ||
			string(result.Stdout) != "x" {
			t.Fatalf("%q, %v", result.Stdout, err)
		}
	}
	conn, err := r.Dial(soon(t), false)
	if err != nil {
		t.Fatal(err)
	}
	echo(t, conn)
	if person.kinds() != "password" {
		t.Errorf("asked %s", person.kinds())
	}
	// A carrier outlives what dialled it.
	other := p.remote(t, address, &asker{answers: map[askpass.Kind][]string{askpass.KindPassword: {testPassword}}})
	if _, err := other.Run(soon(t), []string{"cat"}, nil); err != nil {
		t.Fatal(err)
	}
	kept, err := other.Dial(soon(t), false)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	echo(t, kept)
	// After a carrier has failed, what it rode on is not trusted again.
	again, err := r.Dial(soon(t), false)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	echo(t, again)
	if person.kinds() != "password, password again" && person.kinds() != "password, password" {
		t.Errorf("asked %s", person.kinds())
	}
	echo(t, conn) // and goes on while another is dialled
	_ = conn.Close()
}

func TestACommandOutlivesTheCarrierBesideIt(t *testing.T) {
	p := newPlace(t)
	person := &asker{answers: map[askpass.Kind][]string{askpass.KindPassword: {testPassword}}}
	r := p.remote(t, askingServer(t, p, byPassword), person)
	if _, err := r.Run(soon(t), []string{"true"}, nil); err != nil {
		t.Fatal(err)
	}
	conn, err := r.Dial(soon(t), false)
	if err != nil {
		t.Fatal(err)
	}
	echo(t, conn)
	login, ridden, over := r.master, conn.(tunnel.Carrier).Conn.(*carrier), make(chan bool)
	drop := ridden.ended
	ridden.ended = func() {
		drop()
		close(over)
	}
	from, to := io.Pipe()
	defer to.Close()
	type outcome struct {
		said string
		err  error
	}
	ended := make(chan outcome, 1)
	go func() {
		result, err := r.Run(soon(t), []string{"cat"}, from)
		ended <- outcome{string(result.Stdout), err}
	}()
	for uses := 0; uses == 0; runtime.Gosched() {
		r.mu.Lock()
		uses = login.uses
		r.mu.Unlock()
	}
	_ = conn.Close() // as the agent ends that the command stops
	<-over
	if login.carrier.closed.Load() {
		t.Error("the connection is closed while a command uses it")
	}
	if _, err := to.Write([]byte("the end")); err != nil {
		t.Error(err)
	}
	_ = to.Close()
	if got := <-ended; got.err != nil || got.said != "the end" || !login.carrier.closed.Load() {
		t.Errorf("it said %q, %v; the connection is closed: %v", got.said, got.err, login.carrier.closed.Load())
	}
	if person.kinds() != "password" {
		t.Errorf("asked %s", person.kinds())
	}
}

func TestRefusingToAnswerEndsTheLogin(t *testing.T) {
	p := newPlace(t)
	address := askingServer(t, p, byPassword)
	person := &asker{}
	_, err := p.remote(t, address, person).Dial(soon(t), false)
	wantCode(t, err, "agent_connect_auth")
	if person.kinds() != "password" {
		t.Errorf("asked %s", person.kinds())
	}
}

func TestAQuestionEndsWithTheDial(t *testing.T) {
	p := newPlace(t)
	address := askingServer(t, p, byPassword)
	ctx, cancel := context.WithCancel(soon(t))
	withdrawn := make(chan struct{})
	_, err := p.remote(t, address, askFunc(func(asking context.Context, _ askpass.Question) (string, error) {
		cancel()
		<-asking.Done()
		close(withdrawn)
		return "", asking.Err()
	})).Dial(ctx, false)
	wantCode(t, err, "agent_connect_auth")
	<-withdrawn
}

func TestPassphrasesAreAskedFor(t *testing.T) {
	p := newPlace(t)
	if err := errors.Join(os.Remove(p.key), os.Remove(p.key+".pub")); err != nil {
		t.Fatal(err)
	}
	p.keygen(t, p.key, "open sesame")
	s := startServer(t, p)
	p.trust(t, s)
	t.Setenv("SSH_AUTH_SOCK", "")
	person := &asker{answers: map[askpass.Kind][]string{askpass.KindPassphrase: {"wrong", "open sesame"}}}
	r := p.remote(t, s.address(), person)
	conn, err := r.Dial(soon(t), false)
	if err != nil {
		t.Fatalf("%v; asked %s", err, person.kinds())
	}
	defer conn.Close()
	echo(t, conn)
	if person.kinds() != "passphrase, passphrase again" {
		t.Errorf("asked %s", person.kinds())
	}
	if _, err := r.Dial(soon(t), true); !errors.Is(err, tunnel.ErrWouldAsk) {
		t.Errorf("a silent dial fails with %v", err)
	}
}

func TestSecretsAreInNoArgumentAndNoEnvironment(t *testing.T) {
	p := newPlace(t)
	var seen []string
	look := func() {
		paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil || len(paths) == 0 {
			t.Errorf("no processes: %v", err)
		}
		for _, path := range paths {
			for _, file := range []string{path, filepath.Join(filepath.Dir(path), "environ")} {
				if data, err := os.ReadFile(file); err == nil && strings.Contains(string(data), testPassword) {
					seen = append(seen, file)
				}
			}
		}
	}
	address := askingServer(t, p, func(c *ssh.ServerConfig) {
		byPassword(c)
		inner := c.PasswordCallback
		c.PasswordCallback = func(m ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			look() // ssh and its askpass have just handled it
			return inner(m, password)
		}
	})
	conn, err := p.remote(t, address, &asker{answers: map[askpass.Kind][]string{askpass.KindPassword: {testPassword}}}).
		Dial(soon(t), false)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	look()
	if len(seen) > 0 {
		t.Errorf("the password is in %v", seen)
	}
	person := &asker{answers: map[askpass.Kind][]string{askpass.KindPassword: {"almost " + testPassword}}}
	_, err = p.remote(t, address, person).Dial(soon(t), false)
	if wantCode(t, err, "agent_connect_auth"); err == nil || strings.Contains(err.Error(), testPassword) {
		t.Errorf("the error is %v", err)
	}
}
